//! Timers that wait for many round trips before a lost packet is retransmitted.

use farlink_core::channel::ChannelKind;
use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::parts::rto::{RtoAlgorithm, RtoConfig};
use farlink_core::scenario::Scenario;

use super::legs::{Leg, digits, legs};
use super::{Point, Remark};

/// Number of round trips from which on a timer gives a remark.
const ROUND_TRIPS: f64 = 10.0;
/// Longer timeouts of TCP are always due to a key.
const LONG_S: f64 = 5.0;

/// Timers far above the round trip on paths with losses: those of an ARQ that keeps TCP's minimum of one second, or any that a
/// key makes that long.
pub(super) fn far_above_the_round_trip(point: Point<'_>) -> Vec<Remark> {
    if !loses(point.scenario) {
        return Vec::new();
    }
    let remark = |leg: &Leg<'_>| {
        let (timer, is_arq) = timer(leg.config)?;
        let flight = leg.config.as_dyn().flight()?;
        let is_fixed = timer.algorithm == RtoAlgorithm::Fixed;
        let (key, value_s) =
            if is_fixed { ("initial_s", timer.initial_s.get()) } else { ("minimum_s", timer.least_s()) };
        // A window that waits in a queue is part of the round trip.
        let window_s = flight.window_bytes() * 8.0 / leg.rate_bps();
        let round_trip_s = leg.round_trip().as_secs_f64() + if is_arq { window_s } else { 0.0 };
        let is_long = value_s > ROUND_TRIPS * round_trip_s && (is_arq || value_s >= LONG_S);
        (is_long && leg.has_at_least(2.0 * flight.payload_bytes as f64)).then(|| {
            let doubles = if is_fixed { "" } else { ", and twice as long each time in a row" };
            let rest = format!(
                "= {value_s} s is {} round trips of {} s: a packet that is lost and that no acknowledgement betrays waits so \
                 long{doubles}; give about two round trips, {}",
                digits(value_s / round_trip_s),
                digits(round_trip_s),
                digits(2.0 * round_trip_s),
            );
            Remark::new(format!("transport.{}.rto.{key}", leg.transport), rest)
        })
    };
    legs(point).iter().filter_map(remark).collect()
}

/// Whether a channel of the scenario loses packets.
fn loses(scenario: &Scenario) -> bool {
    let is_clear = |channel: &ChannelKind| matches!(channel, ChannelKind::None(_));
    scenario
        .hops()
        .iter()
        .any(|(_, hop)| [hop.forward(), hop.back()].iter().any(|way| !is_clear(way.channel) || way.coding.is_some()))
}

fn timer(config: &TransportConfig) -> Option<(RtoConfig, bool)> {
    match config {
        TransportConfig::Tcp(tcp) => Some((tcp.rto, false)),
        TransportConfig::ScpsTp(scps) => Some((scps.rto, false)),
        TransportConfig::Arq(arq) => Some((arq.rto, true)),
        _ => None,
    }
}
