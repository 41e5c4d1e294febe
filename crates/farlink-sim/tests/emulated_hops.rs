//! Real packets over the path of a scenario: the emulator treats them as the simulator does.

use crate::common::{cases, expanded, once, setup};
use farlink_core::Time;
use farlink_core::emulator::ip::invert;
use farlink_core::emulator::{Emulator, End, Parcel};
use farlink_core::path::{Channels, PathSetup};
use farlink_sim::TraceFiles;
use farlink_sim::engine::{Setup, TrafficSetup};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A packet with bytes, whose checksum covers all of them, as that of the simulator's datagrams does.
#[derive(Clone, Debug)]
struct Packet {
    flow: usize,
    class: usize,
    bytes: Vec<u8>,
}

impl Parcel for Packet {
    fn wire_bytes(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn class(&self) -> usize {
        self.class
    }

    fn mark(&mut self) -> bool {
        false
    }

    fn damage(&mut self, bits: &[u32]) -> bool {
        invert(&mut self.bytes, bits.iter().copied());
        self.bytes == content(self.flow, self.bytes.len())
    }
}

/// Outcomes of the packets of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    sent: u64,
    intact: u64,
    delay: Time,
}

/// Sends the packets of a scenario's flows over its path.
fn emulate(scenario: &Value, setup: &Setup, seed: u64) -> Vec<Tally> {
    let point = &expanded(scenario).points[0];
    let path = PathSetup::resolve(&point.scenario, None, &TraceFiles::new(), &mut Channels::default()).unwrap();
    let mut emulator = Emulator::new(&path, seed, 0, u64::MAX);
    let mut flows = vec![Tally::default(); setup.flows.len()];
    let mut collect = |emulator: &mut Emulator<Packet>, now| {
        while let Some(departure) = emulator.poll(now, End::Far) {
            let tally = &mut flows[departure.packet.flow];
            tally.intact += 1;
            tally.delay += departure.due.since(departure.came);
        }
    };
    let mut sent = vec![0; setup.flows.len()];
    for (at, flow, bytes) in writes(setup) {
        let class = usize::from(setup.flows[flow].class);
        emulator.handle_packet(at, End::Near, Packet { flow, class, bytes: content(flow, bytes) });
        sent[flow] += 1;
        collect(&mut emulator, at);
    }
    // As a driver does: it wakes up when it is told to.
    while emulator.poll_timeout() <= setup.duration {
        let now = emulator.poll_timeout();
        collect(&mut emulator, now);
    }
    for (tally, sent) in flows.iter_mut().zip(sent) {
        tally.sent = sent;
    }
    let counts = emulator.counts(End::Near);
    let ended = counts.dropped + counts.lost + counts.ruined + counts.out_packets;
    assert_eq!((counts.in_packets, counts.refused, emulator.held_bytes(End::Near)), (ended, 0, 0), "{counts:?}");
    flows
}

fn content(flow: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + flow * 7) as u8).collect()
}

/// Headers of IPv4 and UDP.
const HEADER_BYTES: usize = 28;

/// Times and flows of all writes, as in the simulator: at one instant, the flows in order.
fn writes(setup: &Setup) -> Vec<(Time, usize, usize)> {
    let mut all = Vec::new();
    for (index, flow) in setup.flows.iter().enumerate() {
        let TrafficSetup::Cbr { interval, payload_bytes, limit_bytes } = flow.traffic else {
            panic!("flows of this test have a constant rate");
        };
        let packets = limit_bytes.expect("they end").div_ceil(u64::from(payload_bytes));
        let wire_bytes = payload_bytes as usize + HEADER_BYTES;
        all.extend((0..packets).map(|n| (flow.start + interval.times(n), index, wire_bytes)));
    }
    all.sort();
    all
}

fn compare(scenario: &Value, seed: u64) -> Result<u64, TestCaseError> {
    let setup = setup(scenario);
    let emulated = emulate(scenario, &setup, seed);
    let run = once(&setup, seed);
    let mut lost = 0;
    for (result, tally) in run.flows.iter().zip(&emulated) {
        let of_tally = (tally.intact, tally.sent - tally.intact);
        prop_assert_eq!((result.delivered_packets, result.lost_packets), of_tally, "{}", scenario);
        let mean_s = tally.delay.as_secs_f64() / tally.intact.max(1) as f64;
        let simulated_s = result.arrival_delay.mean().unwrap_or(0.0);
        prop_assert!((mean_s - simulated_s).abs() <= 1e-9 * mean_s.max(1.0), "{} {} {}", mean_s, simulated_s, scenario);
        lost += tally.sent - tally.intact;
    }
    Ok(lost)
}

fn calls(up_s: u64) -> Value {
    json!({
        "up": { "distribution": "exponential", "mean_s": up_s },
        "redial": { "distribution": "exponential", "mean_s": 20 },
    })
}

fn hops() -> impl Strategy<Value = Value> {
    let channels = prop_oneof![
        Just(json!({ "kind": "none" })),
        (1e-6..1e-4).prop_map(|ber| json!({ "kind": "ber", "ber": ber })),
        (0.0..0.5).prop_map(|loss| json!({ "kind": "loss", "loss": loss })),
        Just(json!({ "kind": "outage", "rate_per_s": 0.5, "down_s": 0.7 })),
    ];
    let services =
        prop_oneof![Just(json!("fifo")), Just(json!("strict")), Just(json!({ "weights": ["strict", 3, 1, 1] })),];
    let links = (channels, services, 1_u64..60, 1e5..2e6).prop_map(|(channel, service, queue_packets, rate_bps)| {
        json!({
            "rate_bps": rate_bps, "delay_s": 0.25, "queue_packets": queue_packets, "channel": channel, "service": service,
        })
    });
    let schedulers = prop::sample::select(vec![
        "round-robin",
        "shortest-queue",
        "earliest-delivery",
        "drop-aware",
        "redundant",
        "linux",
    ]);
    let bundles = (schedulers, any::<bool>(), 1_u64..9, 10_u64..200).prop_map(|(scheduler, drops, lines, up_s)| {
        let mut bundle = json!({ "lines": lines, "scheduler": scheduler });
        if drops || scheduler == "drop-aware" {
            bundle["calls"] = calls(up_s);
        }
        json!({ "rate_bps": 9600, "delay_s": 0.5, "queue_packets": 40, "bundle": bundle })
    });
    let policer = proptest::option::of((1e4..1e6, 1500_u64..20_000));
    (prop_oneof![links, bundles], policer).prop_map(|(mut hop, policer)| {
        if let Some((rate_bps, burst_bytes)) = policer {
            hop["policer"] = json!({ "rate_bps": rate_bps, "burst_bytes": burst_bytes });
        }
        hop
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    /// Each packet has one outcome, intact, damaged or lost, equal to that in the simulator and after the same time.
    #[test]
    fn real_packets_have_the_fate_of_simulated_ones(
        hops in prop::collection::vec(hops(), 1..4),
        flows in prop::collection::vec((0_u8..4, 1_u32..1400, 1e4..4e5, 1_u64..150, 0.0..5.0), 1..4),
        seed in any::<u64>(),
    ) {
        let mut all = serde_json::Map::new();
        for (n, (class, payload_bytes, rate_bps, packets, start_s)) in flows.into_iter().enumerate() {
            let traffic = json!({
                "kind": "cbr", "payload_bytes": payload_bytes, "rate_bps": rate_bps,
                "bytes": u64::from(payload_bytes) * packets,
            });
            all.insert(format!("f{n}"), json!({ "transport": "udp", "class": class, "start_s": start_s, "traffic": traffic }));
        }
        let mut scenario = json!({
            "duration_s": 100_000, "path": [], "hop": {}, "transport": { "udp": { "kind": "udp" } }, "flow": all,
        });
        for (n, hop) in hops.into_iter().enumerate() {
            scenario["path"].as_array_mut().unwrap().push(json!(format!("h{n}")));
            scenario["hop"][format!("h{n}")] = hop;
        }
        compare(&scenario, seed)?;
    }
}

/// Each packet is a flow of its own, so that equal counts name the packets that are lost.
#[test]
fn the_same_packets_are_lost() {
    for channel in [
        json!({ "kind": "loss", "loss": 0.2 }),
        json!({ "kind": "ber", "ber": 1e-5 }),
        json!({ "kind": "gilbert-elliott", "p_good_to_bad": 0.05, "p_bad_to_good": 0.2, "loss_bad": 1 }),
        json!({ "kind": "outage", "rate_per_s": 0.5, "down_s": 0.7 }),
        json!({ "kind": "round-loss", "loss": 0.02, "round_s": 0.2 }),
        json!({ "kind": "chain", "stages": [{ "kind": "ber", "ber": 1e-5 }, { "kind": "outage", "rate_per_s": 0.5, "down_s": 0.2 }] }),
    ] {
        let mut scenario = json!({
            "duration_s": 1000, "path": ["a", "b"], "transport": { "udp": { "kind": "udp" } }, "flow": {},
            "hop": {
                "a": { "rate_bps": 1e6, "delay_s": 0.25, "queue_packets": 5, "channel": channel },
                "b": { "rate_bps": 8e5, "delay_s": 0.01, "queue_packets": 5 },
            },
        });
        for n in 0..400 {
            let traffic = json!({ "kind": "cbr", "payload_bytes": 972, "rate_bps": 1e6, "bytes": 972 });
            // Three packets of eight milliseconds each in twenty-five.
            let start_s = f64::from(n / 3) * 0.025 + f64::from(n % 3) * 1e-4;
            scenario["flow"][format!("f{n:03}")] =
                json!({ "transport": "udp", "start_s": start_s, "traffic": traffic });
        }
        let setup = setup(&scenario);
        let of_packets = |seed| emulate(&scenario, &setup, seed).iter().map(|tally| tally.intact).collect::<Vec<_>>();
        let emulated = of_packets(7);
        let simulated: Vec<_> = once(&setup, 7).flows.iter().map(|flow| flow.delivered_packets).collect();
        assert_eq!(emulated, simulated, "{channel}");
        let lost = emulated.iter().filter(|&&packets| packets == 0).count();
        assert!((8..300).contains(&lost), "{lost} {channel}");
        assert_ne!(emulated, of_packets(8), "another seed loses others: {channel}");
    }
}

/// For the same population, each kind of hop loses packets, so that equal counts are significant.
#[test]
fn each_kind_of_hop_loses_packets() {
    let traffic = json!({ "kind": "cbr", "payload_bytes": 972, "rate_bps": 40e3, "bytes": 972_000 });
    for hop in [
        json!({ "rate_bps": 1e5, "delay_s": 0.1, "channel": { "kind": "ber", "ber": 1e-5 } }),
        json!({ "rate_bps": 7e4, "delay_s": 0.1, "queue_packets": 3, "service": "strict" }),
        json!({ "rate_bps": 2400, "delay_s": 0.3, "queue_packets": 9, "bundle": {
            "lines": 4, "calls": calls(60) } }),
    ] {
        let scenario = json!({
            "duration_s": 100_000, "link": hop, "transport": { "udp": { "kind": "udp" } },
            "flow": {
                "a": { "transport": "udp", "traffic": traffic },
                "b": { "transport": "udp", "class": 1, "traffic": traffic },
            },
        });
        let lost = compare(&scenario, 1).unwrap();
        assert!(lost > 50, "{lost} {scenario}");
    }
}
