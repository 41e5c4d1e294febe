//! The network between two endpoints.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use farlink_core::payload::Virtual;
use farlink_core::protocol::tcp::{Segment, TcpConfig, TcpConnection};
use farlink_core::{Damage, Ecn, Endpoint, Event, Packet, PacketCode, Rx, Stream, Time};
use proptest::prelude::*;

use super::Content;

/// What the network does to one packet.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Lose,
    /// It arrives after this many milliseconds: unequal delays reorder.
    Delay(u64),
    /// It arrives twice.
    Twice(u64, u64),
    /// It arrives in time with this many consecutive wrong bits; the first number chooses their position.
    Damage(u32, u32),
    /// It arrives in time with these wrong bits, counted from the end of the header, modulo the length after it; in a
    /// bare header, from its start.
    Flip(Vec<u32>),
}

/// A sent segment.
pub(crate) type Sent = (Time, usize, Segment<Virtual>);

/// A packet in flight to a side, and its state.
type Arrival<P> = (usize, P, Rx);

/// Delay of a packet, by the side that sends it.
type Delay<P> = dyn FnMut(Time, usize, &P) -> Time;

/// Delay of a network without faults.
pub(crate) const ONE_WAY: Time = Time::from_millis(20);

/// Two endpoints, by default of TCP.
pub(crate) struct Pair<D, E: Endpoint = TcpConnection<D>> {
    pub(crate) ends: [E; 2],
    pub(crate) now: Time,
    /// Consumed one per packet sent; when they are used up, everything arrives after `delay`.
    pub(crate) faults: VecDeque<Fault>,
    /// Delay of a side's packets that arrive in time: without a fault, or damaged. [`ONE_WAY`] unless set.
    pub(crate) delay: Box<Delay<E::Packet>>,
    /// Sides whose packets are all lost; this consumes no fault.
    pub(crate) is_cut: [bool; 2],
    /// Whether packets arrive in the order they were sent, whatever their delays.
    pub(crate) keeps_order: bool,
    last_arrival: [Time; 2],
    under_way: BTreeMap<(Time, u64), Arrival<E::Packet>>,
    count: u64,
    /// The code around each packet.
    pub(crate) code: PacketCode,
    /// Length of a packet's header.
    pub(crate) header_bytes: fn(&E::Packet) -> u32,
    /// Whether an endpoint must take each piece completely, because its send buffer has no limit.
    pub(crate) takes_all_writes: bool,
    /// Data that each side has yet to write: start, end and length of the pieces.
    unwritten: [Option<(usize, usize, usize)>; 2],
    /// Position of each reader in the other's stream, and the bytes of it that were given up.
    pub(crate) received: [usize; 2],
    pub(crate) skipped: [usize; 2],
    pub(crate) events: [Vec<Event>; 2],
    /// Sides whose applications do not read.
    pub(crate) is_reader_asleep: [bool; 2],
    pub(crate) log: Vec<(Time, usize, E::Packet)>,
    /// A run with this many packets does not end.
    pub(crate) most_sent: usize,
    /// By how much a written piece of so many bytes raises `most_sent`.
    pub(crate) most_sent_for: Box<dyn Fn(usize) -> usize>,
    /// Congestion codepoint of each segment in `log`, as sent.
    pub(crate) codepoints: Vec<Ecn>,
    /// Every how many ECN-capable packets one is marked; 0 for none.
    pub(crate) mark_every: u64,
    capable: u64,
    /// Whether to call for timeouts that are not due, repeatedly.
    pub(crate) is_impatient: bool,
    /// Whether no endpoint may ask for a timeout in the past.
    pub(crate) alarms_lie_ahead: bool,
    _payload: std::marker::PhantomData<D>,
}

impl<D: Content> Pair<D> {
    pub(crate) fn new(config: &TcpConfig, seed: u64, faults: &[Fault]) -> Self {
        Pair { mark_every: seed % 5, ..Pair::of(TcpConnection::pair(config, seed), faults) }
    }
}

impl<D: Content, E: Stream<D>> Pair<D, E> {
    pub(crate) fn of((active, passive): (E, E), faults: &[Fault]) -> Self {
        Pair {
            ends: [active, passive],
            now: Time::ZERO,
            faults: faults.iter().cloned().collect(),
            delay: Box::new(|_, _, _| ONE_WAY),
            is_cut: [false; 2],
            keeps_order: false,
            last_arrival: [Time::ZERO; 2],
            under_way: BTreeMap::new(),
            count: 0,
            code: PacketCode::None,
            header_bytes: |packet| packet.wire_bytes() - packet.payload_bytes(),
            takes_all_writes: false,
            unwritten: [None; 2],
            received: [0; 2],
            skipped: [0; 2],
            events: [vec![], vec![]],
            is_reader_asleep: [false; 2],
            log: Vec::new(),
            most_sent: 200_000,
            most_sent_for: Box::new(|_| 0),
            codepoints: Vec::new(),
            mark_every: 0,
            capable: 0,
            is_impatient: false,
            alarms_lie_ahead: false,
            _payload: std::marker::PhantomData,
        }
    }

    /// An application writes its whole stream in pieces, as far as there is room, and closes.
    pub(crate) fn write_all(&mut self, side: usize, bytes: usize, piece: usize) {
        self.unwritten[side] = Some((0, bytes, piece));
        self.write(side);
    }

    /// Writes as much as there is room for.
    fn write(&mut self, side: usize) {
        let Some((mut at, end, piece)) = self.unwritten[side] else { return };
        while at < end {
            let len = piece.min(end - at);
            let taken = self.ends[side].write(self.now, &mut D::of_stream(side, at, len));
            assert!(taken == len || !self.takes_all_writes, "{taken} of {len} bytes were taken");
            self.most_sent += (self.most_sent_for)(taken);
            at += taken;
            self.unwritten[side] = Some((at, end, piece));
            if taken == 0 {
                return; // full
            }
        }
        self.unwritten[side] = None;
        self.ends[side].close(self.now);
        assert_eq!(self.ends[side].write(self.now, &mut D::of_stream(side, end, 1)), 0, "it is closed");
    }

    pub(crate) fn insert(&mut self, at: Time, to: usize, packet: E::Packet) {
        self.insert_as(at, to, packet, Rx::default());
    }

    fn insert_as(&mut self, at: Time, to: usize, packet: E::Packet, rx: Rx) {
        self.count += 1;
        self.under_way.insert((at, self.count), (to, packet, rx));
    }

    /// The codepoint with which a packet arrives.
    fn mark(&mut self, ecn: Ecn) -> Ecn {
        self.capable += u64::from(ecn != Ecn::NotCapable);
        let is_marked = ecn != Ecn::NotCapable && self.mark_every > 0 && self.capable.is_multiple_of(self.mark_every);
        if is_marked { Ecn::Congestion } else { ecn }
    }

    /// The path MTU has fallen: packets in flight that are longer are lost.
    pub(crate) fn lose_longer_than(&mut self, bytes: u32) {
        self.under_way.retain(|_, (_, packet, _)| packet.wire_bytes() <= bytes);
    }

    /// Lets a side read, send and report events.
    pub(crate) fn pump(&mut self, side: usize) {
        self.read(side);
        loop {
            while let Some(transmit) = self.ends[side].poll_transmit(self.now) {
                self.send(side, transmit.packet, transmit.ecn);
            }
            let mut has_acted = false;
            while let Some(event) = self.ends[side].poll_event() {
                self.events[side].push(event);
                match event {
                    Event::Skipped(bytes) => {
                        self.received[side] += bytes as usize;
                        self.skipped[side] += bytes as usize;
                        self.read(side);
                        has_acted = true;
                    }
                    Event::Writable => {
                        has_acted |= self.unwritten[side].is_some();
                        self.write(side);
                    }
                    _ => {}
                }
            }
            if !has_acted {
                break;
            }
        }
    }

    fn read(&mut self, side: usize) {
        if self.is_reader_asleep[side] {
            return;
        }
        while let Some(data) = self.ends[side].read() {
            assert!(data.is_of_stream(1 - side, self.received[side]), "side {side} read other bytes than were sent");
            self.received[side] += data.len();
        }
    }

    fn send(&mut self, side: usize, packet: E::Packet, ecn: Ecn) {
        self.log.push((self.now, side, packet.clone()));
        self.codepoints.push(ecn);
        assert!(self.log.len() < self.most_sent, "this does not end");
        if self.is_cut[side] {
            return;
        }
        let ecn = self.mark(ecn);
        let after = |ms: &u64| self.now + Time::from_millis(*ms);
        let fault = self.faults.pop_front();
        let arrivals = match &fault {
            Some(Fault::Lose) => vec![],
            Some(Fault::Delay(ms)) => vec![after(ms)],
            Some(Fault::Twice(first, second)) => vec![after(first), after(second)],
            None | Some(Fault::Damage(..) | Fault::Flip(_)) => vec![self.now + (self.delay)(self.now, side, &packet)],
        };
        let bits = fault.map_or(vec![], |fault| self.wrong_bits(&packet, &fault));
        let Some(integrity) = packet.inspect(&Damage { bits: &bits, code: self.code }) else { return };
        for at in arrivals {
            let at = if self.keeps_order { at.max(self.last_arrival[side]) } else { at };
            self.last_arrival[side] = at;
            self.insert_as(at, 1 - side, packet.clone(), Rx { ecn, integrity });
        }
    }

    /// Positions of the bits that a fault flips, in ascending order.
    fn wrong_bits(&self, packet: &E::Packet, fault: &Fault) -> Vec<u32> {
        let all = packet.wire_bytes() * 8;
        match fault {
            Fault::Damage(place, count) => {
                let first = place % all.saturating_sub(*count).max(1);
                (first..all.min(first + count)).collect()
            }
            Fault::Flip(bits) => {
                let header = (self.header_bytes)(packet) * 8;
                let place = |bit: &u32| if all > header { header + bit % (all - header) } else { bit % header };
                bits.iter().map(place).collect::<BTreeSet<_>>().into_iter().collect()
            }
            Fault::Lose | Fault::Delay(_) | Fault::Twice(..) => vec![],
        }
    }

    /// Handles the next event; `false` if there is none before `end`.
    pub(crate) fn step(&mut self, end: Time) -> bool {
        let arrival = self.under_way.first_key_value().map(|(&key, _)| key);
        let timeouts = [0, 1].map(|side| self.ends[side].poll_timeout().unwrap_or(Time::NEVER));
        let timeout = timeouts[0].min(timeouts[1]);
        let next = arrival.map_or(Time::NEVER, |(at, _)| at).min(timeout);
        if next == Time::NEVER || next > end {
            return false;
        }
        if self.is_impatient && next > self.now {
            let early = Time::from_ps(next.as_ps() - 1);
            for side in [0, 1] {
                self.ends[side].handle_timeout(early);
                self.ends[side].handle_timeout(early);
            }
        }
        assert!(next >= self.now || !self.alarms_lie_ahead, "an alarm in the past");
        self.now = self.now.max(next);
        if let Some(key) = arrival.filter(|(at, _)| *at <= timeout) {
            let (to, packet, rx) = self.under_way.remove(&key).expect("it is the first");
            self.ends[to].handle_packet(self.now, &packet, rx);
            self.pump(to);
        } else {
            let side = usize::from(timeouts[1] < timeouts[0]);
            self.ends[side].handle_timeout(self.now);
            if self.is_impatient {
                self.pump(side);
                self.ends[side].handle_timeout(self.now);
            }
            self.pump(side);
        }
        true
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        self.pump(0);
        self.pump(1);
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 2_000_000, "timers without end");
        }
    }

    /// As [`Self::run_until`], and then it is `end`.
    pub(crate) fn wait_until(&mut self, end: Time) {
        self.run_until(end);
        self.now = end;
    }

    /// All data has arrived, each side has closed once, and no timer runs.
    pub(crate) fn assert_done(&self, bytes: [usize; 2]) {
        assert_eq!(self.received, [bytes[1], bytes[0]], "bytes received");
        for side in [0, 1] {
            let events = &self.events[side];
            let counted = |event| events.iter().filter(|&&found| found == event).count();
            assert_eq!(counted(Event::Closed), 1, "side {side}: {events:?}");
            // Data may expire before the first answer.
            let first = events.iter().find(|event| !matches!(event, Event::Expired(_)));
            assert_eq!(first, Some(&Event::Connected));
            assert_eq!(self.ends[side].poll_timeout(), None, "side {side} waits for nothing");
        }
    }
}

pub(crate) fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => (1_u64..60).prop_map(Fault::Delay),
        2 => Just(Fault::Lose),
        1 => (1_u64..60, 1_u64..3_000).prop_map(|(first, second)| Fault::Twice(first, second)),
    ]
}

/// A network with a limited number of faults.
pub(crate) fn faults() -> impl Strategy<Value = Vec<Fault>> {
    proptest::collection::vec(fault(), 0..120)
}
