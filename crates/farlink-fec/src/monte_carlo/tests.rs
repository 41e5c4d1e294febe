use super::*;
use crate::convolutional::Code;
use crate::modulation::{Decision, Modulation};
use crate::scheme::{Convolutional, DecoderKind, ReedSolomon};

fn k7(decision: Decision) -> Scheme {
    let code = Code::new(7, &[0o171, 0o133]).unwrap();
    Scheme::new(Coding::Convolutional(Convolutional::new(code)), Modulation::Bpsk, decision).unwrap()
}

fn patient(_: u64, _: u64) -> bool {
    true
}

#[test]
fn the_closed_form_lies_within_the_interval_of_uncoded_bits() {
    for (modulation, eb_n0_db) in
        [(Modulation::Bpsk, 7.0), (Modulation::Qpsk, 4.0), (Modulation::Psk8, 8.0), (Modulation::Qam16, 8.0)]
    {
        let scheme = Scheme::new(Coding::Uncoded, modulation, Decision::Hard).unwrap();
        let effort = Effort { events: Some(4000), confidence: 0.999, ..Effort::default() };
        let rate = error_rate(&scheme, eb_n0_db, &effort, &patient).unwrap();
        let exact = modulation.bit_error_rate(crate::awgn::ratio(eb_n0_db));
        let interval = rate.bit_error_rate;
        assert!((interval.low..=interval.high).contains(&exact), "{modulation}: {interval:?} {exact}");
        assert!(interval.relative_half_width() < 0.1, "{modulation}");
        assert_eq!(rate.status, Status::Reached);
    }
}

#[test]
fn threads_do_not_change_the_result() {
    let effort = Effort { events: Some(150), ..Effort::default() };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| error_rate(&k7(Decision::Hard), 4.0, &effort, &patient).unwrap())
    };
    let one = on(1);
    assert!(one.events >= 150);
    assert_eq!(one, on(3));
}

#[test]
fn a_stopped_run_counts_what_it_has() {
    let effort = Effort { events: None, ..Effort::default() };
    let rate = error_rate(&k7(Decision::Hard), 4.0, &effort, &|done, _| done < 1_000_000).unwrap();
    assert_eq!(rate.status, Status::Interrupted);
    assert!(rate.bits >= 1_000_000 && rate.bits < 3_000_000 && rate.wrong_bits > 0);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let scheme = k7(Decision::Soft);
    let with = |effort: Effort| error_rate(&scheme, 3.0, &effort, &patient).unwrap_err();
    assert_eq!(with(Effort { confidence: 1.0, ..Effort::default() }), EffortError::Confidence(1.0));
    assert_eq!(with(Effort { packet_bits: Some(0), ..Effort::default() }), EffortError::Packet);
    assert_eq!(with(Effort { bits_max: 0, ..Effort::default() }), EffortError::Bits(0));
    assert!(error_rate(&scheme, f64::NAN, &Effort::default(), &patient).is_err());
}

#[test]
fn the_usual_code_has_its_known_error_rates() {
    // A decoder in floating point with the same trace-back: soft 5.0e-4 at 3 dB, hard 5.8e-4 at 5 dB.
    for (decision, eb_n0_db, known) in [(Decision::Soft, 3.0, 5.0e-4), (Decision::Hard, 5.0, 5.8e-4)] {
        let code = Code::new(7, &[0o171, 0o133]).unwrap();
        let coding = Convolutional { decoder: DecoderKind::Serial, ..Convolutional::new(code) };
        let scheme = Scheme::new(Coding::Convolutional(coding), Modulation::Bpsk, decision).unwrap();
        let rate = error_rate(&scheme, eb_n0_db, &Effort { events: Some(200), ..Effort::default() }, &patient).unwrap();
        let found = rate.bit_error_rate;
        // The printed value is rounded to two digits and has an interval of its own.
        assert!(found.low < known * 1.05 && found.high > known * 0.95, "{decision}: {found:?}");
        assert!(found.relative_half_width() < 0.25);
        assert!(rate.packet_error_rate.value > 100.0 * rate.event_rate.value);
    }
}

#[test]
fn words_of_a_reed_solomon_code_fail_as_the_closed_form_says() {
    let code = crate::reed_solomon::Code::conventional(255, 223).unwrap();
    let coding = Coding::ReedSolomon(ReedSolomon { code, depth: 1 });
    let scheme = Scheme::new(coding, Modulation::Bpsk, Decision::Hard).unwrap();
    let effort = Effort { confidence: 0.999, events: Some(300), ..Effort::default() };
    let rate = error_rate(&scheme, 5.8, &effort, &patient).unwrap();
    let symbol = 1.0 - (1.0 - scheme.channel_bit_error_rate(5.8)).powi(8);
    let mut term = (1.0 - symbol).powi(255);
    let mut mended = term;
    for wrong in 1..=16 {
        term *= symbol / (1.0 - symbol) * f64::from(256 - wrong) / f64::from(wrong);
        mended += term;
    }
    // A packet is a word; miscorrection is below 1 in 16!.
    let found = rate.packet_error_rate;
    assert_eq!(rate.packet_bits, 1784);
    assert!((found.low..=found.high).contains(&(1.0 - mended)), "{found:?} {}", 1.0 - mended);
    assert!(found.relative_half_width() < 0.3);
    assert_eq!(rate.gave_up, rate.wrong_packets);
}

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    // Many short runs of a code with bursts, compared with all of them together.
    let code = Code::new(4, &[0o17, 0o15]).unwrap();
    let scheme =
        Scheme::new(Coding::Convolutional(Convolutional::new(code)), Modulation::Bpsk, Decision::Hard).unwrap();
    let effort = |seed| Effort { seed, bits_max: 1, events: None, confidence: 0.9, ..Effort::default() };
    let runs: Vec<ErrorRate> =
        (0..200).map(|seed| error_rate(&scheme, 6.5, &effort(seed), &patient).unwrap()).collect();
    let mean = |value: fn(&ErrorRate) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
    let covered = |of: fn(&ErrorRate) -> Estimate| {
        let truth = runs.iter().map(|run| of(run).value).sum::<f64>() / runs.len() as f64;
        runs.iter().filter(|run| (of(run).low..=of(run).high).contains(&truth)).count()
    };
    assert!((5.0..1000.0).contains(&mean(|run| run.events as f64)));
    // 180 of 200 expected, deviation 4.2, and the intervals are conservative.
    let estimates: [fn(&ErrorRate) -> Estimate; 3] =
        [|run| run.bit_error_rate, |run| run.event_rate, |run| run.packet_error_rate];
    for of in estimates {
        assert!((168..200).contains(&covered(of)), "{}", covered(of));
    }
}
