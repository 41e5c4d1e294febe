//! Limits a sender to a rate.

use crate::origin::instants;
use crate::time::Time;
use crate::units::BitRate;

/// The time of the next packet. Without a rate there is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocol) struct Pacer {
    /// Duration of a byte in picoseconds; 0 without a rate.
    ps_per_byte: f64,
    next: Time,
    /// Nothing may be sent before this time, regardless of the rate.
    held_until: Time,
    /// Bytes that may be sent at once, and the rest of them until `next`.
    quantum: u32,
    credit: u32,
    /// How much later than `next` a packet that waits may be sent without delaying those after it.
    catches_up: Time,
    /// Whether a packet waits since before `next`.
    is_waited_for: bool,
}

instants! { Pacer: next, held_until; fixed: ps_per_byte, quantum, credit, catches_up, is_waited_for }

/// Bytes that a paced TCP sends at once, in segments of `mss` bytes at a rate in bytes per second: as many as take a millisecond,
/// but at least two segments (one below 1.2 Mb/s), as in Linux (`tcp_tso_autosize`, `bbr_min_tso_segs`). Larger bursts need fewer
/// timers.
pub(in crate::protocol) fn quantum(rate: f64, mss: u32) -> u32 {
    let least = if rate < 1.2e6 / 8.0 { 1 } else { 2 };
    let segments = ((rate / 1e3).min(LARGEST_QUANTUM) / f64::from(mss)) as u32;
    segments.max(least).saturating_mul(mss)
}

/// Largest burst that Linux passes to a network card, bytes.
const LARGEST_QUANTUM: f64 = 65_536.0;

/// A late driver sends no more than this at once of what it has missed, or what takes this long if that is more: on a fast path a long
/// burst would not fit into a queue.
const MISSED_BYTES: f64 = 65_536.0;
const MISSED: Time = Time::from_millis(5);

impl Pacer {
    /// Sends at a rate, unless it is `None`.
    pub(in crate::protocol) fn new(rate: Option<BitRate>) -> Self {
        Pacer { ps_per_byte: rate.map_or(0.0, BitRate::ps_per_byte), ..Pacer::default() }
    }

    /// Sets the rate for the following packets, bytes per second; a value that is not a finite number above 0 removes the limit.
    #[inline]
    pub(in crate::protocol) fn set_bytes_per_s(&mut self, rate: f64) {
        self.ps_per_byte = if rate > 0.0 && rate < f64::INFINITY { 1e12 / rate } else { 0.0 };
    }

    /// Sets the rate, as [`set_bytes_per_s`](Self::set_bytes_per_s), of what was already sent ahead of its time as well: a higher rate
    /// pays for that the sooner. A lower one leaves the next packet where it is.
    #[inline]
    pub(in crate::protocol) fn raise_bytes_per_s(&mut self, now: Time, rate: f64) {
        let before = self.ps_per_byte;
        self.set_bytes_per_s(rate);
        if self.ps_per_byte < before && now < self.next {
            let ahead = self.next.since(now).as_ps() as f64 * (self.ps_per_byte / before);
            self.next = now + Time::from_ps(ahead as u64);
        }
    }

    /// Allows `bytes` bytes to be sent at once, at least one packet.
    #[inline]
    pub(in crate::protocol) fn set_quantum(&mut self, bytes: u32) {
        self.quantum = bytes;
    }

    /// The rate, bytes per second, if there is one.
    pub(in crate::protocol) fn bytes_per_s(&self) -> Option<f64> {
        self.is_on().then(|| 1e12 / self.ps_per_byte)
    }

    /// Whether there is a rate.
    #[inline(always)]
    pub(in crate::protocol) fn is_on(&self) -> bool {
        self.ps_per_byte > 0.0
    }

    /// Whether nothing may be sent yet.
    #[inline(always)]
    pub(in crate::protocol) fn is_holding(&self, now: Time) -> bool {
        now < self.held_until || (self.is_on() && now < self.next && self.credit == 0)
    }

    /// A driver whose timers are late sends packets up to `late` after their time. Those that follow are not delayed by that, so that
    /// the rate is kept; they may be sent at once until they are on time again. At first, and in simulations, timers are exact.
    pub(in crate::protocol) fn set_catch_up(&mut self, late: Time) {
        self.catches_up = late;
    }

    /// Whether timers may be late.
    #[inline(always)]
    pub(in crate::protocol) fn catches_up(&self) -> bool {
        self.catches_up > Time::ZERO
    }

    /// Whether there is something to send, told when [`is_holding`](Self::is_holding) has kept it back and when there is nothing.
    #[inline(always)]
    pub(in crate::protocol) fn set_waited_for(&mut self, is_waited_for: bool) {
        self.is_waited_for = is_waited_for;
    }

    /// Nothing may be sent before `time`, whether or not there is a rate.
    pub(in crate::protocol) fn hold_until(&mut self, time: Time) {
        self.held_until = self.held_until.max(time);
    }

    /// When the next packet may be sent.
    #[inline(always)]
    pub(in crate::protocol) fn next(&self) -> Time {
        if self.is_on() && self.credit == 0 { self.next.max(self.held_until) } else { self.held_until }
    }

    /// A packet of `bytes` bytes is sent.
    #[inline(always)]
    pub(in crate::protocol) fn on_sent(&mut self, now: Time, bytes: u32) {
        if self.is_on() {
            if now >= self.next {
                self.credit = self.quantum;
            }
            self.credit = self.credit.saturating_sub(bytes);
            // An idle period is not made up for, because the unsent data would follow in a burst.
            let span = Time::from_ps((self.ps_per_byte * f64::from(bytes)) as u64);
            let earliest = if self.is_waited_for { now.since(self.missed()) } else { now };
            self.next = self.next.max(earliest) + span;
        }
    }

    /// How late a packet may be that is caught up with.
    #[inline(always)]
    fn missed(&self) -> Time {
        let burst = Time::from_ps((self.ps_per_byte * MISSED_BYTES) as u64);
        self.catches_up.min(burst.max(MISSED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_bytes_at_eight_kilobits_take_a_second() {
        let mut pacer = Pacer::new(Some(BitRate::new(8e3).unwrap()));
        assert!(!pacer.is_holding(Time::ZERO));
        pacer.on_sent(Time::ZERO, 1000);
        assert!(pacer.is_holding(Time::from_millis(999)) && !pacer.is_holding(Time::from_secs(1)));
        pacer.on_sent(Time::from_secs(10), 1000);
        assert_eq!(pacer.next(), Time::from_secs(11), "a pause is not made up for");
    }

    #[test]
    fn a_quantum_is_sent_at_once_and_followed_by_its_time() {
        let mut pacer = Pacer::new(Some(BitRate::new(8e3).unwrap()));
        pacer.set_quantum(300);
        for _ in 0..3 {
            assert!(!pacer.is_holding(Time::ZERO));
            pacer.on_sent(Time::ZERO, 100);
        }
        assert!(pacer.is_holding(Time::from_millis(299)) && !pacer.is_holding(Time::from_millis(300)));
        assert_eq!([1e5, 2e5, 1e7, 1e9].map(|rate| quantum(rate, 1000)), [1000, 2000, 10_000, 65_000]);
    }

    #[test]
    fn what_was_sent_ahead_is_paid_for_at_a_higher_rate() {
        let mut pacer = Pacer::new(Some(BitRate::new(8e3).unwrap()));
        pacer.on_sent(Time::ZERO, 1000);
        pacer.raise_bytes_per_s(Time::from_millis(200), 4000.0);
        assert_eq!(pacer.next(), Time::from_millis(400), "800 bytes at the new rate");
        pacer.raise_bytes_per_s(Time::from_millis(300), 1000.0);
        assert_eq!(pacer.next(), Time::from_millis(400), "a lower rate is that of later packets");
        pacer.raise_bytes_per_s(Time::from_millis(500), 8000.0);
        assert_eq!(pacer.next(), Time::from_millis(400), "nothing is owed");
        pacer.on_sent(Time::from_millis(500), 8000);
        pacer.raise_bytes_per_s(Time::from_millis(600), f64::INFINITY);
        assert!(!pacer.is_on() && !pacer.is_holding(Time::from_millis(600)));
    }

    #[test]
    fn waits_when_told_to() {
        let mut pacer = Pacer::new(None);
        pacer.hold_until(Time::from_secs(2));
        assert!(pacer.is_holding(Time::from_secs(1)) && !pacer.is_holding(Time::from_secs(2)));
        assert_eq!(pacer.next(), Time::from_secs(2));
        // With a rate, the later of the two times counts.
        pacer.set_bytes_per_s(100.0);
        pacer.on_sent(Time::from_secs(3), 500);
        assert_eq!(pacer.next(), Time::from_secs(8));
        pacer.hold_until(Time::from_secs(9));
        assert!(pacer.is_holding(Time::from_secs(8)) && !pacer.is_holding(Time::from_secs(9)));
        assert_eq!(pacer.next(), Time::from_secs(9));
    }

    #[test]
    fn what_a_late_timer_missed_follows_at_once_up_to_a_limit() {
        let mut pacer = Pacer::new(Some(BitRate::new(8e6).unwrap()));
        pacer.set_catch_up(Time::from_millis(5));
        pacer.on_sent(Time::ZERO, 1000);
        assert!(pacer.is_holding(Time::ZERO), "a packet takes a millisecond");
        pacer.set_waited_for(true);
        for after in 1..=3 {
            assert!(!pacer.is_holding(Time::from_millis(3)));
            pacer.on_sent(Time::from_millis(3), 1000);
            assert_eq!(pacer.next(), Time::from_millis(after + 1), "as if each had been sent in time");
        }
        assert!(pacer.is_holding(Time::from_millis(3)));
        pacer.on_sent(Time::from_millis(100), 1000);
        assert_eq!(pacer.next(), Time::from_millis(96), "5 ms are caught up");
        pacer.set_waited_for(false);
        pacer.on_sent(Time::from_millis(200), 1000);
        assert_eq!(pacer.next(), Time::from_millis(201), "nothing waited, so nothing was missed");
    }

    #[test]
    fn what_is_caught_up_with_is_bounded_in_bytes_or_time() {
        for (rate_bps, missed_us) in [(1e6, 20_000), (52_428_800.0, 10_000), (1e9, 5000)] {
            let mut pacer = Pacer::new(Some(BitRate::new(rate_bps).unwrap()));
            pacer.set_catch_up(Time::from_millis(20));
            pacer.set_waited_for(true);
            pacer.on_sent(Time::from_secs(1), 1024);
            let span = Time::from_secs_f64(8192.0 / rate_bps); // a whole number of picoseconds
            assert_eq!(
                pacer.next(),
                Time::from_secs(1).since(Time::from_ps(missed_us * 1_000_000)) + span,
                "{rate_bps}"
            );
        }
    }

    #[test]
    fn without_a_rate_nothing_is_delayed() {
        let mut pacer = Pacer::new(None);
        pacer.on_sent(Time::ZERO, 1 << 20);
        assert!(!pacer.is_holding(Time::ZERO) && !pacer.is_on());
    }
}
