//! What a user should know of a scenario that can be run but hardly means what it says, and what cannot be run for that.

use farlink_core::Time;
use farlink_core::protocol::LongestTimeout;
use farlink_core::scenario::{Scenario, ScenarioError};

use crate::engine::{HopSetup, Setup};

/// So often may a timer expire in a round trip before anything was answered.
const MOST_TIMEOUTS: u64 = 1000;

/// Notes on all points of a study, each once.
pub(crate) fn notes(study: &[(&Scenario, &Setup)]) -> Vec<String> {
    let mut all = Vec::new();
    for (scenario, setup) in study {
        let channels = setup.forward.iter().chain(&setup.back).flat_map(|hop| hop.channel.notes());
        for note in timeouts_below_the_round_trip(scenario, setup).into_iter().chain(channels) {
            if !all.contains(&note) {
                all.push(note);
            }
        }
    }
    all
}

/// Timers that always expire before the acknowledgement can be there.
fn timeouts_below_the_round_trip(scenario: &Scenario, setup: &Setup) -> Vec<String> {
    let round_trip = least_round_trip(setup);
    let note = |(name, longest): (&String, LongestTimeout)| {
        let LongestTimeout { key, value, ever, otherwise, .. } = longest;
        (ever <= round_trip).then(|| {
            let back_off =
                if ever == value { String::new() } else { format!(" ({} s with back-off)", ever.as_secs_f64()) };
            format!(
                "transport.{name}.{key} = {} s{back_off} is below the path's round trip of {} s: {otherwise}",
                value.as_secs_f64(),
                round_trip.as_secs_f64(),
            )
        })
    };
    timeouts(scenario).filter_map(note).collect()
}

/// Refuses timers that would expire so often before the first answer can be there that a run hardly gets to its end.
///
/// # Errors
/// The first such timer.
pub(crate) fn check_timers(scenario: &Scenario, setup: &Setup) -> Result<(), ScenarioError> {
    let round_trip = least_round_trip(setup);
    for (name, longest) in timeouts(scenario) {
        let LongestTimeout { unanswered, .. } = longest;
        if unanswered.times(MOST_TIMEOUTS) < round_trip {
            let what = format!(
                "until something is answered the timer waits {:e} s at most, back-off included, and would expire more than \
                 {MOST_TIMEOUTS} times in the path's round trip of {} s",
                unanswered.as_secs_f64(),
                round_trip.as_secs_f64(),
            );
            let remedy = "give about the round trip, and rto.maximum_s no less";
            return Err(ScenarioError::new(format!("transport.{name}.rto.initial_s"), what, remedy));
        }
    }
    Ok(())
}

/// The timers of the transports in use, with their names.
fn timeouts(scenario: &Scenario) -> impl Iterator<Item = (&String, LongestTimeout)> {
    let is_used = |name: &String| scenario.flow.values().any(|flow| flow.transport == *name);
    let used = scenario.transport.iter().filter(move |(name, _)| is_used(name));
    used.filter_map(|(name, transport)| Some((name, transport.as_dyn().longest_timeout()?)))
}

fn least_round_trip(setup: &Setup) -> Time {
    propagation(&setup.forward) + propagation(&setup.back)
}

/// The delays of a direction; of those that vary, nothing is known for sure.
fn propagation(hops: &[HopSetup]) -> Time {
    hops.iter().filter_map(|hop| hop.delay.constant()).fold(Time::ZERO, |sum, delay| sum + delay)
}
