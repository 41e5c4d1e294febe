//! Statistics of error bursts.

use std::collections::BTreeMap;

/// Bursts of wrong bits, as defined by a gap length.
///
/// A burst begins and ends with a wrong bit; a run of at least `gap_bits` correct bits separates two bursts. Its span counts from
/// the first to the last wrong bit, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstStatistics {
    /// Number of correct bits that end a burst.
    pub gap_bits: u64,
    /// Number of data bits examined.
    pub bits: u64,
    /// Number of bursts.
    pub bursts: u64,
    /// Number of wrong bits in all bursts.
    pub wrong_bits: u64,
    /// Mean span in bits; 0 without bursts.
    pub mean_span_bits: f64,
    /// Standard error of the mean span, in bits.
    pub mean_span_error_bits: f64,
    /// Longest span in bits.
    pub longest_span_bits: u64,
    /// Mean number of wrong bits per burst; 0 without bursts.
    pub mean_wrong_bits: f64,
    /// Bits from the first wrong bit to the last one of all, both included; 0 without bursts.
    pub reach_bits: u64,
    /// Number of bursts of each span: (span in bits, bursts), ascending.
    pub spans: Vec<(u64, u64)>,
    /// Number of bursts with each number of wrong bits: (wrong bits, bursts), ascending.
    pub sizes: Vec<(u64, u64)>,
}

impl BurstStatistics {
    /// Bursts per data bit.
    pub fn bursts_per_bit(&self) -> f64 {
        self.bursts as f64 / self.bits.max(1) as f64
    }

    /// Share of wrong bits.
    pub fn bit_error_rate(&self) -> f64 {
        self.wrong_bits as f64 / self.bits.max(1) as f64
    }
}

/// Statistics of the bursts among `bits` data bits, of which those at `wrong`, in ascending order, are wrong. With a `gap_bits`
/// of 1 every run of consecutive wrong bits is a burst, with 0 every wrong bit is one.
pub fn burst_statistics(wrong: &[u64], bits: u64, gap_bits: u64) -> BurstStatistics {
    let mut counter = BurstCounter::new(gap_bits);
    wrong.iter().for_each(|&at| counter.wrong_bit(at));
    counter.finish(bits)
}

/// Counts bursts as wrong bits arrive, without storing the bits. Its memory grows with the number of different spans, which is at
/// most proportional to the square root of the number of bits.
///
/// Call [`BurstCounter::wrong_bit`] for every wrong bit, then [`BurstCounter::finish`].
#[derive(Clone, Debug)]
pub struct BurstCounter {
    gap_bits: u64,
    spans: BTreeMap<u64, u64>,
    sizes: BTreeMap<u64, u64>,
    wrong_bits: u64,
    first: Option<u64>,
    /// First and last wrong bit of the present burst, and its number of wrong bits.
    current: Option<(u64, u64, u64)>,
}

impl BurstCounter {
    /// A counter for bursts that are ended by `gap_bits` correct bits.
    pub fn new(gap_bits: u64) -> Self {
        let (spans, sizes) = (BTreeMap::new(), BTreeMap::new());
        BurstCounter { gap_bits, spans, sizes, wrong_bits: 0, first: None, current: None }
    }

    /// Takes the next wrong bit; positions ascend.
    ///
    /// # Panics
    /// If this one does not follow the previous one, in builds with debug assertions.
    pub fn wrong_bit(&mut self, at: u64) {
        self.wrong_bits += 1;
        self.first.get_or_insert(at);
        self.current = match self.current {
            Some((begin, last, size)) if at - last - 1 < self.gap_bits => Some((begin, at, size + 1)),
            former => {
                former.into_iter().for_each(|burst| self.ended(burst));
                Some((at, at, 1))
            }
        };
    }

    /// Number of wrong bits so far.
    pub fn wrong_bits(&self) -> u64 {
        self.wrong_bits
    }

    /// The statistics for `bits` data bits.
    pub fn finish(mut self, bits: u64) -> BurstStatistics {
        let reach_bits = match (self.first, self.current) {
            (Some(first), Some((_, last, _))) => last - first + 1,
            _ => 0,
        };
        self.current.take().into_iter().for_each(|burst| self.ended(burst));
        let bursts: u64 = self.spans.values().sum();
        let n = bursts.max(1) as f64;
        let mean_span_bits = self.spans.iter().map(|(&span, &count)| span as f64 * count as f64).sum::<f64>() / n;
        let square = |span: u64| (span as f64 - mean_span_bits).powi(2);
        let squares = self.spans.iter().map(|(&span, &count)| square(span) * count as f64).sum::<f64>();
        let variance = squares / (n - 1.0).max(1.0);
        BurstStatistics {
            gap_bits: self.gap_bits,
            bits,
            bursts,
            wrong_bits: self.wrong_bits,
            mean_span_bits,
            mean_span_error_bits: (variance / n).sqrt(),
            longest_span_bits: self.spans.keys().next_back().copied().unwrap_or(0),
            mean_wrong_bits: self.wrong_bits as f64 / n,
            reach_bits,
            spans: self.spans.into_iter().collect(),
            sizes: self.sizes.into_iter().collect(),
        }
    }

    fn ended(&mut self, (begin, last, size): (u64, u64, u64)) {
        *self.spans.entry(last - begin + 1).or_default() += 1;
        *self.sizes.entry(size).or_default() += 1;
    }
}

/// The bursts among wrong bits in ascending order: at least `gap_bits` correct bits separate two.
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
        assert_eq!(statistics.reach_bits, 18);
    }

    #[test]
    fn no_wrong_bits_are_no_burst() {
        let none = burst_statistics(&[], 10, 5);
        assert_eq!((none.bursts, none.mean_span_bits, none.longest_span_bits, none.reach_bits), (0, 0.0, 0, 0));
    }

    /// Bursts cut out of the whole list, by definition.
    #[test]
    fn counting_as_they_come_gives_what_the_whole_list_gives() {
        let mut noise = crate::awgn::Noise::stream(1, 0);
        for gap in [0, 1, 2, 7, 64] {
            let mut at = 0;
            let wrong: Vec<u64> = (0..2_000)
                .map(|_| {
                    at += 1 + noise.below(noise_range(at));
                    at
                })
                .collect();
            let found = burst_statistics(&wrong, at + 1, gap);
            let whole: Vec<&[u64]> = bursts(&wrong, gap).collect();
            let spans: Vec<u64> = whole.iter().map(|burst| burst[burst.len() - 1] - burst[0] + 1).collect();
            assert_eq!(found.bursts as usize, whole.len());
            assert_eq!(found.spans.iter().map(|(span, count)| span * count).sum::<u64>(), spans.iter().sum());
            assert_eq!(found.sizes.iter().map(|(size, count)| size * count).sum::<u64>(), 2_000);
            assert_eq!(found.longest_span_bits, *spans.iter().max().unwrap());
        }
    }

    /// Alternates between dense and sparse errors.
    fn noise_range(at: u64) -> u64 {
        if at.is_multiple_of(5) { 100 } else { 4 }
    }
}
