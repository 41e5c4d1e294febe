//! Whether nearly nothing arrives of what is sent. `[P19]`

use crate::origin::instants;
use crate::time::Time;

use super::super::clock::ticks;
use super::packets::{Packets, deviation};

/// Share of what the channel lets through that must arrive, and the limits of the product.
const LEAST_PART: f64 = 0.4;
const MOST_SHARE: f64 = 1.0 / 3.0;
const LEAST_SHARE: f64 = 0.1;
/// The share of few packets must be so many standard deviations below this multiple of it.
const NEAR: f64 = 1.2;
const SURE: f64 = 3.5;
/// The packets of at least so many half timeouts are counted together, so that a quarter arrives in spite of an outage: one of more than a
/// timeout shows in the reports that are missing.
const HALF_TIMEOUTS: u64 = 3;

/// Counts what arrives. If it is nearly nothing, the rate is far above what the path carries, whatever the rate control makes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overload {
    packets: Packets,
    /// Only packets sent since this time count, in ticks; and when the latest of them was sent.
    since: u64,
    latest: u64,
    /// When an answer is overdue after a packet was sent.
    timeout: Time,
    /// When the latest report came.
    answered: Time,
}

instants! { Overload: answered; ticks: since, latest; fixed: packets, timeout }

impl Overload {
    pub(super) fn new(timeout: Time) -> Self {
        Overload { packets: Packets::default(), since: 0, latest: 0, timeout, answered: Time::ZERO }
    }

    /// Counts a packet sent at `sent`, of which a share arrived.
    #[inline]
    pub(super) fn on_outcome(&mut self, sent: u64, arrived: f64) {
        if sent >= self.since {
            self.packets.add_one(arrived);
            self.latest = self.latest.max(sent);
        }
    }

    /// A report has come, and the next one is overdue after `timeout`. Returns whether the rate is to be halved; `least_loss` is what the
    /// channel loses, 1 while that is not known.
    pub(super) fn on_report(&mut self, now: Time, timeout: Time, least_loss: f64) -> bool {
        let was_silent = now.since(self.answered) > self.timeout;
        (self.answered, self.timeout) = (now, timeout);
        if was_silent {
            self.begin(now);
            return false;
        }
        if self.latest < self.since + ticks(timeout.times(HALF_TIMEOUTS)) / 2 {
            return false;
        }
        let share = 1.0 - self.packets.lost_share();
        let least = (LEAST_PART * (1.0 - least_loss)).clamp(LEAST_SHARE, MOST_SHARE);
        if share >= least {
            self.begin_at(self.latest);
            return false;
        }
        share < NEAR * least - SURE * deviation(NEAR * least, self.packets.known())
    }

    /// The rate is set: what was sent before tells nothing of it.
    pub(super) fn begin(&mut self, now: Time) {
        self.begin_at(ticks(now));
    }

    fn begin_at(&mut self, since: u64) {
        (self.packets, self.since, self.latest) = (Packets::default(), since, since);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    const TIMEOUT: Time = Time::from_secs(1);

    /// Reports in each tenth of a second, on packets that were sent half a second before, of which a share arrives. Returns in which
    /// tenths the rate is halved.
    fn run(
        overload: &mut Overload,
        tenths: Range<u64>,
        packets: u64,
        least_loss: f64,
        arrived: fn(u64) -> bool,
    ) -> Vec<u64> {
        let mut report = |tenth: u64| {
            let now = Time::from_millis(100 * tenth);
            for n in 0..packets {
                overload.on_outcome(ticks(now) - 500_000, f64::from(u8::from(arrived(packets * tenth + n))));
            }
            let is_halved = overload.on_report(now, TIMEOUT, least_loss);
            if is_halved {
                overload.begin(now);
            }
            is_halved
        };
        tenths.filter(|&tenth| report(tenth)).collect()
    }

    /// At random, so that seven in ten are lost.
    fn three_in_ten(n: u64) -> bool {
        (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 10 < 3
    }

    #[test]
    fn a_rate_of_which_nearly_nothing_arrives_is_halved_each_two_timeouts() {
        let mut overload = Overload::new(TIMEOUT);
        assert_eq!(run(&mut overload, 10..110, 100, 0.0, |n| n % 10 == 0), [20, 40, 60, 80, 100]);
        assert!(run(&mut overload, 110..210, 100, 0.0, |n| n % 2 == 0).is_empty(), "half arrives");
    }

    #[test]
    fn a_channel_that_loses_seven_in_ten_is_no_overload() {
        for packets in [1, 5, 50] {
            let halved = run(&mut Overload::new(TIMEOUT), 10..36_010, packets, 0.7, three_in_ten);
            assert!(halved.is_empty(), "in an hour with {packets} packets in a tenth of a second: {halved:?}");
        }
    }

    /// Packets that were sent in an outage are lost, and show nothing of what the path carries after it.
    #[test]
    fn an_outage_is_no_overload() {
        for (packets, tenths) in [(1, 9), (100, 9), (100, 19), (100, 300)] {
            let mut overload = Overload::new(TIMEOUT);
            assert!(run(&mut overload, 10..100, packets, 0.0, |_| true).is_empty());
            for tenth in 100..100 + tenths {
                let sent = ticks(Time::from_millis(100 * tenth - 500));
                (0..packets).for_each(|_| overload.on_outcome(sent, 0.0));
            }
            let end = 100 + tenths;
            assert!(run(&mut overload, end..end + 100, packets, 0.0, |_| true).is_empty(), "{packets} {tenths}");
        }
    }
}
