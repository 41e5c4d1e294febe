//! Rates and delays that vary with time, as they are used in a run.
//!
//! They are called in the order of time and advance: a step costs O(1) amortised, and a long idle time is skipped. A series
//! repeats after its duration.

use std::sync::Arc;

use super::pass::Overhead;
use crate::time::Time;
use crate::units::BitRate;

const PS_PER_S: f64 = 1e12;

/// The departure of a frame: the times of its first and its last bit.
///
/// To be called in the order of sending, with `ready` the later of the frame's arrival and the end of the previous frame.
#[derive(Clone, Debug)]
pub enum Transmitter {
    /// A constant rate: the duration of a byte, and the rate as given.
    Constant(ByteTime, BitRate),
    /// A rate that changes at given times.
    Rate(RateSeries),
    /// Delivery opportunities at given times, each for a number of bytes.
    Delivery(Delivery),
}

impl Transmitter {
    /// A transmitter of constant rate.
    pub fn constant(rate: BitRate) -> Self {
        Transmitter::Constant(ByteTime::new(rate), rate)
    }

    /// When the first and the last bit of the next frame leave.
    #[inline(always)]
    pub fn depart(&mut self, ready: Time, bytes: u32) -> (Time, Time) {
        match self {
            Transmitter::Constant(byte_time, _) => (ready, ready + byte_time.of(bytes)),
            Transmitter::Rate(series) => series.depart(ready, bytes),
            Transmitter::Delivery(series) => series.depart(ready, bytes),
        }
    }

    /// When the first bit of the next frame leaves, which does not depend on its length.
    pub(super) fn next_start(&self, ready: Time) -> Time {
        match self {
            Transmitter::Constant(..) => ready,
            varying => varying.clone().depart(ready, 1).0,
        }
    }

    /// Whether anything can leave at `time`, and the rate; while it is zero, the previous rate. It does not depend on the state
    /// of the run.
    pub(super) fn rate_at(&self, time: Time) -> (bool, BitRate) {
        match self {
            Transmitter::Constant(_, rate) => (true, *rate),
            Transmitter::Rate(series) => series.rate_at(time),
            // Delivery opportunities have only a mean rate.
            Transmitter::Delivery(series) => (true, bit_rate(series.mean_bps())),
        }
    }

    /// A time until which [`rate_at`](Self::rate_at) returns the same as at `time`.
    pub(super) fn next_change(&self, time: Time) -> Time {
        match self {
            Transmitter::Rate(series) => series.cursor.next_change(time, &series.rate_bps),
            Transmitter::Constant(..) | Transmitter::Delivery(_) => Time::NEVER,
        }
    }
}

fn bit_rate(rate_bps: f64) -> BitRate {
    BitRate::new(rate_bps.min(1e13)).expect("a trace whose rate is somewhere above zero")
}

/// Duration of a byte in 2^-16 picoseconds. Whole numbers cost a third of what floats cost here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteTime(u64);

impl ByteTime {
    const SCALE: f64 = 65_536.0;

    /// The duration of a byte at a rate.
    pub fn new(rate: BitRate) -> Self {
        ByteTime((rate.ps_per_byte() * Self::SCALE).round() as u64)
    }

    /// The duration of `bytes` bytes, to the nearest picosecond.
    #[inline(always)]
    pub fn of(self, bytes: u32) -> Time {
        Time::from_ps(((u128::from(bytes) * u128::from(self.0) + (1 << 15)) >> 16) as u64)
    }

    /// The rate, bit/s.
    pub fn rate_bps(self) -> f64 {
        8e12 * Self::SCALE / self.0 as f64
    }
}

/// A one-way delay that is constant or changes at given times.
#[derive(Clone, Debug)]
pub enum DelaySeries {
    /// A constant delay.
    Constant(Time),
    /// A delay that changes at given times.
    Steps {
        /// Position of the run in the series.
        cursor: Cursor,
        /// Delay from each time on.
        delays: Arc<[Time]>,
    },
    /// The delay of a satellite during a pass.
    Pass(Overhead),
}

impl DelaySeries {
    /// The delay of a frame that leaves at `time`.
    #[inline]
    pub fn at(&mut self, time: Time) -> Time {
        match self {
            DelaySeries::Constant(delay) => *delay,
            DelaySeries::Steps { cursor, delays } => {
                cursor.seek(cursor.position(time));
                delays[cursor.index]
            }
            DelaySeries::Pass(overhead) => overhead.at(time),
        }
    }

    /// As [`at`](Self::at), without changing the state.
    pub(super) fn looked_up(&self, time: Time) -> Time {
        match self {
            DelaySeries::Constant(delay) => *delay,
            DelaySeries::Steps { cursor, delays } => delays[cursor.look_up(time)],
            DelaySeries::Pass(overhead) => overhead.looked_up(time),
        }
    }

    /// A time until which the delay is as at `time`.
    pub(super) fn next_change(&self, time: Time) -> Time {
        match self {
            DelaySeries::Constant(_) => Time::NEVER,
            DelaySeries::Steps { cursor, delays } => cursor.next_change(time, delays),
            DelaySeries::Pass(overhead) => overhead.next_change(time),
        }
    }
}

/// The times at which a repeating series changes.
#[derive(Debug, PartialEq)]
pub(super) struct Steps {
    /// Ascending, picoseconds; the first is 0.
    starts: Box<[u64]>,
    /// Larger than 0.
    duration: u64,
}

impl Steps {
    /// From times in seconds that have passed [`Trace::check`](crate::trace::Trace::check).
    pub(super) fn new(time_s: &[f64], duration_s: f64) -> Self {
        Steps { starts: picoseconds(time_s), duration: Time::from_secs_f64(duration_s).as_ps() }
    }
}

fn picoseconds(time_s: &[f64]) -> Box<[u64]> {
    time_s.iter().map(|&time| Time::from_secs_f64(time).as_ps()).collect()
}

/// Position of a run in a repeating series of steps. Positions are picoseconds since the series first began.
#[derive(Clone, Debug)]
pub struct Cursor {
    steps: Arc<Steps>,
    /// Position at the start of the run.
    offset: u64,
    /// Position at which the present repetition began.
    base: u64,
    /// Index of the present step in the repetition.
    index: usize,
}

impl Cursor {
    pub(super) fn new(steps: Arc<Steps>, offset: Time) -> Self {
        let offset = offset.as_ps() % steps.duration;
        let mut cursor = Cursor { steps, offset, base: 0, index: 0 };
        cursor.seek(offset);
        cursor
    }

    fn position(&self, time: Time) -> u64 {
        time.as_ps().saturating_add(self.offset)
    }

    fn time(&self, position: u64) -> Time {
        if position == u64::MAX { Time::NEVER } else { Time::from_ps(position - self.offset) }
    }

    /// End of the present step.
    fn end(&self) -> u64 {
        let end = self.steps.starts.get(self.index + 1).copied().unwrap_or(self.steps.duration);
        self.base.saturating_add(end)
    }

    fn step(&mut self) {
        self.index += 1;
        if self.index == self.steps.starts.len() {
            self.index = 0;
            self.base = self.base.saturating_add(self.steps.duration);
        }
    }

    /// Advances to the step that contains a position.
    fn seek(&mut self, position: u64) {
        if (self.base + self.steps.starts[self.index]..self.end()).contains(&position) {
            return;
        }
        // Usually it is the next step; otherwise it is looked up.
        self.step();
        if (self.base.saturating_add(self.steps.starts[self.index])..self.end()).contains(&position) {
            return;
        }
        self.base = position - position % self.steps.duration;
        self.index = self.steps.starts.partition_point(|&start| start <= position - self.base) - 1;
    }

    /// The step that contains `time`, without changing the state.
    fn look_up(&self, time: Time) -> usize {
        let within = self.position(time) % self.steps.duration;
        self.steps.starts.partition_point(|&start| start <= within) - 1
    }

    /// When the first step after `time` begins that has another value; `Time::NEVER` if all are equal.
    fn next_change<T: PartialEq>(&self, time: Time, values: &[T]) -> Time {
        let Steps { starts, duration } = &*self.steps;
        let position = self.position(time);
        let base = position - position % duration;
        let here = self.look_up(time);
        let later = (here + 1..starts.len()).map(|index| (base, index));
        let again = (0..here).map(|index| (base.saturating_add(*duration), index));
        let next = later.chain(again).find(|&(_, index)| values[index] != values[here]);
        next.map_or(Time::NEVER, |(base, index)| self.time(base.saturating_add(starts[index])))
    }
}

/// A rate that is constant between given times; while it is zero, nothing leaves.
#[derive(Clone, Debug)]
pub struct RateSeries {
    cursor: Cursor,
    rate_bps: Arc<[f64]>,
    /// Number of bits in one repetition.
    bits_per_cycle: f64,
}

impl RateSeries {
    pub(super) fn new(cursor: Cursor, rate_bps: Arc<[f64]>) -> Self {
        let mut series = RateSeries { cursor, rate_bps, bits_per_cycle: 0.0 };
        series.bits_per_cycle = series.mean_bps() * series.cursor.steps.duration as f64 / PS_PER_S;
        series
    }

    /// The mean rate over one repetition.
    pub(super) fn mean_bps(&self) -> f64 {
        let Steps { starts, duration } = &*self.cursor.steps;
        let ends = starts[1..].iter().chain([duration]);
        let bits = |((start, end), rate)| (end - start) as f64 * rate;
        starts.iter().zip(ends).zip(&*self.rate_bps).map(bits).sum::<f64>() / *duration as f64
    }

    /// See [`Transmitter::rate_at`].
    fn rate_at(&self, time: Time) -> (bool, BitRate) {
        let here = self.cursor.look_up(time);
        let (until, after) = self.rate_bps.split_at(here + 1);
        let before = until.iter().rev().chain(after.iter().rev());
        let rate = before.copied().find(|&rate| rate > 0.0).unwrap_or_default();
        (self.rate_bps[here] > 0.0, bit_rate(rate))
    }

    /// When the first and the last bit of the next frame leave.
    pub fn depart(&mut self, ready: Time, bytes: u32) -> (Time, Time) {
        let mut need = f64::from(bytes) * 8.0;
        let mut at = self.cursor.position(ready);
        self.cursor.seek(at);
        while self.rate_bps[self.cursor.index] == 0.0 {
            at = self.cursor.end();
            if at == u64::MAX {
                return (Time::NEVER, Time::NEVER);
            }
            self.cursor.step();
        }
        let start = at;
        let cycles = (need / self.bits_per_cycle).ceil() - 1.0;
        if cycles >= 1.0 {
            need -= cycles * self.bits_per_cycle;
            let jump = cycles * self.cursor.steps.duration as f64;
            if jump >= (u64::MAX - at) as f64 {
                return (self.cursor.time(start), Time::NEVER);
            }
            let jump = (cycles as u64).saturating_mul(self.cursor.steps.duration);
            at = at.saturating_add(jump);
            self.cursor.base = self.cursor.base.saturating_add(jump);
        }
        loop {
            let rate = self.rate_bps[self.cursor.index];
            let end = self.cursor.end();
            let fits = (end - at) as f64 * rate / PS_PER_S;
            if need <= fits || end == u64::MAX {
                let span = if need > 0.0 { (need * PS_PER_S / rate + 0.5) as u64 } else { 0 };
                let last = if end == u64::MAX { u64::MAX } else { at.saturating_add(span).min(end) };
                return (self.cursor.time(start), self.cursor.time(last));
            }
            need -= fits;
            at = end;
            self.cursor.step();
        }
    }
}

/// Delivery opportunities for a number of bytes each at given times, as in a Mahimahi trace.
///
/// Several small frames share one opportunity. A frame longer than the rest of an opportunity continues in the next one. An
/// opportunity for which no frame waits is lost. A frame is sent when its last byte is. Winstein, Sivaraman and Balakrishnan,
/// "Stochastic forecasts achieve high throughput and low delay over cellular networks", NSDI 2013, section 4.2 (Cellsim, which
/// became Mahimahi's mm-link; Netravali et al., USENIX ATC 2015).
#[derive(Clone, Debug)]
pub struct Delivery {
    opportunities: Arc<Steps>,
    bytes_per_opportunity: u32,
    /// Position at the start of the run.
    offset: u64,
    /// Position at which the present repetition began.
    base: u64,
    /// The opportunity in use, or the next one.
    index: usize,
    /// Unused bytes of it.
    left: u32,
}

impl Delivery {
    pub(super) fn new(opportunities: Arc<Steps>, bytes_per_opportunity: u32, offset: Time) -> Self {
        let offset = offset.as_ps() % opportunities.duration;
        Delivery { opportunities, bytes_per_opportunity, offset, base: 0, index: 0, left: bytes_per_opportunity }
    }

    /// The mean rate over one repetition.
    pub(super) fn mean_bps(&self) -> f64 {
        let Steps { starts, duration } = &*self.opportunities;
        starts.len() as f64 * f64::from(self.bytes_per_opportunity) * 8.0 * PS_PER_S / *duration as f64
    }

    /// When the first and the last byte of the next frame leave.
    pub fn depart(&mut self, ready: Time, bytes: u32) -> (Time, Time) {
        if self.left == 0 {
            self.advance(1);
        }
        self.wait_until(ready.as_ps().saturating_add(self.offset));
        let start = self.now();
        if bytes > self.left {
            // At least one byte of the last opportunity is used.
            let more = u64::from(bytes - self.left).div_ceil(u64::from(self.bytes_per_opportunity));
            let carried = u64::from(self.left) + more * u64::from(self.bytes_per_opportunity);
            self.advance(more);
            self.left = (carried - u64::from(bytes)) as u32;
        } else {
            self.left -= bytes;
        }
        (start, self.now())
    }

    fn position(&self) -> u64 {
        self.base.saturating_add(self.opportunities.starts[self.index])
    }

    fn now(&self) -> Time {
        let position = self.position();
        if position == u64::MAX { Time::NEVER } else { Time::from_ps(position - self.offset) }
    }

    /// Advances by `opportunities` opportunities, to an unused one.
    fn advance(&mut self, opportunities: u64) {
        let count = self.opportunities.starts.len() as u64;
        let index = self.index as u64 + opportunities;
        self.base = self.base.saturating_add((index / count).saturating_mul(self.opportunities.duration));
        self.index = (index % count) as usize;
        self.left = self.bytes_per_opportunity;
    }

    /// Advances to the first opportunity at `position` or later.
    fn wait_until(&mut self, position: u64) {
        if self.position() >= position {
            return;
        }
        self.advance(1);
        if self.position() >= position {
            return;
        }
        // An opportunity at the very end of a repetition comes before one at the start of the next.
        let Steps { starts, duration } = &*self.opportunities;
        self.base = (position - 1) - (position - 1) % duration;
        let within = position - self.base;
        self.index = starts.partition_point(|&start| start < within);
        if self.index == starts.len() {
            self.index = 0;
            self.base = self.base.saturating_add(*duration);
        }
    }
}

/// The bits that a recording allows to be sent up to any time of a run.
#[derive(Clone, Debug)]
pub struct Recorded {
    steps: Arc<Steps>,
    /// Position at the start of the run.
    offset: u64,
    /// Bits of one repetition before each step.
    before: Box<[f64]>,
    /// Bits of each step: a rate all through it in bit/s, or a number of bits at its beginning.
    steps_allow: Allowance,
    bits_per_cycle: f64,
}

#[derive(Clone, Debug)]
enum Allowance {
    Rates(Arc<[f64]>),
    Bits(f64),
}

impl Recorded {
    fn new(steps: &Arc<Steps>, offset: u64, steps_allow: Allowance) -> Self {
        let Steps { starts, duration } = &**steps;
        let ends = starts[1..].iter().chain([duration]);
        let mut sum = 0.0;
        let allowed = starts.iter().zip(ends).enumerate().map(|(index, (start, end))| {
            let before = sum;
            sum += match &steps_allow {
                Allowance::Rates(rate_bps) => (end - start) as f64 / PS_PER_S * rate_bps[index],
                Allowance::Bits(bits) => *bits,
            };
            before
        });
        let before = allowed.collect();
        Recorded { steps: Arc::clone(steps), offset, before, steps_allow, bits_per_cycle: sum }
    }

    /// Bits that may be sent from one time to another; opportunities at either end count.
    pub fn bits(&self, from: Time, to: Time) -> f64 {
        let [from, to] = [from, to].map(|time| time.as_ps().saturating_add(self.offset));
        self.up_to(to, |start, position| start <= position) - self.up_to(from, |start, position| start < position)
    }

    /// Bits that may be sent before a position; an opportunity at a time counts if `has_come` says so.
    fn up_to(&self, position: u64, has_come: fn(u64, u64) -> bool) -> f64 {
        let Steps { starts, duration } = &*self.steps;
        let (cycles, within) = (position / duration, position % duration);
        let begun = starts.partition_point(|&start| has_come(start, within));
        let of_cycle = match &self.steps_allow {
            Allowance::Bits(bits) => begun as f64 * bits,
            Allowance::Rates(rate_bps) => begun
                .checked_sub(1)
                .map_or(0.0, |last| self.before[last] + (within - starts[last]) as f64 / PS_PER_S * rate_bps[last]),
        };
        cycles as f64 * self.bits_per_cycle + of_cycle
    }
}

impl RateSeries {
    pub(super) fn recorded(&self) -> Recorded {
        Recorded::new(&self.cursor.steps, self.cursor.offset, Allowance::Rates(Arc::clone(&self.rate_bps)))
    }
}

impl Delivery {
    pub(super) fn recorded(&self) -> Recorded {
        Recorded::new(&self.opportunities, self.offset, Allowance::Bits(f64::from(self.bytes_per_opportunity) * 8.0))
    }
}

#[cfg(test)]
mod tests;
