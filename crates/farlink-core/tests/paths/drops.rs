//! Paths that are unplugged and come back.

use std::collections::BTreeMap;

use bytes::Bytes;
use farlink_core::paths::{ClassRules, PathBundleConfig, PathId, PathRules, Policy};
use farlink_core::{Rng, Time};

use super::network::{Network, Wire, tag, tagged};

/// What a flow's receiver has seen.
#[derive(Clone, Debug, Default)]
struct Flow {
    sent: u32,
    arrived: u32,
    last: Option<u32>,
    last_at: f64,
    longest_gap: f64,
    longest_delay: f64,
}

/// A redundant stream of 50 small packets a second, and bulk above what the paths carry.
struct Traffic {
    network: Network<Bytes>,
    flows: BTreeMap<u32, Flow>,
    sent_at: BTreeMap<(u32, u32), Time>,
    next_stream: f64,
    next_bulk: f64,
    bulk_gap: f64,
}

const STREAM: u32 = 0;
const BULK: u32 = 1;
const BULK_BYTES: usize = 1300;

impl Traffic {
    fn new(wires: &[Wire], rules: &[PathRules], bulk_bps: f64, seed: u64) -> Self {
        let mut config = PathBundleConfig::default();
        config.classes[0] = ClassRules { policy: Policy::Redundant, is_ordered: true };
        let paths = wires.iter().zip(rules).map(|(wire, rules)| (wire.clone(), wire.clone(), rules.clone()));
        Traffic {
            network: Network::new(config, paths, seed),
            flows: BTreeMap::new(),
            sent_at: BTreeMap::new(),
            next_stream: 0.5,
            next_bulk: 0.5,
            bulk_gap: BULK_BYTES as f64 * 8.0 / bulk_bps,
        }
    }

    fn send(&mut self, flow: u32, class: u8, bytes: usize) {
        let entry = self.flows.entry(flow).or_default();
        self.sent_at.insert((flow, entry.sent), self.network.now);
        self.network.ends[0].send(self.network.now, tagged(flow, entry.sent, bytes), class, u64::from(flow));
        entry.sent += 1;
        self.network.settle();
        while let Some((at, packet)) = self.network.delivered[1].pop_front() {
            let (flow, number) = tag(&packet);
            let entry = self.flows.get_mut(&flow).unwrap();
            assert!(entry.last.is_none_or(|last| last < number), "flow {flow}: {number} after {:?}", entry.last);
            let now = at.as_secs_f64();
            if entry.last.is_some() {
                entry.longest_gap = entry.longest_gap.max(now - entry.last_at);
            }
            let sent = self.sent_at.remove(&(flow, number)).unwrap();
            entry.longest_delay = entry.longest_delay.max((at - sent).as_secs_f64());
            (entry.last, entry.last_at) = (Some(number), now);
            entry.arrived += 1;
        }
    }

    fn run_until(&mut self, until: f64) {
        loop {
            let next = self.next_stream.min(self.next_bulk);
            if next >= until {
                break;
            }
            self.network.run_until(Time::from_secs_f64(next));
            if self.next_stream <= self.next_bulk {
                self.send(STREAM, 0, 200);
                self.next_stream += 0.02;
            } else {
                self.send(BULK, 1, BULK_BYTES);
                self.next_bulk += self.bulk_gap;
            }
        }
        self.network.run_until(Time::from_secs_f64(until));
    }

    fn forget_gaps(&mut self) {
        self.flows.values_mut().for_each(|flow| (flow.longest_gap, flow.longest_delay) = (0.0, 0.0));
    }
}

/// How an end learns of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unplugged {
    Silently,
    AtSender,
    AtReceiver,
}

/// Two or three paths; one of them is unplugged again and again, for a random time.
fn unplug(wires: &[Wire], how: Unplugged, path: usize, times: u32, seed: u64) -> (Traffic, f64) {
    let rules = vec![PathRules::default(); wires.len()];
    let total: f64 = wires.iter().map(|wire| wire.rates[0].1).sum();
    let mut traffic = Traffic::new(wires, &rules, 1.1 * total, seed);
    let mut rng = Rng::for_component(seed, 0, "unplug");
    let mut now = 3.0;
    traffic.run_until(now);
    traffic.forget_gaps();
    let mut longest_return = 0.0_f64;
    for _ in 0..times {
        now += rng.uniform();
        traffic.run_until(now);
        let length = 0.5 + 4.0 * rng.uniform();
        for from in 0..2 {
            traffic.network.wire(path, from).outages.push((now, now + length));
        }
        match how {
            Unplugged::Silently => {}
            Unplugged::AtSender => traffic.network.set_carrier(0, path, false),
            Unplugged::AtReceiver => traffic.network.set_carrier(1, path, false),
        }
        now += length;
        traffic.run_until(now);
        match how {
            Unplugged::Silently => {}
            Unplugged::AtSender => traffic.network.set_carrier(0, path, true),
            Unplugged::AtReceiver => traffic.network.set_carrier(1, path, true),
        }
        let back_at = now;
        let before = traffic.network.ends[0].stats(PathId(path as u8)).data_bytes;
        while traffic.network.ends[0].stats(PathId(path as u8)).data_bytes < before + 5000 {
            now += 0.05;
            traffic.run_until(now);
            assert!(now < back_at + 20.0, "it does not come back");
        }
        longest_return = longest_return.max(now - back_at);
        now += 1.0;
        traffic.run_until(now);
    }
    (traffic, longest_return)
}

/// Unplugs a path of two or three so many times, prints a row and checks it.
fn check(name: &str, wires: &[Wire], how: Unplugged, path: usize, times: u32, seed: u64) {
    let (mut traffic, back) = unplug(wires, how, path, times, seed);
    let (stream, bulk) = (traffic.flows[&STREAM].clone(), traffic.flows[&BULK].clone());
    let until = traffic.network.now.as_secs_f64() + 3.0;
    (traffic.next_stream, traffic.next_bulk) = (until, f64::INFINITY);
    traffic.run_until(until + 0.01);
    // The last packets are still under way.
    let lost = traffic.flows[&STREAM].sent - 1 - traffic.flows[&STREAM].arrived;
    let missing = traffic.network.ends[1].totals().delivery.missing;
    println!(
        "| {name} | {how:?}, {times} times | {lost} of {} | {:.3} | {:.3} | {missing} of {} | {:.3} | {back:.2} |",
        stream.sent, stream.longest_gap, stream.longest_delay, bulk.arrived, bulk.longest_gap,
    );
    let slowest = wires.iter().map(|wire| wire.delays[0].1).fold(0.0, f64::max);
    assert_eq!(lost, 0);
    assert!(stream.longest_gap <= 2.0 * 2.0 * slowest + 0.05, "gap of {} s", stream.longest_gap);
    assert!(bulk.longest_gap <= 1.0, "gap of {} s", bulk.longest_gap);
    assert!(back <= 3.0, "back after {back} s");
}

const HEADER: &str = "| paths | unplugged | stream lost | stream gap (s) | stream delay (s) | bulk missing | bulk gap (s) | back after (s) |";

#[test]
fn unplugging_the_path_in_use() {
    println!("{HEADER}");
    let two = [Wire::new(5e6, 0.014), Wire::new(2e6, 0.020)];
    for how in [Unplugged::Silently, Unplugged::AtSender, Unplugged::AtReceiver] {
        check("5 Mb/s 14 ms, 2 Mb/s 20 ms", &two, how, 0, 3, 7);
    }
    let slow_spare = [Wire::new(4e6, 0.014), Wire::new(1e6, 0.150)];
    check("4 Mb/s 14 ms, 1 Mb/s 150 ms", &slow_spare, Unplugged::Silently, 0, 3, 7);
}

/// The table of `docs/design/ip-paths.md`.
#[test]
#[ignore = "minutes"]
fn unplugging_200_times() {
    println!("{HEADER}");
    let two = [Wire::new(3e6, 0.014), Wire::new(1e6, 0.020)];
    for how in [Unplugged::Silently, Unplugged::AtSender, Unplugged::AtReceiver] {
        for path in [0, 1] {
            check(&format!("3 Mb/s 14 ms, 1 Mb/s 20 ms, number {path}"), &two, how, path, 200, 7);
        }
    }
}
