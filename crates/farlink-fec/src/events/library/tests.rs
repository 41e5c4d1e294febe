use super::*;
use crate::convolutional::{Code, Puncturing};
use crate::events::trace;
use crate::modulation::Modulation;

fn k7(rate: Option<&str>, decision: Decision) -> Scheme {
    let code = Code::new(7, &[0o171, 0o133]).unwrap();
    let puncturing = rate.map(|rate| Puncturing::usual(rate).unwrap());
    let coding = Coding::Convolutional(Convolutional { puncturing, ..Convolutional::new(code) });
    Scheme::new(coding, Modulation::Bpsk, decision).unwrap()
}

fn patient(_: u64, _: u64) -> bool {
    true
}

#[test]
fn importance_sampling_agrees_with_plain_simulation() {
    for (rate, decision, eb_n0_db) in [
        (None, Decision::Soft, 3.5),
        (None, Decision::Hard, 5.5),
        (Some("3/4"), Decision::Soft, 4.5),
        (Some("3/4"), Decision::Hard, 6.5),
    ] {
        let scheme = k7(rate, decision);
        let effort = Effort { bits_max: 6_000_000, events: Some(1000), confidence: 0.99, ..Effort::default() };
        let plain = simulated(&scheme, eb_n0_db, &effort, &patient).unwrap();
        let sampled = importance_sampled(&scheme, eb_n0_db, &effort, &patient).unwrap();
        assert!(plain.event_rate.overlaps(&sampled.event_rate), "{scheme}: {plain:?} {sampled:?}");
        assert!(plain.bit_error_rate.overlaps(&sampled.bit_error_rate), "{scheme}");
        assert!(sampled.bit_error_rate.relative_half_width() < 0.3, "{scheme}: {:?}", sampled.bit_error_rate);
        // What is played back has the rate that was measured.
        let played = sampled.events.bit_error_rate() / sampled.bit_error_rate.value;
        assert!((played - 1.0).abs() < 0.05, "{scheme}: {played}");
    }
}

#[test]
fn rare_events_lie_just_below_the_union_bound() {
    // At 7 dB the bound is tight: 7.6e-10 events a bit or so.
    let scheme = k7(None, Decision::Soft);
    let effort = Effort { bits_max: 3_000_000, events: Some(3000), ..Effort::default() };
    let found = library(&scheme, 7.0, &effort, &patient).unwrap();
    assert_eq!(found.method, Method::ImportanceSampled);
    let Coding::Convolutional(coding) = scheme.coding() else { unreachable!() };
    let bound = bounds::event_rate_soft(&Spectrum::new(&coding.code, &coding.pattern(), 12).unwrap(), 7.0);
    assert!(found.event_rate.low < bound * 1.02 && found.event_rate.high > 0.9 * bound, "{found:?} {bound}");
    assert!(found.event_rate.relative_half_width() < 0.1);
}

#[test]
fn gaps_between_events_are_geometric() {
    let scheme = k7(None, Decision::Hard);
    let gap = scheme.event_gap_bits();
    let wrong = trace(&scheme, 4.5, 8_000_000, 5, &patient).wrong;
    let bursts: Vec<&[u64]> = super::super::bursts(&wrong, gap).collect();
    let mut beyond: Vec<u64> =
        bursts.windows(2).map(|pair| pair[1][0] - pair[0][pair[0].len() - 1] - 1 - gap).collect();
    beyond.sort_unstable();
    let n = beyond.len() as f64;
    assert!(n > 2000.0);
    // Kolmogorov and Smirnov's distance to the geometric distribution of the same mean; 1.6 / sqrt(n) is exceeded in 1 % of
    // all cases (fewer, since the mean was fitted).
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

#[test]
#[ignore]
fn scratch() {
    for (rate, decision, eb_n0_db) in [
        (None, Decision::Soft, 3.5),
        (None, Decision::Hard, 5.5),
        (Some("3/4"), Decision::Soft, 4.5),
        (Some("3/4"), Decision::Soft, 5.5),
        (Some("3/4"), Decision::Hard, 6.5),
        (Some("3/4"), Decision::Hard, 7.5),
    ] {
        let scheme = k7(rate, decision);
        let effort = Effort { bits_max: 6_000_000, events: Some(1000), confidence: 0.95, ..Effort::default() };
        let t = std::time::Instant::now();
        let mut p = simulated(&scheme, eb_n0_db, &effort, &patient).unwrap();
        let t1 = t.elapsed();
        let mut s = importance_sampled(&scheme, eb_n0_db, &effort, &patient).unwrap();
        p.events = ErrorEvents::new([], 0.0, 0.0);
        s.events = ErrorEvents::new([], 0.0, 0.0);
        println!("{scheme} {eb_n0_db} {t1:?} {:?}\n {p:?}\n {s:?}", t.elapsed() - t1);
    }
}
