//! Queues without limit in front of classes.

use farlink_core::link::QueueLimit;

use super::legs::{Leg, digits, legs};
use super::{Point, Remark};

/// A wait longer than this many round trips, and than [`LONG_S`], is remarked on.
const ROUND_TRIPS: f64 = 4.0;
const LONG_S: f64 = 1.0;

/// Queues that serve classes and that a window may fill for long.
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
            let table = if point.scenario.link.is_some() { "link".to_owned() } else { format!("hop.{}", hop.name) };
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
