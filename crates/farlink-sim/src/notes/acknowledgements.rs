//! Return directions that are too slow for the acknowledgements, and acknowledgements that are too rare for a window to grow.

use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::CongestionControl;
use farlink_core::scenario::TrafficKind;

use super::legs::{Leg, digits, legs, rate};
use super::{Point, Remark};

/// Number of packets per acknowledgement from which on there is a remark: a window grows with each acknowledgement, so it grows
/// more slowly with fewer of them.
const MOST_PACKETS: f64 = 25.0;

/// The acknowledgements of a full path exceed the rate of the return direction.
pub(super) fn above_the_way_back(point: Point<'_>) -> Vec<Remark> {
    let remark = |leg: &Leg<'_>| {
        let flight = leg.config.as_dyn().flight()?;
        let answers = flight.acknowledgements?;
        if !leg.has_at_least(100.0 * flight.payload_bytes as f64) {
            return None;
        }
        let packet_bits = flight.packet_bytes as f64 * 8.0;
        let round_trip_s = leg.round_trip().as_secs_f64() + packet_bits / leg.rate_bps();
        let sent_bps = leg.rate_bps().min(leg.flow.count.get() * flight.window_bytes() * 8.0 / round_trip_s);
        let answer_bits = answers.bytes as f64 * 8.0;
        let needed_bps = sent_bps / packet_bits / answers.every_packets * answer_bits;
        let back_bps = leg.back_bps();
        (needed_bps > back_bps).then(|| {
            let hop = leg.back().iter().min_by(|a, b| a.rate.mean_bps().total_cmp(&b.rate.mean_bps()));
            let name = hop.map(|hop| hop.name.as_str()).unwrap_or_default();
            let table = point.scenario.table_of(name);
            let rest = format!(
                "carries {} back: the acknowledgements of flow.{} take {} when the path forward is full; they wait or are \
                 dropped, and the sender goes by what is left; give {} or more, larger packets, or fewer acknowledgements",
                rate(back_bps),
                leg.flow_name,
                rate(needed_bps),
                digits(needed_bps.ceil()),
            );
            Remark::new(format!("{table}.return.rate_bps"), rest)
        })
    };
    legs(point).iter().filter_map(remark).collect()
}

/// Acknowledgements that only a timer triggers, each for many packets.
pub(super) fn rarer_than_the_window_needs(point: Point<'_>) -> Vec<Remark> {
    let remark = |leg: &Leg<'_>| {
        let TransportConfig::ScpsTp(scps) = leg.config else { return None };
        let grows = scps.congestion_control != CongestionControl::None;
        let interval_s = scps.ack_interval_s.filter(|_| scps.ack_every_segments.is_none() && grows)?.get();
        let flight = leg.config.as_dyn().flight()?;
        let packets = interval_s * leg.wanted_bps() / leg.flow.count.get() / (flight.packet_bytes as f64 * 8.0);
        let is_cbr = matches!(leg.flow.traffic, TrafficKind::Cbr(_));
        let lasts = is_cbr || leg.has_at_least(2.0 * packets * flight.payload_bytes as f64);
        (lasts && packets > MOST_PACKETS).then(|| {
            let rest = format!(
                "= {interval_s} s alone gives an acknowledgement for {} packets of a full path, and the window grows by \
                 acknowledgements; give ack_every_segments as well, 2 for example",
                digits(packets),
            );
            Remark::new(format!("transport.{}.ack_interval_s", leg.transport), rest)
        })
    };
    legs(point).iter().filter_map(remark).collect()
}
