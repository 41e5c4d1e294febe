//! GF(2^m) and the polynomials over it that a BCH code needs.

/// Largest m.
pub(super) const MAX_DEGREE: u32 = 16;

/// A primitive polynomial of each degree from 2 on; bit i is the coefficient of x^i.
const PRIMITIVE: [u32; 15] =
    [0x7, 0xb, 0x13, 0x25, 0x43, 0x89, 0x11d, 0x211, 0x409, 0x805, 0x1053, 0x201b, 0x4443, 0x8003, 0x1100b];

/// GF(2^m), with a root of a primitive polynomial as the base of the logarithms.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// 2^m - 1.
    order: usize,
    exp: Vec<u16>,
    /// The logarithm of 0 has no meaning.
    log: Vec<u16>,
}

impl Field {
    /// # Panics
    /// If m lies outside 2 to 16.
    pub(super) fn new(m: u32) -> Field {
        let polynomial = PRIMITIVE[m as usize - 2];
        let order = (1 << m) - 1;
        let mut field = Field { order, exp: vec![0; order], log: vec![0; order + 1] };
        let mut power = 1u32;
        for at in 0..order {
            field.exp[at] = power as u16;
            field.log[power as usize] = at as u16;
            power <<= 1;
            if power >> m == 1 {
                power ^= polynomial;
            }
        }
        field
    }

    /// The primitive element to any power.
    pub(super) fn exp(&self, power: usize) -> u16 {
        self.exp[power % self.order]
    }

    fn log(&self, a: u16) -> usize {
        self.log[a as usize] as usize
    }

    pub(super) fn multiply(&self, a: u16, b: u16) -> u16 {
        if a == 0 || b == 0 { 0 } else { self.exp(self.log(a) + self.log(b)) }
    }

    /// a/b, for b other than 0.
    fn divide(&self, a: u16, b: u16) -> u16 {
        if a == 0 { 0 } else { self.exp(self.log(a) + self.order - self.log(b)) }
    }

    /// The generator polynomial of the code that corrects t errors, highest coefficient first, without the leading 1. Its roots
    /// are the odd powers up to 2 t - 1 and their conjugates.
    pub(super) fn generator(&self, t: usize) -> Vec<bool> {
        let mut is_root = vec![false; self.order];
        let mut generator = vec![1u16]; // lowest coefficient first
        for odd in (1..2 * t).step_by(2) {
            let mut power = odd % self.order;
            while !std::mem::replace(&mut is_root[power], true) {
                generator.push(0);
                for i in (0..generator.len()).rev() {
                    let shifted = if i == 0 { 0 } else { generator[i - 1] };
                    generator[i] = shifted ^ self.multiply(generator[i], self.exp[power]);
                }
                power = 2 * power % self.order;
            }
        }
        generator.pop();
        generator.into_iter().rev().map(|coefficient| coefficient == 1).collect()
    }

    /// The polynomial whose roots are the inverse locators of the wrong bits, lowest coefficient first, without leading zeros
    /// (Massey 1969). With binary syndromes every second discrepancy is zero.
    pub(super) fn locator(&self, syndromes: &[u16]) -> Vec<u16> {
        let mut locator = vec![0; syndromes.len() + 1];
        locator[0] = 1;
        let mut earlier = locator.clone();
        let (mut length, mut earlier_discrepancy) = (0, 1);
        for r in 0..syndromes.len() {
            earlier.rotate_right(1);
            earlier[0] = 0;
            let discrepancy = (0..=length).fold(0, |sum, i| sum ^ self.multiply(locator[i], syndromes[r - i]));
            if discrepancy == 0 {
                continue;
            }
            let before = locator.clone();
            let factor = self.divide(discrepancy, earlier_discrepancy);
            for (coefficient, &other) in locator.iter_mut().zip(&earlier) {
                *coefficient ^= self.multiply(factor, other);
            }
            if 2 * length <= r {
                length = r + 1 - length;
                earlier_discrepancy = discrepancy;
                earlier = before;
            }
        }
        let degree = locator.iter().rposition(|&coefficient| coefficient != 0).unwrap_or(0);
        locator.truncate(degree + 1);
        locator
    }

    /// Positions in a word of `bits` bits whose inverse locators are zeros of the polynomial, ascending (Chien 1964).
    pub(super) fn roots(&self, locator: &[u16], bits: usize) -> Vec<usize> {
        let degree = locator.len() - 1;
        if degree == 1 {
            // 1 + X x: the logarithm of X.
            return (bits - 1).checked_sub(self.log(locator[1])).into_iter().collect();
        }
        // Logarithm of each term at the present position; the first position has the highest exponent.
        let first = self.order - (bits - 1) % self.order;
        let term = |(i, &c): (usize, &u16)| (c != 0).then(|| (i, (self.log(c) + i * first) % self.order));
        let mut terms: Vec<(usize, usize)> = locator.iter().enumerate().filter_map(term).collect();
        let mut found = Vec::new();
        for position in 0..bits {
            let mut value = 0;
            for (step, log) in &mut terms {
                value ^= self.exp[*log];
                *log += *step;
                if *log >= self.order {
                    *log -= self.order;
                }
            }
            if value == 0 {
                found.push(position);
                if found.len() == degree {
                    break;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomials_are_primitive() {
        for m in 2..=MAX_DEGREE {
            let field = Field::new(m);
            let mut powers = field.exp.clone();
            powers.sort_unstable();
            assert!(powers.into_iter().eq(1..=field.order as u16), "m = {m}");
        }
    }
}
