use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::simd::Simd;

/// A word of random data.
fn random_word(code: &Code, rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut word: Vec<u8> = (0..code.n()).map(|_| rng.random()).collect();
    let (data, parity) = word.split_at_mut(code.k());
    code.encode(data, parity);
    word
}

/// Different positions below n.
fn positions(n: usize, count: usize, rng: &mut Pcg64Mcg) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    for at in 0..count {
        all.swap(at, rng.random_range(at..n));
    }
    all.truncate(count);
    all
}

fn wound(word: &mut [u8], at: &[usize], rng: &mut Pcg64Mcg) {
    for &position in at {
        word[position] ^= rng.random_range(1..=255u8);
    }
}

fn any_code() -> impl Strategy<Value = Code> {
    let parameters = (
        prop::sample::select(vec![0x11du16, 0x187, 0x11b, 0x12b]),
        0..255u8,
        prop::sample::select(vec![1u8, 2, 7, 11, 116, 254]),
        any::<bool>(),
    );
    let sizes =
        prop_oneof![(2..=255usize, 1..40usize), (2..=255usize, 1..255usize), Just((255, 32)), (2..20usize, 1..20usize)];
    (sizes, parameters).prop_map(|((n, parity), (polynomial, first_root, primitive_element, is_dual))| {
        let basis = if is_dual && polynomial == 0x187 { Basis::Dual } else { Basis::Conventional };
        let parameters = Parameters { polynomial, first_root, primitive_element, basis };
        Code::new(n, n - parity.min(n - 1), parameters).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn errors_and_erasures_within_the_bound_are_mended(code in any_code(), seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let word = random_word(&code, &mut rng);
        let erasures = rng.random_range(0..=code.parity_symbols());
        let errors = rng.random_range(0..=(code.parity_symbols() - erasures) / 2);
        let at = positions(code.n(), erasures + errors, &mut rng);
        let mut received = word.clone();
        wound(&mut received, &at[erasures..], &mut rng);
        for &position in &at[..erasures] {
            received[position] = rng.random();
        }
        let corrected = code.decode(&mut received, &at[..erasures]);
        prop_assert_eq!(received, word);
        prop_assert_eq!(corrected, Ok(Corrected { errors, erasures }));
    }

    /// With errors up to and beyond the bound, and with pure noise.
    #[test]
    fn a_batch_fares_as_its_words_do(code in any_code(), count in 0..150usize, most in 0..3usize, seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut words = Vec::new();
        for _ in 0..count {
            let mut word = random_word(&code, &mut rng);
            let errors = match most {
                0 => if rng.random_range(0..10) == 0 { 1 } else { 0 },
                1 => rng.random_range(0..=code.t()),
                _ => rng.random_range(0..=code.n().min(code.t() + 3)),
            };
            let at = positions(code.n(), errors, &mut rng);
            wound(&mut word, &at, &mut rng);
            words.extend(word);
        }
        let mut expected = words.clone();
        let outcomes: Vec<Outcome> = expected.chunks_mut(code.n()).map(|word| match code.decode(word, &[]) {
            Ok(corrected) => Outcome::Decoded { corrected: corrected.errors },
            Err(error) => { assert_eq!(error, DecodeError::TooManyErrors(code.t())); Outcome::TooManyErrors }
        }).collect();
        for simd in Simd::available() {
            let mut decoder = BatchDecoder::new(&code, simd);
            for _ in 0..2 {
                let mut decoded = words.clone();
                let mut found = vec![Outcome::TooManyErrors; count];
                decoder.decode(&mut decoded, &mut found);
                prop_assert_eq!(&found, &outcomes, "{:?}", simd);
                prop_assert!(decoded == expected, "{:?}", simd);
            }
        }
    }

    #[test]
    fn a_batch_is_encoded_as_its_words_are(code in any_code(), count in 0..150usize, seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let expected: Vec<u8> = (0..count).flat_map(|_| random_word(&code, &mut rng)).collect();
        for simd in Simd::available() {
            let mut words = expected.clone();
            for word in words.chunks_mut(code.n()) {
                word[code.k()..].fill(0xa5);
            }
            BatchEncoder::new(&code, simd).encode(&mut words);
            prop_assert!(words == expected, "{:?}", simd);
        }
    }

    #[test]
    fn no_input_makes_the_decoder_panic(
        code in any_code(),
        mut word in prop::collection::vec(any::<u8>(), 0..300),
        erasures in prop::collection::vec(0..260usize, 0..40),
    ) {
        let before = word.clone();
        let outcome = code.decode(&mut word, &erasures);
        prop_assert!(outcome.is_ok() || word == before);
        word.resize(code.n(), 0);
        let before = word.clone();
        if code.decode(&mut word, &[]).is_ok() {
            prop_assert_eq!(code.decode(&mut word.clone(), &[]), Ok(Corrected::default()));
        } else {
            prop_assert_eq!(word, before);
        }
    }

    #[test]
    fn a_burst_is_shared_by_the_words_of_a_block(depth in 1..9usize, blocks in 1..4usize, start: prop::sample::Index, seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let code = Code::ccsds(255, 223, Basis::Dual).unwrap();
        let mut interleaved = Interleaved::new(&code, depth, Simd::best()).unwrap();
        let mut block: Vec<u8> = (0..interleaved.block_bytes() * blocks).map(|_| rng.random()).collect();
        let sent_data = block[..interleaved.data_bytes()].to_vec();
        interleaved.encode(&mut block);
        prop_assert_eq!(&block[..interleaved.data_bytes()], &sent_data);
        let word: Vec<u8> = block[..interleaved.block_bytes()].iter().copied().step_by(depth).collect();
        prop_assert_eq!(code.decode(&mut word.clone(), &[]), Ok(Corrected::default()));

        let sent = block.clone();
        let burst = code.t() * depth;
        let start = start.index(interleaved.block_bytes() - burst + 1);
        wound(&mut block, &(start..start + burst).collect::<Vec<_>>(), &mut rng);
        let mut outcomes = vec![Outcome::TooManyErrors; depth * blocks];
        interleaved.decode(&mut block, &mut outcomes);
        prop_assert!(block == sent);
        let corrected = |at: usize| Outcome::Decoded { corrected: if at < depth { code.t() } else { 0 } };
        prop_assert_eq!(outcomes, (0..depth * blocks).map(corrected).collect::<Vec<_>>());
    }
}

#[test]
fn refusals_name_the_rule() {
    let text = |code: Result<Code, CodeError>| code.unwrap_err().to_string();
    assert!(text(Code::conventional(256, 223)).contains("n = 256"));
    assert!(text(Code::conventional(10, 0)).contains("k = 0"));
    assert!(text(Code::conventional(10, 10)).contains("k = 10 is not below n = 10"));
    assert!(text(Code::ccsds(10, 12, Basis::Dual)).contains("k = 12 is not below n = 10"));
    assert!(text(Code::ccsds(255, 224, Basis::Dual)).contains("n - k = 31"));
    let odd = |parameters| text(Code::new(255, 223, parameters));
    assert!(odd(Parameters { primitive_element: 51, ..Parameters::CONVENTIONAL }).contains("51"));
    assert!(odd(Parameters { first_root: 255, ..Parameters::CONVENTIONAL }).contains("255"));
    assert!(odd(Parameters { polynomial: 0x101, ..Parameters::CONVENTIONAL }).contains("0x101 is reducible"));

    let code = Code::conventional(20, 16).unwrap();
    let refusal = |len: usize, erasures: &[usize]| code.decode(&mut vec![0; len], erasures).unwrap_err();
    assert_eq!(refusal(19, &[]), DecodeError::WrongLength { len: 19, n: 20 });
    assert_eq!(refusal(20, &[20]), DecodeError::ErasureOutside { position: 20, n: 20 });
    assert_eq!(refusal(20, &[3, 3]), DecodeError::ErasureTwice(3));
    assert_eq!(refusal(20, &[0, 1, 2, 3, 4]), DecodeError::TooManyErasures { erasures: 5, parity: 4 });
    for depth in [0, 256] {
        assert_eq!(Interleaved::new(&code, depth, Simd::Portable).unwrap_err(), InterleavingError::Depth(depth));
    }
}

/// Words with random symbol errors fail with the probability of the binomial tail, within four standard deviations.
#[test]
fn words_fail_as_often_as_the_closed_form_says() {
    let code = Code::conventional(255, 223).unwrap();
    let mut decoder = BatchDecoder::new(&code, Simd::best());
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let (count, rate) = (40_000, 0.045);
    let mut words = vec![0u8; 255 * count];
    for symbol in &mut words {
        if rng.random_bool(rate) {
            *symbol = rng.random_range(1..=255);
        }
    }
    let mut outcomes = vec![Outcome::TooManyErrors; count];
    decoder.decode(&mut words, &mut outcomes);
    let failed = outcomes.iter().filter(|&&outcome| outcome == Outcome::TooManyErrors).count();
    let wrong: usize = words.iter().filter(|&&symbol| symbol != 0).count();
    let expected = theory::word_error_rate(255, 223, rate) * count as f64;
    assert!(expected > 1000.0 && (failed as f64 - expected).abs() < 4.0 * expected.sqrt(), "{failed}, not {expected}");
    let expected = theory::symbol_error_rate_after(255, 223, rate) * (255 * count) as f64;
    assert!((wrong as f64 / expected - 1.0).abs() < 4.0 / (failed as f64).sqrt(), "{wrong}, not {expected}");
}
