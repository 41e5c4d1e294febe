//! Random paths, policies and traffic: whatever happens, each packet is delivered at most once, in order, or is counted.

use std::collections::BTreeMap;

use bytes::Bytes;
use farlink_core::Time;
use farlink_core::paths::{ClassRules, PathBundle, PathBundleConfig, PathId, PathRules, Policy};
use proptest::prelude::*;

use super::network::{Network, Wire, tag, tagged};

fn log_uniform(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

fn wires() -> impl Strategy<Value = Wire> {
    let line = (log_uniform(2400.0, 1e9), log_uniform(0.001, 30.0), 3000u64..200_000);
    let faults =
        (prop_oneof![Just(0.0), 0.0..0.3], 0.0..0.05f64, prop::collection::vec((0.0..60.0f64, 0.1..20.0f64), 0..3));
    let changes = prop::collection::vec((0.0..60.0f64, 0.2..5.0f64, 0.2..5.0f64), 0..3);
    (line, faults, changes).prop_map(|((rate, delay, queue_bytes), (loss, jitter, outages), mut changes)| {
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut wire = Wire { queue_bytes, loss, jitter, ..Wire::new(rate, delay) };
        wire.rates.extend(changes.iter().map(|&(at, factor, _)| (at, rate * factor)));
        wire.delays.extend(changes.iter().map(|&(at, _, factor)| (at, (delay * factor).min(30.0))));
        wire.outages = outages.into_iter().map(|(at, length)| (at, at + length)).collect();
        wire
    })
}

fn rules() -> impl Strategy<Value = PathRules> {
    let uses = (prop::bool::weighted(0.2), prop_oneof![4 => Just(u8::MAX), 1 => any::<u8>()], 0.0..3.0f64);
    let limits =
        (200u32..1500, prop::option::weighted(0.1, 1000u64..100_000), prop_oneof![Just(50_000u64), Just(20_000_000)]);
    (uses, limits).prop_map(|((is_standby, classes, cost), (mtu, bytes_a_day, probe_bytes_a_day))| {
        let cost = cost.round();
        PathRules { is_standby, classes, cost, mtu, bytes_a_day, probe_bytes_a_day, ..PathRules::default() }
    })
}

fn classes() -> impl Strategy<Value = ClassRules> {
    let policy = prop_oneof![
        3 => Just(Policy::EarliestDelivery),
        1 => Just(Policy::Redundant),
        1 => Just(Policy::RedundantOnAll),
        1 => Just(Policy::Cheapest),
    ];
    (policy, any::<bool>()).prop_map(|(policy, is_ordered)| ClassRules { policy, is_ordered })
}

/// Somebody sends a burst.
#[derive(Clone, Debug)]
struct Burst {
    at: f64,
    from: usize,
    class: u8,
    flow: u32,
    bytes: usize,
    count: u32,
    spacing: f64,
}

fn bursts() -> impl Strategy<Value = Burst> {
    let who = (0.0..60.0f64, 0..2usize, 0..8u8, 0..4u32);
    let what = (prop_oneof![8usize..100, 100usize..1500, 1500usize..9000], 1..60u32, log_uniform(1e-5, 0.5));
    (who, what).prop_map(|((at, from, class, flow), (bytes, count, spacing))| {
        // A flow has one class.
        let flow = flow * 8 + u32::from(class);
        Burst { at, from, class, flow, bytes, count, spacing }
    })
}

#[derive(Clone, Debug)]
struct Scenario {
    paths: Vec<(Wire, Wire, PathRules)>,
    classes: Vec<ClassRules>,
    bursts: Vec<Burst>,
    /// When a carrier goes and comes: time, end, path, duration.
    carriers: Vec<(f64, usize, usize, f64)>,
    small_memory: bool,
    seed: u64,
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let paths = prop::collection::vec((wires(), wires(), rules()), 2..=6);
    let carriers = prop::collection::vec((0.0..60.0f64, 0..2usize, 0..6usize, 0.05..10.0f64), 0..4);
    let traffic = (prop::collection::vec(classes(), 8), prop::collection::vec(bursts(), 1..8));
    (paths, traffic, carriers, prop::bool::weighted(0.2), any::<u64>()).prop_map(
        |(paths, (classes, bursts), carriers, small_memory, seed)| Scenario {
            paths,
            classes,
            bursts,
            carriers,
            small_memory,
            seed,
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Send { burst: usize },
    Carrier { end: usize, path: usize, is_up: bool },
}

fn run(scenario: &Scenario) {
    let mut config = PathBundleConfig::default();
    config.classes.copy_from_slice(&scenario.classes);
    if scenario.small_memory {
        (config.queue_bytes, config.flight_bytes, config.reorder_bytes) = (20_000, 20_000, 40_000);
    }
    let bound = (config.queue_bytes + config.flight_bytes + config.reorder_bytes) as u64 + 300_000;
    let mut network: Network<Bytes> = Network::new(config, scenario.paths.clone(), scenario.seed);
    let mut acts: Vec<(f64, Act)> = Vec::new();
    for (index, burst) in scenario.bursts.iter().enumerate() {
        acts.extend((0..burst.count).map(|at| (burst.at + f64::from(at) * burst.spacing, Act::Send { burst: index })));
    }
    for &(at, end, path, duration) in &scenario.carriers {
        let path = path % scenario.paths.len();
        acts.push((at, Act::Carrier { end, path, is_up: false }));
        acts.push((at + duration, Act::Carrier { end, path, is_up: true }));
    }
    acts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sent: [BTreeMap<u32, u32>; 2] = Default::default();
    let mut refused = [0u64; 2];
    for (at, act) in acts {
        network.run_until(Time::from_secs_f64(at));
        match act {
            Act::Send { burst } => {
                let burst = &scenario.bursts[burst];
                let number = sent[burst.from].entry(burst.flow).or_default();
                let packet = tagged(burst.flow, *number, burst.bytes);
                *number += 1;
                let now = network.now;
                let is_taken = network.ends[burst.from].send(now, packet, burst.class, u64::from(burst.flow));
                refused[burst.from] += u64::from(!is_taken);
                network.settle();
            }
            Act::Carrier { end, path, is_up } => network.set_carrier(end, path, is_up),
        }
    }
    // A path whose budget of probes is spent comes back late.
    let end = network.now + Time::from_secs(6000);
    let is_busy = |network: &Network<Bytes>| {
        let waits = |end: &PathBundle<Bytes>| {
            let totals = end.totals();
            totals.queued_bytes + totals.flight_bytes + totals.reorder_bytes > 0
        };
        network.ends.iter().any(waits)
    };
    network.run_until(network.now + Time::from_secs(60));
    while network.now < end && is_busy(&network) {
        network.run_until(network.now + Time::from_secs(60));
    }

    for to in 0..2 {
        let from = 1 - to;
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        let mut seen: BTreeMap<(u32, u32), ()> = BTreeMap::new();
        for (at, packet) in &network.delivered[to] {
            let (flow, number) = tag(packet);
            let burst = scenario.bursts.iter().find(|burst| burst.flow == flow && burst.from == from);
            assert!(burst.is_some() && number < sent[from][&flow], "nobody sent {flow} {number}");
            let is_right_length = scenario
                .bursts
                .iter()
                .any(|burst| burst.flow == flow && burst.from == from && burst.bytes.max(8) == packet.len());
            assert!(is_right_length && packet[8..].iter().all(|&byte| byte == 0), "changed on its way");
            assert!(seen.insert((flow, number), ()).is_none(), "{flow} {number} twice, at {at}");
            if scenario.classes[(flow % 8) as usize].is_ordered {
                let before = last.insert(flow, number);
                assert!(before.is_none_or(|before| before < number), "{flow}: {number} after {before:?}, at {at}");
            }
        }
        let (near, far) = (network.ends[from].totals(), network.ends[to].totals());
        let all: u64 = sent[from].values().map(|&count| u64::from(count)).sum();
        assert_eq!(near.taken, all);
        assert!(near.dropped >= refused[from]);
        let not_delivered = all - seen.len() as u64;
        // A path whose budget is spent carries nothing until the next day; a class that no path may carry is refused.
        let waits = near.queued_bytes > 0 || near.flight_bytes > 0;
        let has_budgets = scenario.paths.iter().any(|(_, _, rules)| rules.bytes_a_day.is_some());
        let stats = |end: usize| -> Vec<_> {
            (0..scenario.paths.len()).map(|path| network.ends[end].stats(PathId(path as u8))).collect()
        };
        assert!(
            !waits || has_budgets,
            "{near:?} waits for ever; {:?} {:?}",
            network.events[from],
            (stats(from), stats(to))
        );
        if !waits {
            let counted = near.dropped + near.lost + far.delivery.missing + far.delivery.overflows;
            assert!(not_delivered <= counted, "{not_delivered} packets vanished: {near:?} {far:?}");
            if near.lost + far.delivery.missing + far.delivery.overflows == 0 {
                assert_eq!(not_delivered, near.dropped);
            }
        }
        assert_eq!(far.delivery.delivered, seen.len() as u64);
        assert_eq!(far.reorder_bytes, 0, "{far:?}");
    }
    assert!(network.most_held <= bound, "{} bytes held, {bound} allowed", network.most_held);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24), max_shrink_iters: 400, ..ProptestConfig::default() })]
    #[test]
    fn every_packet_once_or_counted(scenario in scenarios()) {
        run(&scenario);
    }
}
