//! Windows that hold less than the path does.

use farlink_core::Time;

use super::legs::{Leg, digits, legs, rate};
use super::{Point, Remark};

/// A window that lets less than this share of the path's rate through is remarked on.
const LEAST_SHARE: f64 = 0.7;

/// The windows of all flows together let much less through than the path carries.
pub(super) fn below_the_path(point: Point<'_>) -> Vec<Remark> {
    let legs = legs(point);
    let remark = |leg: &Leg<'_>| {
        let flight = leg.config.as_dyn().flight().filter(|flight| flight.key != "mode")?;
        if !leg.has_at_least(2.0 * flight.window_bytes()) || has_company(&legs, leg) {
            return None;
        }
        let (round_trip_s, all_bps) = bound(leg)?;
        let path_bps = leg.rate_bps();
        let count = leg.flow.count.get();
        let flows = if count > 1.0 { format!(" for each of {count} flows") } else { String::new() };
        let enough = (path_bps / count * round_trip_s / 8.0 / flight.packet_bytes as f64).ceil();
        (all_bps < LEAST_SHARE * path_bps).then(|| {
            let remedy = match flight.key {
                "window_scaling" => "give window_scaling = true".to_owned(),
                key => format!("give {key} = {enough} or more{flows}"),
            };
            let rest = format!(
                "lets {} packets be under way{flows}: in a round trip of {} s that is {} at most, and the path carries {}; {remedy}",
                flight.window_packets,
                digits(round_trip_s),
                rate(all_bps),
                rate(path_bps),
            );
            Remark::new(format!("transport.{}.{}", leg.transport, flight.key), rest)
        })
    };
    legs.iter().filter_map(remark).collect()
}

/// Whether other flows may take what this one leaves: then a small window may be wanted.
fn has_company(legs: &[Leg<'_>], leg: &Leg<'_>) -> bool {
    legs.iter().any(|other| other.flow_name != leg.flow_name)
}

/// The round trip with the times of transmission, s, and what the windows of all flows of a leg let through, bit/s.
fn bound(leg: &Leg<'_>) -> Option<(f64, f64)> {
    let flight = leg.config.as_dyn().flight()?;
    let packet_bits = flight.packet_bytes as f64 * 8.0;
    let sent = leg.forward().iter().map(|hop| packet_bits / hop.rate.mean_bps()).sum::<f64>();
    let round_trip = leg.round_trip();
    (round_trip > Time::ZERO).then(|| {
        let round_trip_s = round_trip.as_secs_f64() + sent;
        (round_trip_s, leg.flow.count.get() * flight.window_bytes() * 8.0 / round_trip_s)
    })
}
