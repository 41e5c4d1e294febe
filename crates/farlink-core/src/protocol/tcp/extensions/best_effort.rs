//! The number of transmissions of each segment, and the segments that were given up (best-effort transport of SCPS-TP).

use std::collections::VecDeque;

/// An unacknowledged segment. It begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    count: u32,
    is_abandoned: bool,
}

/// Segments in flight, in order of the stream.
#[derive(Clone, Debug)]
pub(super) struct Transmissions {
    most: u32,
    segments: VecDeque<Sent>,
}

impl Transmissions {
    pub(super) fn new(most: u32) -> Self {
        Transmissions { most, segments: VecDeque::new() }
    }

    /// `start..end` is sent, for the first time or again; all data below `una` is acknowledged.
    pub(super) fn on_sent(&mut self, start: u64, end: u64, una: u64) {
        while self.segments.front().is_some_and(|sent| sent.end <= una) {
            self.segments.pop_front();
        }
        let first = self.segments.partition_point(|sent| sent.end <= start);
        let mut from = first;
        while let Some(sent) = self.segments.get_mut(from) {
            sent.count += 1;
            from += 1;
            if sent.end >= end {
                return;
            }
        }
        self.segments.push_back(Sent { end, count: 1, is_abandoned: false });
    }

    /// The end of the segment at `start` if it may not be sent again.
    pub(super) fn exhausted(&self, start: u64) -> Option<u64> {
        let at = self.segments.partition_point(|sent| sent.end <= start);
        self.segments.get(at).filter(|sent| sent.count >= self.most).map(|sent| sent.end)
    }

    /// Gives up the segment at `start`.
    pub(super) fn abandon(&mut self, start: u64) {
        let at = self.segments.partition_point(|sent| sent.end <= start);
        if let Some(sent) = self.segments.get_mut(at) {
            sent.is_abandoned = true;
        }
    }

    /// The end of the data given up from `una` on.
    pub(super) fn abandoned_from(&self, una: u64) -> u64 {
        let first = self.segments.partition_point(|sent| sent.end <= una);
        self.segments.range(first..).take_while(|sent| sent.is_abandoned).last().map_or(una, |sent| sent.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_exhausted_after_the_allowed_transmissions() {
        let mut sent = Transmissions::new(2);
        for start in [1, 101, 201] {
            sent.on_sent(start, start + 100, 1);
        }
        assert_eq!(sent.exhausted(101), None);
        sent.on_sent(101, 201, 1);
        assert_eq!((sent.exhausted(101), sent.exhausted(1)), (Some(201), None));
        assert_eq!(sent.exhausted(201), None, "the following segment was not sent again");
        sent.abandon(101);
        assert_eq!((sent.abandoned_from(1), sent.abandoned_from(101)), (1, 201));
        // A transmission that covers two segments counts for both.
        sent.on_sent(101, 301, 1);
        assert_eq!(sent.exhausted(201), Some(301));
    }
}
