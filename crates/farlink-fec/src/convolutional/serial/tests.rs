use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::convolutional::Encoder;
use crate::convolutional::test_codes::{any_code, random_bits, symbols};

const ENDINGS: [Ending; 3] = [Ending::Terminated, Ending::Truncated, Ending::TailBiting];

/// The correlation of the frame that correlates best with the symbols, among all frames.
fn likeliest(code: &Code, symbols_got: &[Soft], data_bits: usize, ending: Ending) -> i32 {
    let encoder = Encoder::new(code);
    let frames = (0u32..1 << data_bits).map(|data| (data << (32 - data_bits)).to_be_bytes());
    frames.map(|data| correlation(&encoder, &data, data_bits, ending, symbols_got)).max().unwrap()
}

fn correlation(encoder: &Encoder, data: &[u8], data_bits: usize, ending: Ending, symbols_got: &[Soft]) -> i32 {
    let coded = symbols(&encoder.encode(data, data_bits, ending), symbols_got.len(), 1);
    coded.iter().zip(symbols_got).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut viterbi = Viterbi::new(&Code::from_octal("171,133").unwrap(), 35);
    let mut data = [0; 2];
    let refused = |viterbi: &mut Viterbi, count, ending, data: &mut [u8]| viterbi.decode(&vec![1; count], ending, data);
    assert_eq!(
        refused(&mut viterbi, 31, Ending::Truncated, &mut data),
        Err(DecodeError::Partial { symbols: 31, outputs: 2 })
    );
    assert_eq!(
        refused(&mut viterbi, 10, Ending::Terminated, &mut data),
        Err(DecodeError::Short { symbols: 10, tail: 12 })
    );
    assert_eq!(
        refused(&mut viterbi, 34, Ending::Truncated, &mut data),
        Err(DecodeError::Room { data_bits: 17, bytes: 2 })
    );
    assert_eq!(refused(&mut viterbi, 0, Ending::TailBiting, &mut []), Ok(Decoded { data_bits: 0, is_closed: true }));
    assert_eq!(refused(&mut viterbi, 12, Ending::Terminated, &mut []), Ok(Decoded { data_bits: 0, is_closed: true }));
    assert!(viterbi.stream().push(&[1], |_| ()).is_err());
}

#[test]
fn a_frame_of_noise_that_never_closes_is_given_up() {
    // Erased symbols fit any path, so the first path found closes.
    let mut viterbi = Viterbi::new(&Code::from_octal("7,5").unwrap(), 15);
    assert!(viterbi.decode(&[0; 40], Ending::TailBiting, &mut [0; 3]).unwrap().is_closed);
    // This is frequent on short frames of noise: for nearly a quarter of these no survivor ever closes.
    let is_open = |frame: &u32| {
        let symbols: Vec<Soft> = (0..6).map(|at| [-3, -1, 1, 2][(frame >> (2 * at) & 3) as usize]).collect();
        !viterbi.decode(&symbols, Ending::TailBiting, &mut [0]).unwrap().is_closed
    };
    let open = (0u32..1 << 12).filter(is_open).count();
    assert!((1..1 << 10).contains(&open), "{open} of 4096");
}

/// Repeated passes find the likeliest frame nearly always (Shao, Lin and Fossorier 2003, figure 3), here among all 4096.
#[test]
fn going_round_finds_the_likeliest_tail_biting_frame() {
    let code = Code::from_octal("7,5").unwrap();
    let (encoder, mut viterbi) = (Encoder::new(&code), Viterbi::new(&code, 15));
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    let (mut likeliest_found, frames) = (0, 300);
    for _ in 0..frames {
        let sent = symbols(&encoder.encode(&random_bits(&mut rng, 12), 12, Ending::TailBiting), 24, 20);
        let received: Vec<Soft> = sent.iter().map(|symbol| symbol + rng.random_range(-35..=35)).collect();
        let mut data = [0; 2];
        viterbi.decode(&received, Ending::TailBiting, &mut data).unwrap();
        let gained = correlation(&encoder, &data, 12, Ending::TailBiting, &received);
        likeliest_found += usize::from(gained == likeliest(&code, &received, 12, Ending::TailBiting));
    }
    assert!(likeliest_found * 100 >= 97 * frames, "{likeliest_found} of {frames}");
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(
        code in any_code(),
        data in prop::collection::vec(any::<u8>(), 1..40),
        left_bits in 0usize..8,
        amplitude in prop::sample::select(&[1, 20, 127][..]),
    ) {
        let data_bits = 8 * data.len() - left_bits;
        let encoder = Encoder::new(&code);
        // The trace-back covers the whole frame, because some random codes need more than 5 K even without noise.
        let mut viterbi = Viterbi::new(&code, data_bits + 15);
        let mut expected = data.clone();
        (data_bits..8 * data.len()).for_each(|at| bits::set(&mut expected, at, false));
        for ending in ENDINGS {
            let coded = encoder.encode(&data, data_bits, ending);
            let received = symbols(&coded, encoder.coded_bits(data_bits, ending), amplitude);
            let mut decoded = vec![0xff; data.len()];
            let outcome = viterbi.decode(&received, ending, &mut decoded);
            prop_assert_eq!(outcome, Ok(Decoded { data_bits, is_closed: true }));
            // If two data frames have the same code word, as short frames may, either one is correct.
            prop_assert_eq!(encoder.encode(&decoded, data_bits, ending), coded, "{:?}", ending);
            if ending == Ending::Terminated {
                prop_assert_eq!(&decoded, &expected);
            }
        }
    }

    #[test]
    fn no_frame_is_likelier_than_the_one_decoded(
        code in any_code(),
        soft: [[Soft; 5]; 16],
        data_bits in 1usize..8,
    ) {
        let encoder = Encoder::new(&code);
        for ending in [Ending::Terminated, Ending::Truncated] {
            let received: Vec<Soft> =
                soft.iter().flatten().copied().take(encoder.coded_bits(data_bits, ending).min(80)).collect();
            let mut decoded = [0];
            let steps = received.len() / code.outputs();
            if steps < encoder.coded_bits(data_bits, ending) / code.outputs() {
                continue;
            }
            Viterbi::new(&code, 100).decode(&received, ending, &mut decoded).unwrap();
            let gained = correlation(&encoder, &decoded, data_bits, ending, &received);
            prop_assert_eq!(gained, likeliest(&code, &received, data_bits, ending));
        }
    }

    #[test]
    fn a_tail_biting_winner_closes_its_loop(code in any_code(), soft in prop::collection::vec(any::<Soft>(), 150)) {
        let steps = 30;
        let received = &soft[..steps * code.outputs()];
        let mut data = [0; 4];
        let decoded = Viterbi::new(&code, 1).decode(received, Ending::TailBiting, &mut data).unwrap();
        prop_assert_eq!(decoded.data_bits, steps);
    }

    #[test]
    fn a_stream_decodes_as_a_frame_does(
        code in any_code(),
        soft in prop::collection::vec(any::<Soft>(), 600),
        traceback in 1usize..80,
        cut in 0usize..60,
    ) {
        let steps = soft.len() / code.outputs();
        let received = &soft[..steps * code.outputs()];
        let mut viterbi = Viterbi::new(&code, traceback);
        let mut frame = vec![0; bits::bytes_for(steps)];
        viterbi.decode(received, Ending::Truncated, &mut frame).unwrap();

        let mut streamed = Vec::new();
        let mut stream = viterbi.stream();
        let (first, second) = received.split_at(cut * code.outputs());
        stream.push(first, |bit| streamed.push(bit)).unwrap();
        prop_assert_eq!(streamed.len(), cut.saturating_sub(traceback));
        stream.push(second, |bit| streamed.push(bit)).unwrap();
        stream.end(None, |bit| streamed.push(bit));
        prop_assert_eq!(streamed, (0..steps).map(|at| bits::get(&frame, at)).collect::<Vec<_>>());
    }

    #[test]
    fn the_memory_of_the_path_changes_nothing(
        soft in prop::collection::vec(any::<Soft>(), 400),
        traceback in 1usize..30,
    ) {
        let code = Code::from_octal("23,35").unwrap();
        let mut trellis = Trellis::new(&code);
        let mut stream = Stream::begin(&mut trellis, traceback);
        let mut streamed = Vec::new();
        for symbols in soft.chunks_exact(2) {
            stream.push(symbols, |bit| streamed.push(bit)).unwrap();
            let mut state = stream.trellis.best_state();
            for step in (0..stream.steps).rev().take(traceback) {
                state = stream.trellis.predecessor(state, stream.history.row(step));
            }
            if stream.steps > traceback {
                prop_assert_eq!(*streamed.last().unwrap(), stream.trellis.bit(state));
            }
        }
    }
}
