//! Real packets over the hops of the simulator: an emulator would treat them as the simulator does.

use crate::common::{cases, once, setup};
use farlink_core::hop::{Entry, Hop, Outcome, Place};
use farlink_core::link::Verdict;
use farlink_core::{Rng, Time};
use farlink_sim::engine::{Setup, TrafficSetup};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A packet with bytes.
#[derive(Clone, Debug)]
struct Packet {
    flow: usize,
    sent: Time,
    bytes: Vec<u8>,
}

/// Outcomes of the packets of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    intact: u64,
    lost: u64,
    delay: Time,
}

/// One direction of a hop that keeps real packets.
struct Emulator {
    hop: Hop,
    /// Packets by ticket.
    waiting: Vec<Option<Packet>>,
    flows: Vec<Tally>,
}

impl Emulator {
    fn new(setup: &Setup, seed: u64) -> Self {
        let hop = &setup.forward[0];
        let stream = |name: String| Rng::for_component(seed, 0, &name);
        let (rng, both) = (stream(format!("hop.{}.forward", hop.name)), stream(format!("hop.{}", hop.name)));
        let flows = vec![Tally::default(); setup.flows.len()];
        Emulator { hop: Hop::new(hop, false, rng, &both), waiting: Vec::new(), flows }
    }

    /// Handles everything that is due until `now`.
    fn advance(&mut self, now: Time) {
        while self.hop.poll_timeout() <= now && self.hop.poll_timeout() < Time::NEVER {
            let at = self.hop.poll_timeout();
            self.hop.handle_timeout(at);
            while let Some((ticket, outcome)) = self.hop.poll(at) {
                let packet = self.waiting[ticket.index()].take().expect("a ticket names a packet that waits");
                match outcome {
                    Outcome::Sent(verdict) => self.carry(packet, verdict),
                    Outcome::ComesOut => self.deliver(&packet, at),
                    Outcome::Lost | Outcome::CutOff => self.flows[packet.flow].lost += 1,
                }
            }
        }
    }

    fn send(&mut self, packet: Packet, class: usize) {
        self.advance(packet.sent);
        match self.hop.send(packet.sent, packet.bytes.len() as u32, class) {
            Entry::Sent(verdict) => self.carry(packet, verdict),
            Entry::Waits(ticket) => {
                let places = self.waiting.len().max(ticket.index() + 1);
                self.waiting.resize(places, None);
                let before = self.waiting[ticket.index()].replace(packet);
                assert!(before.is_none(), "{ticket:?} was in use");
            }
        }
    }

    fn carry(&mut self, mut packet: Packet, verdict: Verdict) {
        match verdict {
            Verdict::Arrives(at) => {
                let (Place::Behind(at) | Place::InFront(at)) = self.hop.place(at);
                self.deliver(&packet, at);
            }
            Verdict::Damaged(at) => {
                for &bit in self.hop.wrong_bits() {
                    packet.bytes[bit as usize / 8] ^= 0x80 >> (bit % 8);
                }
                self.deliver(&packet, at);
            }
            Verdict::Lost | Verdict::Dropped => self.flows[packet.flow].lost += 1,
        }
    }

    /// The receiver discards packets with wrong bits.
    fn deliver(&mut self, packet: &Packet, at: Time) {
        let tally = &mut self.flows[packet.flow];
        if packet.bytes == content(packet.flow, packet.bytes.len()) {
            tally.intact += 1;
            tally.delay += at.since(packet.sent);
        } else {
            tally.lost += 1;
        }
    }
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
    let mut emulator = Emulator::new(&setup, seed);
    for (sent, flow, bytes) in writes(&setup) {
        let packet = Packet { flow, sent, bytes: content(flow, bytes) };
        emulator.send(packet, usize::from(setup.flows[flow].class));
    }
    emulator.advance(setup.duration);
    let run = once(&setup, seed);
    let mut lost = 0;
    for (result, tally) in run.flows.iter().zip(&emulator.flows) {
        prop_assert_eq!((result.delivered_packets, result.lost_packets), (tally.intact, tally.lost), "{}", scenario);
        let mean_s = tally.delay.as_secs_f64() / tally.intact.max(1) as f64;
        let simulated_s = result.arrival_delay.mean().unwrap_or(0.0);
        prop_assert!((mean_s - simulated_s).abs() <= 1e-9 * mean_s.max(1.0), "{} {} {}", mean_s, simulated_s, scenario);
        lost += tally.lost;
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
        hop in hops(),
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
        let scenario = json!({
            "duration_s": 100_000, "link": hop, "transport": { "udp": { "kind": "udp" } }, "flow": all,
        });
        compare(&scenario, seed)?;
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
