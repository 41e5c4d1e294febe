//! How much a bundle carries beside its paths alone.

use farlink_core::paths::{PathBundleConfig, PathId, PathRules};
use farlink_core::{Rng, Time, Virtual};

use super::network::{Network, OVERHEAD, Wire};

/// Length of the users' packets.
const PACKET: u32 = 1300;

/// Share of a line that users' data can have.
const SHARE: f64 = PACKET as f64 / (PACKET + 15 + OVERHEAD) as f64;

/// What arrived.
#[derive(Debug)]
struct Got {
    /// Bits per second of users' data.
    rate_bps: f64,
    /// The longest time without a delivery, in seconds.
    longest_gap: f64,
}

/// Users' data that arrive from `from` to `to` if packets come 1.1 times as fast as all paths carry.
fn paced(wires: &[Wire], offered_bps: f64, (from, to): (f64, f64), rules: &[PathRules]) -> (Got, Network<Virtual>) {
    let paths = wires.iter().zip(rules.iter().chain(std::iter::repeat(&rules[0])));
    let paths = paths.map(|(wire, rules)| (wire.clone(), wire.clone(), rules.clone()));
    let mut network = Network::new(PathBundleConfig::default(), paths, 1);
    let gap = f64::from(PACKET) * 8.0 / offered_bps;
    let (mut bytes, mut count) = (0u64, 0u64);
    let (mut last, mut longest_gap) = (from, 0.0);
    while (count as f64) * gap < to {
        network.run_until(Time::from_secs_f64(count as f64 * gap));
        network.ends[0].send(network.now, Virtual(PACKET), 1, count % 4);
        network.settle();
        count += 1;
        while let Some((at, data)) = network.delivered[1].pop_front() {
            let at = at.as_secs_f64();
            if at >= from {
                bytes += u64::from(data.0);
                longest_gap = f64::max(longest_gap, at - last);
                last = at;
            }
        }
    }
    longest_gap = longest_gap.max(to - last);
    (Got { rate_bps: bytes as f64 * 8.0 / (to - from), longest_gap }, network)
}

/// Starlink: another rate and delay every 15 s, with a pause of 50 ms.
pub(crate) fn starlink(seed: u64) -> Wire {
    let mut rng = Rng::for_component(seed, 0, "starlink");
    let mut wire = Wire { jitter: 0.004, ..Wire::new(50e6, 0.014) };
    for slot in 1..20 {
        let at = f64::from(slot) * 15.0;
        wire.rates.push((at, 25e6 + 50e6 * rng.uniform()));
        wire.delays.push((at, 0.012 + 0.016 * rng.uniform()));
        wire.outages.push((at, at + 0.05));
    }
    wire
}

/// LTE: handovers at random times, after which rate and delay are others.
pub(crate) fn lte(seed: u64) -> Wire {
    let mut rng = Rng::for_component(seed, 0, "lte");
    let mut wire = Wire { jitter: 0.008, queue_bytes: 500_000, ..Wire::new(10e6, 0.020) };
    let mut at = 0.0;
    while at < 300.0 {
        at += 2.0 + rng.exponential(15.0);
        wire.rates.push((at, 5e6 + 10e6 * rng.uniform()));
        wire.delays.push((at, 0.020 + 0.020 * rng.uniform()));
        wire.outages.push((at, at + 0.03 + 0.2 * rng.uniform()));
    }
    wire
}

pub(crate) fn iridium() -> Wire {
    Wire { queue_bytes: 8000, ..Wire::new(2400.0, 0.7) }
}

/// What a bundle carries of the sum of its paths, and beside the best of them.
struct Share {
    sum: f64,
    best: f64,
    longest_gap: f64,
    network: Network<Virtual>,
}

fn measure(name: &str, wires: &[Wire], (from, to): (f64, f64), rules: &[PathRules]) -> Share {
    let capacity: Vec<f64> = wires.iter().map(|wire| wire.capacity(from, to) / (to - from)).collect();
    let total: f64 = capacity.iter().sum();
    let peak = wires.iter().flat_map(|wire| &wire.rates).map(|rate| rate.1).fold(0.0, f64::max);
    let (got, network) = paced(wires, 1.1 * total.max(peak), (from, to), rules);
    let best = capacity.iter().copied().fold(0.0, f64::max);
    let share = Share {
        sum: got.rate_bps / total / SHARE,
        best: got.rate_bps / best / SHARE,
        longest_gap: got.longest_gap,
        network,
    };
    println!("| {name} | {:.3} | {:.3} | {:.3} |", share.sum, share.best, share.longest_gap);
    share
}

const PLAIN: [PathRules; 1] = [PathRules::DEFAULT];
const HEADER: &str = "| paths | of the sum | of the best path | longest gap (s) |";

#[test]
fn bulk_fills_all_paths() {
    println!("{HEADER}");
    let steady = [Wire::new(10e6, 0.014), Wire::new(4e6, 0.020), iridium()];
    let share = measure("10 Mb/s 14 ms, 4 Mb/s 20 ms, 2400 bit/s 700 ms", &steady, (3.0, 10.0), &PLAIN);
    assert!(share.sum >= 0.95 && share.best >= 1.0, "{}", share.sum);
    let far = [Wire::new(4e6, 0.014), Wire::new(4e6, 0.3)];
    let share = measure("4 Mb/s 14 ms, 4 Mb/s 300 ms", &far, (15.0, 30.0), &PLAIN);
    assert!(share.sum >= 0.95, "{}", share.sum);
    let moving = [lte(1), lte(2)];
    let share = measure("two with handovers", &moving, (3.0, 18.0), &PLAIN);
    assert!(share.sum >= 0.95 && share.longest_gap < 1.0, "{}", share.sum);
    let shallow = Wire { queue_bytes: 12_000, ..Wire::new(5e6, 0.02) };
    let share = measure("5 Mb/s with a queue of 9 packets", &[shallow], (5.0, 15.0), &PLAIN);
    assert!(share.sum >= 0.95, "{}", share.sum);
}

#[test]
fn a_bad_path_costs_little() {
    println!("{HEADER}");
    let good = Wire::new(5e6, 0.014);
    let lossy = Wire { loss: 0.2, ..Wire::new(4e6, 0.02) };
    let share = measure("5 Mb/s, 4 Mb/s with 20 % loss", &[good.clone(), lossy], (3.0, 20.0), &PLAIN);
    assert!(share.best >= 0.95, "{}", share.best);
    let late = Wire { delays: vec![(0.0, 0.02), (5.0, 3.0)], ..Wire::new(4e6, 0.02) };
    let share = measure("5 Mb/s, 4 Mb/s with 3 s from 5 s on", &[good, late], (3.0, 20.0), &PLAIN);
    assert!(share.best >= 0.95 && share.longest_gap < 1.0, "{} {}", share.best, share.longest_gap);
}

#[test]
fn a_path_carries_nothing_while_its_rules_say_so() {
    let wires = [Wire::new(4e6, 0.014), iridium()];
    let standby = PathRules { is_standby: true, ..PathRules::DEFAULT };
    let other_class = PathRules { classes: 1, ..PathRules::DEFAULT };
    let spent = PathRules { bytes_a_day: Some(0), ..PathRules::DEFAULT };
    for rules in [standby, other_class, spent] {
        let share = measure("4 Mb/s, 2400 bit/s by rule", &wires, (2.0, 8.0), &[PathRules::DEFAULT, rules]);
        let iridium = share.network.ends[0].stats(PathId(1));
        assert_eq!(iridium.data_bytes, 0);
        assert!(iridium.probe_bytes > 0 && share.sum >= 0.95);
    }
}

/// The table of `docs/design/ip-paths.md`.
#[test]
#[ignore = "minutes"]
fn bulk_table() {
    println!("{HEADER}");
    let slow = Wire::new;
    measure("50 Mb/s 14 ms", &[slow(50e6, 0.014)], (5.0, 20.0), &PLAIN);
    measure("2400 bit/s 700 ms", &[iridium()], (60.0, 600.0), &PLAIN);
    let three = [slow(50e6, 0.014), slow(10e6, 0.02), iridium()];
    measure("50 Mb/s 14 ms, 10 Mb/s 20 ms, 2400 bit/s 700 ms", &three, (5.0, 60.0), &PLAIN);
    measure("10 Mb/s 14 ms, 10 Mb/s 300 ms", &[slow(10e6, 0.014), slow(10e6, 0.3)], (20.0, 60.0), &PLAIN);
    measure("slots of 15 s", &[starlink(1)], (5.0, 60.0), &PLAIN);
    measure("handovers", &[lte(1)], (5.0, 60.0), &PLAIN);
    measure("slots, handovers, 2400 bit/s", &[starlink(1), lte(1), iridium()], (5.0, 60.0), &PLAIN);
    measure("50 Mb/s alone with 20 % loss", &[Wire { loss: 0.2, ..slow(50e6, 0.014) }], (10.0, 40.0), &PLAIN);
    let lossy = Wire { loss: 0.2, ..slow(10e6, 0.02) };
    measure("50 Mb/s, 10 Mb/s with 20 % loss", &[slow(50e6, 0.014), lossy], (5.0, 40.0), &PLAIN);
    let shallow = Wire { queue_bytes: 15_000, ..slow(20e6, 0.02) };
    measure("20 Mb/s with a queue of 10 packets", &[shallow], (5.0, 30.0), &PLAIN);
    let late = Wire { delays: vec![(0.0, 0.02), (10.0, 3.0), (30.0, 0.02)], ..slow(10e6, 0.02) };
    measure("50 Mb/s, 10 Mb/s with 3 s from 10 s to 30 s", &[slow(50e6, 0.014), late], (5.0, 60.0), &PLAIN);
}
