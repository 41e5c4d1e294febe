use super::*;
use crate::convolutional::{Code, Puncturing};
use crate::events::trace;
use crate::modulation::Modulation;
use crate::scheme::DecoderKind;

fn k7(rate: Option<&str>, decision: Decision, decoder: DecoderKind) -> Scheme {
    let code = Code::new(7, &[0o171, 0o133]).unwrap();
    let puncturing = rate.map(|rate| Puncturing::usual(rate).unwrap());
    let coding = Coding::Convolutional(Convolutional { puncturing, decoder, ..Convolutional::new(code) });
    Scheme::new(coding, Modulation::Bpsk, decision).unwrap()
}

fn patient(_: u64, _: u64) -> bool {
    true
}

#[test]
fn importance_sampling_agrees_with_plain_simulation() {
    for (rate, decision, decoder, eb_n0_db, plain_bits) in [
        (None, Decision::Soft, DecoderKind::Parallel, 3.5, 6_000_000),
        (None, Decision::Hard, DecoderKind::Parallel, 5.5, 6_000_000),
        (Some("3/4"), Decision::Soft, DecoderKind::Parallel, 4.6, 12_000_000),
        (Some("3/4"), Decision::Hard, DecoderKind::Parallel, 6.2, 4_000_000),
        // A trace-back of 5 K is short for this rate: most errors come from paths that have not merged.
        (Some("3/4"), Decision::Hard, DecoderKind::Serial, 6.5, 2_000_000),
    ] {
        let scheme = k7(rate, decision, decoder);
        let effort = |bits_max| Effort { bits_max, events: Some(300), confidence: 0.99, ..Effort::default() };
        let plain = simulated(&scheme, eb_n0_db, &effort(plain_bits), &patient).unwrap();
        let effort = effort(3_000_000);
        let sampled = importance_sampled(&scheme, eb_n0_db, &effort, &patient).unwrap();
        assert!(plain.seen > 30, "{scheme}: {}", plain.seen);
        assert!(
            plain.event_rate.overlaps(&sampled.event_rate),
            "{scheme}: {:?} {:?}",
            plain.event_rate,
            sampled.event_rate
        );
        assert!(plain.bit_error_rate.overlaps(&sampled.bit_error_rate), "{scheme}");
        assert!(sampled.bit_error_rate.relative_half_width() < 0.4, "{scheme}: {:?}", sampled.bit_error_rate);
        // The playback has the measured rate.
        let played = sampled.events.bit_error_rate() / sampled.bit_error_rate.value;
        assert!((played - 1.0).abs() < 0.05, "{scheme}: {played}");
    }
}

#[test]
fn rare_events_lie_just_below_the_union_bound() {
    // With all 8 bits of a soft symbol; the rounding of the fast decoder costs about 15 % here, or 0.03 dB.
    let scheme = k7(None, Decision::Soft, DecoderKind::Serial);
    let effort = Effort { bits_max: 2_000_000, events: Some(3000), ..Effort::default() };
    let found = library(&scheme, 7.0, &effort, &patient).unwrap();
    assert_eq!(found.method, Method::ImportanceSampled);
    let Coding::Convolutional(coding) = scheme.coding() else { unreachable!() };
    let bound = bounds::event_rate_soft(&Spectrum::new(&coding.code, &coding.pattern(), 12).unwrap(), 7.0);
    assert!(
        found.event_rate.low < bound * 1.02 && found.event_rate.high > 0.9 * bound,
        "{:?} {bound}",
        found.event_rate
    );
    assert!(found.event_rate.relative_half_width() < 0.1);
}

#[test]
fn gaps_between_events_are_geometric() {
    let scheme = k7(None, Decision::Hard, DecoderKind::Parallel);
    let gap = scheme.event_gap_bits();
    let wrong = trace(&scheme, 4.5, 8_000_000, 5, &patient).wrong;
    let bursts: Vec<&[u64]> = super::super::bursts(&wrong, gap).collect();
    let mut beyond: Vec<u64> =
        bursts.windows(2).map(|pair| pair[1][0] - pair[0][pair[0].len() - 1] - 1 - gap).collect();
    beyond.sort_unstable();
    let n = beyond.len() as f64;
    assert!(n > 2000.0);
    // Kolmogorov-Smirnov distance to the geometric distribution of the same mean; 1.6 / sqrt(n) is exceeded in 1 % of all cases
    // (fewer, because the mean was fitted).
    let mean = beyond.iter().sum::<u64>() as f64 / n;
    let distance = beyond.iter().enumerate().map(|(rank, &value)| {
        let share = 1.0 - (mean / (mean + 1.0)).powf(value as f64 + 0.5);
        (share - rank as f64 / n).abs().max((share - (rank + 1) as f64 / n).abs())
    });
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < 1.6 / n.sqrt(), "{distance} {n}");
}

#[test]
fn uncoded_events_are_exact() {
    let scheme = Scheme::new(Coding::Uncoded, Modulation::Bpsk, Decision::Hard).unwrap();
    let found = library(&scheme, 9.5879, &Effort::default(), &patient).unwrap();
    assert_eq!(found.method, Method::Exact);
    assert!((found.events.bit_error_rate() / 1e-5 - 1.0).abs() < 1e-3);
}

#[test]
fn what_cannot_be_importance_sampled_is_refused() {
    let code = Code::new(7, &[0o171, 0o133]).unwrap();
    let coding = Coding::Convolutional(Convolutional::new(code));
    let scheme = Scheme::new(coding, Modulation::Psk8, Decision::Soft).unwrap();
    let refused = importance_sampled(&scheme, 5.0, &Effort::default(), &patient).unwrap_err();
    assert_eq!(refused, LibraryError::Modulation(Modulation::Psk8));
    let scheme = Scheme::new(Coding::Uncoded, Modulation::Bpsk, Decision::Soft).unwrap();
    assert!(matches!(
        importance_sampled(&scheme, 5.0, &Effort::default(), &patient),
        Err(LibraryError::Coding(coding)) if coding == "uncoded"
    ));
}

fn reed_solomon(n: usize, k: usize, depth: usize) -> ReedSolomon {
    ReedSolomon { code: crate::reed_solomon::Code::conventional(n, k).unwrap(), depth }
}

#[test]
fn words_drawn_as_failing_agree_with_plain_simulation() {
    let coding = Coding::ReedSolomon(reed_solomon(63, 55, 3));
    let scheme = Scheme::new(coding, Modulation::Bpsk, Decision::Hard).unwrap();
    let effort = Effort { bits_max: 40_000_000, events: Some(300), confidence: 0.99, ..Effort::default() };
    let drawn = library(&scheme, 7.1, &effort, &patient).unwrap();
    let plain = simulated(&scheme, 7.1, &effort, &patient).unwrap();
    assert_eq!((drawn.method, plain.method), (Method::Conditional, Method::Simulated));
    assert!(plain.seen > 30, "{}", plain.seen);
    assert!(plain.event_rate.overlaps(&drawn.event_rate), "{:?} {:?}", plain.event_rate, drawn.event_rate);
    assert!(plain.bit_error_rate.overlaps(&drawn.bit_error_rate));
    assert!((drawn.events.bit_error_rate() / drawn.bit_error_rate.value - 1.0).abs() < 0.05);
}

#[test]
fn played_events_agree_with_plain_simulation() {
    let code = Code::new(5, &[0o23, 0o35]).unwrap();
    let inner = Convolutional::new(code);
    let concatenated = Coding::Concatenated { outer: reed_solomon(63, 57, 2), inner: inner.clone() };
    let over = Box::new(Coding::Convolutional(inner));
    let erasure = Coding::Erasure { data_blocks: 8, parity_blocks: 2, block_bytes: 46, over };
    for (coding, eb_n0_db) in [(concatenated, 3.2), (erasure, 3.9)] {
        let scheme = Scheme::new(coding, Modulation::Qpsk, Decision::Soft).unwrap();
        let effort = Effort { bits_max: 12_000_000, events: Some(400), confidence: 0.99, ..Effort::default() };
        let plain = simulated(&scheme, eb_n0_db, &effort, &patient).unwrap();
        let played = played(&scheme, eb_n0_db, &effort, &patient).unwrap();
        assert!(plain.seen > 30, "{scheme}: {}", plain.seen);
        assert!(
            plain.event_rate.overlaps(&played.event_rate),
            "{scheme}: {:?} {:?}",
            plain.event_rate,
            played.event_rate
        );
        assert!(plain.bit_error_rate.overlaps(&played.bit_error_rate), "{scheme}");
    }
}

#[test]
fn errors_too_rare_for_every_method_are_refused_by_name() {
    let over = Box::new(Coding::Uncoded);
    let coding = Coding::Erasure { data_blocks: 8, parity_blocks: 8, block_bytes: 46, over };
    let scheme = Scheme::new(coding, Modulation::Bpsk, Decision::Hard).unwrap();
    let effort = Effort { bits_max: 1_000_000, ..Effort::default() };
    let refused = library(&scheme, 14.0, &effort, &patient).unwrap_err();
    assert!(matches!(&refused, LibraryError::TooRare { bits, .. } if *bits >= 1_000_000));
    assert!(refused.to_string().contains("erasure 8+8 blocks of 46 bytes over uncoded, BPSK hard"), "{refused}");
}

/// One coding of each kind.
fn codings() -> Vec<(Coding, Decision)> {
    let convolutional = Convolutional::new(Code::new(7, &[0o171, 0o133]).unwrap());
    let punctured = convolutional.clone().punctured(Puncturing::usual("3/4").unwrap());
    let over = |inner: &Convolutional| Box::new(Coding::Convolutional(inner.clone()));
    vec![
        (Coding::Uncoded, Decision::Hard),
        (Coding::Convolutional(convolutional.clone()), Decision::Soft),
        (Coding::Convolutional(convolutional.clone()), Decision::Hard),
        (Coding::Convolutional(punctured.clone()), Decision::Soft),
        (Coding::ReedSolomon(reed_solomon(63, 55, 2)), Decision::Hard),
        (Coding::Concatenated { outer: reed_solomon(63, 55, 2), inner: convolutional.clone() }, Decision::Soft),
        (
            Coding::Erasure { data_blocks: 8, parity_blocks: 2, block_bytes: 46, over: over(&convolutional) },
            Decision::Soft,
        ),
    ]
}

#[test]
fn error_rates_fall_with_eb_n0_to_nothing() {
    let effort = Effort { bits_max: 100_000, events: Some(50), ..Effort::default() };
    for (coding, decision) in codings() {
        for modulation in [Modulation::Bpsk, Modulation::Qam16] {
            let scheme = Scheme::new(coding.clone(), modulation, decision).unwrap();
            let mut last = 1.0;
            for eb_n0_db in (-5..=20).map(|half| 2.0 * f64::from(half)) {
                let rate = match library(&scheme, eb_n0_db, &effort, &patient) {
                    Ok(found) => {
                        let (played, measured) = (found.events.bit_error_rate(), found.bit_error_rate.value);
                        // They differ by events that overlap and by events that are not kept.
                        assert!((played / measured - 1.0).abs() < 0.3, "{scheme}, {eb_n0_db} dB: {played} {measured}");
                        played
                    }
                    Err(LibraryError::TooRare { bits, .. }) => {
                        assert!(bits >= effort.bits_max, "{scheme}: {bits}");
                        0.0
                    }
                    Err(LibraryError::Never { .. }) => 0.0,
                    Err(other) => panic!("{scheme}, {eb_n0_db} dB: {other}"),
                };
                // At low Eb/N0 half of the bits are wrong regardless of the noise; few events have a large variance.
                assert!(rate <= last * 1.25 && rate < 0.55, "{scheme}, {eb_n0_db} dB: {rate} after {last}");
                last = rate;
            }
            assert!(last < 1e-300, "{scheme}: {last}");
        }
    }
}

#[test]
fn an_event_without_end_is_cut_and_not_gathered_for_ever() {
    let scheme = k7(None, Decision::Soft, DecoderKind::Parallel);
    let effort = Effort { bits_max: 600_000_000, events: Some(2000), ..Effort::default() };
    let found = library(&scheme, -10.0, &effort, &patient).unwrap();
    assert!(found.bits < 60_000_000 && found.seen > 20, "{} {}", found.bits, found.seen);
    for event in (0..found.events.len()).map(|at| found.events.event(at)) {
        assert!(u64::from(event[event.len() - 1]) < SPAN_MAX);
    }
    assert!((found.events.bit_error_rate() - 0.5).abs() < 0.02, "{}", found.events.bit_error_rate());
}

#[test]
fn block_codes_over_nothing_but_noise_end_soon() {
    let code = Code::new(7, &[0o171, 0o133]).unwrap();
    let coding = Coding::Concatenated { outer: reed_solomon(255, 223, 5), inner: Convolutional::new(code) };
    let scheme = Scheme::new(coding, Modulation::Bpsk, Decision::Soft).unwrap();
    let effort = Effort { bits_max: 1_000_000, events: Some(2000), ..Effort::default() };
    let found = library(&scheme, -10.0, &effort, &patient).unwrap();
    assert_eq!(found.method, Method::Simulated);
    let played = played(&scheme, -10.0, &effort, &patient).unwrap();
    assert!(played.bits < 4_000_000, "{}", played.bits);
}

#[test]
fn progress_of_all_stages_is_one_that_never_goes_back() {
    let code = Code::new(7, &[0o171, 0o133]).unwrap();
    let coding = Coding::Concatenated { outer: reed_solomon(63, 55, 2), inner: Convolutional::new(code) };
    let scheme = Scheme::new(coding, Modulation::Bpsk, Decision::Soft).unwrap();
    let effort = Effort { bits_max: 6_000_000, events: Some(300), ..Effort::default() };
    let told = std::sync::Mutex::new(Vec::new());
    let watch = |done: u64, total: u64| {
        told.lock().unwrap().push(done as f64 / total as f64);
        true
    };
    let found = library(&scheme, 3.0, &effort, &watch).unwrap();
    assert_eq!(found.method, Method::Played);
    let told = told.into_inner().unwrap();
    for stage in [0.0..0.1, 0.1..0.4, 0.4..1.0] {
        assert!(told.iter().any(|share| stage.contains(share)), "{stage:?}");
    }
    assert_eq!(told.last(), Some(&1.0));
}

#[test]
fn what_is_stopped_before_the_first_event_is_not_free_of_errors() {
    for (coding, decision) in codings().into_iter().skip(1) {
        let scheme = Scheme::new(coding, Modulation::Bpsk, decision).unwrap();
        for eb_n0_db in [5.0, 9.0] {
            let effort = Effort { events: Some(1_000_000), ..Effort::default() };
            match library(&scheme, eb_n0_db, &effort, &|_, _| false) {
                Err(LibraryError::Interrupted) => {}
                Ok(found) => assert_eq!(found.status, Status::Interrupted, "{scheme}"),
                Err(other) => panic!("{scheme}: {other}"),
            }
        }
    }
}

#[test]
fn a_slow_decoder_can_be_stopped_within_a_batch() {
    // Ordinary batches have 524,288 steps in 64 windows; samples of rare events have about 500 steps for each of 512.
    let code = Code::new(11, &[0o3345, 0o3613]).unwrap();
    let coding = Coding::Convolutional(Convolutional { decoder: DecoderKind::Serial, ..Convolutional::new(code) });
    let scheme = Scheme::new(coding, Modulation::Bpsk, Decision::Soft).unwrap();
    for eb_n0_db in [1.0, 9.0] {
        let asked = AtomicU64::new(0);
        let watch = |done: u64, _: u64| {
            assert_eq!(done, 0, "it did not wait for a batch");
            asked.fetch_add(1, Ordering::Relaxed) < 3
        };
        assert_eq!(library(&scheme, eb_n0_db, &Effort::default(), &watch), Err(LibraryError::Interrupted));
    }
}
