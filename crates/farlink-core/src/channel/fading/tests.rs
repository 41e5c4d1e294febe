use std::f64::consts::FRAC_1_SQRT_2;

use super::*;

use crate::channel::{ChannelKind, Fate, Frame, SettingId};
use crate::trace::MemoryTraces;
use crate::{Rng, Time};

const RATE: f64 = 622e6;

/// Samples of 0.1 ms.
fn power(power_w: Vec<f64>) -> Trace {
    let duration_s = power_w.len() as f64 * 1e-4;
    Trace::Power { power_w, blocked: Vec::new(), is_relative: false, duration_s }
}

fn prepare(
    keys: &str,
    trace: Trace,
    rate: Option<f64>,
    duration_s: Option<f64>,
) -> Result<Arc<dyn Prepared>, ChannelError> {
    let channel: ChannelKind = serde_json::from_str(&format!(r#"{{"kind": "fading", "file": "p"{keys}}}"#)).unwrap();
    let traces = MemoryTraces::default().with("p", trace);
    let rate = rate.map(|rate| BitRate::new(rate).unwrap());
    channel.prepare(&Site { traces: &traces, rate, duration: duration_s.map(Time::from_secs_f64) })
}

fn receiver() -> Receiver {
    ReceiverSetting::default().receiver()
}

/// Sends frames back to back. Returns the share of wrong bits per sample of the recording, and the number of lost frames.
fn play(prepared: &Arc<dyn Prepared>, samples: usize, rounds: usize, frame_bits: u32, seed: u64) -> (Vec<f64>, usize) {
    let mut rng = Rng::for_component(seed, 0, "channel");
    let mut channel = prepared.start(&mut rng);
    let mut wrong = vec![0.0; samples];
    let mut sent = vec![0.0; samples];
    let mut lost = 0;
    let length = Time::from_secs_f64(samples as f64 * 1e-4);
    let end_of_all = length.times(rounds as u64);
    let time_of = |bits: u64| Time::from_secs_f64(bits as f64 / RATE);
    let mut bits = 0;
    let mut errors = Vec::new();
    loop {
        let frame = Frame {
            start: time_of(bits),
            end: time_of(bits + u64::from(frame_bits)),
            bits: frame_bits,
            setting: SettingId::default(),
        };
        if frame.end > end_of_all {
            break;
        }
        let sample = |bit: u32| {
            let at = time_of(bits + u64::from(bit)).as_ps() % length.as_ps();
            ((at as f64 / 1e8) as usize).min(samples - 1)
        };
        sent[sample(frame_bits / 2)] += f64::from(frame_bits);
        if channel.quiet().until < frame.end {
            errors.clear();
            match channel.carry(&frame, &mut rng, &mut errors) {
                Fate::Lost => lost += 1,
                fate => assert_eq!(fate == Fate::Damaged, !errors.is_empty()),
            }
            assert!(errors.windows(2).all(|pair| pair[0] < pair[1]) && errors.iter().all(|&bit| bit < frame_bits));
            errors.iter().for_each(|&bit| wrong[sample(bit)] += 1.0);
        }
        bits += u64::from(frame_bits);
    }
    (wrong.iter().zip(&sent).map(|(wrong, sent): (&f64, &f64)| wrong / sent.max(1.0)).collect(), lost)
}

/// Standard errors are those of a binomial count.
#[track_caller]
fn assert_rate(share: f64, expected: f64, bits: f64) {
    let error = (expected * (1.0 - expected) / bits).sqrt();
    assert!((share - expected).abs() <= 4.5 * error, "{share} is not {expected} within 4.5 times {error}");
}

/// The error rate follows from eq. (1) for the power of the recording and from nothing else.
#[test]
fn constant_power_gives_exactly_the_receivers_error_rate() {
    for ber in [1e-6, 1e-4, 1e-2, 0.09] {
        let power_w = receiver().power_w(ber);
        let argument = power_w / 1.35e-9 / (1.0 + (1.0 + 0.8 * power_w / 1.35e-9).sqrt());
        assert!((0.5 * libm::erfc(argument * FRAC_1_SQRT_2) / ber - 1.0).abs() < 1e-9);
        let rounds = if ber < 1e-5 { 2000 } else { 10 };
        for rate in [Some(RATE), None] {
            let prepared = prepare("", power(vec![power_w; 20]), rate, None).unwrap();
            let (shares, lost) = play(&prepared, 20, rounds, 8000, 1);
            let bits = RATE * 20e-4 * rounds as f64;
            assert_rate(shares.iter().sum::<f64>() / 20.0, ber, bits);
            assert_eq!(lost, 0);
        }
    }
}

#[test]
fn errors_occur_only_during_the_fade() {
    let (strong, weak) = (receiver().power_w(1e-30), receiver().power_w(1e-3));
    let power_w: Vec<f64> = (0..100).map(|at| if (40..60).contains(&at) { weak } else { strong }).collect();
    for rate in [Some(RATE), None] {
        let prepared = prepare("", power(power_w.clone()), rate, None).unwrap();
        let (shares, _) = play(&prepared, 100, 50, 1000, 2);
        for (at, share) in shares.into_iter().enumerate() {
            if (40..60).contains(&at) {
                assert_rate(share, 1e-3, RATE * 1e-4 * 50.0);
            } else {
                assert_eq!(share, 0.0, "sample {at}");
            }
        }
    }
}

/// A frame is lost if the error rate is too high during any part of it.
#[test]
fn frames_are_lost_while_the_error_rate_is_too_high() {
    let (strong, dark) = (receiver().power_w(1e-30), 0.0);
    let power_w: Vec<f64> = (0..50).map(|at| if at == 20 || at == 49 { dark } else { strong }).collect();
    for rate in [Some(RATE), None] {
        let prepared = prepare("", power(power_w.clone()), rate, None).unwrap();
        let (shares, lost) = play(&prepared, 50, 10, 1000, 3);
        assert!(shares.iter().all(|&share| share == 0.0));
        // 62.2 frames a sample, and up to two that reach into it.
        let frames = 20.0 * 62.2;
        assert!((frames - 20.0..=frames + 40.0).contains(&(lost as f64)), "{lost}");
    }
}

#[test]
fn a_run_that_begins_in_a_blockage_loses_its_frames() {
    let (strong, dark) = (receiver().power_w(1e-30), 0.0);
    let power_w = vec![strong, dark, dark, dark, strong];
    for rate in [Some(RATE), None] {
        let prepared = prepare(r#", "offset_s": 2.5e-4"#, power(power_w.clone()), rate, None).unwrap();
        let (_, lost) = play(&prepared, 5, 1, 1000, 1);
        // Three blocked samples of 62.2 frames, and up to two frames at each edge.
        assert!((186..=194).contains(&lost), "{lost}");
    }
}

#[test]
fn power_is_scaled_to_the_long_term_error_rate() {
    let power_w: Vec<f64> = (0..200).map(|at| 1e-3 * (1.0 + 0.3 * f64::from(at % 10))).collect();
    let prepared = prepare(r#", "ber": 1e-5"#, power(power_w), Some(RATE), None).unwrap();
    let (shares, _) = play(&prepared, 200, 100, 4000, 4);
    assert_rate(shares.iter().sum::<f64>() / 200.0, 1e-5, RATE * 200e-4 * 100.0);
}

/// Idle time between frames has no effect: half as many bits have half as many errors.
#[test]
fn idle_time_has_no_errors() {
    let prepared = prepare("", power(vec![receiver().power_w(1e-4); 10]), Some(RATE), None).unwrap();
    let mut rng = Rng::for_component(5, 0, "channel");
    let mut channel = prepared.start(&mut rng);
    let mut errors = Vec::new();
    let frames = 400_000;
    for at in 0..frames {
        let start = Time::from_secs_f64(f64::from(at) * 16000.0 / RATE);
        let end = start + Time::from_secs_f64(8000.0 / RATE);
        channel.carry(&Frame { start, end, bits: 8000, setting: SettingId::default() }, &mut rng, &mut errors);
    }
    assert_rate(errors.len() as f64 / (8000.0 * f64::from(frames)), 1e-4, 8000.0 * f64::from(frames));
}

#[test]
fn both_directions_of_a_hop_share_the_random_offset() {
    let power_w: Vec<f64> = (1..1000).map(|at| receiver().power_w(1e-4 / f64::from(at))).collect();
    let prepared = prepare(r#", "offset_s": "random""#, power(power_w), Some(RATE), None).unwrap();
    let mut seen = Vec::new();
    for run in 0..10 {
        let hop = Rng::for_component(1, run, "hop");
        let ber = |name: &str| prepared.start_on_hop(&mut Rng::for_component(1, run, name), &hop).state(Time::ZERO).ber;
        assert_eq!(ber("forward"), ber("return"));
        seen.push(ber("forward"));
    }
    seen.dedup();
    assert_eq!(seen.len(), 10, "and in each run at another");
}

#[test]
fn the_state_follows_the_recording() {
    let power_w: Vec<f64> = [1e-6, 0.4, 1e-4].map(|ber| receiver().power_w(ber)).into();
    let prepared = prepare(r#", "offset_s": 0.00005"#, power(power_w), Some(RATE), None).unwrap();
    let mut channel = prepared.start(&mut Rng::for_component(1, 0, "channel"));
    let mut now = Time::ZERO;
    let mut told = Vec::new();
    for _ in 0..4 {
        let state = channel.state(now);
        told.push((now.as_secs_f64() * 1e6, state.up, format!("{:.0e}", state.ber.unwrap())));
        now = channel.next_change(now);
    }
    let expected = [(0.0, true, "1e-6"), (50.0, false, "4e-1"), (150.0, true, "1e-4"), (250.0, true, "1e-6")];
    assert_eq!(told, expected.map(|(at, up, ber)| (at, up, ber.to_owned())));
}

#[test]
fn contradictory_settings_are_refused_and_unusual_ones_noted() {
    let steady = || power(vec![40e-9; 100]);
    let notes = |keys: &str, rate, duration_s| prepare(keys, steady(), rate, duration_s).unwrap().notes();
    assert_eq!(notes("", Some(RATE), Some(0.01)), [""; 0]);
    assert_eq!(
        notes("", Some(1e9), Some(0.05)),
        [
            "p is 0.01 s long and a run is 0.05 s long: the recording starts over",
            "the receiver model frm5w621 holds at 6.22e8 bit/s only, and the link sends at 1e9 bit/s: its bit errors are \
             those of a receiver as good at this rate",
        ]
    );
    let refusal = |keys: &str, trace, duration_s| match prepare(keys, trace, Some(RATE), duration_s) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{keys} was taken"),
    };
    let refuse = r#", "at_end": "refuse""#;
    assert!(prepare(refuse, steady(), Some(RATE), Some(0.01)).is_ok());
    assert_eq!(
        refusal(refuse, steady(), Some(0.02)),
        "at_end = \"refuse\", but p is 0.01 s long and a run from 0 s on is 0.02 s long"
    );
    assert_eq!(
        refusal(refuse, steady(), None),
        "at_end = \"refuse\", but p is 0.01 s long and a run from 0 s on is without end"
    );
    let dark = power([vec![0.0; 10], vec![40e-9; 90]].concat());
    assert_eq!(
        refusal(r#", "ber": 1e-6"#, dark, None),
        "p: a long-term bit error rate of 1e-6 cannot be reached: 10 samples (the first is sample 0) are without power \
         and not marked as blocked, and they alone give 5e-2"
    );
    let Trace::Power { power_w, blocked, duration_s, .. } = steady() else { unreachable!() };
    let relative =
        || Trace::Power { power_w: power_w.clone(), blocked: blocked.clone(), is_relative: true, duration_s };
    assert_eq!(
        refusal("", relative(), None),
        "the power of p is relative, without a unit, and there is no ber to scale it to"
    );
    assert!(prepare(r#", "ber": 1e-6"#, relative(), Some(RATE), None).is_ok());
    let losses = Trace::PacketLoss { lost: vec![true] };
    assert_eq!(refusal("", losses, None), "the trace p holds packet-loss but power is wanted here");
    let unknown = serde_json::from_str::<ChannelKind>(r#"{"kind": "fading", "file": "p", "receiver": "frm5w612"}"#);
    assert!(unknown.unwrap_err().to_string().contains("did you mean \"frm5w621\""));
}
