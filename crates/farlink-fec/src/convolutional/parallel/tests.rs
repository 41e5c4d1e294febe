use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

use super::engine::LanesHold;
use super::*;
use crate::bits;
use crate::convolutional::Viterbi;

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

/// Decodes with a given content of the lanes.
fn decode_with_lanes(
    lanes_hold: LanesHold,
    code: &Code,
    (ending, data_bits): (Ending, usize),
    decision: Decision,
    simd: Simd,
    symbols: &[Soft],
) -> Vec<u8> {
    let mut decoder = FrameDecoder::new(code, ending, data_bits, decision, simd);
    decoder.engine = Engine::with(decoder.plan.clone(), simd, lanes_hold);
    let mut data = vec![0x55; symbols.len() / decoder.frame_symbols() * bytes_for(data_bits)];
    decoder.decode(symbols, &mut data).unwrap();
    data
}

fn decode_with(
    code: &Code,
    ending: Ending,
    data_bits: usize,
    decision: Decision,
    simd: Simd,
    symbols: &[Soft],
) -> Vec<u8> {
    let mut decoder = FrameDecoder::new(code, ending, data_bits, decision, simd);
    let frames = symbols.len() / decoder.frame_symbols();
    let mut data = vec![0xaa; frames * bytes_for(data_bits)];
    decoder.decode(symbols, &mut data).unwrap();
    data
}

/// Codes of every shape: with both end taps, with none, with more outputs than can be tabulated in all combinations.
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
        code(14, &["21675", "27123"]),
        code(15, &["46321", "51271", "63667", "70535"]),
        code(5, &["7", "26"]),
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
                // Weak ends: only later symbols distinguish the last bits, and tail-biting needs more than one bit.
                if ending == Ending::TailBiting && data_bits < 29 {
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

/// Symbols of any kind: noise, only extremes, few levels, with erasures.
fn symbols_of_kind(rng: &mut Pcg64Mcg, kind: u8, count: usize) -> Vec<Soft> {
    (0..count)
        .map(|_| {
            let random = rng.next_u64();
            match kind {
                0 => (random >> 56) as u8 as Soft,
                1 => [Soft::MIN, Soft::MAX][(random >> 63) as usize],
                2 => [-1, 0, 1, 0][(random >> 62) as usize],
                3 => Soft::MIN,
                4 => 0,
                // Long runs of one sign with occasional changes, so that metrics are far apart.
                _ => {
                    if random >> 58 == 0 {
                        Soft::MIN
                    } else {
                        Soft::MAX
                    }
                }
            }
        })
        .collect()
}

/// The least cost of any path, computed with metrics that cannot overflow.
fn least_cost(code: &Code, ending: Ending, costs: &[[u32; 2]]) -> u32 {
    let states = code.states();
    let mut metrics = vec![u32::MAX / 2; states];
    metrics[0] = 0;
    for step in costs.chunks_exact(code.outputs()) {
        let mut next = vec![u32::MAX; states];
        for window in 0..2 * states {
            let output = code.output(window as u32);
            let branch: u32 = step.iter().enumerate().map(|(j, cost)| cost[(output >> j & 1) as usize]).sum();
            let target = &mut next[window / 2];
            *target = (*target).min(metrics[window % states].saturating_add(branch));
        }
        metrics = next;
    }
    if ending == Ending::Terminated { metrics[0] } else { metrics.into_iter().min().unwrap() }
}

/// Codes with both end taps in every generator, and others.
fn any_code(constraint_lengths: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Code> {
    let generators = prop::collection::vec(any::<u32>(), 2..=8);
    (constraint_lengths, generators, any::<bool>()).prop_filter_map(
        "no code",
        |(constraint_length, mut generators, end_taps)| {
            let taps = if end_taps { 1 | 1 << (constraint_length - 1) } else { 0 };
            generators.iter_mut().for_each(|generator| *generator = *generator & ((1 << constraint_length) - 1) | taps);
            Code::new(constraint_length, &generators).ok()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_level_gives_the_same_bits(
        code in any_code(3..=13), ending in prop::sample::select(&ENDINGS[..]), data_bits in 1usize..150,
        frames in 1usize..70, kind in 0u8..6, full_scale in 1u8..=127, seed: u64,
    ) {
        let mut rng = Pcg64Mcg::new(u128::from(seed));
        let frame = ending.steps(data_bits, code.constraint_length()) * code.outputs();
        let symbols = symbols_of_kind(&mut rng, kind, frames * frame);
        let decision = Decision::SoftUpTo(full_scale);
        let portable = decode_with(&code, ending, data_bits, decision, Simd::Portable, &symbols);
        for simd in Simd::available() {
            prop_assert_eq!(&decode_with(&code, ending, data_bits, decision, simd, &symbols), &portable);
        }
    }

    #[test]
    fn lanes_of_states_give_the_same_bits_as_lanes_of_frames(
        code in any_code(9..=12), ending in prop::sample::select(&ENDINGS[..]), data_bits in 1usize..400,
        frames in 1usize..7, kind in 0u8..6, full_scale in 1u8..=127, seed: u64,
    ) {
        let mut rng = Pcg64Mcg::new(u128::from(seed));
        let frame = ending.steps(data_bits, code.constraint_length()) * code.outputs();
        let symbols = symbols_of_kind(&mut rng, kind, frames * frame);
        let decode = |lanes_hold, simd| {
            decode_with_lanes(lanes_hold, &code, (ending, data_bits), Decision::SoftUpTo(full_scale), simd, &symbols)
        };
        let expected = decode(LanesHold::Frames, Simd::best());
        for simd in Simd::available() {
            prop_assert_eq!(&decode(LanesHold::States, simd), &expected, "{:?}", simd);
        }
    }

    #[test]
    fn every_level_gives_the_same_bits_of_a_stream(code in any_code(3..=9), bits in 1usize..20_000, kind in 0u8..6, seed: u64) {
        let mut rng = Pcg64Mcg::new(u128::from(seed));
        let symbols = symbols_of_kind(&mut rng, kind, bits * code.outputs());
        let decode = |simd| {
            let mut data = vec![0; bytes_for(bits)];
            StreamDecoder::new(&code, Decision::Soft, simd).decode(&symbols, &mut data).unwrap();
            data
        };
        let portable = decode(Simd::Portable);
        for simd in Simd::available() {
            prop_assert_eq!(&decode(simd), &portable);
        }
    }

    /// The symbols are costs or signs, so that both decoders find paths of the same cost.
    #[test]
    fn with_the_whole_frame_to_trace_back_no_path_of_the_reference_decoder_is_better(
        code in any_code(3..=12), terminated: bool, data_bits in 1usize..200, hard: bool, seed: u64,
    ) {
        let ending = if terminated { Ending::Terminated } else { Ending::Truncated };
        let mut rng = Pcg64Mcg::new(u128::from(seed));
        let largest = Trellis::new(&code).largest_cost;
        let full_scale = if hard { 1 } else { largest };
        let decoder = FrameDecoder::new(&code, ending, data_bits, Decision::SoftUpTo(full_scale), Simd::best());
        let mut decoder = decoder.with_traceback(usize::MAX);
        let symbol = |random: u64| (random % (2 * u64::from(full_scale) + 1)) as Soft - full_scale.cast_signed();
        let symbols: Vec<Soft> = (0..decoder.frame_symbols()).map(|_| symbol(rng.next_u64() >> 32)).collect();
        let (mut data, mut reference) = (vec![0; bytes_for(data_bits)], vec![0; bytes_for(data_bits)]);
        decoder.decode(&symbols, &mut data).unwrap();
        Viterbi::new(&code, usize::MAX).decode(&symbols, ending, &mut reference).unwrap();
        let correlation = |data: &[u8]| -> i32 {
            let bits: Vec<bool> = (0..data_bits).map(|at| bits::get(data, at)).collect();
            let coded = encode(&code, ending, &bits).into_iter().zip(&symbols);
            coded.map(|(bit, &symbol)| if bit { -i32::from(symbol) } else { i32::from(symbol) }).sum()
        };
        prop_assert_eq!(correlation(&data), correlation(&reference));
    }

    /// No 8-bit metric overflows for any symbols: the path found costs as little as the best one.
    #[test]
    fn with_the_whole_frame_to_trace_back_decoding_is_maximum_likelihood(
        code in any_code(3..=10), terminated: bool, data_bits in 1usize..700, kind in 0u8..6, full_scale in 1u8..=127, seed: u64,
    ) {
        let ending = if terminated { Ending::Terminated } else { Ending::Truncated };
        let mut rng = Pcg64Mcg::new(u128::from(seed));
        let mut decoder =
            FrameDecoder::new(&code, ending, data_bits, Decision::SoftUpTo(full_scale), Simd::best());
        decoder = decoder.with_traceback(usize::MAX);
        let symbols = symbols_of_kind(&mut rng, kind, decoder.frame_symbols());
        let mut data = vec![0; bytes_for(data_bits)];
        decoder.decode(&symbols, &mut data).unwrap();

        let quantiser = Quantiser::new(full_scale, decoder.largest_cost());
        let costs: Vec<[u32; 2]> = symbols.iter().map(|&symbol| {
            let cost = u32::from(quantiser.table[usize::from(symbol.unsigned_abs().min(127))]);
            if symbol < 0 { [cost, 0] } else { [0, cost] }
        }).collect();
        let bits: Vec<bool> = (0..data_bits).map(|at| bits::get(&data, at)).collect();
        let found: u32 = encode(&code, ending, &bits).iter().zip(&costs).map(|(&bit, cost)| cost[usize::from(bit)]).sum();
        prop_assert_eq!(found, least_cost(&code, ending, &costs));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn every_level_gives_the_same_bits_with_many_states(
        code in any_code(13..=15), ending in prop::sample::select(&ENDINGS[..]), data_bits in 1usize..60, kind in 0u8..6,
        seed: u64,
    ) {
        let mut rng = Pcg64Mcg::new(u128::from(seed));
        let frame = ending.steps(data_bits, code.constraint_length()) * code.outputs();
        let symbols = symbols_of_kind(&mut rng, kind, 2 * frame);
        let decode = |simd| decode_with(&code, ending, data_bits, Decision::Soft, simd, &symbols);
        let portable = decode(Simd::Portable);
        for simd in Simd::available() {
            prop_assert_eq!(&decode(simd), &portable);
        }
    }
}

/// Wrong bits of the decoder with a trace-back of `traceback` K and of the reference decoder with one of ten K, for the same
/// noise, and the error events of the latter (runs with K - 1 correct bits between them).
fn wrong_bits(code: &Code, hard: bool, traceback: usize, ebn0_db: f64, frames: usize) -> (usize, usize, usize) {
    const DATA_BITS: usize = 4096;
    const AMPLITUDE: f64 = 40.0;
    let mut rng = Pcg64Mcg::new(7);
    let deviation = (code.outputs() as f64 / 2.0 / 10f64.powf(ebn0_db / 10.0)).sqrt();
    let decision = if hard { Decision::Hard } else { Decision::SoftUpTo((AMPLITUDE * (1.0 + 1.5 * deviation)) as u8) };
    let constraint_length = code.constraint_length() as usize;
    let fast = FrameDecoder::new(code, Ending::Terminated, DATA_BITS, decision, Simd::best());
    let mut fast = fast.with_traceback(traceback * constraint_length);
    let mut reference = Viterbi::new(code, 10 * constraint_length);
    let (mut of_fast, mut of_reference, mut events) = (0, 0, 0);
    for _ in 0..frames {
        let sent = random_bits(&mut rng, DATA_BITS);
        let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let received = encode(code, Ending::Terminated, &sent).into_iter().map(|bit| {
            let noise = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
            let value = if bit { -1.0 } else { 1.0 } + deviation * noise;
            if hard { value.signum() as Soft } else { (AMPLITUDE * value).round().clamp(-127.0, 127.0) as Soft }
        });
        let symbols: Vec<Soft> = received.collect();
        let (mut data, mut data_of_reference) = (vec![0; DATA_BITS / 8], vec![0; DATA_BITS / 8]);
        fast.decode(&symbols, &mut data).unwrap();
        reference.decode(&symbols, Ending::Terminated, &mut data_of_reference).unwrap();
        let wrong = |data: &[u8]| (0..DATA_BITS).filter(|&at| bits::get(data, at) != sent[at]).collect::<Vec<_>>();
        let (fast, reference) = (wrong(&data), wrong(&data_of_reference));
        let begins = reference.windows(2).filter(|pair| pair[1] - pair[0] >= constraint_length);
        events += begins.count() + usize::from(!reference.is_empty());
        of_fast += fast.len();
        of_reference += reference.len();
    }
    (of_fast, of_reference, events)
}

/// The usual trace-back of 5 K is enough for the usual code, because most bits are decided later. At K = 11 and 2 % of wrong bits
/// it causes a quarter more of them, with either decoder.
#[test]
fn costs_of_a_few_bits_lose_next_to_nothing_against_the_reference_decoder() {
    let (usual, large) = (code(7, &["171", "133"]), code(11, &["2335", "3661"]));
    let cases = [(&usual, false, 5, 2.0, 160), (&usual, true, 5, 4.0, 160), (&large, false, 10, 1.5, 180)];
    for (code, hard, traceback, ebn0_db, frames) in cases {
        let (fast, reference, events) = wrong_bits(code, hard, traceback, ebn0_db, frames);
        assert!(events >= 300, "{events}");
        let ratio = fast as f64 / reference as f64;
        assert!((0.9..=1.1).contains(&ratio), "{ratio} of {reference} wrong bits, {code} hard {hard}");
    }
}

#[test]
fn a_full_scale_symbol_has_the_largest_cost_and_none_the_opposite() {
    for largest in [1, 10, 15, 63] {
        for full_scale in [1, 2, 50, 127] {
            let quantiser = Quantiser::new(full_scale, largest);
            assert_eq!(quantiser.table[0], 0);
            assert_eq!(quantiser.table[usize::from(full_scale)], largest);
            assert_eq!(quantiser.table[127], largest);
            assert!(quantiser.table.is_sorted());
        }
    }
}

#[test]
fn the_usual_code_has_many_levels() {
    let decoder = |code| FrameDecoder::new(&code, Ending::Truncated, 1, Decision::Soft, Simd::Portable);
    assert!(decoder(code(7, &["171", "133"])).largest_cost() >= 15);
    assert!(decoder(code(7, &["171", "165", "133"])).largest_cost() >= 8);
}

/// A stream of several blocks with errors that are far apart decodes to what was sent.
#[test]
fn a_stream_with_scattered_errors_decodes() {
    let mut rng = Pcg64Mcg::new(3);
    let code = code(7, &["171", "133"]);
    for bits in [1, 100, 2048, 150_001] {
        let sent = random_bits(&mut rng, bits);
        let mut symbols: Vec<Soft> =
            encode(&code, Ending::Truncated, &sent).into_iter().map(|bit| if bit { -1 } else { 1 }).collect();
        for at in (0..symbols.len().saturating_sub(40)).step_by(97) {
            symbols[at] = -symbols[at];
        }
        for simd in Simd::available() {
            let mut data = vec![0xff; bytes_for(bits)];
            StreamDecoder::new(&code, Decision::Hard, simd).decode(&symbols, &mut data).unwrap();
            assert_eq!(data, pack(&sent), "{bits} bits");
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let code = code(7, &["171", "133"]);
    let mut decoder = FrameDecoder::new(&code, Ending::Terminated, 10, Decision::Soft, Simd::best());
    assert_eq!(decoder.decode(&[1; 33], &mut [0; 2]), Err(ParallelError::Symbols { symbols: 33, frame: 32 }));
    assert_eq!(decoder.decode(&[1; 64], &mut [0; 2]), Err(ParallelError::Data { given: 2, needed: 4 }));
    assert_eq!(decoder.decode(&[], &mut []), Ok(()));
    let mut decoder = StreamDecoder::new(&code, Decision::Soft, Simd::best());
    assert_eq!(decoder.decode(&[1; 33], &mut [0; 2]), Err(ParallelError::Symbols { symbols: 33, frame: 2 }));
    assert_eq!(decoder.decode(&[1; 34], &mut [0; 2]), Err(ParallelError::Data { given: 2, needed: 3 }));
}
