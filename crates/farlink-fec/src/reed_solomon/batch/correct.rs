//! From syndromes to corrected words, a word per lane in lock-step: Berlekamp-Massey, root search, Forney.
//!
//! A lane gives up if its locator does not have as many roots within the word as its degree. For the others the correction makes
//! all syndromes zero: a locator of degree L <= (n - k)/2 that generates all n - k syndromes has an evaluator of degree below L,
//! and expanding their quotient into partial fractions gives the syndromes as the sums over its L roots that Forney's formula
//! assumes. The one-word decoder nevertheless recomputes the syndromes, and tests compare both.

use super::Outcome;
use super::lanes::Lanes;
use super::syndromes::{EXPONENTS, Fifteen};
use crate::gf256::{Field, Linear};
use crate::reed_solomon::Code;

/// A linear map from the symbols' field to one in which the machine multiplies, and back.
pub(super) fn isomorphism(from: &Field, to: &Field) -> (Linear, Linear) {
    // x may go to any root of its own polynomial.
    let power = |image: u8, exponent: usize| (0..exponent).fold(1, |product, _| to.multiply(product, image));
    let polynomial = |image: u8| {
        (0..=8).filter(|&i| from.polynomial() >> i & 1 == 1).fold(0, |sum, exponent| sum ^ power(image, exponent))
    };
    let image = (2..=255).find(|&image| polynomial(image) == 0).expect("all fields of 256 elements are isomorphic");
    let there = Linear::new(std::array::from_fn(|bit| power(image, bit)));
    (there, there.inverse().expect("an isomorphism has an inverse"))
}

/// Constants of the correction, all in the field in which the machine multiplies.
#[derive(Clone)]
pub(super) struct Correction<L: Lanes> {
    n: usize,
    parity: usize,
    algebra: L::Algebra,
    /// Powers of 1/B, of order 17.
    powers: [L::Map; 17],
    /// The transform by 1/W, of order 15.
    fifteen: Fifteen<L>,
    /// By exponent: inverse locator 1/X and X^(1-f).
    inverse_locators: [u8; 256],
    scales: [u8; 256],
    /// The map back to the symbols as sent.
    output: L::Map,
    /// Coefficients of the locator, of the polynomial before the last change of length, and of the evaluator.
    locator: Vec<L>,
    earlier: Vec<L>,
    evaluator: Vec<L>,
    /// For each lane, the exponents of its roots: byte `round * L::COUNT + lane`.
    roots: Vec<u8>,
}

impl<L: Lanes> Correction<L> {
    /// # Safety
    /// The machine has the level of `L`.
    pub(super) unsafe fn new(code: &Code) -> Self {
        let (algebra, field) = L::algebra(&code.field);
        let (there, back) = isomorphism(&code.field, &field);
        let locator = |exponent: usize| there.apply(code.power(exponent));
        let back = code.basis.map_or(back, |(_, to_dual)| back.then(&to_dual));
        let inverse_locators = std::array::from_fn(|exponent| locator(255 - exponent % 255));
        let first_root = code.parameters.first_root as usize;
        let (parity, t) = (code.parity_symbols(), code.t());
        // SAFETY: the caller's.
        unsafe {
            let zero = L::splat(0);
            let output = L::map(&back);
            let mut powers = [output; 17];
            for (m, map) in powers.iter_mut().enumerate() {
                *map = L::map(&Linear::multiplication(&field, locator(255 * 120 - 120 * m)));
            }
            Correction {
                n: code.n,
                parity,
                algebra,
                powers,
                fifteen: Fifteen::new(&field, locator(255 * 136 - 136)),
                inverse_locators,
                scales: std::array::from_fn(|exponent| locator(exponent * (256 - first_root))),
                output,
                locator: vec![zero; t + 1],
                earlier: vec![zero; parity + t + 2],
                evaluator: vec![zero; t + 1],
                roots: vec![0; (t + 1) * L::COUNT],
            }
        }
    }

    /// Corrects the words `indices` of `words`, whose syndromes are given lane by lane; lanes with all syndromes zero are idle.
    ///
    /// # Safety
    /// The machine has the level of `L`.
    #[inline(always)]
    pub(super) unsafe fn correct(
        &mut self,
        syndromes: &[L],
        indices: &[usize; 64],
        words: &mut [u8],
        outcomes: &mut [Outcome],
    ) {
        // SAFETY: the caller's; all arrays that lanes are stored to have 64 bytes.
        unsafe {
            let mut active = 0;
            for &syndrome in &syndromes[..self.parity] {
                active |= L::bits(syndrome.is_nonzero());
            }
            let (lengths, longest) = self.find_locator(syndromes);
            let mut length = [0u8; 64];
            lengths.store(length.as_mut_ptr());

            let mut found = [0u8; 64];
            self.find_roots(longest, &mut found);
            let mut good = 0u64;
            for lane in lanes_of(active) {
                let is_good = length[lane] as usize <= self.parity / 2 && length[lane] == found[lane];
                good |= u64::from(is_good) << lane;
                outcomes[indices[lane]] = if is_good {
                    Outcome::Decoded { corrected: length[lane] as usize }
                } else {
                    Outcome::TooManyErrors
                };
            }
            if good != 0 {
                self.apply_magnitudes(syndromes, lengths, longest, good, indices, words);
            }
        }
    }

    /// Berlekamp and Massey's algorithm: the shortest recurrence that generates the syndromes (Massey 1969). Returns its length
    /// in each lane, which is valid up to (n - k)/2, and the largest of these.
    #[inline(always)]
    unsafe fn find_locator(&mut self, syndromes: &[L]) -> (L, usize) {
        let t = self.parity / 2;
        // SAFETY: the caller's.
        unsafe {
            let (zero, one) = (L::splat(0), L::splat(1));
            let (locator, earlier) = (&mut self.locator[..t + 1], &mut self.earlier[..]);
            locator.fill(zero);
            earlier.fill(zero);
            locator[0] = one;
            // Multiplying the earlier polynomial by x means moving its start down.
            let mut base = self.parity;
            earlier[base] = one;
            let mut inverse = one; // of the discrepancy at the last change of length
            let mut lengths = zero;
            let mut longest = 0;
            for r in 0..self.parity {
                let mut discrepancy = syndromes[r];
                for i in 1..=longest.min(r) {
                    discrepancy = discrepancy.xor(locator[i].multiply(syndromes[r - i], &self.algebra));
                }
                base -= 1;
                if L::bits(discrepancy.is_nonzero()) == 0 {
                    continue;
                }
                let is_short = lengths.is_at_most(L::splat((r / 2) as u8));
                let changes = L::both(discrepancy.is_nonzero(), is_short);
                lengths = L::select(changes, L::splat((r + 1) as u8).minus(lengths), lengths);
                // Beyond t the lane cannot be corrected, regardless of its locator.
                longest = (lengths.greatest() as usize).min(t);
                let factor = discrepancy.multiply(inverse, &self.algebra);
                for i in 0..=longest {
                    let (old, shifted) = (locator[i], earlier[base + i]);
                    locator[i] = old.xor(factor.multiply(shifted, &self.algebra));
                    earlier[base + i] = L::select(changes, old, shifted);
                }
                inverse = L::select(changes, discrepancy.inverse(&self.algebra), inverse);
            }
            (lengths, longest)
        }
    }

    /// The exponents of the locator's roots, and their number within the word for each lane.
    ///
    /// The values of the locator at A^(-e) for all e are a transform like that of the syndromes, in the other direction.
    #[inline(always)]
    unsafe fn find_roots(&mut self, longest: usize, found: &mut [u8; 64]) {
        // SAFETY: the caller's.
        unsafe {
            let zero = L::splat(0);
            for (e2, exponents) in EXPONENTS.iter().enumerate() {
                let mut inputs = [zero; 15];
                let (mut row, mut m) = (0, 0);
                for &coefficient in &self.locator[..=longest] {
                    inputs[row] = inputs[row].xor(coefficient.apply(self.powers[m]));
                    row = if row == 14 { 0 } else { row + 1 };
                    m += e2;
                    if m >= 17 {
                        m -= 17;
                    }
                }
                for (value, &exponent) in self.fifteen.transform(inputs).into_iter().zip(exponents) {
                    if exponent as usize >= self.n {
                        continue;
                    }
                    for lane in lanes_of(!L::bits(value.is_nonzero()) & (u64::MAX >> (64 - L::COUNT))) {
                        // A polynomial other than zero has at most `longest` roots, and its first coefficient is 1.
                        self.roots[found[lane] as usize * L::COUNT + lane] = exponent;
                        found[lane] += 1;
                    }
                }
            }
        }
    }

    /// Forney's formula at the roots of the lanes that can be corrected, one root of each lane at a time.
    #[inline(always)]
    unsafe fn apply_magnitudes(
        &mut self,
        syndromes: &[L],
        lengths: L,
        longest: usize,
        good: u64,
        indices: &[usize; 64],
        words: &mut [u8],
    ) {
        // SAFETY: the caller's; all arrays that lanes are stored to or loaded from have 64 bytes.
        unsafe {
            for k in 0..longest {
                let mut sum = syndromes[k];
                for i in 1..=k {
                    sum = sum.xor(self.locator[i].multiply(syndromes[k - i], &self.algebra));
                }
                self.evaluator[k] = sum;
            }
            let last = indices.map(|index| (index + 1) * self.n - 1);
            for round in 0..longest {
                let roots = &self.roots[round * L::COUNT..][..L::COUNT];
                let exponents = L::load(roots.as_ptr());
                let x = exponents.look_up(&self.inverse_locators);
                let x2 = x.multiply(x, &self.algebra);

                let mut evaluator = self.evaluator[longest - 1];
                for k in (0..longest - 1).rev() {
                    evaluator = evaluator.multiply(x, &self.algebra).xor(self.evaluator[k]);
                }
                // The derivative keeps the odd coefficients, as a polynomial in x^2.
                let mut i = longest - 1 + longest % 2;
                let mut derivative = self.locator[i];
                while i > 1 {
                    i -= 2;
                    derivative = derivative.multiply(x2, &self.algebra).xor(self.locator[i]);
                }
                let ratio = evaluator.multiply(derivative.inverse(&self.algebra), &self.algebra);
                let magnitude = ratio.multiply(exponents.look_up(&self.scales), &self.algebra).apply(self.output);
                let mut bytes = [0u8; 64];
                magnitude.store(bytes.as_mut_ptr());
                let has_root = L::bits(L::splat(round as u8 + 1).is_at_most(lengths));
                for lane in lanes_of(good & has_root) {
                    words[last[lane] - roots[lane] as usize] ^= bytes[lane];
                }
            }
        }
    }
}

/// Positions of the bits that are set.
pub(super) fn lanes_of(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}
