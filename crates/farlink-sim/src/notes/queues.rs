//! Queues without limit in front of classes, and queues that no packet fits into.

use farlink_core::link::QueueLimit;
use farlink_core::protocol::TransportConfig;

use super::legs::{Leg, digits, legs};
use super::{Point, Remark};

/// A queueing delay longer than this many round trips, and than [`LONG_S`], gives a remark.
const ROUND_TRIPS: f64 = 4.0;
const LONG_S: f64 = 1.0;

/// Unlimited queues that serve classes and that a window may fill for a long time.
pub(super) fn without_limit(point: Point<'_>) -> Vec<Remark> {
    let legs = legs(point);
    let mut all = Vec::new();
    for hop in &point.setup.forward {
        if hop.weights.is_none() || hop.limit != QueueLimit::Unlimited {
            continue;
        }
        let fills =
            |leg: &&Leg<'_>| leg.config.as_dyn().flight().is_some_and(|flight| leg.has_at_least(flight.window_bytes()));
        let longest = legs.iter().filter(fills).filter_map(|leg| {
            let window_bits = leg.config.as_dyn().flight()?.window_bytes() * 8.0 * leg.flow.count.get();
            let wait_s = (window_bits / hop.rate.mean_bps() - leg.round_trip().as_secs_f64())
                .min(point.setup.duration.as_secs_f64());
            (wait_s > LONG_S.max(ROUND_TRIPS * leg.round_trip().as_secs_f64())).then_some((wait_s, leg))
        });
        if let Some((wait_s, leg)) = longest.max_by(|one, other| one.0.total_cmp(&other.0)) {
            let table = point.table(hop);
            let product = hop.rate.mean_bps() * leg.round_trip().as_secs_f64() / 8.0;
            let rest = format!(
                "is not given, nor queue_packets: what waits of class {} has no limit, and the window of flow.{} may wait for {} s; \
                 give about what the path holds, {}",
                leg.flow.class.whole(),
                leg.flow_name,
                digits(wait_s),
                digits(product.max(1e4)),
            );
            all.push(Remark::new(format!("{table}.queue_bytes"), rest));
        }
    }
    all
}

/// Queues that are shorter than the packets of a sender that does not wait until the link is idle.
pub(super) fn below_a_packet(point: Point<'_>) -> Vec<Remark> {
    let mut all = Vec::new();
    for leg in &legs(point) {
        let is_sent_in_bursts = match leg.config {
            TransportConfig::Udp(_) => false,
            TransportConfig::Aerotp(aerotp) => aerotp.mode.is_acknowledged(),
            _ => true,
        };
        let longest = leg.config.as_dyn().longest_packet();
        let packet_bytes = longest.data_bytes + longest.overhead_bytes;
        let mut before_bps = f64::INFINITY;
        for hop in leg.forward().iter().filter(|_| is_sent_in_bursts) {
            let limit = match hop.limit {
                QueueLimit::Bytes(bytes) if !hop.is_bundle() && hop.rate.mean_bps() < before_bps => bytes,
                _ => u64::MAX,
            };
            before_bps = before_bps.min(hop.rate.mean_bps());
            if limit < packet_bytes {
                let rest = format!(
                    "= {limit} is less than a packet of flow.{}, {packet_bytes} bytes: whatever does not find the link idle is dropped; \
                     give some packets at least, {}",
                    leg.flow_name,
                    10 * packet_bytes,
                );
                all.push(Remark::new(format!("{}.queue_bytes", point.table(hop)), rest));
            }
        }
    }
    all
}
