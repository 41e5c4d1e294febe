use proptest::prelude::*;

use super::*;
use crate::link::setting::{DelaySetting, RateSetting};
use crate::rng::Rng;
use crate::trace::{MemoryTraces, Trace};

fn rate(time_s: &[f64], rate_bps: &[f64], duration_s: f64) -> Trace {
    Trace::Rate { time_s: time_s.into(), rate_bps: rate_bps.into(), duration_s }
}

fn delivery(opportunity_s: &[f64], bytes_per_opportunity: u32, duration_s: f64) -> Trace {
    Trace::Delivery { opportunity_s: opportunity_s.into(), bytes_per_opportunity, duration_s }
}

fn transmitter(trace: Trace, offset_s: f64) -> Transmitter {
    let json = format!(r#"{{"kind": "rate-trace", "file": "t", "offset_s": {offset_s}}}"#);
    let setting: RateSetting = serde_json::from_str(&json).unwrap();
    let prepared = setting.prepare(&MemoryTraces::default().with("t", trace)).unwrap();
    prepared.start(&mut Rng::for_component(1, 0, "rate"))
}

/// Start and end of frames of the given sizes that wait from the given milliseconds on.
fn departures(mut transmitter: Transmitter, frames: &[(u64, u32)]) -> Vec<(f64, f64)> {
    let mut free = Time::ZERO;
    let depart = |&(ready, bytes)| {
        let (start, end) = transmitter.depart(free.max(Time::from_millis(ready)), bytes);
        free = end;
        (start.as_secs_f64(), end.as_secs_f64())
    };
    frames.iter().map(depart).collect()
}

#[test]
fn a_rate_is_integrated_over_its_steps() {
    // 8 kbit/s for 1 s, nothing for 1 s, 16 kbit/s for 2 s: 1000 + 0 + 4000 bytes per repetition of 4 s.
    let trace = rate(&[0.0, 1.0, 2.0], &[8e3, 0.0, 16e3], 4.0);
    let frames = [(0, 500), (0, 1000), (0, 3500), (0, 1000), (7_500, 1000), (100_000, 10_500)];
    let expected = [(0.0, 0.5), (0.5, 2.25), (2.25, 4.0), (4.0, 5.0), (7.5, 8.0), (100.0, 108.5)];
    assert_eq!(departures(transmitter(trace.clone(), 0.0), &frames), expected);
    assert_eq!(departures(transmitter(trace, 1.5), &[(0, 1000), (0, 4000)]), [(0.5, 1.0), (1.0, 3.5)]);
}

#[test]
fn a_frame_that_ends_at_the_start_of_an_outage_is_not_delayed() {
    let trace = rate(&[0.0, 1.0], &[8e3, 0.0], 4.0);
    assert_eq!(departures(transmitter(trace, 0.0), &[(0, 3000), (0, 1)]), [(0.0, 9.0), (12.0, 12.001)]);
}

#[test]
fn bits_between_two_instants_count_the_opportunities_at_both() {
    let capacity = crate::link::Capacity::of(&transmitter(delivery(&[0.002, 0.005, 0.008], 1500, 0.010), 0.0));
    let opportunities = |from_ms: u64, to_ms: u64| {
        let [from, to] = [from_ms, to_ms].map(Time::from_millis);
        capacity.mean_bps(from, to) * to.since(from).as_secs_f64() / 12_000.0
    };
    for (from_ms, to_ms, expected) in [(0, 1, 0.0), (0, 4, 1.0), (2, 5, 2.0), (3, 9, 2.0), (0, 15, 5.0), (6, 24, 5.0)] {
        let found = opportunities(from_ms, to_ms);
        assert!((found - expected).abs() < 1e-9, "{from_ms} to {to_ms} ms: {found}");
    }
}

#[test]
fn opportunities_carry_bytes_as_in_mahimahi() {
    // Two opportunities in the same millisecond, then one; at the end of a repetition it starts over.
    let trace = delivery(&[0.005, 0.005, 0.008], 1500, 0.010);
    let frames = [(0, 1500), (0, 40), (0, 40), (0, 1500), (0, 3000), (0, 1340), (0, 100)];
    let expected = [
        (0.005, 0.005),
        (0.005, 0.005),
        (0.005, 0.005),
        (0.005, 0.008), // 1420 bytes of the second opportunity, 80 of the third
        (0.008, 0.015), // 1420 of the third, 1500, 80
        (0.015, 0.015), // 1420 left
        (0.015, 0.018), // 80 left, and 20
    ];
    assert_eq!(departures(transmitter(trace.clone(), 0.0), &frames), expected);
    // The rest of an opportunity is lost for frames that arrive after it; a long idle time is skipped.
    let late = [(0, 40), (6, 40), (9, 40), (1_000_004, 40), (1_000_008, 4000)];
    let expected = [(0.005, 0.005), (0.008, 0.008), (0.015, 0.015), (1000.005, 1000.005), (1000.008, 1000.015)];
    assert_eq!(departures(transmitter(trace.clone(), 0.0), &late), expected);
    assert_eq!(departures(transmitter(trace, 0.006), &[(0, 40), (3, 40)]), [(0.002, 0.002), (0.009, 0.009)]);
}

#[test]
fn an_opportunity_at_the_end_precedes_one_at_the_next_start() {
    let trace = delivery(&[0.0, 0.010], 100, 0.010);
    let mut both = transmitter(trace, 0.0);
    let ten = Time::from_millis(10);
    assert_eq!(both.depart(ten, 100), (ten, ten));
    assert_eq!(both.depart(ten, 100), (ten, ten));
    assert_eq!(both.depart(ten, 100), (ten + ten, ten + ten));
}

#[test]
fn delays_follow_the_trace_and_repeat() {
    let trace = Trace::Delay { time_s: vec![0.0, 1.0, 3.0], delay_s: vec![0.1, 0.2, 0.3], duration_s: 4.0 };
    let traces = MemoryTraces::default().with("t", trace);
    let start = |json: &str| {
        let setting: DelaySetting = serde_json::from_str(json).unwrap();
        setting.prepare(&traces).unwrap().start(&mut Rng::for_component(1, 0, "delay"))
    };
    let mut delay = start(r#"{"kind": "delay-trace", "file": "t"}"#);
    let mut at = |seconds| delay.at(Time::from_secs_f64(seconds)).as_secs_f64();
    let times = [0.0, 0.999, 1.0, 3.5, 4.0, 5.0, 400.5, 403.0, 2.0];
    assert_eq!(times.map(&mut at), [0.1, 0.1, 0.2, 0.3, 0.1, 0.2, 0.1, 0.3, 0.2]);
    assert_eq!(start(r#"{"kind": "delay-trace", "file": "t", "offset_s": 7.5}"#).at(Time::ZERO).as_secs_f64(), 0.3);
    assert_eq!(start("0.25").at(Time::from_secs(9)), Time::from_millis(250));
}

#[test]
fn settings_round_trip_and_errors_name_the_fault() {
    for json in ["1000000.0", r#"{"kind":"rate-trace","file":"t","offset_s":2.5}"#] {
        let setting: RateSetting = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&setting).unwrap(), json);
    }
    let refusal = |json| serde_json::from_str::<RateSetting>(json).unwrap_err().to_string();
    assert!(refusal("-5").starts_with("-5 is not allowed; allowed: a rate above 0"), "{}", refusal("-5"));
    assert!(refusal("\"fast\"").contains("or a table {"), "{}", refusal("\"fast\""));
    assert!(refusal(r#"{"kind": "rate-trace", "path": "t"}"#).contains("unknown field `path`"));

    let setting: RateSetting = serde_json::from_str(r#"{"kind": "rate-trace", "file": "t"}"#).unwrap();
    let losses = MemoryTraces::default().with("t", Trace::PacketLoss { lost: vec![true] });
    let refusal = setting.prepare(&losses).unwrap_err().to_string();
    assert_eq!(refusal, "the trace t holds packet-loss but delivery or rate is wanted here");
}

#[test]
fn the_mean_rate_is_that_of_one_repetition() {
    let mean = |trace| {
        let setting: RateSetting = serde_json::from_str(r#"{"kind": "rate-trace", "file": "t"}"#).unwrap();
        setting.prepare(&MemoryTraces::default().with("t", trace)).unwrap().mean_bps()
    };
    assert_eq!(mean(rate(&[0.0, 1.0, 2.0], &[8e3, 0.0, 16e3], 4.0)), 10e3);
    assert_eq!(mean(delivery(&[0.0, 0.5], 1500, 1.0)), 24e3);
}

#[test]
fn departures_after_the_end_of_time_are_never() {
    let mut slow = transmitter(rate(&[0.0], &[1e-300], 1.0), 0.5);
    let (_, end) = slow.depart(Time::ZERO, 1000);
    assert_eq!(end, Time::NEVER);
    assert_eq!(slow.depart(end, 1000).1, Time::NEVER);
    let mut opportunities = transmitter(delivery(&[0.0], 1, 1e7), 3.0);
    assert_eq!(opportunities.depart(Time::ZERO, 1000).1, Time::NEVER);
    assert_eq!(opportunities.depart(Time::NEVER, 1000).1, Time::NEVER);
}

/// A trace of one of the two kinds, and its mean rate.
fn traces() -> impl Strategy<Value = Trace> {
    let steps = proptest::collection::vec((1..1000u32, prop_oneof![Just(0.0), 1e3..1e8f64]), 1..20);
    let rates = steps.prop_filter_map("all zero", |steps| {
        let mut now = 0.0;
        let mut time_s = Vec::new();
        for (span, _) in &steps {
            time_s.push(now);
            now += f64::from(*span) * 1e-3;
        }
        let rate_bps: Vec<f64> = steps.iter().map(|step| step.1).collect();
        rate_bps.iter().any(|&rate| rate > 0.0).then(|| rate(&time_s, &rate_bps, now))
    });
    let deliveries = (proptest::collection::vec(0..5u32, 1..20), 1..3000u32).prop_map(|(gaps, bytes)| {
        let mut now = 0;
        let times: Vec<f64> = gaps
            .iter()
            .map(|gap| {
                now += gap;
                f64::from(now) * 1e-3
            })
            .collect();
        delivery(&times, bytes, f64::from(now + 1) * 1e-3)
    });
    prop_oneof![rates, deliveries]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn departures_keep_their_order_and_the_mean_rate(
        trace in traces(),
        offset_s in 0.0..30.0f64,
        frames in proptest::collection::vec((0..3000u64, 1..20_000u32), 1..100),
    ) {
        let mut transmitter = transmitter(trace.clone(), offset_s);
        let (mut now, mut free) = (Time::ZERO, Time::ZERO);
        for (gap, bytes) in frames {
            now += Time::from_millis(gap / 100 * (gap % 3));
            let ready = now.max(free);
            let (start, end) = transmitter.depart(ready, bytes);
            prop_assert!(ready <= start && start <= end && end < Time::NEVER);
            free = end;
        }
        // Saturated from here on: over many repetitions the rate is the mean one, except for the two that are cut.
        let (bits_per_cycle, duration_s) = match &trace {
            Trace::Rate { time_s, rate_bps, duration_s } => {
                let ends = time_s[1..].iter().chain([duration_s]);
                (time_s.iter().zip(ends).zip(rate_bps).map(|((start, end), rate)| (end - start) * rate).sum(), duration_s)
            }
            Trace::Delivery { opportunity_s, bytes_per_opportunity, duration_s } => {
                (opportunity_s.len() as f64 * f64::from(*bytes_per_opportunity) * 8.0, duration_s)
            }
            _ => unreachable!("only traces of rates are drawn"),
        };
        let begin = free;
        let bytes = ((bits_per_cycle / 8.0 / 7.0) as u32).clamp(1, 100_000_000);
        for _ in 0..70 {
            free = transmitter.depart(free, bytes).1;
        }
        let cycles = (free - begin).as_secs_f64() / duration_s;
        let expected = 70.0 * f64::from(bytes) * 8.0 / bits_per_cycle;
        prop_assert!((cycles - expected).abs() <= 2.0, "{cycles} repetitions, expected {expected}");
    }

    #[test]
    fn one_long_frame_ends_where_many_short_ones_do(trace in traces(), offset_s in 0.0..30.0f64, parts in 1..40u32) {
        let mut whole = transmitter(trace.clone(), offset_s);
        let mut split = transmitter(trace, offset_s);
        let (start, end) = whole.depart(Time::ZERO, parts * 1500);
        let mut free = Time::ZERO;
        let mut first = None;
        for _ in 0..parts {
            let (begin, done) = split.depart(free, 1500);
            first.get_or_insert(begin);
            free = done;
        }
        prop_assert_eq!(first, Some(start));
        // Each frame is rounded to the picosecond; at 1 kbit/s a relative error of 1e-10 is a hundred of them.
        let slack = Time::from_ps(100);
        prop_assert!(free <= end + slack && end <= free + slack, "{} {}", free, end);
    }
}
