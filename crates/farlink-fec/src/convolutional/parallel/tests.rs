use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

use super::*;
use crate::bits;

fn code(constraint_length: u32, octal: &[&str]) -> Code {
    let generators: Vec<u32> = octal.iter().map(|text| u32::from_str_radix(text, 8).unwrap()).collect();
    Code::new(constraint_length, &generators).unwrap()
}

/// Encodes bit by bit; gives one coded bit per element.
fn encode(code: &Code, ending: Ending, data: &[bool]) -> Vec<bool> {
    let newest = code.constraint_length() - 1;
    let push = |state: u32, bit: bool| u32::from(bit) << newest | state;
    let mut state = 0;
    if ending == Ending::TailBiting {
        // Twice round a short frame; the last K - 1 bits are what counts.
        let rounds = data.iter().cycle().take(data.len() * code.constraint_length() as usize);
        state = rounds.fold(0, |state, &bit| push(state, bit) >> 1);
    }
    let steps = ending.steps(data.len(), code.constraint_length());
    let bits = data.iter().copied().chain(std::iter::repeat(false)).take(steps);
    let mut coded = Vec::new();
    for bit in bits {
        let window = push(state, bit);
        coded.extend((0..code.outputs()).map(|j| code.output(window) >> j & 1 == 1));
        state = window >> 1;
    }
    coded
}

fn pack(data: &[bool]) -> Vec<u8> {
    let mut bytes = vec![0; bytes_for(data.len())];
    for (at, &bit) in data.iter().enumerate() {
        bits::set(&mut bytes, at, bit);
    }
    bytes
}

fn random_bits(rng: &mut Pcg64Mcg, count: usize) -> Vec<bool> {
    (0..count).map(|_| rng.next_u64() >> 63 == 1).collect()
}

fn uniform(rng: &mut Pcg64Mcg) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

fn normal(rng: &mut Pcg64Mcg) -> f64 {
    (-2.0 * uniform(rng).ln()).sqrt() * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// All the settings that each level of SIMD is tried in.
fn decode_with(
    code: &Code,
    ending: Ending,
    data_bits: usize,
    decision: Decision,
    simd: Simd,
    symbols: &[Soft],
) -> Vec<u8> {
    let mut decoder = FrameDecoder::new(code, ending, data_bits, decision, simd).unwrap();
    let frames = symbols.len() / decoder.frame_symbols();
    let mut data = vec![0xaa; frames * bytes_for(data_bits)];
    decoder.decode(symbols, &mut data).unwrap();
    data
}

/// Codes of every shape: both end taps, none, more outputs than have all their combinations tabulated.
fn codes() -> Vec<Code> {
    vec![
        code(3, &["7", "5"]),
        code(4, &["17", "15"]),
        code(4, &["13", "15", "17"]),
        code(5, &["23", "35"]),
        code(6, &["53", "75"]),
        code(7, &["171", "133"]),
        code(7, &["171", "165", "133"]),
        code(7, &["171", "133", "165", "117"]),
        code(8, &["371", "247"]),
        code(9, &["753", "561"]),
        code(10, &["1167", "1545"]),
        code(12, &["4335", "5723"]),
        code(5, &["7", "26"]),
        code(3, &["7"]),
        code(7, &["171", "133", "165", "117", "135", "157", "171"]),
    ]
}

const ENDINGS: [Ending; 3] = [Ending::Terminated, Ending::Truncated, Ending::TailBiting];

#[test]
fn noise_free_frames_decode_at_every_level_and_scale() {
    let mut rng = Pcg64Mcg::new(1);
    for code in codes() {
        for ending in ENDINGS {
            for data_bits in [1, 7, 8, 29, 200] {
                // Weak ends: what follows the last bits has to tell them apart, and one bit bites no tail.
                if code.outputs() < 2 || ending == Ending::TailBiting && data_bits < 29 {
                    continue;
                }
                let frames: Vec<Vec<bool>> = (0..3).map(|_| random_bits(&mut rng, data_bits)).collect();
                let sent: Vec<u8> = frames.iter().flat_map(|frame| pack(frame)).collect();
                for (decision, size) in [(Decision::Soft, 127), (Decision::Soft, 20), (Decision::Hard, 1)] {
                    let symbol = |bit: bool| if bit { -size } else { size };
                    let symbols: Vec<Soft> =
                        frames.iter().flat_map(|frame| encode(&code, ending, frame)).map(symbol).collect();
                    for simd in Simd::available() {
                        let got = decode_with(&code, ending, data_bits, decision, simd, &symbols);
                        assert_eq!(got, sent, "{code:?} {ending:?} {data_bits} bits, {decision:?} {simd:?}");
                    }
                }
            }
        }
    }
}
