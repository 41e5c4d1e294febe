//! Sends no faster than a rate.

use crate::time::Time;
use crate::units::BitRate;

/// When the next packet may go out. Without a rate it holds nothing back.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocol) struct Pacer {
    /// Picoseconds that a byte takes; 0 without a rate.
    ps_per_byte: f64,
    next: Time,
}

impl Pacer {
    /// Sends at a rate, unless it is `None`.
    pub(in crate::protocol) fn new(rate: Option<BitRate>) -> Self {
        Pacer { ps_per_byte: rate.map_or(0.0, BitRate::ps_per_byte), next: Time::ZERO }
    }

    /// Changes the rate of what is sent from now on, bytes per second; anything but a number above 0 takes the limit away.
    #[inline]
    pub(in crate::protocol) fn set_bytes_per_s(&mut self, rate: f64) {
        self.ps_per_byte = if rate > 0.0 && rate < f64::INFINITY { 1e12 / rate } else { 0.0 };
    }

    /// Whether there is a rate.
    #[inline(always)]
    pub(in crate::protocol) fn is_on(&self) -> bool {
        self.ps_per_byte > 0.0
    }

    /// Whether nothing may go out yet.
    #[inline(always)]
    pub(in crate::protocol) fn is_holding(&self, now: Time) -> bool {
        self.is_on() && now < self.next
    }

    /// When something may go out.
    #[inline(always)]
    pub(in crate::protocol) fn next(&self) -> Time {
        self.next
    }

    /// A packet of `bytes` goes out.
    #[inline(always)]
    pub(in crate::protocol) fn on_sent(&mut self, now: Time, bytes: u32) {
        if self.is_on() {
            // Pauses are not made up for: what was not sent then would come in a burst.
            let span = Time::from_ps((self.ps_per_byte * f64::from(bytes)) as u64);
            self.next = self.next.max(now) + span;
        }
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
    fn without_a_rate_it_holds_nothing_back() {
        let mut pacer = Pacer::new(None);
        pacer.on_sent(Time::ZERO, 1 << 20);
        assert!(!pacer.is_holding(Time::ZERO) && !pacer.is_on());
    }
}
