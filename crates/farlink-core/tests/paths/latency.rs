//! How long a small packet waits beside bulk that fills the paths.

use bytes::Bytes;
use farlink_core::paths::{PathBundleConfig, PathRules};
use farlink_core::{Rng, Time};

use super::network::{Network, OVERHEAD, Wire, tag, tagged};

/// Length of the small packets, and of all that is around one on a line.
const SMALL: usize = 40;
const AROUND: f64 = 15.0 + OVERHEAD as f64;

const BULK: u32 = 1;

/// What small packets and bulk got.
#[derive(Debug)]
struct Got {
    /// The longest wait of a small packet in seconds: delay less that of the slowest path and less its own time on it.
    longest: f64,
    mean: f64,
    small: (u32, u32),
    /// Share of the paths' rates that bulk had, headers of its packets not counted as bulk.
    share: f64,
}

/// Bulk of 1.2 times what the paths carry, and a small packet at irregular times, from `from` to `to` seconds.
fn measure(wires: &[Wire], (from, to): (f64, f64), seed: u64) -> Got {
    let paths = wires.iter().map(|wire| (wire.clone(), wire.clone(), PathRules::default()));
    let mut network: Network<Bytes> = Network::new(PathBundleConfig::default(), paths, seed);
    let total: f64 = wires.iter().map(|wire| wire.rates[0].1).sum();
    let slowest = wires
        .iter()
        .map(|wire| wire.delays[0].1 + wire.jitter + (SMALL as f64 + AROUND) * 8.0 / wire.rates[0].1)
        .fold(0.0, f64::max);
    let bulk_gap = 1300.0 * 8.0 / (1.2 * total);
    let small_gap = (20.0 * 8.0 * (SMALL as f64 + AROUND) / total).max(0.0413);
    let (mut next_bulk, mut next_small, mut count) = (0.1, 0.5, 0);
    let mut sent_at = std::collections::BTreeMap::new();
    let mut got = Got { longest: 0.0, mean: 0.0, small: (0, 0), share: 0.0 };
    let mut bytes = 0;
    while network.now.as_secs_f64() < to {
        let next: f64 = f64::min(next_bulk, next_small);
        network.run_until(Time::from_secs_f64(next));
        let now = network.now;
        let (flow, length) = if next_bulk <= next_small { (BULK, 1300) } else { (2 + count % 3, SMALL) };
        network.ends[0].send(now, tagged(flow, count, length), 1, u64::from(flow));
        if flow == BULK {
            next_bulk += bulk_gap;
        } else {
            next_small += small_gap * (0.5 + f64::from(count % 7) / 7.0);
            got.small.0 += u32::from(now.as_secs_f64() >= from);
            sent_at.insert(count, now);
        }
        count += 1;
        network.settle();
        while let Some((at, packet)) = network.delivered[1].pop_front() {
            let (flow, number) = tag(&packet);
            if flow == BULK {
                bytes += if at.as_secs_f64() >= from { packet.len() } else { 0 };
                continue;
            }
            let sent = sent_at.remove(&number).unwrap();
            if sent.as_secs_f64() >= from {
                let wait = ((at - sent).as_secs_f64() - slowest).max(0.0);
                got.longest = got.longest.max(wait);
                got.mean += wait;
                got.small.1 += 1;
            }
        }
    }
    got.mean /= f64::from(got.small.1.max(1));
    got.share = bytes as f64 * 8.0 / (to - from) / total;
    got
}

/// The configured bound, or three of the shortest pieces, which take longer on a slow line.
fn bound(slowest_bps: f64) -> f64 {
    let shortest = (256.0 + 21.0 + f64::from(OVERHEAD)) * 8.0 / slowest_bps;
    PathBundleConfig::default().latency.as_secs_f64().max(3.0 * shortest)
}

fn line(rate: f64, delay: f64) -> Wire {
    Wire { queue_bytes: 100_000.max((rate / 80.0) as u64), ..Wire::new(rate, delay) }
}

/// From when to when: behind the start, and long enough for a few packets.
fn span(rate: f64, delay: f64) -> (f64, f64) {
    let long = (40.0 * 1300.0 * 8.0 / rate).clamp(10.0, 600.0);
    let begin = (long / 4.0).max(30.0 * delay + 3.0);
    (begin, begin + long)
}

/// Bulk does not keep a small packet waiting for longer than `latency`, from the line of a modem to one of 50 Mb/s, and has most of the
/// line all the same.
#[test]
fn a_small_packet_waits_no_longer_than_the_bound() {
    for (rate, delay, share) in [
        (2400.0, 0.7, 0.55), // headers take a quarter of a piece of 333 bytes
        (20e3, 0.1, 0.65),
        (64e3, 0.02, 0.80),
        (128e3, 0.3, 0.85),
        (1e6, 0.02, 0.90),
    ] {
        let got = measure(&[line(rate, delay)], span(rate, delay), 3);
        println!("{rate} bit/s, {delay} s: {got:?}");
        assert!(got.longest <= bound(rate) && got.share >= share, "{rate} bit/s: {got:?}");
        assert!(got.small.1 + 3 >= got.small.0, "{got:?}");
    }
}

/// Random bundles, for `docs/design/ip-paths.md`.
#[test]
#[ignore = "minutes"]
fn latency_table() {
    let mut rng = Rng::for_component(7, 0, "bundles");
    let mut above = 0;
    println!("| paths (bit/s, s) | longest wait (s) | mean (s) | bound (s) | share of bulk |");
    for bundle in 0..100 {
        let count = 1 + bundle % 3;
        let wires: Vec<Wire> = (0..count)
            .map(|_| line(2400.0 * (50e6_f64 / 2400.0).powf(rng.uniform()), 0.01 * 60_f64.powf(rng.uniform())))
            .collect();
        let fastest = wires.iter().map(|wire| wire.rates[0].1).fold(0.0, f64::max);
        let slowest = wires.iter().map(|wire| wire.rates[0].1).fold(f64::INFINITY, f64::min);
        let delay = wires.iter().map(|wire| wire.delays[0].1).fold(0.0, f64::max);
        let got = measure(&wires, span(fastest, delay), bundle);
        let of = |wire: &Wire| format!("{:.0} {:.2}", wire.rates[0].1, wire.delays[0].1);
        let paths: Vec<String> = wires.iter().map(of).collect();
        above += u32::from(got.longest > bound(slowest));
        println!(
            "| {} | {:.3} | {:.3} | {:.3} | {:.3} |",
            paths.join(", "),
            got.longest,
            got.mean,
            bound(slowest),
            got.share
        );
    }
    println!("{above} of 100 above the bound");
}

/// Single lines, for `docs/design/ip-paths.md`.
#[test]
#[ignore = "minutes"]
fn latency_of_lines() {
    for delay in [0.02, 0.1, 0.7] {
        for rate in [2400.0, 4800.0, 9600.0, 20e3, 64e3, 128e3, 256e3, 1e6, 5e6, 50e6] {
            let got = measure(&[line(rate, delay)], span(rate, delay), 3);
            println!("| {rate} | {delay} | {:.3} | {:.3} | {:.3} |", got.longest, got.mean, got.share);
        }
    }
}
