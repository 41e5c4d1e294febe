//! How long a sender waits for segments that others have overtaken.

use std::cmp::Reverse;

use crate::origin::instants;
use crate::protocol::parts::recent::RecentLeast;
use crate::time::Time;

use super::clock::span;

/// Reported segments are remembered for at least so many round trips, and for twice as many at most.
const ROUND_TRIPS: u64 = 16;

/// The longest time by which segments were overtaken recently, as the receiver reports it. `[R3]`
///
/// RACK (RFC 8985, section 7.2) waits for a quarter of the shortest round trip, and for more of them as duplicates are reported. Here
/// the receiver measures the time: it need not be in proportion to the round trip. Where two paths share the segments, it is the
/// difference of their delays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reordering {
    /// In microseconds, the longest first.
    reported: RecentLeast<Reverse<u64>>,
    /// The least extent, in microseconds.
    least: u64,
}

instants! { Reordering: reported; fixed: least }

impl Reordering {
    /// A segment sent more than this long before one that has arrived, in microseconds, is lost unless it has arrived too.
    #[inline]
    pub(super) fn extent(&self) -> u64 {
        let longest = self.reported.get().map_or(0, |Reverse(longest)| longest);
        (longest + longest / 8).max(self.least) // the next one may be somewhat later
    }

    /// Whether an answer that echoes a segment sent at `echo` decides about another one sent at `sent`, in ticks: it has arrived, or is
    /// lost. The echoed segment itself has arrived.
    #[inline]
    pub(super) fn is_decided(&self, sent: u64, echo: u64) -> bool {
        let before = echo.saturating_sub(self.extent());
        sent < before || (sent == echo && before == echo)
    }

    /// Data that were declared lost have arrived: from now on a verdict waits for so many microseconds at least.
    pub(super) fn on_wrong_verdict(&mut self, least: u64) {
        self.least = least;
    }

    /// An acknowledgement reports a segment that was overtaken by `overtaken_by` microseconds, or none. `answer` is the usual time of an
    /// answer.
    #[inline]
    pub(super) fn on_mack(&mut self, now: Time, overtaken_by: Option<u64>, answer: Time) {
        self.reported.turn(now, (answer + span(self.extent())).times(ROUND_TRIPS));
        if let Some(overtaken_by) = overtaken_by {
            self.reported.add(Reverse(overtaken_by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut reordering = Reordering::default();
        let (answer, mut now) = (Time::from_millis(10), Time::from_secs(1));
        let mut after = |round_trips: u64, overtaken_by: Option<u64>| {
            now += answer.times(round_trips);
            reordering.on_mack(now, overtaken_by, answer);
            reordering.extent()
        };
        assert_eq!(after(0, None), 0);
        assert_eq!(after(0, Some(8_000)), 9_000);
        assert_eq!(after(1, Some(2_000)), 9_000);
        assert_eq!(after(40, Some(4_000)), 9_000);
        assert_eq!(after(40, None), 4_500);
        assert_eq!(after(40, None), 0);
    }
}
