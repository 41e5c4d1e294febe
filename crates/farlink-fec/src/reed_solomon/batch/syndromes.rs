//! Computes the syndromes of a word per lane as a Fourier transform of length 255 = 17 x 3 x 5.
//!
//! With A = a^p, syndrome j is the sum over the exponents e of r_e A^(e (f + j)). Since A^m = W^(m mod 15) B^(m mod 17) with W =
//! A^136 of order 15 and B = A^120 of order 17, the exponents form 17 rows of 15: a transform of each row by W serves all
//! syndromes, and each of these is then a sum of 17 terms (Good 1958). This takes a tenth of the multiplications of Horner's
//! rule, which is used only for codes so short or with so little parity that it is faster.

use super::lanes::{Lanes, transpose};
use crate::gf256::{Field, Linear};
use crate::reed_solomon::Code;

/// The column for symbols that are not present.
const ABSENT: usize = 255;

/// Constants of the computation of syndromes.
#[derive(Clone)]
pub(super) struct Syndromes<L: Lanes> {
    first_root: usize,
    parity: usize,
    /// Number of symbols of a word that are present; the others, at its end, count as zero.
    present: usize,
    /// Columns of the symbols in the order of the transform: 17 rows of 15.
    order: [[u8; 15]; 17],
    /// From symbols as sent to the conventional basis.
    input: Option<L::Map>,
    /// The roots, if Horner's rule is faster.
    horner: Option<Vec<L::Map>>,
    fifteen: Fifteen<L>,
    /// Powers of B, each followed by the caller's map.
    powers: [L::Map; 17],
    /// The caller's map.
    output: L::Map,
}

impl<L: Lanes> Syndromes<L> {
    /// For words of which only the first `present` symbols are present; `output` is applied to each syndrome.
    ///
    /// # Safety
    /// The machine has the level of `L`.
    pub(super) unsafe fn new(code: &Code, present: usize, output: &Linear) -> Self {
        let times = |power| Linear::multiplication(&code.field, code.power(power));
        // SAFETY: the caller's.
        unsafe {
            let horner_operations = 2 * present * code.parity_symbols();
            let transform_operations = 17 * 110 + 2 * 17 * code.parity_symbols();
            let roots = || (0..code.parity_symbols()).map(|j| L::map(&times(code.parameters.first_root as usize + j)));
            let horner = (horner_operations < transform_operations && present == code.n).then(|| roots().collect());
            let mut powers = [L::map(output); 17];
            for (m, map) in powers.iter_mut().enumerate() {
                *map = L::map(&times(120 * m).then(output));
            }
            let column = |exponent: u8| match code.n.checked_sub(1 + exponent as usize) {
                Some(symbol) if symbol < present => symbol as u8,
                _ => ABSENT as u8,
            };
            Syndromes {
                first_root: code.parameters.first_root as usize,
                parity: code.parity_symbols(),
                present,
                order: EXPONENTS.map(|row| row.map(column)),
                input: code.basis.map(|(to_conventional, _)| L::map(&to_conventional)),
                horner,
                fifteen: Fifteen::new(&code.field, code.power(136)),
                powers,
                output: L::map(output),
            }
        }
    }

    /// Loads the words, one in each lane, and computes their syndromes.
    ///
    /// # Safety
    /// The machine has the level of `L`; the `L::COUNT` pointers lead to as many readable bytes as are present.
    #[inline(always)]
    pub(super) unsafe fn compute(&self, words: &[*const u8], columns: &mut [L; 256], syndromes: &mut [L]) {
        // SAFETY: the caller's.
        unsafe {
            load_columns(words, self.present, columns);
            if let Some(map) = self.input {
                for column in &mut columns[..self.present] {
                    *column = column.apply(map);
                }
            }
            columns[ABSENT] = L::splat(0);
            if let Some(roots) = &self.horner {
                self.by_horner(roots, columns, syndromes);
            } else {
                self.by_transform(columns, syndromes);
            }
        }
    }

    #[inline(always)]
    unsafe fn by_horner(&self, roots: &[L::Map], columns: &[L; 256], syndromes: &mut [L]) {
        // SAFETY: the caller's.
        unsafe {
            for (syndromes, roots) in syndromes[..self.parity].chunks_mut(8).zip(roots.chunks(8)) {
                let mut sums = [L::splat(0); 8];
                let mut maps = [self.output; 8];
                maps[..roots.len()].copy_from_slice(roots);
                for &column in &columns[..self.present] {
                    for i in 0..8 {
                        sums[i] = sums[i].apply(maps[i]).xor(column);
                    }
                }
                for (syndrome, sum) in syndromes.iter_mut().zip(sums) {
                    *syndrome = sum.apply(self.output);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn by_transform(&self, columns: &[L; 256], syndromes: &mut [L]) {
        // SAFETY: the caller's.
        unsafe {
            let zero = L::splat(0);
            let mut rows = [[zero; 15]; 17];
            for (row, order) in rows.iter_mut().zip(&self.order) {
                let mut inputs = [zero; 15];
                for (input, &column) in inputs.iter_mut().zip(order) {
                    *input = columns[column as usize];
                }
                *row = self.fifteen.transform(inputs);
            }
            for (j, syndrome) in syndromes[..self.parity].iter_mut().enumerate() {
                let root = self.first_root + j;
                let (q, step) = (root % 15, root % 17);
                let mut sum = rows[0][q].apply(self.output);
                let mut m = 0;
                for row in &rows[1..] {
                    m += step;
                    if m >= 17 {
                        m -= 17;
                    }
                    sum = sum.xor(row[q].apply(self.powers[m]));
                }
                *syndrome = sum;
            }
        }
    }
}

/// The exponents, 0 to 254: number `[e2][e1]` has remainder e1 by 15 and e2 by 17.
pub(super) const EXPONENTS: [[u8; 15]; 17] = {
    let mut exponents = [[0; 15]; 17];
    let mut exponent = 0;
    while exponent < 255 {
        exponents[exponent % 17][exponent % 15] = exponent as u8;
        exponent += 1;
    }
    exponents
};

/// The Fourier transform of length 15 = 3 x 5 by a W of order 15.
#[derive(Clone)]
pub(super) struct Fifteen<L: Lanes> {
    /// W^10, of order 3.
    third: L::Map,
    /// V = W^6, of order 5.
    fifth: L::Map,
    /// V + V^2.
    fifths_12: L::Map,
    /// V + V^4, a root of z^2 + z + 1.
    fifths_14: L::Map,
}

impl<L: Lanes> Fifteen<L> {
    /// # Safety
    /// The machine has the level of `L`.
    pub(super) unsafe fn new(field: &Field, w: u8) -> Self {
        let power = |m: usize| field.exp(field.log(w).map_or(0, usize::from) * m);
        // SAFETY: the caller's.
        let times = |c: u8| unsafe { L::map(&Linear::multiplication(field, c)) };
        Fifteen {
            third: times(power(10)),
            fifth: times(power(6)),
            fifths_12: times(power(6) ^ power(12)),
            fifths_14: times(power(6) ^ power(24)),
        }
    }

    /// Output q is the sum of `inputs[i]` W^(i q).
    ///
    /// # Safety
    /// The machine has the level of `L`.
    #[inline(always)]
    pub(super) unsafe fn transform(&self, inputs: [L; 15]) -> [L; 15] {
        // SAFETY: the caller's.
        unsafe {
            let zero = L::splat(0);
            let mut thirds = [[zero; 5]; 3];
            for m5 in 0..5 {
                // The inputs with remainders 0, 1, 2 by 3 and m5 by 5.
                let [a, b, c] = [inputs[6 * m5 % 15], inputs[(10 + 6 * m5) % 15], inputs[(20 + 6 * m5) % 15]];
                let both = b.xor(c);
                let turned = a.xor(both.apply(self.third));
                thirds[0][m5] = a.xor(both);
                thirds[1][m5] = turned.xor(c);
                thirds[2][m5] = turned.xor(b);
            }
            let mut outputs = [zero; 15];
            for (q3, third) in thirds.into_iter().enumerate() {
                let fifths = self.five(third);
                for (q5, fifth) in fifths.into_iter().enumerate() {
                    outputs[(10 * q3 + 6 * q5) % 15] = fifth;
                }
            }
            outputs
        }
    }

    /// The transform of length 5 by V. With z = V + V^4 = z^2 + 1, V^4 = V + z and V^3 = V^2 + z + 1 leave six products.
    #[inline(always)]
    unsafe fn five(&self, x: [L; 5]) -> [L; 5] {
        // SAFETY: the caller's.
        unsafe {
            let (s1, s2) = (x[1].xor(x[4]), x[2].xor(x[3]));
            let both = s1.xor(s2);
            let shared = x[0].xor(both.apply(self.fifth));
            // x0 + V s1 + V^2 s2 and x0 + V^2 s1 + V s2
            let outer = shared.xor(s2.apply(self.fifths_12));
            let inner = shared.xor(s1.apply(self.fifths_12));
            let z34 = x[3].xor(x[4]).apply(self.fifths_14);
            let z24 = x[2].xor(x[4]).apply(self.fifths_14);
            let z_both = both.apply(self.fifths_14);
            let (z12, z13) = (z34.xor(z_both), z24.xor(z_both));
            [
                x[0].xor(both),
                outer.xor(x[3]).xor(z34),
                inner.xor(x[4]).xor(z24),
                inner.xor(x[1]).xor(z13),
                outer.xor(x[2]).xor(z12),
            ]
        }
    }
}

/// Symbol i of each word into `columns[i]`, a word in each lane.
///
/// # Safety
/// The machine has the level of `L`; the pointers lead to `symbols` readable bytes.
#[inline(always)]
unsafe fn load_columns<L: Lanes>(words: &[*const u8], symbols: usize, columns: &mut [L; 256]) {
    // SAFETY: the caller's; a block of 16 symbols ends with the word at the latest.
    unsafe {
        if symbols < 16 {
            let mut bytes = [0u8; 64];
            for (symbol, column) in columns[..symbols].iter_mut().enumerate() {
                for (byte, word) in bytes.iter_mut().zip(words) {
                    *byte = *word.add(symbol);
                }
                *column = L::load(bytes.as_ptr());
            }
            return;
        }
        let mut at = 0;
        loop {
            let mut rows = [L::splat(0); 16];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = L::load_pieces(&words[i..], 16, at);
            }
            columns[at..at + 16].copy_from_slice(&transpose(rows));
            if at + 16 == symbols {
                return;
            }
            // The last block overlaps the one before it.
            at = (at + 16).min(symbols - 16);
        }
    }
}
