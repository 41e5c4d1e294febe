//! Any code, any errors and erasures: within the bound all are mended; batches fare as single words, at every level of SIMD.
#![no_main]

use farlink_fec::bch::Bch;
use farlink_fec::reed_solomon::{Basis, BatchDecoder, BatchEncoder, Code, Outcome, Parameters};
use farlink_fec::simd::Simd;
use libfuzzer_sys::arbitrary::{Result, Unstructured};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let _ = if bytes.len() % 4 == 0 { mend_bits(&mut input) } else { mend_symbols(&mut input) };
});

fn mend_symbols(input: &mut Unstructured) -> Result<()> {
    let (n, k) = (input.int_in_range(0..=256)?, input.int_in_range(0..=256)?);
    let basis = if input.arbitrary()? { Basis::Dual } else { Basis::Conventional };
    let code = match input.int_in_range(0..=2)? {
        0 => Code::conventional(n, k),
        1 => Code::ccsds(n, k, basis),
        _ => Code::new(
            n,
            k,
            Parameters {
                polynomial: input.arbitrary()?,
                first_root: input.arbitrary()?,
                primitive_element: input.arbitrary()?,
                basis,
            },
        ),
    };
    let Ok(code) = code else { return Ok(()) };

    // Words with the same few errors, moved on by a symbol from one to the next.
    let count = if input.ratio(1, 16)? { input.int_in_range(0..=70)? } else { input.int_in_range(0..=2)? };
    let errors: Vec<(u8, u8)> = (0..input.int_in_range(0..=20)?).map(|_| input.arbitrary()).collect::<Result<_>>()?;
    let erasures: Vec<usize> =
        (0..input.int_in_range(0..=40)?).map(|_| input.int_in_range(0..=n)).collect::<Result<_>>()?;
    let data: Vec<u8> = input.arbitrary()?;
    let mut sent = vec![0; n * count];
    for (at, symbol) in sent.iter_mut().enumerate() {
        *symbol = data.get(at % data.len().max(1)).copied().unwrap_or(at as u8).wrapping_add((at / n) as u8);
    }
    sent.chunks_exact_mut(n).for_each(|word| {
        let (data, parity) = word.split_at_mut(k);
        code.encode(data, parity);
    });
    let mut received = sent.clone();
    for (moved, word) in received.chunks_exact_mut(n).enumerate() {
        errors.iter().for_each(|&(at, by)| word[(at as usize + moved) % n] ^= by);
    }

    let mut singly = received.clone();
    let mut outcomes = Vec::new();
    for (word, sent) in singly.chunks_exact_mut(n).zip(sent.chunks_exact(n)) {
        let wrong: Vec<usize> = (0..n).filter(|&at| word[at] != sent[at]).collect();
        let before = word.to_vec();
        let mut erased = word.to_vec();
        match code.decode(&mut erased, &erasures) {
            Ok(_) => {
                let (data, parity) = erased.split_at_mut(k);
                let mut expected = vec![0; n - k];
                code.encode(data, &mut expected);
                assert_eq!(parity, expected, "not a code word");
            }
            Err(_) => assert_eq!(erased, before, "given up, but changed"),
        }
        let is_valid =
            erasures.iter().all(|&at| at < n) && (1..erasures.len()).all(|at| !erasures[..at].contains(&erasures[at]));
        let outside = wrong.iter().filter(|at| !erasures.contains(at)).count();
        if is_valid && 2 * outside + erasures.len() <= n - k {
            assert_eq!(erased, sent, "within the bound");
        }
        outcomes.push(match code.decode(word, &[]) {
            Ok(corrected) => Outcome::Decoded { corrected: corrected.errors },
            Err(_) => Outcome::TooManyErrors,
        });
        if wrong.len() <= code.t() {
            assert_eq!((&word[..], outcomes.last()), (sent, Some(&Outcome::Decoded { corrected: wrong.len() })));
        }
    }

    for simd in Simd::available() {
        let mut encoded = sent.clone();
        encoded.chunks_exact_mut(n).for_each(|word| word[k..].fill(0xa5));
        BatchEncoder::new(&code, simd).encode(&mut encoded);
        assert!(encoded == sent, "{simd:?} encodes differently");

        let mut together = received.clone();
        let mut became = vec![Outcome::TooManyErrors; count];
        BatchDecoder::new(&code, simd).decode(&mut together, &mut became);
        assert_eq!(became, outcomes, "{simd:?}");
        assert!(together == singly, "{simd:?} decodes differently");
    }
    Ok(())
}

/// Binary BCH codes, the same way.
fn mend_bits(input: &mut Unstructured) -> Result<()> {
    let Ok(code) = Bch::for_payload(input.int_in_range(0..=3000)?, input.int_in_range(0..=9)?) else { return Ok(()) };
    let length = code.code_bits().div_ceil(8);
    let wrong: Vec<u16> = (0..input.int_in_range(0..=10)?).map(|_| input.arbitrary()).collect::<Result<_>>()?;
    let filler: u8 = input.arbitrary()?;
    let mut sent: Vec<u8> = (0..length).map(|at| filler.wrapping_mul(at as u8)).collect();
    code.encode(&mut sent);
    let mut received = sent.clone();
    let mut places: Vec<usize> = wrong.iter().map(|&at| at as usize % code.code_bits()).collect();
    places.sort_unstable();
    places.dedup();
    places.iter().for_each(|&at| received[at / 8] ^= 0x80 >> (at % 8));
    let before = received.clone();
    let mended = code.decode(&mut received);
    if places.len() <= code.t() {
        assert_eq!((&received, mended), (&sent, Ok(places)));
    } else if mended.is_err() {
        assert_eq!(received, before, "given up, but changed");
    }
    Ok(())
}
