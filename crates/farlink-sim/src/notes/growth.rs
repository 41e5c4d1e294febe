//! Slow starts that end far below the capacity of the path, in runs that are too short for the window to grow to it afterwards.

use farlink_core::Time;
use farlink_core::channel::ChannelKind;
use farlink_core::link::QueueLimit;
use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::stp::RateControl;
use farlink_core::protocol::tcp::{CongestionControl, Variant};
use farlink_core::scenario::TrafficKind;
use farlink_core::units::Count;

use super::legs::{Leg, digits, legs, rate};
use super::{Point, Remark};

/// Ratio of the window to the queue at which the queue overflows: slow start sends two or three packets for each that leaves the
/// queue.
const WINDOW_PER_QUEUE: f64 = 3.0;
/// A mean window below this share of the path's capacity gives a remark.
const LEAST_SHARE: f64 = 0.4;

/// Windows that grow by a packet per round trip from a threshold that a key or a short queue sets.
pub(super) fn longer_than_the_run(point: Point<'_>) -> Vec<Remark> {
    let legs = legs(point);
    let remark = |leg: &Leg<'_>| {
        let growth = Growth::of(leg.config)?;
        let span_s = span_s(point, leg)?;
        let has_company = legs.iter().any(|other| other.flow_name != leg.flow_name);
        if has_company {
            return None;
        }
        let packet_bytes = leg.config.as_dyn().flight()?.packet_bytes as f64;
        let round_trip_s = leg.round_trip().as_secs_f64() + packet_bytes * 8.0 / leg.rate_bps();
        let holds = leg.rate_bps() * round_trip_s / 8.0 / packet_bytes;
        let count = leg.flow.count.get();
        let (start, key, value) = start(point, leg, &growth, packet_bytes, count)?;
        let mean = start + count * growth.mean(span_s, round_trip_s);
        // If losses limit the window as much, the key is not the cause.
        if point.scenario.hops().iter().any(|(_, hop)| window_of(hop.forward().channel) < 4.0 * mean / count) {
            return None;
        }
        let wanted = leg.wanted_bps() / leg.rate_bps() * holds;
        (mean < LEAST_SHARE * wanted && start < holds / 4.0).then(|| {
            let rest = format!(
                "= {value} ends slow start at about {} packets, and the path holds {}: from there the window grows by a packet in \
                 one or two round trips of {} s, so that {} s have about {} on average; give about what the path holds, {}",
                digits(start),
                digits(holds),
                digits(round_trip_s),
                digits(span_s),
                rate(mean / holds * leg.rate_bps()),
                digits(if key.ends_with("bytes") { holds * packet_bytes } else { holds }.ceil()),
            );
            Remark::new(key, rest)
        })
    };
    legs.iter().filter_map(remark).collect()
}

/// The window at which slow start ends, of all flows together, with the key that sets it and its value.
fn start(
    point: Point<'_>,
    leg: &Leg<'_>,
    growth: &Growth,
    packet_bytes: f64,
    count: f64,
) -> Option<(f64, String, u64)> {
    let of_key = growth.threshold.map(|segments| {
        let key = format!("transport.{}.initial_ssthresh_segments", leg.transport);
        (count * segments.get(), key, segments.whole())
    });
    let queue = |(at, hop): (usize, &farlink_core::hop::HopSetup)| {
        let before = leg.forward()[..at].iter().map(|hop| hop.rate.mean_bps()).fold(f64::INFINITY, f64::min);
        if growth.is_paced || hop.is_bundle() || hop.rate.mean_bps() >= before {
            return None;
        }
        let (packets, key, value) = match hop.limit {
            QueueLimit::Unlimited => return None,
            QueueLimit::Packets(packets) => (packets as f64, "queue_packets", packets),
            QueueLimit::Bytes(bytes) => (bytes as f64 / packet_bytes, "queue_bytes", bytes),
        };
        Some((WINDOW_PER_QUEUE * (packets + 1.0), format!("{}.{key}", point.table(hop)), value))
    };
    let queues = leg.forward().iter().enumerate().filter_map(queue);
    queues.chain(of_key).min_by(|one, other| one.0.total_cmp(&other.0))
}

/// How long the flow sends, in s: the rest of the run, or the time of a file at the full rate.
fn span_s(point: Point<'_>, leg: &Leg<'_>) -> Option<f64> {
    let run_s = (point.setup.duration != Time::NEVER).then(|| point.setup.duration.as_secs_f64());
    let rest_s = run_s.map(|run_s| run_s - leg.flow.start_s.get());
    let file_s = match &leg.flow.traffic {
        TrafficKind::File(file) => Some(leg.flow.count.get() * file.bytes.get() * 8.0 / leg.rate_bps()),
        TrafficKind::Bulk(_) | TrafficKind::Cbr(_) => None,
        TrafficKind::Transfers(_) => return None,
    };
    match (rest_s, file_s) {
        (Some(rest_s), Some(file_s)) => Some(rest_s.min(file_s)),
        (rest_s, file_s) => rest_s.or(file_s),
    }
}

/// The mean window under the losses of a channel, sqrt(1.5 / p) (Mathis and others, 1997), as far as p is a key of the channel.
fn window_of(channel: &ChannelKind) -> f64 {
    match channel {
        ChannelKind::None(_) => f64::INFINITY,
        ChannelKind::Loss(channel) => (1.5 / channel.loss.get()).sqrt(),
        _ => 0.0,
    }
}

/// How a window grows after slow start.
struct Growth {
    threshold: Option<Count>,
    /// Segments per round trip.
    each_round_trip: f64,
    /// Segments per cubic second.
    cubic: f64,
    is_paced: bool,
}

impl Growth {
    /// `None` if it grows in another way, or not at all.
    fn of(config: &TransportConfig) -> Option<Self> {
        let tcp = |control: CongestionControl, threshold, is_delayed: bool, is_paced, cubic| {
            use CongestionControl::{Cubic, Reno, Vegas, Westwood};
            matches!(control, Reno | Cubic | Vegas | Westwood).then_some(Growth {
                threshold,
                each_round_trip: if is_delayed { 0.5 } else { 1.0 },
                cubic: if control == Cubic { cubic } else { 0.0 },
                is_paced,
            })
        };
        match config {
            TransportConfig::Tcp(config) if config.variant != Variant::None => {
                let is_delayed = config.delayed_ack && !config.counts_bytes();
                let cubic = config.cubic.unwrap_or_default().c.get();
                let is_paced = config.pacing.unwrap_or(false);
                tcp(config.congestion_control, config.initial_ssthresh_segments, is_delayed, is_paced, cubic)
            }
            TransportConfig::ScpsTp(scps) if scps.variant != Variant::None => {
                let is_paced = scps.rate_bps.is_some();
                tcp(scps.congestion_control, scps.initial_ssthresh_segments, true, is_paced, 0.4)
            }
            TransportConfig::Stp(stp) if stp.congestion == RateControl::Tcp => Some(Growth {
                threshold: stp.initial_ssthresh_segments,
                each_round_trip: 1.0,
                cubic: 0.0,
                is_paced: false,
            }),
            _ => None,
        }
    }

    /// Mean growth of the window over `span_s`, in segments.
    fn mean(&self, span_s: f64, round_trip_s: f64) -> f64 {
        let linear = self.each_round_trip * span_s / round_trip_s / 2.0;
        linear.max(self.cubic * span_s.powi(3) / 4.0)
    }
}
