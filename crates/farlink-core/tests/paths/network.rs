//! Two ends of a bundle and emulated paths between them, in virtual time.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use farlink_core::paths::{Event, Packet, PathBundle, PathBundleConfig, PathId, PathRules};
use farlink_core::{Payload, Rng, Time};

/// One direction of a path: a queue in front of a line.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    /// Bits per second from a time on; ascending.
    pub(crate) rates: Vec<(f64, f64)>,
    /// One-way delay in seconds from a time on; ascending.
    pub(crate) delays: Vec<(f64, f64)>,
    /// Bytes that wait at most.
    pub(crate) queue_bytes: u64,
    /// Probability that a packet is lost.
    pub(crate) loss: f64,
    /// Random delay on top, at most so many seconds.
    pub(crate) jitter: f64,
    /// From when to when nothing arrives, in seconds.
    pub(crate) outages: Vec<(f64, f64)>,
}

impl Wire {
    /// A constant line with a queue of 100 ms or 30 packets.
    pub(crate) fn new(rate_bps: f64, delay_s: f64) -> Self {
        Wire {
            rates: vec![(0.0, rate_bps)],
            delays: vec![(0.0, delay_s)],
            queue_bytes: (rate_bps / 80.0).max(45_000.0) as u64,
            loss: 0.0,
            jitter: 0.0,
            outages: Vec::new(),
        }
    }

    pub(crate) fn rate_at(&self, now: f64) -> f64 {
        at(&self.rates, now)
    }

    /// Bits that it could have carried between two times.
    pub(crate) fn capacity(&self, from: f64, to: f64) -> f64 {
        let steps = 2000;
        let step = (to - from) / f64::from(steps);
        let is_up = |now: f64| !self.outages.iter().any(|&(start, end)| (start..end).contains(&now));
        (0..steps)
            .map(|i| from + (f64::from(i) + 0.5) * step)
            .filter(|&now| is_up(now))
            .map(|now| self.rate_at(now) * step)
            .sum()
    }
}

fn at(steps: &[(f64, f64)], now: f64) -> f64 {
    steps[steps.partition_point(|&(from, _)| from <= now).max(1) - 1].1
}

/// A packet of a flow with its number.
pub(crate) fn tagged(flow: u32, number: u32, bytes: usize) -> Bytes {
    let mut content = vec![0; bytes.max(8)];
    content[..4].copy_from_slice(&flow.to_be_bytes());
    content[4..8].copy_from_slice(&number.to_be_bytes());
    content.into()
}

/// Flow and number of a packet.
pub(crate) fn tag(packet: &Bytes) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().unwrap());
    (word(0), word(4))
}

/// Bytes around each packet on the line: what `PathRules::overhead_bytes` says.
pub(crate) const OVERHEAD: u32 = 56;

/// A wire in use.
pub(crate) struct Line {
    wire: Wire,
    free_at: f64,
    last_arrival: f64,
}

impl Line {
    pub(crate) fn new(wire: Wire) -> Self {
        Line { wire, free_at: 0.0, last_arrival: 0.0 }
    }

    /// When a packet that is sent now arrives; `None` if it is lost.
    pub(crate) fn carry(&mut self, now: Time, bytes: u64, rng: &mut Rng) -> Option<Time> {
        let now = now.as_secs_f64();
        let rate = self.wire.rate_at(now);
        let waiting = (self.free_at - now).max(0.0) * rate / 8.0;
        if waiting + bytes as f64 > self.wire.queue_bytes as f64 + 1500.0 {
            return None;
        }
        self.free_at = self.free_at.max(now) + bytes as f64 * 8.0 / rate;
        let jitter = self.wire.jitter * rng.uniform();
        let arrival = (self.free_at + at(&self.wire.delays, now) + jitter).max(self.last_arrival);
        let is_out = |&(start, end): &(f64, f64)| start <= arrival && arrival < end || start <= now && now < end;
        if rng.chance(self.wire.loss) || self.wire.outages.iter().any(is_out) {
            return None;
        }
        self.last_arrival = arrival;
        Some(Time::from_secs_f64(arrival))
    }
}

/// A bundle of emulated paths.
pub(crate) struct Network<D> {
    pub(crate) ends: [PathBundle<D>; 2],
    lines: Vec<[Line; 2]>,
    pub(crate) now: Time,
    in_flight: BTreeMap<(Time, u64), (usize, usize, Packet<D>)>,
    count: u64,
    rng: Rng,
    /// What was delivered to each end, and when.
    pub(crate) delivered: [VecDeque<(Time, D)>; 2],
    pub(crate) events: [Vec<(Time, Event)>; 2],
    /// The most bytes that an end has held.
    pub(crate) most_held: u64,
}

impl<D: Payload> Network<D> {
    pub(crate) fn new(
        config: PathBundleConfig,
        paths: impl IntoIterator<Item = (Wire, Wire, PathRules)>,
        seed: u64,
    ) -> Self {
        let end = |at: u64| PathBundle::new(config.clone(), Time::ZERO, seed.wrapping_mul(2) + at);
        let mut ends = [end(0), end(1)];
        let mut lines = Vec::new();
        for (there, back, rules) in paths {
            ends.iter_mut().for_each(|end| {
                end.add_path(Time::ZERO, rules.clone());
            });
            lines.push([there, back].map(Line::new));
        }
        Network {
            ends,
            lines,
            now: Time::ZERO,
            in_flight: BTreeMap::new(),
            count: 0,
            rng: Rng::for_component(seed, 0, "network"),
            delivered: [VecDeque::new(), VecDeque::new()],
            events: [Vec::new(), Vec::new()],
            most_held: 0,
        }
    }

    /// One direction of a path.
    pub(crate) fn wire(&mut self, path: usize, from: usize) -> &mut Wire {
        &mut self.lines[path][from].wire
    }

    fn carry(&mut self, from: usize, path: usize, packet: Packet<D>) {
        let bytes = packet.wire_bytes() as u64 + u64::from(OVERHEAD);
        if let Some(arrival) = self.lines[path][from].carry(self.now, bytes, &mut self.rng) {
            self.count += 1;
            self.in_flight.insert((arrival, self.count), (1 - from, path, packet));
        }
    }

    /// Sends and delivers all that is due now.
    pub(crate) fn settle(&mut self) {
        for from in 0..2 {
            let mut sent = 0;
            while let Some((path, packet)) = self.ends[from].poll_transmit(self.now) {
                self.carry(from, path.0.into(), packet);
                sent += 1;
                assert!(sent < 100_000, "an end sends without end");
            }
            while let Some(data) = self.ends[from].receive() {
                self.delivered[from].push_back((self.now, data));
            }
            while let Some(event) = self.ends[from].poll_event() {
                self.events[from].push((self.now, event));
            }
            let totals = self.ends[from].totals();
            self.most_held = self.most_held.max(totals.queued_bytes + totals.flight_bytes + totals.reorder_bytes);
        }
    }

    /// The next time that something happens by itself.
    pub(crate) fn next(&self) -> Time {
        let arrival = self.in_flight.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let timeouts = self.ends.iter().filter_map(PathBundle::poll_timeout).min().unwrap_or(Time::NEVER);
        arrival.min(timeouts).max(self.now)
    }

    /// Moves to a time that is not later than [`next`](Self::next).
    pub(crate) fn step_to(&mut self, time: Time) {
        self.now = time;
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= time
        {
            let (to, path, packet) = entry.remove();
            self.ends[to].handle_packet(time, PathId(path as u8), &packet);
        }
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|at| at <= time) {
                end.handle_timeout(time);
            }
        }
        self.settle();
    }

    /// Runs until a time, without anybody sending.
    pub(crate) fn run_until(&mut self, until: Time) {
        let mut idle_steps = 0;
        while self.now < until {
            let next = self.next().min(until);
            idle_steps = if next == self.now { idle_steps + 1 } else { 0 };
            assert!(idle_steps < 1000, "time stands still at {}", self.now);
            self.step_to(next);
        }
    }

    /// The carrier of a path goes or comes at one end.
    pub(crate) fn set_carrier(&mut self, end: usize, path: usize, is_up: bool) {
        self.ends[end].set_carrier(self.now, PathId(path as u8), is_up);
        self.settle();
    }
}
