//! Which packets of a path arrived, and when they are acknowledged.

use super::packet::{Acknowledgement, NUMBER_BITS, Ranges, Stamp, Ticks, expand, low};
use crate::time::Time;

/// Longest time for which an acknowledgement is held back.
pub(super) const ACKNOWLEDGEMENT_DELAY: Time = Time::from_millis(10);

/// Least time between two acknowledgements that are only due because of a second packet.
const BETWEEN: Time = Time::from_millis(1);

/// Most ranges that are remembered.
const MOST_RANGES: usize = 48;

/// The packets of one path that arrived.
#[derive(Clone, Debug)]
pub(super) struct Received {
    /// Disjoint ranges, ascending, each from its first number to before its second.
    ranges: Vec<(u64, u64)>,
    largest_at: Time,
    /// Packets that ask for an acknowledgement and have none yet.
    pending: u32,
    due: Time,
    last: Time,
}

impl Received {
    pub(super) fn new() -> Self {
        Received { ranges: Vec::new(), largest_at: Time::ZERO, pending: 0, due: Time::NEVER, last: Time::ZERO }
    }

    /// The whole number of a packet.
    pub(super) fn expand(&self, number: u32) -> u64 {
        match self.ranges.last() {
            Some(&(_, end)) => expand(number, NUMBER_BITS, end),
            None => u64::from(number),
        }
    }

    /// Takes a packet; `false` if it was here before. `is_urgent`: its acknowledgement should not wait.
    pub(super) fn insert(&mut self, now: Time, number: u64, asks: bool, is_urgent: bool) -> bool {
        let at = self.ranges.partition_point(|&(_, end)| end <= number);
        if self.ranges.get(at).is_some_and(|&(start, _)| start <= number) {
            return false;
        }
        let is_largest = at == self.ranges.len();
        let joins_left = at > 0 && self.ranges[at - 1].1 == number;
        let joins_right = self.ranges.get(at).is_some_and(|&(start, _)| start == number + 1);
        let is_new_gap = is_largest && !joins_left && number > 0;
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = number + 1,
            (false, true) => self.ranges[at].0 = number,
            (false, false) => self.ranges.insert(at, (number, number + 1)),
        }
        if self.ranges.len() > MOST_RANGES {
            self.ranges.remove(0);
        }
        if is_largest {
            self.largest_at = now;
        }
        if asks {
            self.pending += 1;
            let due = if is_urgent || is_new_gap || !is_largest {
                now
            } else if self.pending >= 2 {
                self.last + BETWEEN
            } else {
                now + ACKNOWLEDGEMENT_DELAY
            };
            self.due = self.due.min(due);
        }
        true
    }

    /// When an acknowledgement is due; never if nothing is to be acknowledged.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Whether a packet that is sent anyway should carry an acknowledgement.
    pub(super) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// The acknowledgement of all that arrived, with at most so many counts.
    pub(super) fn acknowledge(&mut self, now: Time, path: u8, most_counts: usize) -> Option<Acknowledgement> {
        let &(start, end) = self.ranges.last()?;
        let count = |n: u64| u16::try_from(n).unwrap_or(u16::MAX).min(0x7fff);
        let mut counts = vec![count(end - start - 1)];
        let mut left = start;
        // A count that does not fit ends the list: what lies below is then acknowledged by nobody, and sent again at worst.
        let mut fits = end - start - 1 <= 0x7fff;
        for &(start, end) in self.ranges.iter().rev().skip(1) {
            if !fits || counts.len() + 2 > most_counts || left - end > 0x7fff {
                break;
            }
            counts.extend([count(left - end), count(end - start)]);
            fits = end - start <= 0x7fff;
            left = start;
        }
        (self.pending, self.due, self.last) = (0, Time::NEVER, now);
        Some(Acknowledgement {
            path,
            largest: low(end - 1, NUMBER_BITS),
            received: Stamp::at(self.largest_at),
            held: Ticks::of(now.since(self.largest_at)),
            ranges: Ranges(counts),
        })
    }
}

/// The numbers that an acknowledgement covers, from the highest range down, each from its first to before its second number.
pub(super) fn covered(acknowledgement: &Acknowledgement, largest: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let counts = &acknowledgement.ranges.0;
    let first = u64::from(counts.first().copied().unwrap_or(0));
    let start = largest.saturating_sub(first);
    let mut left = start;
    std::iter::once((start, largest + 1)).chain(counts.get(1..).unwrap_or_default().chunks_exact(2).map_while(
        move |pair| {
            let end = left.checked_sub(u64::from(pair[0]))?;
            left = end.checked_sub(u64::from(pair[1]))?;
            Some((left, end))
        },
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn acknowledgements_cover_what_arrived_and_nothing_else(numbers in prop::collection::vec(0u64..60, 1..60)) {
            let mut received = Received::new();
            let mut all = BTreeSet::new();
            for &number in &numbers {
                prop_assert_eq!(received.insert(Time::ZERO, number, true, false), all.insert(number));
            }
            let acknowledgement = received.acknowledge(Time::ZERO, 0, 127).unwrap();
            let covered: BTreeSet<u64> =
                covered(&acknowledgement, *all.last().unwrap()).flat_map(|(start, end)| start..end).collect();
            prop_assert_eq!(covered, all);
            prop_assert!(!received.is_pending() && received.due() == Time::NEVER);
        }
    }
}
