//! Data that the receiver of a reliable stream skips because the sender gave it up.

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::protocol::parts::reorder::Reorder;

/// Gaps in the data that the application reads. `[V6]`
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedData {
    /// For each gap, the number of bytes read before it and its length; ascending.
    gaps: VecDeque<(u64, u64)>,
    total: u64,
}

impl SkippedData {
    /// Skips all missing data before a position and delivers the rest. At most `most` gaps are stored; with more, the stream
    /// stops until the sender repeats its notice. Returns whether anything was skipped.
    pub(super) fn skip_to<D: Payload>(&mut self, data: &mut Reorder<D>, to: u64, most: usize) -> bool {
        let before = self.total;
        while data.next < to && self.gaps.len() < most {
            let end = data.early_start().map_or(to, |start| start.min(to));
            let (delivered, bytes) = (data.next - self.total, end - data.next);
            match self.gaps.back_mut() {
                Some((at, missing)) if *at == delivered => *missing += bytes,
                _ => self.gaps.push_back((delivered, bytes)),
            }
            self.total += bytes;
            data.skip_to(end);
        }
        self.total > before
    }

    /// The next data in order, up to the next gap.
    #[inline]
    pub(super) fn read<D: Payload>(&self, data: &mut Reorder<D>) -> Option<D> {
        match self.gaps.front() {
            Some(&(at, _)) => data.read_some(at - self.read_bytes(data)),
            None => data.read(),
        }
    }

    /// The length of the next gap, once all data before it was read.
    pub(super) fn take<D: Payload>(&mut self, data: &Reorder<D>) -> Option<u64> {
        let &(at, bytes) = self.gaps.front()?;
        if self.read_bytes(data) < at {
            return None;
        }
        self.gaps.pop_front();
        Some(bytes)
    }

    /// Whether all gaps were reported to the application.
    pub(super) fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Bytes skipped so far, modulo 2^32; `None` if there were none. `[V8]`
    pub(super) fn number(&self) -> Option<u32> {
        (self.total > 0).then_some(self.total as u32)
    }

    fn read_bytes<D: Payload>(&self, data: &Reorder<D>) -> u64 {
        data.next - self.total - data.unread_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    /// Bytes 10 to 19, 30 to 39 and 60 to 69 are here.
    fn islands() -> Reorder<Vec<u8>> {
        let mut data = Reorder::default();
        for start in [10, 30, 60] {
            data.put(start, (start..start + 10).map(|at| at as u8).collect());
        }
        data
    }

    #[test]
    fn data_between_gaps_is_delivered_and_gaps_are_reported_in_order() {
        let (mut data, mut skipped_data) = (islands(), SkippedData::default());
        assert!(skipped_data.skip_to(&mut data, 50, 99));
        assert_eq!((data.next, skipped_data.number()), (50, Some(30)));
        let mut seen = vec![];
        for _ in 0..4 {
            while let Some(read) = skipped_data.read(&mut data) {
                seen.push((u64::from(read[0]), read.len() as u64));
            }
            seen.extend(skipped_data.take(&data).map(|missing| (999, missing)));
        }
        assert_eq!(seen, [(999, 10), (10, 10), (999, 10), (30, 10), (999, 10)]);
        assert!(skipped_data.is_empty() && !skipped_data.skip_to(&mut data, 50, 99), "once");
        assert!(skipped_data.skip_to(&mut data, 65, 99));
        assert_eq!(
            (data.next, skipped_data.take(&data)),
            (70, Some(10)),
            "data that had begun to arrive continues after the gap"
        );
    }

    #[test]
    fn lengths_across_a_gap_are_read_separately() {
        let (mut data, mut skipped_data) = (Reorder::default(), SkippedData::default());
        data.put(0, Virtual(10));
        skipped_data.skip_to(&mut data, 15, 99);
        skipped_data.skip_to(&mut data, 20, 99);
        data.put(20, Virtual(5));
        assert_eq!((skipped_data.read(&mut data), skipped_data.read(&mut data)), (Some(Virtual(10)), None));
        assert_eq!((skipped_data.take(&data), skipped_data.take(&data)), (Some(10), None));
        assert_eq!((skipped_data.read(&mut data), skipped_data.read(&mut data)), (Some(Virtual(5)), None));
    }

    #[test]
    fn the_number_of_gaps_is_bounded() {
        let (mut data, mut skipped_data) = (islands(), SkippedData::default());
        assert!(skipped_data.skip_to(&mut data, 70, 2));
        assert_eq!((data.next, skipped_data.gaps.len()), (40, 2));
        assert!(!skipped_data.skip_to(&mut data, 70, 2));
        assert_eq!(skipped_data.take(&data), Some(10));
        assert!(skipped_data.skip_to(&mut data, 70, 2));
        assert_eq!(data.next, 70);
    }
}
