//! What a user should know of a scenario that can be run but hardly means what it says.

use farlink_core::Time;
use farlink_core::scenario::Scenario;

use crate::engine::{HopSetup, Setup};

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

/// A timer that always expires before the acknowledgement can be there.
fn timeouts_below_the_round_trip(scenario: &Scenario, setup: &Setup) -> Vec<String> {
    let round_trip = propagation(&setup.forward) + propagation(&setup.back);
    let names: Vec<&String> =
        scenario.transport.keys().filter(|&name| scenario.flow.values().any(|flow| flow.transport == *name)).collect();
    let note = |name: &String| {
        let (key, longest) = scenario.transport[name].as_dyn().longest_timeout()?;
        (longest <= round_trip).then(|| {
            format!(
                "transport.{name}.{key} = {} s is below the path's round trip of {} s: the timer expires before any \
                 acknowledgement can arrive, and everything is sent again",
                longest.as_secs_f64(),
                round_trip.as_secs_f64(),
            )
        })
    };
    names.into_iter().filter_map(note).collect()
}

/// The delays of a direction; of those that vary, nothing is known for sure.
fn propagation(hops: &[HopSetup]) -> Time {
    hops.iter().filter_map(|hop| hop.delay.constant()).fold(Time::ZERO, |sum, delay| sum + delay)
}
