//! The round trips of the paths that a transport is used on.

use farlink_core::Time;
use farlink_core::hop::HopSetup;
use farlink_core::scenario::Scenario;

use crate::engine::Setup;

/// The shortest round trip that a transport is used on: over the whole path, or the part of it between gateways.
pub(super) fn least_round_trip(scenario: &Scenario, setup: &Setup, transport: &str) -> Time {
    let hops = setup.forward.len();
    let round_trip = |range: std::ops::Range<usize>| {
        let back = hops - range.end..hops - range.start;
        propagation(&setup.forward[range]) + propagation(&setup.back[back])
    };
    let mut least = Time::NEVER;
    for flow in scenario.flow.values().filter(|flow| flow.transport == transport) {
        least = least.min(match scenario.gateway() {
            Some((at, ..)) if scenario.is_split(flow) => round_trip(at..at + 1),
            _ => round_trip(0..hops),
        });
    }
    match scenario.gateway() {
        Some((at, _, gateway)) if gateway.edge_transport.as_deref() == Some(transport) => {
            least.min(round_trip(0..at)).min(round_trip(at + 1..hops))
        }
        _ => least,
    }
}

/// The sum of the delays of a direction; delays that vary count as 0.
fn propagation(hops: &[HopSetup]) -> Time {
    hops.iter().filter_map(|hop| hop.delay.constant()).fold(Time::ZERO, |sum, delay| sum + delay)
}
