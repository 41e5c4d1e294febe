//! Error events: the bursts of residual bit errors of a decoder, and their rate.

mod conditional;
mod importance;
mod library;
mod statistics;
mod trace;

pub use library::{Library, LibraryError, Method, importance_sampled, library, played, simulated};
pub use statistics::{BurstCounter, BurstStatistics, burst_statistics, bursts};
pub use trace::{Trace, Walked, trace, walk};

/// Error events at a decoder's output, for repeated replay.
///
/// Between two events lie at least [`gap_min_bits`](ErrorEvents::gap_min_bits) right bits, and on the average
/// [`gap_mean_bits`](ErrorEvents::gap_mean_bits): their number is that minimum plus a geometric one, because a decoder has no
/// memory of an event after that many correct bits. Each event is one of the recorded ones with equal probability.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorEvents {
    /// Positions of wrong bits of all events after each other; in each they begin with 0 and ascend.
    positions: Vec<u32>,
    /// Where each event begins in `positions`, and the end of the last.
    starts: Vec<u32>,
    gap_min_bits: f64,
    gap_mean_bits: f64,
}

impl ErrorEvents {
    /// Events from the positions of their wrong bits, each beginning with 0 and ascending.
    ///
    /// # Panics
    /// If an event is empty, does not begin with 0 or does not ascend, the mean gap lies below the least, or is 0 or no
    /// number.
    pub fn new<'a>(events: impl IntoIterator<Item = &'a [u32]>, gap_min_bits: f64, gap_mean_bits: f64) -> ErrorEvents {
        let mut made = ErrorEvents { positions: Vec::new(), starts: vec![0], gap_min_bits, gap_mean_bits };
        for event in events {
            assert!(
                event.first() == Some(&0) && event.is_sorted_by(|a, b| a < b),
                "an event begins with 0 and ascends"
            );
            made.positions.extend_from_slice(event);
            made.starts.push(made.positions.len() as u32);
        }
        assert!(gap_min_bits >= 0.0 && gap_mean_bits >= gap_min_bits, "a mean is no less than the least");
        assert!(gap_mean_bits > 0.0, "some bits are right");
        made
    }

    /// Number of events; with none, no bit is ever wrong.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Positions of the wrong bits of an event; the first is 0.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn event(&self, at: usize) -> &[u32] {
        &self.positions[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Least number of right bits between two events.
    pub fn gap_min_bits(&self) -> f64 {
        self.gap_min_bits
    }

    /// Mean number of right bits between two events; infinite if there are no events.
    pub fn gap_mean_bits(&self) -> f64 {
        self.gap_mean_bits
    }

    /// Share of wrong bits.
    pub fn bit_error_rate(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let spans: f64 = (0..self.len()).map(|at| f64::from(self.event(at)[self.event(at).len() - 1]) + 1.0).sum();
        self.positions.len() as f64 / (spans + self.gap_mean_bits * self.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_rate_counts_spans_and_gaps() {
        let events = ErrorEvents::new([&[0u32, 2][..], &[0]], 6.0, 98.0);
        assert_eq!(events.bit_error_rate(), 3.0 / (3.0 + 1.0 + 2.0 * 98.0));
        assert_eq!(events.event(1), [0]);
    }
}
