//! Statistics of error bursts.

/// Bursts of wrong bits, by a definition that its gap length states.
///
/// A burst begins with a wrong bit and ends with one; a run of at least `gap_bits` right bits separates two bursts. Its span
/// counts from the first to the last wrong bit, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstStatistics {
    /// Right bits that end a burst.
    pub gap_bits: u64,
    /// Data bits that the bursts are among.
    pub bits: u64,
    /// Bursts seen.
    pub bursts: u64,
    /// Wrong bits in all of them.
    pub wrong_bits: u64,
    /// Mean span in bits; 0 without bursts.
    pub mean_span_bits: f64,
    /// Standard error of the mean span, in bits.
    pub mean_span_error_bits: f64,
    /// Longest span in bits.
    pub longest_span_bits: u64,
    /// Mean wrong bits of a burst; 0 without bursts.
    pub mean_wrong_bits: f64,
    /// How many bursts have each span: span in bits, bursts; ascending.
    pub spans: Vec<(u64, u64)>,
    /// How many bursts have each number of wrong bits: wrong bits, bursts; ascending.
    pub sizes: Vec<(u64, u64)>,
}

impl BurstStatistics {
    /// Bursts for each data bit.
    pub fn bursts_per_bit(&self) -> f64 {
        self.bursts as f64 / self.bits.max(1) as f64
    }

    /// Share of wrong bits.
    pub fn bit_error_rate(&self) -> f64 {
        self.wrong_bits as f64 / self.bits.max(1) as f64
    }
}

/// Statistics of the bursts among `bits` data bits with these wrong ones, in ascending order. With `gap_bits` of 0 or 1 every
/// run of wrong bits without a right one between is a burst (0: every wrong bit is).
pub fn burst_statistics(wrong: &[u64], bits: u64, gap_bits: u64) -> BurstStatistics {
    let mut spans = std::collections::BTreeMap::<u64, u64>::new();
    let mut sizes = std::collections::BTreeMap::<u64, u64>::new();
    for burst in bursts(wrong, gap_bits) {
        *spans.entry(burst[burst.len() - 1] - burst[0] + 1).or_default() += 1;
        *sizes.entry(burst.len() as u64).or_default() += 1;
    }
    let bursts: u64 = spans.values().sum();
    let n = bursts.max(1) as f64;
    let mean_span_bits = spans.iter().map(|(&span, &count)| span as f64 * count as f64).sum::<f64>() / n;
    let square = |span: u64| (span as f64 - mean_span_bits).powi(2);
    let variance = spans.iter().map(|(&span, &count)| square(span) * count as f64).sum::<f64>() / (n - 1.0).max(1.0);
    BurstStatistics {
        gap_bits,
        bits,
        bursts,
        wrong_bits: wrong.len() as u64,
        mean_span_bits,
        mean_span_error_bits: (variance / n).sqrt(),
        longest_span_bits: spans.keys().next_back().copied().unwrap_or(0),
        mean_wrong_bits: wrong.len() as f64 / n,
        spans: spans.into_iter().collect(),
        sizes: sizes.into_iter().collect(),
    }
}

/// The bursts among wrong bits in ascending order: at least `gap_bits` right ones separate two.
pub fn bursts(wrong: &[u64], gap_bits: u64) -> impl Iterator<Item = &[u64]> {
    wrong.chunk_by(move |a, b| b - a - 1 < gap_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_right_bits_ends_a_burst() {
        let wrong = [3, 4, 7, 20];
        let spans = |gap| burst_statistics(&wrong, 100, gap).spans;
        assert_eq!(spans(0), [(1, 4)]);
        assert_eq!(spans(1), [(1, 2), (2, 1)]);
        assert_eq!(spans(2), [(1, 2), (2, 1)]);
        assert_eq!(spans(3), [(1, 1), (5, 1)]);
        assert_eq!(spans(13), [(18, 1)]);
        let statistics = burst_statistics(&wrong, 100, 3);
        assert_eq!(statistics.mean_span_bits, 3.0);
        assert_eq!(statistics.mean_span_error_bits, 2.0);
        assert_eq!(statistics.sizes, [(1, 1), (3, 1)]);
        assert_eq!((statistics.bit_error_rate(), statistics.bursts_per_bit()), (0.04, 0.02));
    }

    #[test]
    fn no_wrong_bits_are_no_burst() {
        let none = burst_statistics(&[], 10, 5);
        assert_eq!((none.bursts, none.mean_span_bits, none.longest_span_bits), (0, 0.0, 0));
    }
}
