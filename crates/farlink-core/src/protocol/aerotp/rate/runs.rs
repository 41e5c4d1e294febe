//! How many packets in a row a channel loses.

use crate::origin::instants;

/// Packets that are lost in a row, on average. Of what a run showed, 1/e is left after so many further ones.
const MEMORY_RUNS: f64 = 32.0;
/// Fewer runs tell nothing.
const LEAST_RUNS: f64 = 8.0;
/// Packets are sent in a row if they are less than this multiple of the usual spacing apart.
const NEXT: f64 = 1.5;
/// Shorter runs on average are those of losses one by one, or of a queue that overflows; longer ones than the second number count as such.
const SHORTEST: f64 = 2.0;
const LONGEST: f64 = 8.0;

/// The mean number of packets that are lost in a row: what a burst of a channel takes, while a queue that is full drops packets that are
/// sent at a steady rate one by one. `[P16]`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    /// When the latest lost packet was sent, in ticks.
    latest: u64,
    lost: f64,
    runs: f64,
}

instants! { Runs: ; ticks: latest; fixed: lost, runs }

impl Runs {
    /// A packet sent at `sent` was lost; packets are `spacing_s` seconds apart.
    pub(super) fn on_lost(&mut self, sent: u64, spacing_s: f64) {
        let apart = sent.abs_diff(self.latest) as f64 / 1e6;
        if apart > NEXT * spacing_s {
            let kept = 1.0 - 1.0 / MEMORY_RUNS;
            (self.lost, self.runs) = (kept * self.lost, kept * self.runs + 1.0);
        }
        self.lost += 1.0;
        self.latest = sent;
    }

    /// How many packets tell as much as one where losses are independent.
    pub(super) fn mean(&self) -> f64 {
        let mean = self.lost / self.runs.max(1.0);
        if self.runs < LEAST_RUNS || mean < SHORTEST { 1.0 } else { mean.min(LONGEST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each millisecond, of which some are lost.
    fn after(is_lost: fn(u64) -> bool) -> f64 {
        let mut runs = Runs::default();
        (1..10_000).filter(|&n| is_lost(n)).for_each(|n| runs.on_lost(1000 * n, 1e-3));
        runs.mean()
    }

    #[test]
    fn bursts_count_and_losses_one_by_one_do_not() {
        assert_eq!(after(|n| n % 10 == 0), 1.0);
        assert_eq!(after(|n| n % 10 < 1 + n / 10 % 2), 1.0, "1.5 in the mean");
        assert!((after(|n| n % 200 < 4) - 4.0).abs() < 0.1);
        assert_eq!(after(|n| n % 200 < 40), 8.0);
        assert_eq!(after(|n| n < 40), 1.0, "a single run");
    }
}
