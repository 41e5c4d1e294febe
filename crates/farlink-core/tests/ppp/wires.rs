//! Two ends of a bundle and the lines between them, in virtual time.

use std::collections::VecDeque;

use bytes::Bytes;
use farlink_core::ppp::lcp::Multilink;
use farlink_core::ppp::{
    Accm, Addresses, Bundle, BundleConfig, Cause, Credentials, Discriminator, Event, Identities, LcpConfig, LinkConfig,
    Proof, Secret,
};
use farlink_core::rng::SplitMix64;
use farlink_core::{BitRate, Rng, Time};

/// One direction of a line.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) rate_bps: f64,
    pub(crate) delay: Time,
    /// Probability that a portion of up to `portion` bytes is damaged, or lost.
    pub(crate) damage: f64,
    pub(crate) loss: f64,
    portion: usize,
    /// What is being sent: until when, and how many bytes.
    sending: Option<(Time, Vec<u8>)>,
    arriving: VecDeque<(Time, Vec<u8>)>,
    pub(crate) bytes: u64,
}

impl Way {
    /// The next bytes that have arrived by now.
    fn arrived(&mut self, now: Time) -> Option<Vec<u8>> {
        self.arriving.front().filter(|(at, _)| *at <= now)?;
        self.arriving.pop_front().map(|(_, bytes)| bytes)
    }
}

/// A line: what its ends believe, and whether it carries anything.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) ways: [Way; 2],
    pub(crate) carrier: [bool; 2],
    /// Bytes enter and nothing comes out.
    pub(crate) is_hole: bool,
    /// What an end sends comes back to it.
    pub(crate) is_looped: bool,
}

/// Two ends.
pub(crate) struct Wires {
    pub(crate) now: Time,
    pub(crate) ends: [Bundle<SplitMix64>; 2],
    pub(crate) wires: Vec<Wire>,
    pub(crate) events: [Vec<(Time, Event)>; 2],
    pub(crate) packets: [Vec<(Time, Bytes)>; 2],
    rng: Rng,
}

pub(crate) fn secs(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

/// A configuration with multilink, addresses at both ends, and no proof.
pub(crate) fn config(end: usize, lines: usize, rate_bps: f64) -> BundleConfig {
    let [own, peer] = if end == 0 { [1, 2] } else { [2, 1] }.map(|last| [10, 0, 0, last].into());
    let discriminator = Discriminator::new(1, if end == 0 { b"near" } else { b"far" }).unwrap();
    let multilink = Multilink { mrru: 1500, short_numbers: false, discriminator };
    let lcp = LcpConfig { receive_map: Accm::NONE, multilink: Some(multilink), ..LcpConfig::default() };
    BundleConfig {
        link: LinkConfig { lcp, ..LinkConfig::default() },
        rates: vec![BitRate::new(rate_bps).unwrap(); lines],
        ipv4: Some(Addresses { own, peer }),
        ..BundleConfig::default()
    }
}

/// Both ends prove themselves with one secret.
pub(crate) fn proven(mut config: BundleConfig, end: usize, demands: Vec<Proof>, secret: &str) -> BundleConfig {
    let names: [&[u8]; 2] = [b"near", b"far"];
    let one = |end: usize| Credentials { name: names[end].to_vec(), secret: Secret::new(secret.as_bytes()) };
    config.identities = Identities { own: Some(one(end)), peers: vec![one(1 - end)], demands, shows_password: true };
    config
}

/// A packet of IP version 4 with a number in it.
pub(crate) fn packet(number: u32, length: usize) -> Bytes {
    let mut bytes = vec![0x45; length.max(20)];
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    bytes.iter_mut().skip(20).enumerate().for_each(|(at, byte)| *byte = (at * 7) as u8 ^ number as u8);
    bytes.into()
}

pub(crate) fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[4..8].try_into().unwrap())
}

impl Wires {
    pub(crate) fn new(configs: [BundleConfig; 2], rate_bps: f64, delay: Time, seed: u64) -> Self {
        let lines = configs[0].rates.len();
        let way = || Way {
            rate_bps,
            delay,
            damage: 0.0,
            loss: 0.0,
            portion: 16,
            sending: None,
            arriving: VecDeque::new(),
            bytes: 0,
        };
        let wires = (0..lines)
            .map(|_| Wire { ways: [way(), way()], carrier: [false; 2], is_hole: false, is_looped: false })
            .collect();
        let [near, far] = configs;
        Wires {
            now: Time::ZERO,
            ends: [Bundle::new(near, SplitMix64::new(seed)), Bundle::new(far, SplitMix64::new(!seed))],
            wires,
            events: [vec![], vec![]],
            packets: [vec![], vec![]],
            rng: Rng::for_component(seed, 0, "wires"),
        }
    }

    /// Both ends of a line notice that its call is up or has dropped.
    pub(crate) fn carrier(&mut self, line: usize, is_up: bool) {
        (0..2).for_each(|end| self.carrier_at(end, line, is_up));
    }

    /// One end notices. What is on the way is lost.
    pub(crate) fn carrier_at(&mut self, end: usize, line: usize, is_up: bool) {
        self.wires[line].carrier[end] = is_up;
        for way in &mut self.wires[line].ways {
            way.sending = None;
            way.arriving.clear();
        }
        self.ends[end].on_carrier(self.now, line, is_up);
        self.collect(end);
    }

    pub(crate) fn all_up(&mut self) {
        (0..self.wires.len()).for_each(|line| self.carrier(line, true));
    }

    pub(crate) fn send(&mut self, end: usize, packet: Bytes) -> bool {
        self.send_of(end, packet, 0)
    }

    /// Sends a packet of a flow.
    pub(crate) fn send_of(&mut self, end: usize, packet: Bytes, flow: u64) -> bool {
        let is_taken = self.ends[end].send(self.now, packet, flow);
        self.collect(end);
        is_taken
    }

    /// Runs for so long.
    pub(crate) fn run(&mut self, span: Time) {
        let until = self.now + span;
        let mut steps = 0_u32;
        loop {
            steps += 1;
            assert!(steps < 10_000_000, "time stands still at {}", self.now);
            self.ports();
            let due = self.next_due();
            if due > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(due);
            self.arrivals();
            for end in 0..2 {
                if self.ends[end].poll_timeout().is_some_and(|due| due <= self.now) {
                    self.ends[end].handle_timeout(self.now);
                    self.collect(end);
                }
            }
        }
    }

    fn next_due(&self) -> Time {
        let ways = self.wires.iter().flat_map(|wire| &wire.ways);
        let ports = ways.clone().filter_map(|way| way.sending.as_ref().map(|(until, _)| *until));
        let arrivals = ways.filter_map(|way| way.arriving.front().map(|(at, _)| *at));
        let ends = self.ends.iter().filter_map(Bundle::poll_timeout);
        ports.chain(arrivals).chain(ends).min().unwrap_or(Time::NEVER)
    }

    /// Ports take bytes, and report those that have left.
    fn ports(&mut self) {
        loop {
            let mut is_idle = true;
            for line in 0..self.wires.len() {
                for end in 0..2 {
                    is_idle &= !self.port(line, end);
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn port(&mut self, line: usize, end: usize) -> bool {
        let wire = &mut self.wires[line];
        if !wire.carrier[end] {
            return false;
        }
        let is_through = wire.carrier[1 - end] && !wire.is_hole;
        let way = &mut wire.ways[end];
        if let Some((_, bytes)) = way.sending.take_if(|(until, _)| *until <= self.now) {
            let count = bytes.len();
            if is_through && !self.rng.chance(way.loss) {
                let mut bytes = bytes;
                if self.rng.chance(way.damage) {
                    let at = self.rng.below(count as u64) as usize;
                    bytes[at] ^= 1 << self.rng.below(8);
                }
                way.arriving.push_back((self.now + way.delay, bytes));
            }
            self.ends[end].sent(self.now, line, count);
            self.collect(end);
            return true;
        }
        let mut bytes = Vec::new();
        if way.sending.is_none() && self.ends[end].has_bytes(line) {
            self.ends[end].poll_bytes(line, way.portion, &mut bytes);
            way.bytes += bytes.len() as u64;
            way.sending = Some((self.now + secs(bytes.len() as f64 * 8.0 / way.rate_bps), bytes));
            return true;
        }
        false
    }

    fn arrivals(&mut self) {
        for line in 0..self.wires.len() {
            for end in 0..2 {
                while let Some(bytes) = self.wires[line].ways[end].arrived(self.now) {
                    let to = if self.wires[line].is_looped { end } else { 1 - end };
                    if self.wires[line].carrier[to] {
                        self.ends[to].receive(self.now, line, &bytes);
                        self.collect(to);
                    }
                }
            }
        }
    }

    fn collect(&mut self, end: usize) {
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push((self.now, event));
        }
        while let Some(packet) = self.ends[end].poll_packet() {
            self.packets[end].push((self.now, packet));
        }
    }

    /// Lines that are members at both ends.
    pub(crate) fn members(&self) -> usize {
        (0..self.wires.len()).filter(|&line| self.ends.iter().all(|end| end.status(line).unwrap().is_member)).count()
    }

    pub(crate) fn has_network(&self) -> bool {
        self.ends.iter().all(|end| end.properties().is_some())
    }

    /// Causes that an end has given.
    pub(crate) fn causes(&self, end: usize) -> Vec<Cause> {
        let cause = |(_, event): &(Time, Event)| match event {
            Event::LineDown { cause, .. } => Some(*cause),
            _ => None,
        };
        self.events[end].iter().filter_map(cause).collect()
    }

    /// Numbers of the packets that came to an end.
    pub(crate) fn arrived(&self, end: usize) -> Vec<u32> {
        self.packets[end].iter().map(|(_, packet)| number(packet)).collect()
    }
}
