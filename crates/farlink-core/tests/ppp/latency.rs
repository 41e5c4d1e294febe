//! How long small packets wait beside bulk: flows take turns, and fragments are short.

use farlink_core::ppp::BundleConfig;
use farlink_core::{Rng, Time};

use super::wires::{Wires, config, number, packet, secs};

const BULK: u64 = 1;
const SMALL: u64 = 2;
const SMALL_BYTES: usize = 64;
/// Small packets have numbers from here on.
const FIRST_SMALL: u32 = 1_000_000;

/// What small packets and bulk had.
#[derive(Debug)]
struct Found {
    /// Share of the small packets that arrived.
    arrived: f64,
    /// From the queue to the far end, less the lines' delay: 95 % of the small packets, and the slowest.
    p95_s: f64,
    most_s: f64,
    /// Bytes of bulk that arrived, of what the lines carry.
    bulk: f64,
    /// Bytes that waited, at most.
    waiting: usize,
}

/// A small packet every `every` for `span`, beside bulk of one flow that is always ahead by `window` packets of `length` bytes.
fn run(
    configs: [BundleConfig; 2],
    rate_bps: f64,
    delay_s: f64,
    length: usize,
    every: Time,
    span: Time,
    seed: u64,
) -> Found {
    let lines = configs[0].rates.len();
    let mut wires = Wires::new(configs, rate_bps, secs(delay_s), seed);
    wires.all_up();
    wires.run(secs(90.0));
    assert_eq!(wires.members(), lines);
    let begin = wires.now;
    let carried = wires.packets[1].len();
    let (mut next_small, mut bulk, mut small, mut sent_at) = (begin, 0, 0, Vec::new());
    let bulk_time = secs(length as f64 * 8.0 / (rate_bps * lines as f64));
    let mut waiting = 0;
    while wires.now.since(begin) < span {
        // More than the lines carry, as many connections are without losses.
        wires.send_of(0, packet(bulk, length), BULK);
        bulk += 1;
        if wires.now >= next_small {
            wires.send_of(0, packet(FIRST_SMALL + small, SMALL_BYTES), SMALL);
            sent_at.push(wires.now);
            small += 1;
            // Not in step with bulk.
            next_small = wires.now + every + secs(0.013 * f64::from(small % 17));
        }
        waiting = waiting.max(wires.ends[0].waiting_bytes());
        wires.run(Time::from_secs_f64(bulk_time.as_secs_f64() * 0.8).min(secs(0.2)));
    }
    let end = wires.now;
    wires.run(secs(20.0));
    let packets = &wires.packets[1][carried..];
    let mut waits: Vec<f64> = packets
        .iter()
        .filter(|(_, packet)| number(packet) >= FIRST_SMALL)
        .map(|(at, packet)| at.since(sent_at[(number(packet) - FIRST_SMALL) as usize]).as_secs_f64() - delay_s)
        .collect();
    waits.sort_by(f64::total_cmp);
    let bytes: usize =
        packets.iter().filter(|(at, it)| *at <= end && number(it) < FIRST_SMALL).map(|(_, it)| it.len()).sum();
    Found {
        arrived: waits.len() as f64 / f64::from(small),
        p95_s: waits[(waits.len() * 95 / 100).min(waits.len() - 1)],
        most_s: waits[waits.len() - 1],
        bulk: bytes as f64 * 8.0 / (rate_bps * lines as f64 * span.as_secs_f64()),
        waiting,
    }
}

fn both(lines: usize, rate_bps: f64, latency_s: f64) -> [BundleConfig; 2] {
    [0, 1].map(|end| BundleConfig { latency: secs(latency_s), queue_bytes: 64 * 1024, ..config(end, lines, rate_bps) })
}

#[test]
fn a_small_packet_beside_bulk_waits_no_longer_than_the_latency() {
    for (lines, rate_bps) in [(8, 2400.0), (2, 9600.0)] {
        let found = run(both(lines, rate_bps, 1.2), rate_bps, 0.5, 1500, secs(1.5), secs(400.0), 1);
        assert!(found.arrived > 0.99 && found.p95_s <= 1.2 && found.bulk > 0.84, "{lines} x {rate_bps}: {found:?}");
    }
}

#[test]
fn a_queue_of_one_flow_is_thinned_to_what_its_rate_allows() {
    // Without CoDel 64 KiB would stand, 27 s of both lines.
    let found = run(both(2, 9600.0, 1.2), 9600.0, 0.5, 1500, secs(5.0), secs(400.0), 2);
    assert!(found.bulk > 0.84, "{found:?}");
}

/// Any bundle whose longest packet takes less than the latency on all lines together.
#[test]
fn small_packets_of_random_bundles_wait_no_longer_than_the_latency() {
    for seed in 0..5 {
        let mut rng = Rng::for_component(seed, 0, "bundles");
        let lines = 1 + rng.below(8) as usize;
        let rate_bps = 1200.0 + rng.below(20_000) as f64;
        let (delay_s, length) = (rng.below(900) as f64 / 1000.0, 200 + rng.below(1300) as usize);
        let packet_s = length as f64 * 8.0 / (rate_bps * lines as f64);
        // The small packet itself, with its headers, on one line, and a fragment of the least length.
        let least_s = (SMALL_BYTES + 64 + 24) as f64 * 8.0 / rate_bps;
        let latency_s = packet_s + least_s + 0.4 + rng.below(1600) as f64 / 1000.0;
        let found = run(both(lines, rate_bps, latency_s), rate_bps, delay_s, length, secs(1.0), secs(60.0), seed);
        let what = format!("{lines} x {rate_bps} bit/s, {delay_s} s, {length} bytes, {latency_s} s: {found:?}");
        assert!(found.arrived > 0.95 && found.p95_s <= latency_s, "{what}");
    }
}

/// The table of docs/design/ppp.md: `cargo test -p farlink-core --test all latency -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn table_of_waits() {
    for (lines, rate_bps) in [(8, 2400.0), (2, 9600.0)] {
        for latency_s in [0.5, 1.0, 1.5, 3.0] {
            for length in [500, 1500] {
                let found = run(both(lines, rate_bps, latency_s), rate_bps, 0.5, length, secs(1.5), secs(900.0), 3);
                let Found { arrived, p95_s, most_s, bulk, waiting } = found;
                println!(
                    "| {lines} x {rate_bps} | {latency_s} | {length} | {arrived} | {p95_s} | {most_s} | {bulk} | {waiting} |"
                );
            }
        }
    }
}
