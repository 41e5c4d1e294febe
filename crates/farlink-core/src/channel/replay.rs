//! Replay of recorded positions in an endless loop, for all trace channels.

use std::sync::Arc;

use crate::rng::Rng;
use crate::trace::Offset;
use crate::units::Whole;

/// Recorded positions of errors or losses in a stream of known length.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    /// Ascending, below `length`.
    pub positions: Arc<[u64]>,
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
        let next = self.positions.partition_point(|&position| position < at);
        let mut replay = Replay { recording: self.clone(), next, gap: u64::MAX };
        if let Some(position) = replay.next_position() {
            replay.gap = position - at;
        }
        replay
    }
}

/// The running state of a recording.
pub(super) struct Replay {
    recording: Recording,
    /// Index of the next position; one past the last means the first position of the next repetition.
    next: usize,
    /// Number of positions before the next recorded one.
    pub gap: u64,
}

impl Replay {
    /// The next recorded position, counted from the start of this repetition.
    fn next_position(&self) -> Option<u64> {
        let Recording { positions, length, .. } = &self.recording;
        positions.get(self.next).copied().or_else(|| positions.first().map(|first| first + length))
    }

    /// Steps over the next recorded position and returns the number of positions between it and the one after.
    pub(super) fn pass(&mut self) -> u64 {
        let Recording { positions, length, .. } = &self.recording;
        let Some(at) = self.next_position() else { return u64::MAX };
        if self.next == positions.len() {
            self.next = 0;
            return self.pass_from(at - length);
        }
        self.pass_from(at)
    }

    fn pass_from(&mut self, at: u64) -> u64 {
        self.next += 1;
        self.next_position().map_or(u64::MAX, |position| position - at - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_offset_lies_anywhere_in_the_recording() {
        // With one position at the end, the distance to it shows where the replay began.
        let recording = Recording { positions: Arc::new([999]), length: 1000, offset: Offset::Random };
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let replay = recording.start(&mut Rng::for_component(seed, 0, "test"));
            quarters[(999 - replay.gap as usize) / 250] += 1;
        }
        // A hundred each, with a standard deviation of nine.
        assert!(quarters.iter().all(|count| (65..=135).contains(count)), "{quarters:?}");
    }
}
