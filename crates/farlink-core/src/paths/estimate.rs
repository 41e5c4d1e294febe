//! Round trip and one-way delay of a path.

use super::packet::{STAMP_BITS, Stamp, TICK_SECONDS, expand, ticks};
use crate::time::Time;

/// For how long the lowest one-way delay is remembered, one to two of these: in seconds, and in round trips, so that the queue was
/// [drained](super::control) meanwhile.
const BASE_WINDOW: (f64, f64) = (10.0, 25.0);

/// The one-way delay of a packet in ticks, by the difference of both clocks, and its length with all headers in bytes.
#[derive(Clone, Copy, Debug)]
struct Passage {
    one_way: i64,
    bytes: u32,
}

impl Passage {
    /// The delay in seconds without the time that the packet itself takes on the line, so that packets of different lengths are
    /// compared. At 20 kbit/s an acknowledgement takes 40 ms and a piece of a long packet 130 ms.
    fn bare(&self, rate: f64) -> f64 {
        let own = if rate > 0.0 { f64::from(self.bytes) / rate } else { 0.0 };
        self.one_way as f64 * TICK_SECONDS - own
    }
}

/// The passage with the least delay of the present and of the last window.
#[derive(Clone, Debug)]
struct WindowedMin {
    present: Option<Passage>,
    last: Option<Passage>,
    began: Time,
}

impl WindowedMin {
    fn new() -> Self {
        WindowedMin { present: None, last: None, began: Time::ZERO }
    }

    fn update(&mut self, now: Time, window: Time, passage: Passage, rate: f64) {
        if now.since(self.began) > window {
            let is_old = now.since(self.began) > window.times(2);
            self.last = self.present.filter(|_| !is_old);
            (self.present, self.began) = (Some(passage), now);
        } else if self.present.is_none_or(|least| passage.bare(rate) < least.bare(rate)) {
            self.present = Some(passage);
        }
    }

    fn get(&self, rate: f64) -> Option<Passage> {
        [self.present, self.last].into_iter().flatten().min_by(|a, b| a.bare(rate).total_cmp(&b.bare(rate)))
    }

    fn reset(&mut self, now: Time, passage: Option<Passage>) {
        (self.present, self.last, self.began) = (passage, None, now);
    }
}

/// Delay of a path, as acknowledgements show it.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    smoothed: f64,
    variation: f64,
    unqueued: f64,
    has_sample: bool,
    /// The far end's clock at its last acknowledgement, and when that came.
    far: Option<(u64, Time)>,
    /// Bytes per second of the line, as far as known; else 0.
    rate: f64,
    /// Least delay over seconds, and of the last packets.
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
            rate: 0.0,
            base: WindowedMin::new(),
            near: WindowedMin::new(),
        }
    }

    /// A packet of `bytes` sent at `sent` arrived when the far clock showed `received`; its acknowledgement was held back. `rate`: bytes
    /// per second of the line, 0 if unknown. Returns the far clock in ticks.
    pub(super) fn acknowledged(
        &mut self,
        now: Time,
        (sent, bytes): (Time, u32),
        received: Stamp,
        held: Time,
        rate: f64,
    ) -> u64 {
        self.rate = rate;
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
        let passage = Passage { one_way: far as i64 - ticks(sent) as i64, bytes };
        let window = BASE_WINDOW.0.max(BASE_WINDOW.1 * self.smoothed);
        self.base.update(now, Time::from_secs_f64(window), passage, rate);
        let least = self.base.get(rate).map_or(0.0, |base| base.bare(rate));
        let queue = (passage.bare(rate) - least).max(0.0);
        let own = if rate > 0.0 { f64::from(bytes) / rate } else { 0.0 };
        let unqueued = (round_trip - queue - own).max(0.0);
        self.unqueued += if is_first { unqueued - self.unqueued } else { 0.125 * (unqueued - self.unqueued) };
        self.near.update(now, Time::from_secs_f64((self.smoothed / 4.0).max(0.005)), passage, rate);
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

    /// Round trip without the queue and without the time that the packet itself takes on the line, in seconds.
    pub(super) fn unqueued(&self) -> f64 {
        self.unqueued.min(self.smoothed)
    }

    /// Delay that lately each packet had above the least one, in seconds.
    pub(super) fn queue(&self) -> f64 {
        let (Some(near), Some(base)) = (self.near.get(self.rate), self.base.get(self.rate)) else { return 0.0 };
        (near.bare(self.rate) - base.bare(self.rate)).max(0.0)
    }

    /// Least one-way delay of the last packets in seconds, without the time that they themselves take on the line, up to the
    /// difference of both clocks, which all paths share.
    pub(super) fn one_way(&self) -> f64 {
        self.near.get(self.rate).map_or(0.0, |near| near.bare(self.rate))
    }

    /// The path has become longer: what seemed to be a queue does not drain.
    pub(super) fn lengthen(&mut self, now: Time) {
        let near = self.near.get(self.rate);
        self.base.reset(now, near);
        self.unqueued = self.smoothed;
    }

    /// The far end has restarted: its clock is another one.
    pub(super) fn forget_clock(&mut self) {
        (self.far, self.base, self.near) = (None, WindowedMin::new(), WindowedMin::new());
        self.has_sample = false;
    }
}
