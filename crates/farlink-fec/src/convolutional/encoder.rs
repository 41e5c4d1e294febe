//! The encoder, which processes many steps at a time.

use super::{Code, Ending};
use crate::bits;
use crate::simd::Simd;

/// Steps of a block of the portable path: a 64-bit word contains them and the K - 1 bits before them.
const BLOCK_BITS: usize = 48;

/// Encodes frames of a convolutional code.
///
/// The coded bits of a step are adjacent, output 0 first.
///
/// ```
/// use farlink_fec::convolutional::{Code, Encoder, Ending};
///
/// let encoder = Encoder::new(&Code::from_octal("7,5")?);
/// assert_eq!(encoder.encode(&[0b1000_0000], 3, Ending::Terminated), [0b1110_1100, 0]);
/// # Ok::<(), farlink_fec::convolutional::CodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    code: Code,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only x86-64 has the other path"))]
    is_fast: bool,
    /// For each output the delays of the bits that it uses.
    delays: Vec<Vec<u32>>,
    /// The bits of a byte at every n-th position of the 8 n lowest bits of a word, the first bit highest.
    spread: Vec<u64>,
    /// For coded word `w` of n and output `j`, at `w * n + j`: its positions, and the number of later bits of the output that
    /// belong to later words.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "as `is_fast`"))]
    deposits: Vec<(u64, u32)>,
}

impl Encoder {
    /// An encoder with the best instructions of this machine.
    pub fn new(code: &Code) -> Encoder {
        Encoder::with_simd(code, Simd::best())
    }

    /// An encoder with the given instructions at most; the coded bits do not depend on them.
    pub fn with_simd(code: &Code, simd: Simd) -> Encoder {
        let n = code.outputs();
        let oldest_first = |g: u32| (0..code.constraint_length()).filter(move |bit| g >> bit & 1 == 1);
        let delays = code.generators().iter();
        let spread = |byte: u64| (0..8).map(|bit| (byte >> bit & 1) << (bit * n + n - 1)).sum();
        let places = |word: usize, j: usize| (64 * word..64 * (word + 1)).filter(move |place| place % n == j);
        let deposit = |word: usize, j: usize| {
            let mask = places(word, j).map(|place| 1 << (63 - place % 64)).sum();
            (mask, (word + 1..n).map(|later| places(later, j).count() as u32).sum())
        };
        Encoder {
            code: code.clone(),
            is_fast: simd >= Simd::Avx2 && has_carryless_product(),
            delays: delays.map(|&g| oldest_first(g).map(|bit| code.constraint_length() - 1 - bit).collect()).collect(),
            spread: (0..256).map(spread).collect(),
            deposits: (0..n * n).map(|at| deposit(at / n, at % n)).collect(),
        }
    }

    /// Number of coded bits of a frame of `data_bits` data bits.
    pub fn coded_bits(&self, data_bits: usize, ending: Ending) -> usize {
        ending.steps(data_bits, self.code.constraint_length()) * self.code.outputs()
    }

    /// The packed coded frame of the first `data_bits` bits of `data`; the bits after its last one are 0.
    ///
    /// # Panics
    /// If `data` is shorter than that.
    pub fn encode(&self, data: &[u8], data_bits: usize, ending: Ending) -> Vec<u8> {
        let mut coded = vec![0; bits::bytes_for(self.coded_bits(data_bits, ending))];
        self.encode_into(data, data_bits, ending, &mut coded);
        coded
    }

    /// As [`encode`](Encoder::encode), into `coded`, of which it fills the first [`coded_bits`](Encoder::coded_bits) bits and the
    /// rest of their last byte. Returns the number of coded bits.
    ///
    /// # Panics
    /// If `data` or `coded` is shorter than that.
    pub fn encode_into(&self, data: &[u8], data_bits: usize, ending: Ending, coded: &mut [u8]) -> usize {
        let n = self.code.outputs();
        let coded_bits = self.coded_bits(data_bits, ending);
        let data = &data[..bits::bytes_for(data_bits)];
        let coded = &mut coded[..bits::bytes_for(coded_bits)];
        let state = match ending {
            Ending::Terminated | Ending::Truncated => 0,
            Ending::TailBiting => self.closing_state(data, data_bits),
        };

        let whole_blocks = data_bits / 64;
        let (blocks, rest) = data.split_at(8 * whole_blocks);
        let (coded_blocks, coded_rest) = coded.split_at_mut(8 * whole_blocks * n);
        let memory_bits = self.code.constraint_length() as usize - 1;
        // The memory of the encoder, the most recent bit last.
        let mut memory = u64::from(state.reverse_bits() >> (32 - memory_bits));
        self.encode_blocks(blocks, &mut memory, coded_blocks);

        // The rest and the tail, followed by zeros: at most 63 + 14 bits.
        let mut last = [0; 12];
        last[..rest.len()].copy_from_slice(rest);
        for at in data_bits % 64..8 * rest.len() {
            bits::set(&mut last, at, false);
        }
        let mut coded_last = [0; 12 * 8];
        self.portable_bytes(&last, &mut memory, &mut coded_last[..12 * n]);
        coded_rest.copy_from_slice(&coded_last[..coded_rest.len()]);
        if !coded_bits.is_multiple_of(8) {
            coded[coded_bits / 8] &= !(0xff >> (coded_bits % 8));
        }
        coded_bits
    }

    /// The final state of the encoder, in which a tail-biting frame begins.
    fn closing_state(&self, data: &[u8], data_bits: usize) -> u32 {
        let memory_bits = self.code.constraint_length() as usize - 1;
        // A frame that is shorter than the memory fills it cyclically.
        let back = |before_end: usize| (data_bits - before_end % data_bits) % data_bits;
        let last =
            (1..=memory_bits).rev().filter(|_| data_bits > 0).map(|before_end| bits::get(data, back(before_end)));
        self.code.state_after(last)
    }

    /// Encodes whole blocks of 64 bits.
    fn encode_blocks(&self, data: &[u8], memory: &mut u64, coded: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if self.is_fast {
            // SAFETY: `is_fast` says that this machine has the instructions.
            unsafe {
                match self.code.outputs() {
                    2 => self.carryless_blocks::<2>(data, memory, coded),
                    3 => self.carryless_blocks::<3>(data, memory, coded),
                    4 => self.carryless_blocks::<4>(data, memory, coded),
                    5 => self.carryless_blocks::<5>(data, memory, coded),
                    6 => self.carryless_blocks::<6>(data, memory, coded),
                    7 => self.carryless_blocks::<7>(data, memory, coded),
                    _ => self.carryless_blocks::<8>(data, memory, coded),
                }
            }
            return;
        }
        self.portable_bytes(data, memory, coded);
    }

    /// Encodes whole bytes.
    fn portable_bytes(&self, data: &[u8], memory: &mut u64, coded: &mut [u8]) {
        match self.code.outputs() {
            2 => self.portable_blocks::<2>(data, memory, coded),
            3 => self.portable_blocks::<3>(data, memory, coded),
            4 => self.portable_blocks::<4>(data, memory, coded),
            5 => self.portable_blocks::<5>(data, memory, coded),
            6 => self.portable_blocks::<6>(data, memory, coded),
            7 => self.portable_blocks::<7>(data, memory, coded),
            _ => self.portable_blocks::<8>(data, memory, coded),
        }
    }

    fn portable_blocks<const N: usize>(&self, data: &[u8], memory: &mut u64, coded: &mut [u8]) {
        let memory_mask = (1 << (self.code.constraint_length() - 1)) - 1;
        let spread: &[u64; 256] = self.spread[..].try_into().expect("one for each byte");
        let delays: &[Vec<u32>; N] = self.delays[..].try_into().expect("n is N");
        for (block, coded) in data.chunks(BLOCK_BITS / 8).zip(coded.chunks_mut(BLOCK_BITS / 8 * N)) {
            let fresh = block.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            let window = *memory << (8 * block.len()) | fresh;
            *memory = window & memory_mask;
            let mut outputs = [0; N];
            for (output, delays) in outputs.iter_mut().zip(delays) {
                *output = delays.iter().fold(0, |parity, delay| parity ^ window >> delay);
                // The first byte comes first.
                *output <<= 64 - 8 * block.len();
            }
            for coded in coded.chunks_exact_mut(N) {
                let mut mixed = 0;
                for (j, output) in outputs.iter_mut().enumerate() {
                    mixed |= spread[(*output >> 56) as usize] >> j;
                    *output <<= 8;
                }
                coded.copy_from_slice(&mixed.to_be_bytes()[8 - N..]);
            }
        }
    }

    /// An output is the carry-less product of the data and a generator.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "pclmulqdq,bmi2,sse4.1")]
    fn carryless_blocks<const N: usize>(&self, data: &[u8], memory: &mut u64, coded: &mut [u8]) {
        use std::arch::x86_64::{
            _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _pdep_u64,
        };

        let generators: &[u32; N] = self.code.generators().try_into().expect("n is N");
        let deposits: &[(u64, u32)] = &self.deposits[..N * N];
        let memory_bits = self.code.constraint_length() - 1;
        let product = |word: u64, generator: u32| {
            let generator = _mm_cvtsi64_si128(i64::from(generator));
            let both = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(word as i64), generator);
            (_mm_cvtsi128_si64(both) as u64, _mm_extract_epi64::<1>(both) as u64)
        };
        // The contribution of the preceding data to the first K - 1 bits of each output.
        let mut before = generators.map(|generator| product(*memory, generator).0 << (64 - memory_bits));
        for (block, coded) in data.chunks_exact(8).zip(coded.chunks_exact_mut(8 * N)) {
            let fresh = u64::from_be_bytes(block.try_into().expect("chunks of 8"));
            *memory = fresh & ((1 << memory_bits) - 1);
            let mut outputs = [0; N];
            for j in 0..N {
                let (low, high) = product(fresh, generators[j]);
                outputs[j] = low >> memory_bits ^ high << (64 - memory_bits) ^ before[j];
                before[j] = low << (64 - memory_bits);
            }
            for (word, coded) in coded.chunks_exact_mut(8).enumerate() {
                let mut mixed = 0;
                for j in 0..N {
                    let (mask, later) = deposits[word * N + j];
                    mixed |= _pdep_u64(outputs[j] >> later, mask);
                }
                coded.copy_from_slice(&mixed.to_be_bytes());
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_carryless_product() -> bool {
    is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("sse4.1")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_carryless_product() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::convolutional::test_codes::any_code;

    /// Encodes bit by bit, according to the definition.
    fn encode_slowly(code: &Code, data: &[bool], ending: Ending) -> Vec<bool> {
        let mut state = match ending {
            Ending::TailBiting => code.state_after(data.iter().copied().cycle().take(data.len() * 15)),
            _ => 0,
        };
        let tail = if ending == Ending::Terminated { code.constraint_length() - 1 } else { 0 };
        let mut coded = Vec::new();
        for bit in data.iter().copied().chain((0..tail).map(|_| false)) {
            let window = u32::from(bit) << (code.constraint_length() - 1) | state;
            coded.extend((0..code.outputs()).map(|j| code.output(window) >> j & 1 == 1));
            state = window >> 1;
        }
        coded
    }

    proptest! {
        #[test]
        fn every_path_gives_what_the_definition_says(
            code in any_code(),
            data in prop::collection::vec(any::<bool>(), 0..400),
            ending in prop::sample::select(&[Ending::Terminated, Ending::Truncated, Ending::TailBiting][..]),
        ) {
            let expected = encode_slowly(&code, &data, ending);
            // Bits after the last one are set, and must have no effect.
            let mut packed = vec![0xff; bits::bytes_for(data.len())];
            data.iter().enumerate().for_each(|(at, &bit)| bits::set(&mut packed, at, bit));
            for simd in Simd::available() {
                let coded = Encoder::with_simd(&code, simd).encode(&packed, data.len(), ending);
                prop_assert_eq!(coded.len(), bits::bytes_for(expected.len()));
                let unpacked: Vec<bool> = (0..expected.len()).map(|at| bits::get(&coded, at)).collect();
                prop_assert_eq!(&unpacked, &expected);
                prop_assert!((expected.len()..8 * coded.len()).all(|at| !bits::get(&coded, at)));
            }
        }
    }
}
