//! Links that serve classes of service: order, shares and drops.

use crate::common::random::scenarios;
use crate::common::{bits, cases, expanded, once, run, scenario, set, setup};
use farlink_core::Time;
use farlink_core::link::QueueLimit;
use farlink_core::scenario::expand;
use farlink_core::trace::{MemoryTraces, Trace};
use farlink_sim::engine::{FlowResult, RunResult, Setup};
use farlink_sim::resolve;
use proptest::prelude::*;
use serde_json::{Value, json};

/// 1 Mb/s, 50 ms. A voice flow of class 0: datagrams of 200 bytes every 20 ms. TCP of class 1 with packets of 1040
/// bytes in a queue of 50.
fn voice_and_bulk(changes: &[(&str, Value)]) -> Value {
    let voice = json!({ "kind": "cbr", "rate_bps": 172.0 * 8.0 / 0.02, "payload_bytes": 172 });
    let mut scenario = scenario(&[
        ("transport.udp", json!({ "kind": "udp" })),
        ("flow.bulk.class", 1.into()),
        ("flow.voice", json!({ "transport": "udp", "class": 0, "traffic": voice })),
    ]);
    changes.iter().for_each(|(path, value)| set(&mut scenario, path, value.clone()));
    scenario
}

/// Datagrams with 28 bytes of headers, sent faster than the link of 1 Mb/s can carry; `payloads` of classes from 0 on.
fn saturated(service: Value, payloads: &[u32]) -> Value {
    let mut scenario = scenario(&[
        ("duration_s", 200.into()),
        ("link.service", service),
        ("transport", json!({ "udp": { "kind": "udp" } })),
        ("flow", json!({})),
    ]);
    for (class, &bytes) in payloads.iter().enumerate() {
        let traffic = json!({ "kind": "cbr", "rate_bps": 1.3e6, "payload_bytes": bytes });
        scenario["flow"][format!("f{class}")] = json!({ "transport": "udp", "class": class, "traffic": traffic });
    }
    scenario
}

/// Delivered wire bytes of each flow.
fn served(run: &RunResult) -> Vec<f64> {
    run.flows.iter().map(|flow| (flow.delivered_bytes + 28 * flow.delivered_packets) as f64).collect()
}

fn longest_delay_s(flow: &FlowResult) -> f64 {
    flow.histogram.as_ref().unwrap().quantile(1.0).unwrap()
}

#[test]
fn the_first_strict_class_waits_for_at_most_one_packet() {
    let strict = once(&setup(&voice_and_bulk(&[("link.service", "strict".into())])), 1);
    let [bulk, voice] = &strict.flows[..] else { panic!() };
    let (own_s, packet_s) = (200.0 * 8.0 / 1e6, 1040.0 * 8.0 / 1e6);
    // The histogram is within 0.8 %.
    let most = 0.05 + own_s + packet_s;
    assert!(longest_delay_s(voice) <= 1.008 * most, "{} above {most}", longest_delay_s(voice));
    assert!(longest_delay_s(voice) >= 0.05 + own_s + 0.9 * packet_s, "it does wait for the one being sent");
    assert_eq!((voice.lost_packets, voice.delivered_packets), (0, voice.sent_packets - 3), "3 are under way");
    // The bulk flow gets all of the rest.
    let rate_bps = (bulk.delivered_bytes as f64 * 1.04 + 200.0 * voice.delivered_packets as f64) * 8.0 / 20.0;
    assert!(rate_bps > 0.95e6, "{rate_bps}");

    let fifo = once(&setup(&voice_and_bulk(&[])), 1);
    assert!(longest_delay_s(&fifo.flows[1]) > 5.0 * most, "behind a queue of 50");
}

/// The same with the numbers exchanged: voice starves behind datagrams that fill the link.
#[test]
fn the_last_strict_class_starves_behind_a_full_one() {
    let traffic = json!({ "kind": "cbr", "rate_bps": 2e6, "payload_bytes": 972 });
    let changes = [
        ("link.service", json!("strict")),
        ("flow.voice.class", 7.into()),
        ("flow.bulk", json!({ "transport": "udp", "class": 6, "traffic": traffic })),
    ];
    let run = once(&setup(&voice_and_bulk(&changes)), 1);
    // Class 6 starts at the same instant and is first in the file, so no other class is ever served.
    assert_eq!(run.flows[1].delivered_packets, 0);
}

#[test]
fn weights_share_a_link_filled_by_datagrams() {
    for (weights, payloads) in [
        (vec![5.0, 3.0, 1.0], [972, 972, 972]),
        (vec![1.0, 3.0, 5.0], [1400, 100, 600]),
        (vec![0.01, 0.03, 0.02], [1400, 40, 1000]),
        (vec![200.0, 1.0, 100.0], [80, 1400, 1400]),
    ] {
        let run = once(&setup(&saturated(json!({ "weights": weights }), &payloads)), 1);
        let (served, sum) = (served(&run), weights.iter().sum::<f64>());
        let all: f64 = served.iter().sum();
        for (served, weight) in served.iter().zip(&weights) {
            let share = served / all;
            assert!((share / (weight / sum) - 1.0).abs() < 0.01, "{share} of {weights:?}");
        }
        // 200 s of 1 Mb/s, less the delay of 50 ms.
        assert!((all / (199.95 * 125e3) - 1.0).abs() < 1e-4, "the link never rests: {all}");
    }
}

/// Weighted classes share the rest of strict classes, whatever their numbers.
#[test]
fn strict_and_weighted_classes_share_a_link() {
    let mut scenario = saturated(json!({ "weights": [2, "strict", 1] }), &[972, 972, 972]);
    scenario["flow"]["f1"]["traffic"]["rate_bps"] = (4e5 * 972.0 / 1000.0).into();
    let run = once(&setup(&scenario), 1);
    let served = served(&run);
    let share = |of: f64| 199.95 * 125e3 * of;
    for (served, due) in served.iter().zip([share(0.4), share(0.4), share(0.2)]) {
        assert!((served / due - 1.0).abs() < 0.01, "{served} of {due}");
    }
    assert_eq!(run.flows[1].lost_packets, 0);
}

#[test]
fn an_idle_class_leaves_its_share_to_the_others() {
    let mut scenario = saturated(json!({ "weights": [1000, 1] }), &[972, 972]);
    scenario["flow"]["f0"]["traffic"]["bytes"] = 972.into();
    let served = served(&once(&setup(&scenario), 1));
    assert!((served[1] / (199.95 * 125e3) - 1.0).abs() < 1e-3, "{served:?}");
}

/// The limit applies to each class separately, and every packet is accounted for.
#[test]
fn a_full_class_drops_only_its_own_packets() {
    for service in [json!("strict"), json!({ "weights": [1, 1] })] {
        let mut scenario = saturated(service, &[972, 972]);
        scenario["flow"]["f0"]["traffic"]["rate_bps"] = 3e5.into();
        let run = once(&setup(&scenario), 1);
        let [calm, flood] = &run.flows[..] else { panic!() };
        assert_eq!(calm.lost_packets, 0);
        // 50 wait, one is being sent, and 6 or 7 are in flight; of the low-rate class, two or three have arrived.
        let missing = |flow: &FlowResult| flow.sent_packets - flow.delivered_packets - flow.lost_packets;
        assert!((54..=58).contains(&missing(flood)) && missing(calm) <= 4, "{} {}", missing(flood), missing(calm));
        assert!(run.peak_queue_bytes.is_some_and(|peak| (50e3..=53e3).contains(&peak)), "{:?}", run.peak_queue_bytes);
    }
}

/// Acknowledgements have the class of their flow.
#[test]
fn the_return_path_serves_the_same_classes() {
    let mut scenario = scenario(&[
        ("link.return", json!({ "rate_bps": 5e3, "service": "strict", "queue_packets": 10 })),
        ("flow.bulk.class", 3.into()),
    ]);
    scenario["flow"]["first"] = json!({ "transport": "tcp", "class": 2, "traffic": { "kind": "bulk" } });
    let run = once(&setup(&scenario), 1);
    let [bulk, first] = &run.flows[..] else { panic!() };
    assert!(first.delivered_bytes > 20 * bulk.delivered_bytes, "{} {}", first.delivered_bytes, bulk.delivered_bytes);
    // The forward direction is served in order.
    assert_eq!(setup(&scenario).forward[0].weights, None);
}

/// Gateways end connections, and the new ones have the flow's class.
#[test]
fn classes_are_kept_across_gateways() {
    let hop = |rate_bps: f64| json!({ "rate_bps": rate_bps, "delay_s": 0.01, "queue_packets": 50 });
    let mut scenario = scenario(&[("link", Value::Null), ("flow.bulk.class", 1.into())]);
    scenario["path"] = json!(["lan", "space", "ground"]);
    scenario["hop"] = json!({ "lan": hop(1e8), "space": hop(1e6), "ground": hop(1e8) });
    set(&mut scenario, "hop.space.gateway", true.into());
    set(&mut scenario, "hop.space.service", "strict".into());
    let file = json!({ "kind": "file", "bytes": 5e5 });
    scenario["flow"]["file"] = json!({ "transport": "tcp", "class": 0, "traffic": file });
    let done = |scenario: &Value| once(&setup(scenario), 1).flows[1].finished.unwrap().as_secs_f64();
    let strict = done(&scenario);
    set(&mut scenario, "hop.space.service", "fifo".into());
    // 500 packets of 1040 bytes take 4.2 s by themselves.
    assert!(strict < 5.0 && done(&scenario) > 1.5 * strict, "{strict} {}", done(&scenario));
}

#[test]
fn keys_without_effect_are_named() {
    let notes = |changes: &[(&str, Value)]| run(&voice_and_bulk(changes), 1).notes;
    let [note] = &notes(&[])[..] else { panic!() };
    assert!(note.starts_with("flow.bulk.class = 1 makes no difference: no hop serves classes"), "{note}");
    let [note] = &notes(&[("link.service", "strict".into()), ("flow.bulk.class", 0.into())])[..] else { panic!() };
    assert!(note.starts_with("link.service makes no difference: all flows are of one class"), "{note}");
    assert_eq!(notes(&[("link.service", "strict".into())]), [] as [String; 0]);
    // A hop that serves classes in one direction serves them only there.
    for (forward, back) in [("strict", "fifo"), ("fifo", "strict")] {
        let ways = [("link.service", forward.into()), ("link.return", json!({ "service": back }))];
        assert_eq!(notes(&ways), [] as [String; 0], "{forward} forward, {back} back");
    }
    // A difference at one of several points suffices.
    let grid = json!({ "link.service": ["fifo", "strict"] });
    assert_eq!(notes(&[("grid", grid)]), [] as [String; 0]);
}

#[test]
fn a_scenario_with_classes_can_be_written_back() {
    let service = json!({ "weights": ["strict", 2.5] });
    let scenario =
        voice_and_bulk(&[("link.service", service.clone()), ("link.return", json!({ "service": "strict" }))]);
    let written = expanded(&scenario).normalised();
    assert_eq!((&written["link"]["service"], &written["link"]["return"]["service"]), (&service, &json!("strict")));
    assert_eq!(written["flow"]["bulk"]["class"].as_f64(), Some(1.0));
    assert_eq!(expand(&written).unwrap().normalised(), written);
}

/// All results that do not depend on when a damaged or marked packet is counted: at its departure if classes are
/// served, otherwise when it is queued.
fn outcome(run: &RunResult, is_whole: bool) -> Vec<String> {
    let counts = |flow: &FlowResult| {
        let FlowResult { lost_packets, mended_packets, marked_packets, .. } = *flow;
        if is_whole { (lost_packets, mended_packets, marked_packets) } else { (0, 0, 0) }
    };
    let flow = |flow: &FlowResult| {
        let FlowResult {
            sent_packets,
            sent_bytes,
            delivered_bytes,
            delivered_packets,
            retransmitted_bytes,
            timeouts,
            ..
        } = flow;
        let FlowResult { delay, arrival_delay, histogram, finished, aborted, last_progress, .. } = flow;
        format!(
            "{sent_packets} {sent_bytes} {delivered_bytes} {delivered_packets} {retransmitted_bytes} {timeouts} {:?} {delay:?} \
             {arrival_delay:?} {histogram:?} {finished:?} {aborted:?} {last_progress:?} {} {} {:?}",
            counts(flow),
            flow.return_bytes,
            flow.skipped_bytes,
            flow.measured,
        )
    };
    let mut all: Vec<String> = run.flows.iter().map(flow).collect();
    all.push(format!("{:?} {} {}", run.end, run.return_bytes, run.was_given_up));
    all
}

/// The links serve classes, at each departure, even if there is only one.
fn serving(setup: &Setup, weights: [Option<f64>; 8]) -> Setup {
    let mut serving = setup.clone();
    serving.forward.iter_mut().chain(&mut serving.back).for_each(|hop| hop.weights = Some(weights));
    serving
}

fn check_one_class(setup: &Setup, seed: u64, is_whole: bool) -> Result<(), TestCaseError> {
    let fifo = once(setup, seed);
    for weights in [[None; 8], [Some(0.3); 8]] {
        let strict = once(&serving(setup, weights), seed);
        // The end of a run may wait for packets of datagrams that are lost behind the queue, and are counted at their departure.
        if !is_whole && strict.end > fifo.end {
            continue;
        }
        prop_assert_eq!(outcome(&strict, is_whole), outcome(&fifo, is_whole));
        // An unlimited queue without classes does not measure its backlog.
        if setup.forward.iter().all(|hop| hop.limit != QueueLimit::Unlimited) {
            prop_assert_eq!(strict.peak_queue_bytes, fifo.peak_queue_bytes);
        }
        let lost = |run: &RunResult| run.flows.iter().map(|flow| flow.lost_packets).sum::<u64>();
        prop_assert!(setup.warmup > Time::ZERO || lost(&strict) <= lost(&fifo));
    }
    Ok(())
}

/// If all flows have the same class, the service of links changes nothing.
fn without_classes(mut scenario: Value) -> Value {
    let flows = scenario["flow"].as_object_mut().unwrap();
    flows.values_mut().for_each(|flow| flow["class"] = 0.into());
    scenario
}

/// Several small packets leave at one instant, and the rate is sometimes zero.
#[test]
fn one_class_is_served_in_order_over_a_varying_link() {
    let delivery = Trace::Delivery {
        opportunity_s: (0..60).map(|i| f64::from(i * i) * 1e-3).collect(),
        bytes_per_opportunity: 1500,
        duration_s: 4.0,
    };
    let rate = Trace::Rate { time_s: vec![0.0, 1.0, 1.5], rate_bps: vec![1e6, 0.0, 2e6], duration_s: 3.0 };
    let traces = MemoryTraces::default().with("delivery", delivery).with("rate", rate);
    for (file, delay_s) in [("delivery", 0.1), ("rate", 0.1), ("delivery", 0.0), ("rate", 0.0)] {
        let mut scenario = voice_and_bulk(&[
            ("link.rate_bps", json!({ "kind": "rate-trace", "file": file })),
            ("link.delay_s", delay_s.into()),
            ("link.service", "strict".into()),
        ]);
        let classed = resolve(&expanded(&scenario).points[0].scenario, &traces).unwrap();
        scenario = without_classes(scenario);
        let setup = resolve(&expanded(&scenario).points[0].scenario, &traces).unwrap();
        check_one_class(&setup, 1, true).unwrap();
        // With classes, the voice flow waits for the link's outages, but not for the bulk flow.
        let delay = |setup: &Setup| once(setup, 1).flows[1].delay.mean().unwrap();
        assert!(delay(&classed) < 0.8 * delay(&setup), "{} {}", delay(&classed), delay(&setup));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(150)))]

    /// Packets that wait at the end of a run, or of its warm-up, were counted when they were queued.
    #[test]
    fn one_class_is_served_in_order(scenario in scenarios(), seed in 0_u64..1000) {
        check_one_class(&setup(&without_classes(scenario)), seed, false)?;
    }

    /// Everything is delivered, so nothing waits at the end and every count is the same.
    #[test]
    fn one_class_of_files_gives_identical_results(
        (rate, delay_s, ber, queue) in (4.5..6.5_f64, 0.0..0.3_f64, 4.5..7.0_f64, 2_u64..60),
        (variant, ecn, mark) in (prop::sample::select(&["sack", "newreno", "rack"][..]), any::<bool>(), any::<bool>()),
        bytes in proptest::collection::vec(1_u64..300_000, 1..4),
        seed in 0_u64..1000,
    ) {
        let errors = json!({ "kind": "ber", "ber": 10_f64.powf(-ber) });
        let mut link = json!({
            "rate_bps": 10_f64.powf(rate), "delay_s": delay_s, "channel": errors, "queue_packets": queue,
            "return": { "rate_bps": 3e4, "channel": errors, "queue_packets": 20 },
        });
        if mark && queue > 5 {
            link["ecn_threshold_packets"] = 4.into();
        }
        let transport = json!({ "kind": "tcp", "variant": variant, "ecn": ecn, "max_window_segments": 40 });
        let mut scenario = json!({ "link": link, "transport": { "tcp": transport }, "flow": {} });
        for (at, &bytes) in bytes.iter().enumerate() {
            let traffic = json!({ "kind": "file", "bytes": bytes });
            scenario["flow"][format!("f{at}")] = json!({ "transport": "tcp", "start_spread_s": 1, "traffic": traffic });
        }
        check_one_class(&setup(&scenario), seed, true)?;
    }

    /// Keys without effect do not change a single bit of the result.
    #[test]
    fn a_service_without_classes_changes_nothing(scenario in scenarios()) {
        let scenario = without_classes(scenario);
        let mut fifo = scenario.clone();
        // The lines of a bundle serve no classes.
        let of_links = |hop: &&mut Value| hop["bundle"].is_null();
        fifo["hop"].as_object_mut().unwrap().values_mut().filter(of_links).for_each(|hop| {
            hop["service"] = "fifo".into();
            hop["return"]["service"] = "fifo".into();
        });
        let rows = |scenario: &Value| bits(&run(&{ let mut one = scenario.clone(); one["runs"] = 1.into(); one }, 1).rows);
        prop_assert_eq!(rows(&scenario), rows(&fifo));
    }

    /// The total carried by the link does not depend on the order of service.
    #[test]
    fn the_order_of_service_leaves_no_link_idle(
        weights in proptest::array::uniform3(proptest::option::of(0.01..100.0_f64)),
        payloads in proptest::array::uniform3(40_u32..1400),
        rates in proptest::array::uniform3(3e5..2e6_f64),
    ) {
        let word = |weight: Option<f64>| weight.map_or(json!("strict"), |weight| json!(weight));
        let mut scenario = saturated(json!({ "weights": weights.map(word) }), &payloads);
        scenario["duration_s"] = 20.into();
        for (class, rate) in rates.into_iter().enumerate() {
            scenario["flow"][format!("f{class}")]["traffic"]["rate_bps"] = rate.into();
        }
        let carried = |scenario: &Value| served(&once(&setup(scenario), 1)).iter().sum::<f64>();
        let with_classes = carried(&scenario);
        scenario["link"]["service"] = "fifo".into();
        let without = carried(&scenario);
        // The data in flight at the end differs by a packet; a queue full of small packets may become empty sooner.
        let offered: f64 = rates.iter().zip(payloads).map(|(rate, bytes)| rate * f64::from(bytes + 28) / f64::from(bytes)).sum();
        if offered > 1.05e6 {
            prop_assert!((with_classes - without).abs() <= 0.01 * without, "{} {}", with_classes, without);
        }
    }
}
