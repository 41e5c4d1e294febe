//! Choice of the out-of-order blocks that an acknowledgement lists.

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::protocol::parts::reorder::Reorder;

use super::super::segment::{MOST_EDGES, Mack};

/// Recent arrivals, each with the number of acknowledgements that have reported it.
///
/// New data arrives at the front of the stream, retransmissions far behind it, and repeated retransmissions even farther. A list
/// of a few blocks around one position would never report the others; therefore the list has the blocks with the arrivals that
/// were reported least often. `[A4]`
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    recent: VecDeque<Arrival>,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    position: u64,
    told: u8,
}

/// How many times each arrival is reported, because acknowledgements may be lost.
const REPORTS_PER_ARRIVAL: u8 = 3;
/// Number of arrivals that are kept.
const MOST_ARRIVALS: usize = 192;
/// Largest number of blocks in a list, which leaves room for the gaps between them.
const MOST_BLOCKS: usize = MOST_EDGES / 4;
/// Number of unreported arrivals that make an acknowledgement due.
const MOST_UNREPORTED: usize = MOST_BLOCKS / 2;

impl Report {
    /// Adds an arrival out of order.
    pub(super) fn add(&mut self, position: u64) {
        if self.recent.len() == MOST_ARRIVALS {
            self.recent.pop_front();
        }
        self.recent.push_back(Arrival { position, told: 0 });
    }

    /// Whether an acknowledgement is due for it.
    pub(super) fn is_pressing(&self) -> bool {
        self.has_unreported(MOST_UNREPORTED)
    }

    /// Whether one will be due after one more arrival.
    #[cfg(feature = "trains")]
    pub(super) fn is_nearly_pressing(&self) -> bool {
        self.has_unreported(MOST_UNREPORTED - 1)
    }

    /// Whether the latest `count` arrivals were never reported.
    fn has_unreported(&self, count: usize) -> bool {
        self.recent.len() >= count && self.recent.range(self.recent.len() - count..).all(|arrival| arrival.told == 0)
    }

    /// Writes the list of blocks, with positions converted to sequence numbers.
    pub(super) fn write<D: Payload>(
        &mut self,
        data: &Reorder<D>,
        end: Option<u64>,
        mack: &mut Mack,
        number: impl Fn(u64) -> u32,
    ) {
        let blocks = self.choose(data);
        let Some(first) = data.early_start() else {
            (mack.is_from_start, mack.is_to_end) = (true, true);
            return;
        };
        mack.is_from_start = blocks.first().is_some_and(|block| block.0 == first);
        mack.is_to_end = blocks.last().is_some_and(|block| block.1 == data.early_end());
        let mut behind = None;
        for &(start, block_end) in &blocks {
            if let Some(behind) = behind
                && data.start_behind(behind) != Some(start)
            {
                mack.edges.push(number(behind), number(behind)); // an empty block: the list says nothing about the data in between
            }
            let last = if end == Some(block_end) { block_end + 1 } else { block_end };
            mack.edges.push(number(start), number(last));
            behind = Some(block_end);
        }
    }

    /// The blocks to list, in ascending order.
    fn choose<D: Payload>(&mut self, data: &Reorder<D>) -> Vec<(u64, u64)> {
        self.recent.retain(|arrival| arrival.told < REPORTS_PER_ARRIVAL && arrival.position >= data.next);
        let mut blocks: Vec<(u64, u64)> = Vec::with_capacity(MOST_BLOCKS);
        for told in 0..REPORTS_PER_ARRIVAL {
            for arrival in self.recent.iter_mut().rev().filter(|arrival| arrival.told == told) {
                let at = blocks.partition_point(|block| block.1 <= arrival.position);
                let is_listed = blocks.get(at).is_some_and(|block| block.0 <= arrival.position);
                if !is_listed {
                    let Some(block) = data.block_around(arrival.position) else { continue };
                    if blocks.len() == MOST_BLOCKS {
                        continue;
                    }
                    blocks.insert(at, block);
                }
                // An arrival that is reported now is not considered again; the next round takes those that were reported once
                // more often.
                arrival.told = told + 1 + REPORTED_NOW;
            }
        }
        for arrival in &mut self.recent {
            arrival.told %= REPORTED_NOW;
        }
        if blocks.is_empty() {
            blocks.extend(data.early_start().and_then(|start| data.block_around(start)));
        }
        blocks
    }
}

/// Marks an arrival that the present list reports.
const REPORTED_NOW: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    fn listed(report: &mut Report, data: &Reorder<Virtual>, end: Option<u64>) -> (Vec<(u32, u32)>, bool, bool) {
        let mut mack = Mack::default();
        report.write(data, end, &mut mack, |position| position as u32);
        (mack.edges.blocks().collect(), mack.is_from_start, mack.is_to_end)
    }

    #[test]
    fn arrivals_at_two_positions_are_reported_in_one_list() {
        let (mut data, mut report) = (Reorder::default(), Report::default());
        for n in 1..40 {
            data.put(20 * n, Virtual(10));
        }
        assert_eq!(listed(&mut report, &data, None), (vec![(20, 30)], true, false), "something, at least");
        for position in [100, 780, 760] {
            report.add(position);
        }
        let list = vec![(100, 110), (110, 110), (760, 770), (780, 790)];
        assert_eq!(listed(&mut report, &data, None), (list.clone(), false, true));
        assert_eq!(listed(&mut report, &data, None).0, list);
        assert_eq!(listed(&mut report, &data, Some(790)).0.last(), Some(&(780, 791)), "the end takes one number");
        assert_eq!(listed(&mut report, &data, None).0, [(20, 30)], "three times is enough");
    }

    #[test]
    fn arrivals_reported_least_often_come_first() {
        let (mut data, mut report) = (Reorder::default(), Report::default());
        for n in 1..40 {
            data.put(20 * n, Virtual(10));
            report.add(20 * n);
        }
        let firsts = |report: &mut Report| -> Vec<u32> {
            listed(report, &data, None).0.iter().filter(|block| block.0 < block.1).map(|block| block.0).collect()
        };
        assert!(report.is_pressing());
        let latest: Vec<u32> = (24..40).map(|n| 20 * n).collect();
        assert_eq!(firsts(&mut report), latest);
        let before: Vec<u32> = (8..24).map(|n| 20 * n).collect();
        assert_eq!(firsts(&mut report), before);
        assert!(!report.is_pressing(), "the latest arrivals were reported");
    }

    #[test]
    fn without_gaps_the_cumulative_acknowledgement_suffices() {
        let mut report = Report::default();
        report.add(0);
        assert_eq!(listed(&mut report, &Reorder::default(), None), (vec![], true, true));
    }
}
