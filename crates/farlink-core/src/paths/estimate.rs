//! Round trip and one-way delay of a path.

use super::packet::{STAMP_BITS, Stamp, TICK_SECONDS, expand, ticks};
use crate::time::Time;

/// For how long the lowest one-way delay is remembered, one to two of these: in seconds, and in round trips, so that the queue was
/// [drained](super::control) meanwhile.
const BASE_WINDOW: (f64, f64) = (10.0, 25.0);

/// The lowest value of the present and of the last window.
#[derive(Clone, Debug)]
struct WindowedMin {
    present: i64,
    last: i64,
    began: Time,
}

impl WindowedMin {
    fn new() -> Self {
        WindowedMin { present: i64::MAX, last: i64::MAX, began: Time::ZERO }
    }

    fn update(&mut self, now: Time, window: Time, value: i64) {
        if now.since(self.began) > window {
            let is_old = now.since(self.began) > window.times(2);
            (self.last, self.present, self.began) = (if is_old { i64::MAX } else { self.present }, value, now);
        } else {
            self.present = self.present.min(value);
        }
    }

    fn get(&self) -> i64 {
        self.present.min(self.last)
    }

    fn reset(&mut self, now: Time, value: i64) {
        (self.present, self.last, self.began) = (value, i64::MAX, now);
    }
}

/// What acknowledgements say about the delay of a path.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    smoothed: f64,
    variation: f64,
    unqueued: f64,
    has_sample: bool,
    /// The far end's clock at its last acknowledgement, and when that came.
    far: Option<(u64, Time)>,
    /// One-way delay in ticks, by the difference of both clocks: over seconds, and of the last packets.
    base: WindowedMin,
    near: WindowedMin,
}

impl Delays {
    pub(super) fn new() -> Self {
        Delays {
            smoothed: 0.1,
            variation: 0.05,
            unqueued: 0.1,
            has_sample: false,
            far: None,
            base: WindowedMin::new(),
            near: WindowedMin::new(),
        }
    }

    /// A packet sent at `sent` arrived when the far clock showed `received`; its acknowledgement was held back. Returns the far
    /// clock in ticks.
    pub(super) fn acknowledged(&mut self, now: Time, sent: Time, received: Stamp, held: Time) -> u64 {
        let expected =
            self.far.map_or(u64::from(received.0) + (1 << STAMP_BITS), |(far, at)| far + ticks(now.since(at)));
        let far = expand(received.0, STAMP_BITS, expected);
        if self.far.is_none_or(|(last, _)| last <= far) {
            self.far = Some((far, now));
        }
        let round_trip = now.since(sent).since(held.min(now.since(sent))).as_secs_f64().max(1e-6);
        let is_first = !self.has_sample;
        if self.has_sample {
            // RFC 9002, section 5.3.
            self.variation += 0.25 * ((self.smoothed - round_trip).abs() - self.variation);
            self.smoothed += 0.125 * (round_trip - self.smoothed);
        } else {
            (self.smoothed, self.variation, self.has_sample) = (round_trip, round_trip / 2.0, true);
        }
        let one_way = far as i64 - ticks(sent) as i64;
        let window = BASE_WINDOW.0.max(BASE_WINDOW.1 * self.smoothed);
        self.base.update(now, Time::from_secs_f64(window), one_way);
        let queue = (one_way - self.base.get()).max(0) as f64 * TICK_SECONDS;
        let unqueued = (round_trip - queue).max(0.0);
        self.unqueued += if is_first { unqueued - self.unqueued } else { 0.125 * (unqueued - self.unqueued) };
        self.near.update(now, Time::from_secs_f64((self.smoothed / 4.0).max(0.005)), one_way);
        far
    }

    /// Whether a packet was ever acknowledged.
    pub(super) fn is_known(&self) -> bool {
        self.has_sample
    }

    /// Smoothed round trip in seconds; 0.1 before the first one.
    pub(super) fn round_trip(&self) -> f64 {
        self.smoothed
    }

    /// Smoothed deviation of the round trip in seconds.
    pub(super) fn variation(&self) -> f64 {
        self.variation
    }

    /// Round trip without the queue, in seconds.
    pub(super) fn unqueued(&self) -> f64 {
        self.unqueued.min(self.smoothed)
    }

    /// Delay that lately each packet had above the least one, in seconds.
    pub(super) fn queue(&self) -> f64 {
        if !self.has_sample {
            return 0.0;
        }
        (self.near.get() - self.base.get()).max(0) as f64 * TICK_SECONDS
    }

    /// Least one-way delay of the last packets in seconds, up to the difference of both clocks, which all paths share.
    pub(super) fn one_way(&self) -> f64 {
        if self.has_sample { self.near.get() as f64 * TICK_SECONDS } else { 0.0 }
    }

    /// The path has become longer: what seemed to be a queue does not drain.
    pub(super) fn lengthen(&mut self, now: Time) {
        let near = self.near.get();
        self.base.reset(now, near);
        self.unqueued = self.smoothed;
    }

    /// The far end has restarted: its clock is another one.
    pub(super) fn forget_clock(&mut self) {
        (self.far, self.base, self.near) = (None, WindowedMin::new(), WindowedMin::new());
        self.has_sample = false;
    }
}
