//! One host that accepts, many peers that open connections, and a network between them that loses and duplicates.

use std::collections::BTreeMap;

use farlink_core::protocol::ProtocolConfig;
use farlink_core::protocol::aerotp::{Acceptor, AcceptorLimits, AerotpConfig, Connection, Flags, Handle, Segment};
use farlink_core::rng::SplitMix64;
use farlink_core::{Endpoint, Event, Rng, Rx, Stream, Time};
use serde_json::{Value, json};

/// First address of forgers; openers have lower ones.
pub(crate) const FORGED: u16 = 1000;

type Data = Vec<u8>;

/// A segment to the host from an address, or to the opener with that address.
#[derive(Clone, Debug)]
enum Arrival {
    AtHost(u16, Segment<Data>),
    AtOpener(u16, Segment<Data>),
}

/// Events and data of a connection at the host's application.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    pub(crate) read: Data,
}

pub(crate) struct SharedHost {
    pub(crate) config: AerotpConfig,
    pub(crate) limits: AcceptorLimits,
    pub(crate) acceptor: Acceptor<u16, Data>,
    pub(crate) random: SplitMix64,
    pub(crate) openers: BTreeMap<u16, Connection<Data>>,
    pub(crate) now: Time,
    /// Shares of the segments that are lost and that arrive duplicated.
    pub(crate) lost: f64,
    pub(crate) duplicated: f64,
    /// Openers that no segment reaches.
    pub(crate) unreachable: Vec<u16>,
    pub(crate) seen: BTreeMap<Handle, Seen>,
    pub(crate) opener_events: BTreeMap<u16, Vec<Event>>,
    /// Segments that the host sent, with their destinations.
    pub(crate) answers: Vec<(u16, Segment<Data>)>,
    rng: Rng,
    under_way: BTreeMap<(Time, u64), Arrival>,
    count: u64,
}

pub(crate) const ONE_WAY: Time = Time::from_millis(20);

/// Packets of 100 bytes of payload.
pub(crate) fn config(keys: &Value) -> AerotpConfig {
    let mut all = json!({ "packet_bytes": 148 });
    all.as_object_mut().expect("a table").extend(keys.as_object().expect("a table").clone());
    let config: AerotpConfig = serde_json::from_value(all).expect("these are its keys");
    config.check().expect("the settings are consistent");
    config
}

impl SharedHost {
    pub(crate) fn new(keys: &Value, limits: AcceptorLimits, seed: u64) -> Self {
        let config = config(keys);
        let acceptor = Acceptor::new(&config, limits).expect("the mode has connections");
        SharedHost {
            config,
            limits,
            acceptor,
            random: SplitMix64::new(seed),
            openers: BTreeMap::new(),
            now: Time::from_secs(1),
            lost: 0.0,
            duplicated: 0.0,
            unreachable: Vec::new(),
            seen: BTreeMap::new(),
            opener_events: BTreeMap::new(),
            answers: Vec::new(),
            rng: Rng::for_component(seed, 0, "hall"),
            under_way: BTreeMap::new(),
            count: 0,
        }
    }

    /// An opener at an address, which replaces an earlier one, writes its stream and closes.
    pub(crate) fn open(&mut self, address: u16, content: &[u8]) {
        let mut opener = Connection::connect(&self.config, &mut self.random);
        assert_eq!(opener.write(self.now, &mut content.to_vec()), content.len());
        opener.close(self.now);
        self.opener_events.insert(address, Vec::new());
        self.openers.insert(address, opener);
        self.pump();
    }

    /// A segment reaches the host.
    pub(crate) fn arrive(&mut self, from: u16, segment: &Segment<Data>) -> Option<Handle> {
        let handle = self.acceptor.handle_packet(self.now, from, segment, Rx::default(), &mut self.random);
        self.check_limits();
        self.pump();
        handle
    }

    fn check_limits(&self) {
        assert!(self.acceptor.half_open() <= self.limits.half_open, "the backlog exceeds its limit");
        assert!(self.acceptor.handles().count() <= self.limits.connections, "the connections exceed their limit");
    }

    fn pump(&mut self) {
        while let Some((handle, event)) = self.acceptor.poll_event() {
            let seen = self.seen.entry(handle).or_default();
            assert!(!seen.events.is_empty() || event == Event::Connected, "{event:?} of a connection nobody knows");
            seen.events.push(event);
        }
        for handle in self.acceptor.handles().collect::<Vec<_>>() {
            let connection = self.acceptor.get_mut(handle).expect("it is kept");
            while let Some(data) = connection.read() {
                self.seen.entry(handle).or_default().read.extend(data);
            }
            // The host only closes its own stream.
            if self.seen.get(&handle).is_some_and(|seen| seen.events.contains(&Event::Finished)) {
                connection.close(self.now);
            }
        }
        while let Some((handle, event)) = self.acceptor.poll_event() {
            self.seen.entry(handle).or_default().events.push(event);
        }
        while let Some((to, transmit)) = self.acceptor.poll_transmit(self.now) {
            self.answers.push((to, transmit.packet.clone()));
            self.send(Arrival::AtOpener(to, transmit.packet));
        }
        for address in self.openers.keys().copied().collect::<Vec<_>>() {
            let mut sent = Vec::new();
            let opener = self.openers.get_mut(&address).expect("it is one of them");
            while let Some(transmit) = opener.poll_transmit(self.now) {
                sent.push(transmit.packet);
            }
            while let Some(event) = opener.poll_event() {
                self.opener_events.entry(address).or_default().push(event);
            }
            for packet in sent {
                self.send(Arrival::AtHost(address, packet));
            }
        }
    }

    fn send(&mut self, arrival: Arrival) {
        if matches!(&arrival, Arrival::AtOpener(to, _) if self.unreachable.contains(to)) || self.rng.chance(self.lost) {
            return;
        }
        for _ in 0..1 + u32::from(self.rng.chance(self.duplicated)) {
            self.count += 1;
            let delay = ONE_WAY + Time::from_ps(self.rng.below(5_000_000_000));
            self.under_way.insert((self.now + delay, self.count), arrival.clone());
        }
    }

    /// Handles the next event; `false` if there is none before `end`.
    fn step(&mut self, end: Time) -> bool {
        let arrival = self.under_way.first_key_value().map(|(&key, _)| key);
        let timeouts = self.openers.values().filter_map(Endpoint::poll_timeout).chain(self.acceptor.poll_timeout());
        let timeout = timeouts.min().unwrap_or(Time::NEVER);
        let next = arrival.map_or(Time::NEVER, |(at, _)| at).min(timeout);
        if next > end {
            return false;
        }
        self.now = self.now.max(next);
        if let Some(key) = arrival.filter(|(at, _)| *at <= timeout) {
            match self.under_way.remove(&key).expect("it is the first") {
                Arrival::AtHost(from, segment) => {
                    self.arrive(from, &segment);
                }
                Arrival::AtOpener(to, segment) => {
                    if let Some(opener) = self.openers.get_mut(&to) {
                        opener.handle_packet(self.now, &segment, Rx::default());
                    }
                }
            }
        } else {
            self.acceptor.handle_timeout(self.now);
            for opener in self.openers.values_mut() {
                opener.handle_timeout(self.now);
            }
        }
        self.pump();
        true
    }

    pub(crate) fn run_for(&mut self, seconds: f64) {
        let end = self.now + Time::from_secs_f64(seconds);
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 1_000_000, "this does not end");
        }
        self.now = end;
        self.acceptor.handle_timeout(end);
        self.pump();
    }

    /// Data that the host has read from connections of an address, in order. The addresses of discarded connections are
    /// unknown.
    pub(crate) fn streams(&self) -> Vec<&[u8]> {
        self.seen.values().map(|seen| &seen.read[..]).collect()
    }
}

/// The timestamp of a segment sent now.
pub(crate) fn stamp(now: Time) -> u32 {
    (now.as_ps() / 1_000_000) as u32
}

/// Forgers send segments made from `bytes` to a host with few slots, while one opener sends its stream. Whatever they
/// send, limits hold, timers stop, and the stream arrives completely or the opener is informed.
///
/// # Panics
/// If not.
pub(crate) fn forged_segments(bytes: &[u8]) {
    let [seed, limits, program @ ..] = bytes else { return };
    let limits = AcceptorLimits { half_open: 1 + usize::from(limits & 7), connections: 1 + usize::from(limits >> 3) };
    let keys = json!({ "rate_control": "none", "initial_rto_s": 0.1, "give_up_after_s": 60, "listen_timeout_s": 5 });
    let mut host = SharedHost::new(&keys, limits, u64::from(*seed));
    let content: Vec<u8> = (0..2000_u32).map(|at| (at % 251) as u8).collect();
    host.open(1, &content);
    let mut last = Segment::default();
    for operation in program.chunks_exact(4) {
        let &[what, address, value, flags] = operation else { continue };
        let from = FORGED + u16::from(address & 15);
        match what & 7 {
            0 => host.run_for(f64::from(value) * 0.05),
            1 => {
                let handles: Vec<Handle> = host.acceptor.handles().collect();
                let gone = handles.get(usize::from(value) % handles.len().max(1)).copied();
                // The opener's own connection stays.
                if let Some(gone) = gone.filter(|&gone| host.acceptor.address(gone).is_some_and(|at| at >= FORGED)) {
                    host.acceptor.remove(gone);
                }
            }
            2 => {
                host.arrive(from, &last.clone());
            }
            kind => {
                let is_opening = kind < 6;
                let flags = Flags(flags & !(Flags::MACK.0 | Flags::REPAIR.0));
                last = Segment {
                    tag: u16::from(value >> 5),
                    flags: if is_opening { flags.with(Flags::ASYN) } else { flags },
                    sequence: u32::from(value) * 20,
                    timestamp: stamp(host.now),
                    payload: vec![value; usize::from(value & 31)],
                    ..Segment::default()
                };
                host.arrive(from, &last.clone());
            }
        }
    }
    host.run_for(200.0);
    let is_told = host.opener_events[&1].iter().any(|event| matches!(event, Event::Aborted(_)));
    assert!(is_told || host.streams().contains(&&content[..]), "{:?}", host.opener_events);
}
