//! Retransmission timers that expire before an answer can arrive.

use farlink_core::ConfigError;
use farlink_core::protocol::LongestTimeout;
use farlink_core::scenario::Scenario;

use super::round_trips::least_round_trip;
use super::{Point, Remark};
use crate::engine::Setup;

/// Largest number of expiries within a round trip before the first answer.
const MOST_TIMEOUTS: u64 = 1000;

/// Timers that always expire before the acknowledgement can arrive.
pub(super) fn below_the_round_trip(Point { scenario, setup }: Point<'_>) -> Vec<Remark> {
    let note = |(name, longest): (&String, LongestTimeout)| {
        let LongestTimeout { key, value, ever, otherwise, .. } = longest;
        let round_trip = least_round_trip(scenario, setup, name);
        (ever <= round_trip).then(|| {
            let back_off =
                if ever == value { String::new() } else { format!(" ({} s with back-off)", ever.as_secs_f64()) };
            let rest = format!(
                "= {} s{back_off} is below the path's round trip of {} s: {otherwise}",
                value.as_secs_f64(),
                round_trip.as_secs_f64(),
            );
            Remark::new(format!("transport.{name}.{key}"), rest)
        })
    };
    timeouts(scenario).filter_map(note).collect()
}

/// Refuses timers that would expire so often before the first answer that a run would take too long.
///
/// # Errors
/// If there is such a timer; the error names the first one.
pub(crate) fn check_timers(scenario: &Scenario, setup: &Setup) -> Result<(), ConfigError> {
    for (name, longest) in timeouts(scenario) {
        let LongestTimeout { unanswered, .. } = longest;
        let round_trip = least_round_trip(scenario, setup, name);
        if unanswered.times(MOST_TIMEOUTS) < round_trip {
            let what = format!(
                "until something is answered the timer waits {:e} s at most, back-off included, and would expire more than \
                 {MOST_TIMEOUTS} times in the path's round trip of {} s",
                unanswered.as_secs_f64(),
                round_trip.as_secs_f64(),
            );
            let remedy = "give about the round trip, and rto.maximum_s no less";
            return Err(ConfigError::new(format!("transport.{name}.rto.initial_s"), what, remedy));
        }
    }
    super::aerotp::check_round_trips(scenario, setup)
}

/// The timers of the transports in use, with their names.
fn timeouts(scenario: &Scenario) -> impl Iterator<Item = (&String, LongestTimeout)> {
    let edge = scenario.gateway().and_then(|(_, _, gateway)| gateway.edge_transport.as_ref());
    let is_used = move |name: &String| edge == Some(name) || scenario.flow.values().any(|flow| flow.transport == *name);
    let used = scenario.transport.iter().filter(move |(name, _)| is_used(name));
    used.filter_map(|(name, transport)| Some((name, transport.as_dyn().longest_timeout()?)))
}
