//! Sampling of Reed-Solomon words that the decoder cannot correct.

use crate::awgn::Noise;
use crate::bits;
use crate::reed_solomon::Code;

/// Words of a code with independent wrong bits, given that more symbols are wrong than the code corrects.
pub(super) struct Words {
    code: Code,
    /// For each number of wrong symbols above t, the probability of that many or more.
    tail: Vec<f64>,
    /// Cumulative probability of the number of wrong bits in a wrong symbol.
    wrong_bits: [f64; 9],
}

impl Words {
    /// Words whose bits are wrong with probability `p`.
    pub(super) fn new(code: &Code, p: f64) -> Words {
        // 1 - (1 - p)^8, also where that is small.
        let symbol = -libm::expm1(8.0 * libm::log1p(-p));
        let n = code.n() as f64;
        let probability = |wrong: f64| {
            let ways = libm::lgamma(n + 1.0) - libm::lgamma(wrong + 1.0) - libm::lgamma(n - wrong + 1.0);
            libm::exp(ways + wrong * libm::log(symbol) + (n - wrong) * 8.0 * libm::log1p(-p))
        };
        let mut tail: Vec<f64> = (code.t() + 1..=code.n()).map(|wrong| probability(wrong as f64)).collect();
        // Sum from the smallest term on, so that small numbers are not lost.
        for at in (1..tail.len()).rev() {
            tail[at - 1] += tail[at];
        }
        let mut wrong_bits = [0.0; 9];
        let mut ways = 1.0;
        for wrong in 1..=8 {
            ways *= (9 - wrong) as f64 / wrong as f64;
            let each = libm::pow(p, wrong as f64) * libm::pow(1.0 - p, 8.0 - wrong as f64);
            wrong_bits[wrong] = wrong_bits[wrong - 1] + ways * each / symbol;
        }
        Words { code: code.clone(), tail, wrong_bits }
    }

    /// Probability that a word has more wrong symbols than the code corrects.
    pub(super) fn probability(&self) -> f64 {
        self.tail[0]
    }

    /// Wrong data bits of such a word after decoding, ascending; none if only parity was wrong.
    pub(super) fn sample(&self, noise: &mut Noise) -> Vec<u32> {
        let (n, k) = (self.code.n(), self.code.k());
        let mut sent = vec![0; n];
        let (data, parity) = sent.split_at_mut(k);
        noise.fill(data);
        self.code.encode(data, parity);
        let mut received = sent.clone();

        let u = (1.0 - noise.uniform()) * self.tail[0];
        let beyond = self.tail.partition_point(|&tail| tail >= u).max(1);
        let mut places: Vec<usize> = (0..n).collect();
        for at in 0..self.code.t() + beyond {
            places.swap(at, at + noise.below((n - at) as u64) as usize);
            received[places[at]] ^= self.wound(noise);
        }
        // The decoder may fail or find another word; in both cases the remaining wrong bits count.
        let _ = self.code.decode(&mut received, &[]);
        bits::differences(&sent, &received, 8 * k).map(|at| at as u32).collect()
    }

    /// Wrong bits of a wrong symbol.
    fn wound(&self, noise: &mut Noise) -> u8 {
        let u = noise.uniform() * self.wrong_bits[8];
        let count = self.wrong_bits.partition_point(|&up_to| up_to <= u).clamp(1, 8);
        let mut places: [u8; 8] = std::array::from_fn(|at| at as u8);
        let mut wound = 0;
        for at in 0..count {
            places.swap(at, at + noise.below(8 - at as u64) as usize);
            wound |= 1 << places[at];
        }
        wound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_a_binomial_variable() {
        // At p = 0.01 a symbol of (15,9) is wrong with probability 0.0773: P(more than 3 of 15) = 0.0224.
        let words = Words::new(&Code::conventional(15, 9).unwrap(), 0.01);
        let symbol = 1.0 - 0.99f64.powi(8);
        let below: f64 = [1.0, 15.0, 105.0, 455.0]
            .iter()
            .enumerate()
            .map(|(wrong, ways)| ways * symbol.powi(wrong as i32) * (1.0 - symbol).powi(15 - wrong as i32))
            .sum();
        assert!((words.probability() - (1.0 - below)).abs() < 1e-12);
        assert!((words.wrong_bits[8] - 1.0).abs() < 1e-12);
    }
}
