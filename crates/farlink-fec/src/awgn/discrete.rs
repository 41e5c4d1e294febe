//! Sampling of a distribution over the values of a byte.

use super::Noise;

const CELLS: usize = 1 << 13;
/// Marks a cell that belongs to no value as a whole; symbols are never -128.
const SHARED: i8 = i8::MIN;

/// A distribution over -127..=127, sampled at a table look-up each.
///
/// Of 2^13 cells of equal probability every value takes as many as fit in full; the rest of all values shares the cells left
/// over (at most one in 32), and is drawn by an alias table (Walker 1977) at a resolution of 2^-64 of it. So a value's
/// probability is right to better than 1e-15, in the tails too.
#[derive(Clone)]
pub(crate) struct Sampler {
    cells: Box<[i8; CELLS]>,
    alias: Vec<Alias>,
}

#[derive(Clone, Copy)]
struct Alias {
    /// Draws below it give `own`, the others `other`.
    threshold: u64,
    own: i8,
    other: i8,
}

impl Sampler {
    /// From the probability of every value -127..=127 in order; they add up to 1.
    pub(crate) fn new(probabilities: &[f64; 255]) -> Sampler {
        let mut cells = Box::new([SHARED; CELLS]);
        let mut filled = 0;
        let mut rests = [0.0; 256];
        for (at, &p) in probabilities.iter().enumerate() {
            let whole = (p * CELLS as f64).floor();
            rests[at] = p * CELLS as f64 - whole;
            // Rounding may make the sum a little more than 1.
            let end = (filled + whole as usize).min(CELLS);
            cells[filled..end].fill(value(at));
            filled = end;
        }
        Sampler { cells, alias: alias(&mut rests) }
    }

    /// Fills `out` with independent samples.
    #[inline]
    pub(crate) fn fill(&self, noise: &mut Noise, out: &mut [i8]) {
        for group in out.chunks_mut(8) {
            let (a, b) = (noise.bits(), noise.bits());
            let cell = |word: u64, lane: u32| self.cells[(word >> (16 * lane)) as usize & (CELLS - 1)];
            let mut eight =
                [cell(a, 0), cell(a, 1), cell(a, 2), cell(a, 3), cell(b, 0), cell(b, 1), cell(b, 2), cell(b, 3)];
            let has_shared = eight.iter().fold(false, |any, &value| any | (value == SHARED));
            if has_shared {
                for value in eight.iter_mut().filter(|value| **value == SHARED) {
                    *value = self.rest(noise);
                }
            }
            group.copy_from_slice(&eight[..group.len()]);
        }
    }

    #[cold]
    fn rest(&self, noise: &mut Noise) -> i8 {
        let entry = &self.alias[(noise.bits() >> 56) as usize];
        if noise.bits() < entry.threshold { entry.own } else { entry.other }
    }
}

fn value(at: usize) -> i8 {
    (at as i32 - 127) as i8
}

/// Alias table over 256 weights, the last of them 0, by Vose's method.
fn alias(weights: &mut [f64; 256]) -> Vec<Alias> {
    let total: f64 = weights.iter().sum();
    let mut table: Vec<Alias> =
        (0..256).map(|at| Alias { threshold: u64::MAX, own: value(at.min(254)), other: value(at.min(254)) }).collect();
    if total <= 0.0 {
        return table;
    }
    for weight in weights.iter_mut() {
        *weight *= 256.0 / total;
    }
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..256).partition(|&at| weights[at] < 1.0);
    while let (Some(&less), Some(&more)) = (small.last(), large.last()) {
        small.pop();
        table[less].threshold = (weights[less] * 2f64.powi(64)) as u64;
        table[less].other = value(more);
        weights[more] -= 1.0 - weights[less];
        if weights[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    // What rounding leaves over is full, but for the place of no value.
    for at in small.into_iter().filter(|&at| at == 255) {
        table[at] = table[(0..255).max_by(|&a, &b| weights[a].total_cmp(&weights[b])).unwrap_or(0)];
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the tables say, without sampling.
    fn probabilities(sampler: &Sampler) -> [f64; 255] {
        let mut p = [0.0; 255];
        let place = |value: i8| (i32::from(value) + 127) as usize;
        let cell = 1.0 / CELLS as f64;
        let shared = sampler.cells.iter().filter(|&&value| value == SHARED).count() as f64 * cell;
        for &value in sampler.cells.iter().filter(|&&value| value != SHARED) {
            p[place(value)] += cell;
        }
        for entry in &sampler.alias {
            let own = entry.threshold as f64 / 2f64.powi(64);
            p[place(entry.own)] += shared / 256.0 * own;
            p[place(entry.other)] += shared / 256.0 * (1.0 - own);
        }
        p
    }

    fn bell(mean: f64, deviation: f64) -> [f64; 255] {
        let mut p: [f64; 255] =
            std::array::from_fn(|at| (-((at as f64 - 127.0 - mean) / deviation).powi(2) / 2.0).exp());
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= total);
        p
    }

    #[test]
    fn the_tables_hold_the_distribution_to_the_tails() {
        for (mean, deviation) in [(40.0, 30.0), (63.0, 10.0), (100.0, 1.0), (0.0, 200.0)] {
            let wanted = bell(mean, deviation);
            let held = probabilities(&Sampler::new(&wanted));
            for (at, (wanted, held)) in wanted.iter().zip(held).enumerate() {
                assert!((wanted - held).abs() < 1e-15 + 1e-12 * wanted, "{at}: {wanted} {held}");
            }
        }
    }

    #[test]
    fn two_values_are_enough() {
        let mut wanted = [0.0; 255];
        (wanted[126], wanted[128]) = (1e-7, 1.0 - 1e-7);
        let held = probabilities(&Sampler::new(&wanted));
        assert!((held[126] - 1e-7).abs() < 1e-16 && held[127] == 0.0);
    }

    #[test]
    fn samples_follow_the_tables() {
        let wanted = bell(40.0, 30.0);
        let sampler = Sampler::new(&wanted);
        let mut out = vec![0; 1_000_003];
        sampler.fill(&mut Noise::stream(5, 0), &mut out);
        let mut counts = [0u32; 255];
        out.iter().for_each(|&value| counts[(i32::from(value) + 127) as usize] += 1);
        let n = out.len() as f64;
        let chi: f64 = counts.iter().zip(wanted).map(|(&count, p)| (f64::from(count) - n * p).powi(2) / (n * p)).sum();
        // Chi square with 254 degrees of freedom: deviation 22.5.
        assert!((chi - 254.0).abs() < 4.0 * 22.5, "{chi}");
    }
}
