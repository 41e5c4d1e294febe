use super::*;
use crate::convolutional::Code;
use crate::modulation::{Decision, Modulation};
use crate::scheme::Convolutional;

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
        let rate = error_rate(&k7(decision), eb_n0_db, &Effort::default(), &patient).unwrap();
        let found = rate.bit_error_rate;
        // What it printed is rounded to two digits and has an interval of its own.
        assert!(found.low < known * 1.05 && found.high > known * 0.95, "{decision}: {found:?}");
        assert!(found.relative_half_width() < 0.2);
        assert!(rate.packet_error_rate.value > 100.0 * rate.event_rate.value);
    }
}
