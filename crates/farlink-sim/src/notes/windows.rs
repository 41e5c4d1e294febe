//! Windows that are too small to fill the path.

use farlink_core::Time;
use farlink_core::protocol::TransportConfig;
use farlink_core::scenario::TrafficKind;

use super::legs::{Leg, digits, legs, rate};
use super::{Point, Remark};

/// A window that limits a flow to less than this share of the path's rate gives a remark.
const LEAST_SHARE: f64 = 0.7;

/// The windows of all flows together limit the rate to much less than the path's.
pub(super) fn below_the_path(point: Point<'_>) -> Vec<Remark> {
    let legs = legs(point);
    let remark = |leg: &Leg<'_>| {
        let flight = leg.config.as_dyn().flight().filter(|flight| flight.key != "mode")?;
        let is_cbr = matches!(leg.flow.traffic, TrafficKind::Cbr(_));
        if !is_cbr && !leg.has_at_least(2.0 * flight.window_bytes()) || has_company(&legs, leg) {
            return None;
        }
        let (round_trip_s, all_bps) = bound(leg)?;
        let wanted_bps = leg.wanted_bps();
        let count = leg.flow.count.get();
        let flows = if count > 1.0 { format!(" for each of {count} flows") } else { String::new() };
        let enough = (wanted_bps / count * round_trip_s / 8.0 / flight.packet_bytes as f64).ceil();
        (all_bps < LEAST_SHARE * wanted_bps).then(|| {
            let remedy = match flight.key {
                "window_scaling" => "give window_scaling = true".to_owned(),
                key => format!("give {key} = {enough} or more{flows}"),
            };
            let rest = format!(
                "lets {} packets be under way{flows}: in a round trip of {} s that is {} at most, and {} {}; {remedy}",
                flight.window_packets,
                digits(round_trip_s),
                rate(all_bps),
                if is_cbr { "the flow offers" } else { "the path carries" },
                rate(wanted_bps),
            );
            Remark::new(format!("transport.{}.{}", leg.transport, flight.key), rest)
        })
    };
    legs.iter().filter_map(remark).collect()
}

/// Acknowledgements that wait for data of the other direction, which the flow does not have, for so long that windows
/// stall.
pub(super) fn beside_waiting_answers(point: Point<'_>) -> Vec<Remark> {
    let remark = |leg: &Leg<'_>| {
        let TransportConfig::Arq(arq) = leg.config else { return None };
        let waits_s = arq.piggyback_timeout_s?.get();
        let flight = leg.config.as_dyn().flight()?;
        let (round_trip_s, all_bps) = bound(leg)?;
        let waiting_bps = all_bps * round_trip_s / (round_trip_s + waits_s);
        let is_cbr = matches!(leg.flow.traffic, TrafficKind::Cbr(_));
        let wants_more = is_cbr || leg.has_at_least(2.0 * flight.window_bytes());
        (wants_more && waiting_bps < LEAST_SHARE * leg.wanted_bps().min(all_bps)).then(|| {
            let rest = format!(
                "= {waits_s} s is what each acknowledgement waits, as no data goes back: {} packets are under way in {} s, {} at most; \
                 leave it out, or give less than the round trip of {} s",
                flight.window_packets,
                digits(round_trip_s + waits_s),
                rate(waiting_bps),
                digits(round_trip_s),
            );
            Remark::new(format!("transport.{}.piggyback_timeout_s", leg.transport), rest)
        })
    };
    legs(point).iter().filter_map(remark).collect()
}

/// Whether other flows may use the remaining rate; then a small window may be intended.
fn has_company(legs: &[Leg<'_>], leg: &Leg<'_>) -> bool {
    legs.iter().any(|other| other.flow_name != leg.flow_name)
}

/// The round trip with transmission times, in s, and the rate to which the windows limit all flows of a leg, in bit/s.
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
