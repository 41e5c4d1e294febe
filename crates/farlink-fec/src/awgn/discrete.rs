//! Sampling from a distribution over the values of a byte.

use super::Noise;
use crate::simd::Simd;

/// A distribution over -127..=127, sampled from an alias table (A. J. Walker, "An efficient method for generating discrete
/// random variables with general distributions", ACM TOMS 3(3), 1977), many at once.
///
/// One random byte chooses an entry, another is compared with the first byte of the entry's threshold. If they are equal, once in
/// 256 times, 56 more bits decide. Therefore the error of a value's probability is below 1e-12 of itself or below 1e-21, also in
/// the tails.
#[derive(Clone)]
pub(crate) struct Sampler {
    /// Draws below the threshold give the entry's own value (its index less 127), the others its alternative value.
    thresholds: Box<[u64; 256]>,
    /// The first bytes of the thresholds.
    first_bytes: [u8; 256],
    others: [i8; 256],
    simd: Simd,
}

/// Number of samples that are drawn together.
const GROUP: usize = 64;

impl Sampler {
    /// From the probability of every value -127..=127 in order; their sum is 1.
    pub(crate) fn new(probabilities: &[f64; 255]) -> Sampler {
        Sampler::with_simd(probabilities, Simd::best())
    }

    /// As [`new`](Sampler::new), with the given instructions at most; the samples do not depend on them.
    pub(super) fn with_simd(probabilities: &[f64; 255], simd: Simd) -> Sampler {
        let (thresholds, others) = alias(probabilities);
        let first_bytes = thresholds.map(|threshold| (threshold >> 56) as u8);
        Sampler { thresholds: Box::new(thresholds), first_bytes, others, simd: simd.min(Simd::best()) }
    }

    /// Fills `out` with independent samples.
    pub(crate) fn fill(&self, noise: &mut Noise, out: &mut [i8]) {
        let mut groups = out.chunks_exact_mut(GROUP);
        match self.simd {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this level says that the machine has the instructions.
            Simd::Avx512Gfni => unsafe { self.fill_avx512(noise, &mut groups) },
            _ => groups
                .by_ref()
                .for_each(|group| self.fill_group(noise, group.try_into().expect("chunks of that length"))),
        }
        let rest = groups.into_remainder();
        if !rest.is_empty() {
            let mut group = [0; GROUP];
            self.fill_group(noise, &mut group);
            rest.copy_from_slice(&group[..rest.len()]);
        }
    }

    fn fill_group(&self, noise: &mut Noise, group: &mut [i8; GROUP]) {
        let (entries, draws) = (bytes_of(noise.words()), bytes_of(noise.words()));
        let mut equal = 0;
        for (at, sample) in group.iter_mut().enumerate() {
            let entry = entries[at];
            let (first, draw) = (self.first_bytes[usize::from(entry)], draws[at]);
            *sample = if draw < first { own(entry) } else { self.others[usize::from(entry)] };
            equal |= u64::from(draw == first) << at;
        }
        self.decide(equal, &entries, noise, group);
    }

    /// Decides the samples for which the first byte was equal; `equal` has a bit for each sample.
    #[inline]
    fn decide(&self, mut equal: u64, entries: &[u8; GROUP], noise: &mut Noise, group: &mut [i8; GROUP]) {
        while equal != 0 {
            let at = equal.trailing_zeros() as usize;
            equal &= equal - 1;
            let is_below = noise.bits() >> 8 < self.thresholds[usize::from(entries[at])] << 8 >> 8;
            group[at] = if is_below { own(entries[at]) } else { self.others[usize::from(entries[at])] };
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")]
    fn fill_avx512(&self, noise: &mut Noise, groups: &mut std::slice::ChunksExactMut<'_, i8>) {
        use std::arch::x86_64::*;

        // SAFETY (all loads and stores): a reference to 64 bytes can be read and written; no alignment is asked for.
        let load = |bytes: &[u8; GROUP]| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let quarter = |table: &[u8; 256], at: usize| load(table[64 * at..64 * (at + 1)].try_into().expect("64 bytes"));
        let table = |table: &[u8; 256]| [0, 1, 2, 3].map(|at| quarter(table, at));
        let first_bytes = table(&self.first_bytes);
        let others = table(&self.others.map(i8::cast_unsigned));
        for group in groups {
            let (entries, draws) = (bytes_of(noise.words()), bytes_of(noise.words()));
            let (entry, draw) = (load(&entries), load(&draws));
            let is_upper = _mm512_movepi8_mask(entry);
            let look_up = |table: &[__m512i; 4]| {
                let lower = _mm512_permutex2var_epi8(table[0], entry, table[1]);
                let upper = _mm512_permutex2var_epi8(table[2], entry, table[3]);
                _mm512_mask_blend_epi8(is_upper, lower, upper)
            };
            let first = look_up(&first_bytes);
            let own = _mm512_sub_epi8(entry, _mm512_set1_epi8(127));
            let samples = _mm512_mask_blend_epi8(_mm512_cmplt_epu8_mask(draw, first), look_up(&others), own);
            let group: &mut [i8; GROUP] = group.try_into().expect("chunks of that length");
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(group.as_mut_ptr().cast(), samples) };
            self.decide(_mm512_cmpeq_epu8_mask(draw, first), &entries, noise, group);
        }
    }
}

/// The bytes of the words in the order of their draws, the lowest byte first.
#[inline(always)]
fn bytes_of(words: [u64; GROUP / 8]) -> [u8; GROUP] {
    let mut bytes = [0; GROUP];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The own value of an entry. The last entry has none, because its threshold is 0.
#[inline(always)]
fn own(entry: u8) -> i8 {
    entry.wrapping_sub(127).cast_signed()
}

/// Thresholds and alternative values by Vose's method ("A linear algorithm for generating random numbers with a given
/// distribution", IEEE Trans. Softw. Eng. 17(9), 1991).
fn alias(probabilities: &[f64; 255]) -> ([u64; 256], [i8; 256]) {
    let mut weights = [0.0; 256];
    for (weight, p) in weights.iter_mut().zip(probabilities) {
        *weight = 256.0 * p;
    }
    let mut thresholds = [u64::MAX; 256];
    let mut others: [i8; 256] = std::array::from_fn(|at| own(at as u8));
    // The last entry has no value and is filled first: some weight is above 1, because 255 of them have the sum 256.
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..256).partition(|&at| weights[at] < 1.0);
    while let (Some(&less), Some(&more)) = (small.last(), large.last()) {
        small.pop();
        thresholds[less] = (weights[less] * 2f64.powi(64)) as u64;
        others[less] = own(more as u8);
        weights[more] -= 1.0 - weights[less];
        if weights[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    (thresholds, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probabilities according to the tables, without sampling.
    fn probabilities(sampler: &Sampler) -> [f64; 255] {
        let mut p = [0.0; 255];
        let place = |value: i8| (i32::from(value) + 127) as usize;
        for (entry, (&threshold, &other)) in sampler.thresholds.iter().zip(&sampler.others).enumerate() {
            let share = threshold as f64 / 2f64.powi(64);
            if threshold > 0 {
                p[place(own(entry as u8))] += share / 256.0;
            }
            p[place(other)] += (1.0 - share) / 256.0;
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
                assert!((wanted - held).abs() < 1e-21 + 1e-12 * wanted, "{at}: {wanted} {held}");
            }
        }
    }

    #[test]
    fn two_values_are_enough() {
        let mut wanted = [0.0; 255];
        (wanted[126], wanted[128]) = (1e-7, 1.0 - 1e-7);
        let held = probabilities(&Sampler::new(&wanted));
        assert!((held[126] - 1e-7).abs() < 1e-19 && held[127] == 0.0);
    }

    #[test]
    fn samples_are_the_same_with_all_instructions() {
        for (wanted, length) in [(bell(40.0, 30.0), 6413), (bell(-100.0, 1.0), 64), (bell(0.0, 200.0), 63)] {
            let samples = |simd| {
                let (mut noise, mut out) = (Noise::stream(8, 2), vec![0; length]);
                Sampler::with_simd(&wanted, simd).fill(&mut noise, &mut out);
                (out, noise.bits())
            };
            let portable = samples(Simd::Portable);
            assert!(Simd::available().into_iter().all(|simd| samples(simd) == portable));
        }
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
