//! The data that the receiver has reported selectively (the scoreboard of RFC 6675, section 3).

use crate::protocol::tcp::window::Window;

/// Disjoint, ascending ranges of offsets above the cumulative acknowledgement.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    ranges: Vec<(u64, u64)>,
    bytes: u64,
}

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Reported bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
    }

    /// Adds a block and passes its new parts to `tell`; returns `true` if there are any.
    pub(super) fn add(&mut self, left: u64, right: u64, mut tell: impl FnMut(u64, u64)) -> bool {
        if left >= right {
            return false;
        }
        // The ranges that touch or overlap the block.
        let first = self.ranges.partition_point(|range| range.1 < left);
        let last = first + self.ranges[first..].partition_point(|range| range.0 <= right);
        if first == last {
            self.ranges.insert(first, (left, right));
            self.bytes += right - left;
            tell(left, right);
            return true;
        }
        let mut from = left;
        for &(start, end) in &self.ranges[first..last] {
            if from < start {
                tell(from, start);
            }
            from = from.max(end);
        }
        if from < right {
            tell(from, right);
        }
        let merged = (left.min(self.ranges[first].0), right.max(self.ranges[last - 1].1));
        let known: u64 = self.ranges[first..last].iter().map(|range| range.1 - range.0).sum();
        let new = merged.1 - merged.0 - known;
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        self.bytes += new;
        new > 0
    }

    /// Forgets ranges that the cumulative acknowledgement covers.
    pub(super) fn advance(&mut self, una: u64) {
        let gone = self.ranges.partition_point(|range| range.1 <= una);
        for range in self.ranges.drain(..gone) {
            self.bytes -= range.1 - range.0;
        }
        if let Some(first) = self.ranges.first_mut()
            && first.0 < una
        {
            self.bytes -= una - first.0;
            first.0 = una;
        }
    }

    /// Reported bytes at or above `offset`.
    pub(super) fn bytes_above(&self, offset: u64) -> u64 {
        let at = self.ranges.partition_point(|range| range.1 <= offset);
        self.ranges[at..].iter().map(|range| range.1 - range.0.max(offset)).sum()
    }

    /// Reported bytes below `offset`.
    pub(super) fn bytes_below(&self, offset: u64) -> u64 {
        self.bytes - self.bytes_above(offset)
    }

    /// The first unreported range at or above `offset`: its start and, if a report follows, its end.
    pub(super) fn gap_from(&self, offset: u64) -> (u64, Option<u64>) {
        let at = self.ranges.partition_point(|range| range.1 <= offset);
        match self.ranges.get(at) {
            Some(range) if range.0 <= offset => (range.1, self.ranges.get(at + 1).map(|next| next.0)),
            Some(range) => (offset, Some(range.0)),
            None => (offset, None),
        }
    }

    /// After a timeout all data is sent again, except the data that the receiver has reported.
    pub(super) fn skip_reported(&self, window: &mut Window) {
        let (gap, gap_end) = self.gap_from(window.nxt);
        if gap > window.nxt && (gap_end.is_some() || gap <= window.max) {
            window.nxt = gap.min(window.max);
        }
        // Reported data is no longer in flight.
        window.extra = self.bytes_below(window.nxt);
    }

    /// Unreported offsets below this one are lost (IsLost of RFC 6675, section 4): above them lie `threshold` ranges, or more
    /// bytes than `threshold - 1` segments have. 0 if nothing is lost.
    pub(super) fn lost_below(&self, threshold: u32, mss: u32) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc6675#section-4
        //# The routine returns true when either DupThresh discontiguous SACKed sequences have arrived above 'SeqNum' or
        //# more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than 'SeqNum' have been SACKed.
        let enough = u64::from(threshold.saturating_sub(1)) * u64::from(mss);
        let mut bytes = 0;
        for (count, range) in self.ranges.iter().rev().enumerate() {
            bytes += range.1 - range.0;
            if bytes > enough || count + 1 >= threshold as usize {
                return range.0;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_ranges_or_enough_bytes_above_mean_lost() {
        let nobody = |_, _| {};
        let mut board = Scoreboard::default();
        board.add(200, 300, nobody);
        board.add(400, 500, nobody);
        assert_eq!(board.lost_below(3, 100), 0);
        board.add(600, 700, nobody);
        assert_eq!(board.lost_below(3, 100), 200);

        // Three short ranges are enough, regardless of their number of bytes.
        board.clear();
        board.add(200, 210, nobody);
        board.add(400, 410, nobody);
        assert_eq!(board.lost_below(3, 100), 0);
        board.add(600, 610, nobody);
        assert_eq!(board.lost_below(3, 100), 200);

        board.clear();
        board.add(200, 400, nobody);
        assert_eq!(board.lost_below(3, 100), 0, "two segments are not more than two");
        board.add(400, 500, nobody);
        assert_eq!(board.lost_below(3, 100), 200);
    }

    proptest! {
        /// Agrees with a plain set of offsets.
        #[test]
        fn agrees_with_a_set(
            blocks in proptest::collection::vec((0u64..100, 0u64..20), 0..20), una in 0u64..120, probe in 0u64..120,
        ) {
            let mut board = Scoreboard::default();
            let mut set = std::collections::BTreeSet::new();
            for (left, len) in blocks {
                let new: Vec<u64> = (left..left + len).filter(|&i| set.insert(i)).collect();
                let mut told = Vec::new();
                prop_assert_eq!(board.add(left, left + len, |left, right| told.extend(left..right)), !new.is_empty());
                prop_assert_eq!(told, new);
            }
            board.advance(una);
            set.retain(|&i| i >= una);
            prop_assert_eq!(board.bytes, set.len() as u64);
            prop_assert_eq!(board.bytes_above(probe), set.range(probe..).count() as u64);
            prop_assert_eq!(board.bytes_below(probe), set.range(..probe).count() as u64);
            let (gap, gap_end) = board.gap_from(probe);
            prop_assert_eq!(gap, (probe..).find(|i| !set.contains(i)).unwrap());
            prop_assert_eq!(gap_end, set.range(gap..).next().copied());
        }
    }
}
