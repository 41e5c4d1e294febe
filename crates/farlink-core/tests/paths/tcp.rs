//! TCP over a bundle beside TCP over its best path alone, without a bundle.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use farlink_core::paths::{PathBundleConfig, PathRules};
use farlink_core::protocol::tcp::{CongestionControl, Segment, TcpConfig, TcpConnection, Variant};
use farlink_core::{Endpoint, Packet as _, Payload, Rng, Rx, Stream, Time, Virtual};

use super::network::{Line, Network, Wire, tag, tagged};

/// What carries packets of TCP from one end to the other.
trait Carrier {
    fn send(&mut self, now: Time, from: usize, flow: u32, segment: Segment<Virtual>);
    /// The next time that something happens in it.
    fn next(&self) -> Time;
    /// What has arrived by a time: end, flow, segment.
    fn advance(&mut self, now: Time) -> Vec<(usize, u32, Segment<Virtual>)>;
}

struct Bundled {
    network: Network<Bytes>,
    segments: [BTreeMap<u32, Segment<Virtual>>; 2],
    count: u32,
    /// When the carrier of a path goes or comes at the sender's end.
    carriers: VecDeque<(Time, usize, bool)>,
}

impl Carrier for Bundled {
    fn send(&mut self, now: Time, from: usize, flow: u32, segment: Segment<Virtual>) {
        self.count += 1;
        let packet = tagged(flow, self.count, segment.wire_bytes() as usize);
        self.segments[from].insert(self.count, segment);
        self.network.ends[from].send(now, packet, 1, u64::from(flow));
        self.network.settle();
    }

    fn next(&self) -> Time {
        let carrier = self.carriers.front().map_or(Time::NEVER, |&(at, ..)| at);
        self.network.next().min(carrier)
    }

    fn advance(&mut self, now: Time) -> Vec<(usize, u32, Segment<Virtual>)> {
        self.network.step_to(now);
        while let Some(&(_, path, is_up)) = self.carriers.front().filter(|(at, ..)| *at <= now) {
            self.network.set_carrier(0, path, is_up);
            self.carriers.pop_front();
        }
        let mut arrived = Vec::new();
        for to in 0..2 {
            while let Some((_, packet)) = self.network.delivered[to].pop_front() {
                let (flow, number) = tag(&packet);
                let segment = self.segments[1 - to].remove(&number).expect("each packet arrives once");
                arrived.push((to, flow, segment));
            }
        }
        arrived
    }
}

/// The path itself.
struct Bare {
    lines: [Line; 2],
    in_flight: BTreeMap<(Time, u64), (usize, u32, Segment<Virtual>)>,
    count: u64,
    rng: Rng,
}

impl Carrier for Bare {
    fn send(&mut self, now: Time, from: usize, flow: u32, segment: Segment<Virtual>) {
        let bytes = u64::from(segment.wire_bytes());
        if let Some(arrival) = self.lines[from].carry(now, bytes, &mut self.rng) {
            self.count += 1;
            self.in_flight.insert((arrival, self.count), (1 - from, flow, segment));
        }
    }

    fn next(&self) -> Time {
        self.in_flight.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at)
    }

    fn advance(&mut self, now: Time) -> Vec<(usize, u32, Segment<Virtual>)> {
        let mut arrived = Vec::new();
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= now
        {
            arrived.push(entry.remove());
        }
        arrived
    }
}

/// What TCP achieved.
#[derive(Clone, Copy, Debug)]
struct Got {
    /// Bits per second.
    goodput_bps: f64,
    /// The longest time in which nothing was read, in seconds.
    longest_gap: f64,
}

/// Bulk flows of TCP from end 0 to end 1.
fn transfer(carrier: &mut impl Carrier, flows: u32, control: CongestionControl, (from, to): (f64, f64)) -> Got {
    let mut config = TcpConfig { variant: Variant::Sack, congestion_control: control, ..TcpConfig::default() };
    config.segment_bytes = serde_json::from_value(serde_json::json!(1240)).unwrap();
    config.receive_window_segments = serde_json::from_value(serde_json::json!(8000)).unwrap();
    let mut ends: Vec<[TcpConnection<Virtual>; 2]> =
        (0..flows).map(|flow| <[_; 2]>::from(TcpConnection::pair(&config, u64::from(flow) + 1))).collect();
    let mut due = vec![[Time::ZERO; 2]; flows as usize];
    let (mut now, mut bytes, mut last, mut longest_gap) = (Time::ZERO, 0, from, 0.0);
    let end = Time::from_secs_f64(to);
    let mut has_begun = vec![false; flows as usize];
    while now < end {
        let mut touched: Vec<(usize, usize)> = Vec::new();
        for (side, flow, segment) in carrier.advance(now) {
            ends[flow as usize][side].handle_packet(now, &segment, Rx::default());
            touched.push((flow as usize, side));
        }
        for flow in 0..flows as usize {
            for side in 0..2 {
                if due[flow][side] <= now {
                    ends[flow][side].handle_timeout(now);
                    touched.push((flow, side));
                }
            }
        }
        for (flow, side) in touched {
            let connection = &mut ends[flow][side];
            if side == 0 && !std::mem::replace(&mut has_begun[flow], true) {
                connection.write(now, &mut Virtual(1 << 30));
            }
            while let Some(transmit) = connection.poll_transmit(now) {
                carrier.send(now, side, flow as u32, transmit.packet);
            }
            while let Some(data) = connection.read() {
                let at = now.as_secs_f64();
                if side == 1 && at >= from {
                    bytes += data.len();
                    longest_gap = f64::max(longest_gap, at - last);
                    last = at;
                }
            }
            while connection.poll_event().is_some() {}
            while let Some(transmit) = connection.poll_transmit(now) {
                carrier.send(now, side, flow as u32, transmit.packet);
            }
            due[flow][side] = connection.poll_timeout().unwrap_or(Time::NEVER);
        }
        let timer = due.iter().flatten().copied().min().unwrap_or(Time::NEVER);
        now = timer.min(carrier.next()).max(now).min(end);
    }
    Got { goodput_bps: bytes as f64 * 8.0 / (to - from), longest_gap: longest_gap.max(to - last) }
}

fn bundled(wires: &[Wire]) -> Bundled {
    let paths = wires.iter().map(|wire| (wire.clone(), wire.clone(), PathRules::default()));
    let network = Network::new(PathBundleConfig::default(), paths, 3);
    Bundled { network, segments: Default::default(), count: 0, carriers: VecDeque::new() }
}

fn bare(wire: &Wire) -> Bare {
    let lines = [Line::new(wire.clone()), Line::new(wire.clone())];
    Bare { lines, in_flight: BTreeMap::new(), count: 0, rng: Rng::for_component(3, 0, "bare") }
}

/// Share of the paths' rates that TCP over the bundle gets, and how much more than TCP over the best path without it.
fn compare(name: &str, wires: &[Wire], flows: u32, control: CongestionControl, time: (f64, f64)) -> (f64, f64) {
    let capacity: f64 = wires.iter().map(|wire| wire.capacity(time.0, time.1)).sum::<f64>() / (time.1 - time.0);
    let got = transfer(&mut bundled(wires), flows, control, time);
    let alone = wires
        .iter()
        .map(|wire| transfer(&mut bare(wire), flows, control, time))
        .max_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps))
        .expect("there are paths");
    // Headers of TCP, of the bundle and of its seal.
    let share = got.goodput_bps / (capacity * 1240.0 / (1280.0 + 15.0 + f64::from(super::network::OVERHEAD)));
    let gain = got.goodput_bps / alone.goodput_bps;
    println!(
        "| {name} | {flows} {} | {:.2} | {:.3} | {:.2} | {gain:.2} | {:.2} | {:.2} |",
        control.name(),
        got.goodput_bps / 1e6,
        share,
        alone.goodput_bps / 1e6,
        got.longest_gap,
        alone.longest_gap
    );
    (share, gain)
}

/// The longest time in which one flow of TCP delivers nothing while the first of two paths is unplugged for 3 s every 8 s, and its
/// goodput. The sender's carrier shows it after 20 ms, or never.
fn unplugged(wires: &[Wire], control: CongestionControl, shows: bool, times: u32) -> Got {
    let mut bundled = bundled(wires);
    for time in 0..times {
        let at = 8.0 * f64::from(time) + 8.0 + 0.37 * f64::from(time);
        for from in 0..2 {
            bundled.network.wire(0, from).outages.push((at, at + 3.0));
        }
        if shows {
            bundled.carriers.push_back((Time::from_secs_f64(at + 0.02), 0, false));
            bundled.carriers.push_back((Time::from_secs_f64(at + 3.02), 0, true));
        }
    }
    let got = transfer(&mut bundled, 1, control, (5.0, 8.0 * f64::from(times) + 10.0));
    println!(
        "| {} | {} | {:.2} | {:.3} |",
        control.name(),
        if shows { "carrier" } else { "silent" },
        got.goodput_bps / 1e6,
        got.longest_gap
    );
    got
}

const HEADER: &str =
    "| paths | flows | bundle (Mb/s) | of the sum | best path alone (Mb/s) | gain | gap (s) | gap alone (s) |";

#[test]
fn tcp_over_two_paths() {
    println!("{HEADER}");
    let wires = [Wire::new(10e6, 0.014), Wire::new(4e6, 0.020)];
    for control in [CongestionControl::Reno, CongestionControl::Cubic] {
        let (share, gain) = compare("10 Mb/s 14 ms, 4 Mb/s 20 ms", &wires, 4, control, (5.0, 20.0));
        assert!(share > 0.9 && gain > 1.2, "{share} {gain}");
    }
}

/// A connection's slow start is not held back: neither by drops while the rate of a path is being found, nor by a pace that stretches
/// its bursts.
#[test]
fn tcp_fills_the_paths_within_two_seconds() {
    let wires = [Wire::new(50e6, 0.014), Wire::new(10e6, 0.020)];
    let (share, _) = compare("50 Mb/s 14 ms, 10 Mb/s 20 ms", &wires, 1, CongestionControl::Cubic, (2.0, 5.0));
    // 0.82 of both paths; 0.71 if CoDel drops while the rates are found and the pace of the start is twice the rate.
    assert!(share > 0.77, "{share}");
}

/// A flow of TCP goes on within a second when the path is unplugged that has five sixths of the rate.
#[test]
#[ignore = "minutes"]
fn tcp_while_the_fast_path_is_unplugged() {
    let wires = [Wire::new(50e6, 0.014), Wire { queue_bytes: 100_000, ..Wire::new(10e6, 0.020) }];
    for control in [CongestionControl::Reno, CongestionControl::Cubic] {
        for shows in [true, false] {
            let got = unplugged(&wires, control, shows, 10);
            assert!(got.longest_gap < 1.0, "{got:?}");
        }
    }
}

/// The table of `docs/design/ip-paths.md`.
#[test]
#[ignore = "minutes"]
fn tcp_table() {
    use super::bulk::{iridium, lte, starlink};
    println!("{HEADER}");
    let steady = [Wire::new(50e6, 0.014), Wire::new(10e6, 0.020), iridium()];
    let moving = [starlink(1), lte(1), iridium()];
    let lossy = [Wire::new(50e6, 0.014), Wire { loss: 0.2, ..Wire::new(10e6, 0.020) }];
    let late = Wire { delays: vec![(0.0, 0.02), (20.0, 3.0)], ..Wire::new(10e6, 0.02) };
    let late = [Wire::new(50e6, 0.014), late];
    let far = [Wire::new(10e6, 0.014), Wire::new(10e6, 0.3)];
    for (name, wires) in [
        ("50 Mb/s 14 ms, 10 Mb/s 20 ms, 2400 bit/s 700 ms", &steady[..]),
        ("slots of 15 s, handovers, 2400 bit/s", &moving),
        ("50 Mb/s 14 ms, 10 Mb/s with 20 % loss", &lossy),
        ("50 Mb/s 14 ms, 10 Mb/s with 3 s from 20 s on", &late),
        ("10 Mb/s 14 ms, 10 Mb/s 300 ms", &far),
    ] {
        for (flows, control) in
            [(1, CongestionControl::Cubic), (8, CongestionControl::Cubic), (8, CongestionControl::Reno)]
        {
            compare(name, wires, flows, control, (10.0, 60.0));
        }
    }
}
