//! Recorded positions, played over and over: what the trace channels share.

use std::sync::Arc;

use crate::rng::Rng;
use crate::trace::Offset;
use crate::units::Whole;

/// Marked positions in a stream of known length.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    /// Ascending, below `length`.
    pub marks: Arc<[u64]>,
    /// Above 0.
    pub length: u64,
    pub offset: Offset<Whole>,
}

impl Recording {
    pub(super) fn start(&self, rng: &mut Rng) -> Replay {
        let at = match self.offset {
            Offset::Random => rng.below(self.length),
            Offset::At(offset) => offset.whole() % self.length,
        };
        let next = self.marks.partition_point(|&mark| mark < at);
        let mut replay = Replay { recording: self.clone(), next, gap: u64::MAX };
        if let Some(mark) = replay.mark() {
            replay.gap = mark - at;
        }
        replay
    }
}

/// A recording on its way.
pub(super) struct Replay {
    recording: Recording,
    /// Index of the next mark; one past the last stands for the first of the next round.
    next: usize,
    /// Unmarked positions before the next mark.
    pub gap: u64,
}

impl Replay {
    /// Where the next mark is, counted from the start of this round.
    fn mark(&self) -> Option<u64> {
        let Recording { marks, length, .. } = &self.recording;
        marks.get(self.next).copied().or_else(|| marks.first().map(|first| first + length))
    }

    /// Steps over the next mark: the number of unmarked positions behind it.
    pub(super) fn pass(&mut self) -> u64 {
        let Recording { marks, length, .. } = &self.recording;
        let Some(at) = self.mark() else { return u64::MAX };
        if self.next == marks.len() {
            self.next = 0;
            return self.pass_from(at - length);
        }
        self.pass_from(at)
    }

    fn pass_from(&mut self, at: u64) -> u64 {
        self.next += 1;
        self.mark().map_or(u64::MAX, |mark| mark - at - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_offset_lies_anywhere_in_the_recording() {
        // One mark at the end: what lies before it tells where the replay began.
        let recording = Recording { marks: Arc::new([999]), length: 1000, offset: Offset::Random };
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let replay = recording.start(&mut Rng::for_component(seed, 0, "test"));
            quarters[(999 - replay.gap as usize) / 250] += 1;
        }
        // A hundred each, with a standard deviation of nine.
        assert!(quarters.iter().all(|count| (65..=135).contains(count)), "{quarters:?}");
    }
}
