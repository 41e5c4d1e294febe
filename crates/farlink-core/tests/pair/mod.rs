//! Two endpoints and the network between them, driven by hand in virtual time: no engine, no link, no channel.

pub(crate) mod content;
pub(crate) mod examples;
pub(crate) mod forgery;
pub(crate) mod operations;
pub(crate) mod shared_host;

use std::collections::{BTreeMap, VecDeque};

pub(crate) use content::Content;
use farlink_core::payload::{Payload, Virtual};
use farlink_core::protocol::ProtocolConfig;
use farlink_core::protocol::parts::rto::RtoConfig;
use farlink_core::protocol::scps::ScpsConfig;
use farlink_core::protocol::tcp::variant::Variant;
use farlink_core::protocol::tcp::{CongestionControl, LossMeans, Segment, TcpConfig, TcpConnection};
use farlink_core::units::{BitRate, Count, PositiveSeconds, Seconds};
use farlink_core::{Damage, Ecn, Endpoint, Event, Integrity, Packet, PacketCode, Rx, Stream, Time};
use proptest::prelude::*;

/// What the network does to one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Lose,
    /// It arrives after this many milliseconds: unequal delays reorder.
    Delay(u64),
    /// It arrives twice.
    Twice(u64, u64),
    /// It arrives in time with this many consecutive wrong bits; the first number chooses their position.
    Damage(u32, u32),
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
    /// Consumed one per packet sent; when they are used up, everything arrives after [`ONE_WAY`].
    pub(crate) faults: VecDeque<Fault>,
    /// Delay of a side's packets when the faults are used up.
    pub(crate) delay: Box<Delay<E::Packet>>,
    under_way: BTreeMap<(Time, u64), Arrival<E::Packet>>,
    count: u64,
    /// The code around each packet.
    pub(crate) code: PacketCode,
    /// Data that each side has yet to write: start, end and length of the pieces.
    unwritten: [Option<(usize, usize, usize)>; 2],
    /// Position of each reader in the other's stream, and the bytes of it that were given up.
    pub(crate) received: [usize; 2],
    pub(crate) skipped: [usize; 2],
    pub(crate) events: [Vec<Event>; 2],
    /// Sides whose applications do not read.
    pub(crate) is_reader_asleep: [bool; 2],
    pub(crate) log: Vec<(Time, usize, E::Packet)>,
    /// Congestion codepoint of each segment in `log`, as sent.
    pub(crate) codepoints: Vec<Ecn>,
    /// Every how many ECN-capable packets one is marked; 0 for none.
    pub(crate) mark_every: u64,
    capable: u64,
    /// Whether to call for timeouts that are not due, repeatedly.
    pub(crate) is_impatient: bool,
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
            faults: faults.iter().copied().collect(),
            delay: Box::new(|_, _, _| ONE_WAY),
            under_way: BTreeMap::new(),
            count: 0,
            code: PacketCode::None,
            unwritten: [None; 2],
            received: [0; 2],
            skipped: [0; 2],
            events: [vec![], vec![]],
            is_reader_asleep: [false; 2],
            log: Vec::new(),
            codepoints: Vec::new(),
            mark_every: 0,
            capable: 0,
            is_impatient: false,
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
            let mut data = D::of_stream(side, at, piece.min(end - at));
            let taken = self.ends[side].write(self.now, &mut data);
            at += taken;
            self.unwritten[side] = Some((at, end, piece));
            if taken == 0 {
                return; // full
            }
        }
        self.unwritten[side] = None;
        self.ends[side].close(self.now);
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
        assert!(self.log.len() < 200_000, "this does not end");
        let mut rx = Rx { ecn: self.mark(ecn), ..Rx::default() };
        let after = |ms| self.now + Time::from_millis(ms);
        let arrivals = match self.faults.pop_front() {
            None => vec![self.now + (self.delay)(self.now, side, &packet)],
            Some(Fault::Lose) => vec![],
            Some(Fault::Delay(ms)) => vec![after(ms)],
            Some(Fault::Twice(first, second)) => vec![after(first), after(second)],
            Some(Fault::Damage(place, count)) => match self.damage(&packet, place, count) {
                Some(integrity) => {
                    rx.integrity = integrity;
                    vec![self.now + ONE_WAY]
                }
                None => vec![],
            },
        };
        for at in arrivals {
            self.insert_as(at, 1 - side, packet.clone(), rx);
        }
    }

    /// State of a packet with this many wrong bits.
    fn damage(&self, packet: &E::Packet, place: u32, count: u32) -> Option<Integrity> {
        let all = packet.wire_bytes() * 8;
        let first = place % all.saturating_sub(count).max(1);
        let bits: Vec<u32> = (first..all.min(first + count)).collect();
        packet.inspect(&Damage { bits: &bits, code: self.code })
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

    /// All data has arrived, and no event is left.
    pub(crate) fn assert_done(&self, bytes: [usize; 2]) {
        assert_eq!(self.received, [bytes[1], bytes[0]], "bytes received");
        for side in [0, 1] {
            assert!(self.events[side].contains(&Event::Closed), "side {side}: {:?}", self.events[side]);
            // Data may expire before the first answer.
            let first = self.events[side].iter().find(|event| !matches!(event, Event::Expired(_)));
            assert_eq!(first, Some(&Event::Connected));
            assert_eq!(self.ends[side].poll_timeout(), None, "side {side} waits for nothing");
        }
    }
}

pub(crate) fn without_content<D: Payload>(segment: &Segment<D>) -> Segment<Virtual> {
    let Segment { seq, ack, flags, header_bytes, window, timestamps, syn, sack, snack, corruption_experienced, .. } =
        *segment;
    let payload = Virtual(segment.payload.len() as u32);
    Segment { seq, ack, flags, header_bytes, window, timestamps, syn, sack, snack, corruption_experienced, payload }
}

pub(crate) fn count(n: u64) -> Count {
    Count::new(n as f64).unwrap()
}

/// A connection of small segments, so that a few kilobytes make many, and of large windows.
pub(crate) fn small(variant: Variant) -> TcpConfig {
    TcpConfig { variant, segment_bytes: count(100), max_window_segments: Some(count(30)), ..TcpConfig::default() }
}

/// All options, and windows down to one segment.
pub(crate) fn configs() -> impl Strategy<Value = TcpConfig> {
    let flags = (any::<[bool; 8]>(), any::<[Option<bool>; 4]>());
    let windows = (1_u64..12, proptest::option::of(1_u64..12), 1_u64..25, proptest::option::of(1_u64..10));
    let rto = (prop_oneof![Just(0.0), Just(0.2), Just(1.0)], prop_oneof![Just(0.0), Just(0.001), Just(0.1)]);
    let variant = (proptest::sample::select(Variant::ALL), proptest::sample::select(CongestionControl::ALL))
        .prop_filter("rates need selective acknowledgements", |(variant, control)| {
            variant.uses_sack() || !control.measures_rates()
        });
    (variant, flags, windows, rto, 1_u64..150, 1_u64..6).prop_map(
        |((variant, congestion_control), flags, windows, (minimum_s, granularity_s), segment_bytes, threshold)| {
            let (flags, [prr, dsack, f_rto, tail_loss_probe]) = flags;
            let [delayed_ack, limited_transmit, handshake, fin, timestamps, recover_guard, restart_after_idle, ecn] =
                flags;
            let (initial_window, ssthresh, max_window, receive_window) = windows;
            TcpConfig {
                variant,
                congestion_control,
                segment_bytes: count(segment_bytes),
                initial_window_segments: count(initial_window),
                initial_ssthresh_segments: ssthresh.map(count),
                max_window_segments: Some(count(max_window)),
                receive_window_segments: receive_window.map(count),
                duplicate_ack_threshold: count(threshold),
                limited_transmit,
                delayed_ack,
                delayed_ack_timeout_s: PositiveSeconds::new(0.1).unwrap(),
                handshake,
                fin,
                timestamps,
                recover_guard,
                restart_after_idle,
                prr: prr.filter(|_| variant.uses_sack()),
                dsack: dsack.filter(|_| variant.uses_sack()),
                tail_loss_probe: tail_loss_probe.filter(|_| variant == Variant::Rack),
                f_rto,
                ecn,
                // Without window scaling, the windows differ only by rounding.
                window_scaling: !ecn,
                rto: RtoConfig {
                    minimum_s: Some(Seconds::new(minimum_s).unwrap()),
                    granularity_s: Seconds::new(granularity_s).unwrap(),
                    ..RtoConfig::default()
                },
                ..TcpConfig::default()
            }
        },
    )
}

/// SCPS-TP with all extensions or none; best-effort transport only on request.
pub(crate) fn scps_configs(is_best_effort: bool) -> impl Strategy<Value = ScpsConfig> {
    let variant = prop_oneof![3 => Just(Variant::Snack), 1 => proptest::sample::select(Variant::ALL)];
    let windows = (proptest::option::of(1_u64..12), 1_u64..25, proptest::option::of(1_u64..10));
    let control =
        proptest::sample::select(&[CongestionControl::Reno, CongestionControl::Vegas, CongestionControl::None][..]);
    let rate = proptest::option::of(2e4..1e6_f64);
    let means = proptest::sample::select(&[LossMeans::Congestion, LossMeans::Corruption, LossMeans::Signalled][..]);
    let acks = (proptest::option::of(1_u64..20), proptest::option::of(0.01..0.5_f64));
    let copies = (prop_oneof![2 => Just(1_u64), 1 => 2_u64..4], 0.0..0.1_f64);
    let best_effort = (proptest::option::of(1_u64..5), 0.01..3.0_f64);
    let rest = (any::<[bool; 4]>(), 1_u64..150, 1_u64..=22, best_effort);
    (variant, windows, control, rate, means, acks, copies, rest).prop_map(
        move |(variant, windows, congestion_control, rate, loss_means, acks, (copies, spacing), rest)| {
            let ([handshake, timestamps, header_compression, ecn], segment_bytes, vector, (most, hold)) = rest;
            let seconds = |s| PositiveSeconds::new(s).unwrap();
            let config = ScpsConfig {
                variant,
                snack_vector_bytes: variant.uses_snack().then(|| count(vector)),
                congestion_control,
                rate_bps: rate.map(|rate| BitRate::new(rate).unwrap()),
                loss_means,
                max_transmissions: most.filter(|_| is_best_effort).map(count),
                hold_time_s: is_best_effort.then(|| seconds(hold)),
                header_compression,
                ecn: ecn && congestion_control != CongestionControl::None,
                copies: count(copies),
                copy_spacing_s: Seconds::new(if copies > 1 { spacing } else { 0.0 }).unwrap(),
                ack_every_segments: acks.0.map(count),
                ack_interval_s: acks.1.map(seconds),
                segment_bytes: count(segment_bytes),
                initial_window_segments: windows.0.map(count),
                max_window_segments: Some(count(windows.1)),
                receive_window_segments: windows.2.map(count),
                handshake,
                timestamps,
                ..ScpsConfig::default()
            };
            config.check().expect("no contradiction");
            config
        },
    )
}

/// A network with a limited number of faults.
pub(crate) fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        3 => (1_u64..60).prop_map(Fault::Delay),
        2 => Just(Fault::Lose),
        1 => (1_u64..60, 1_u64..3_000).prop_map(|(first, second)| Fault::Twice(first, second)),
    ];
    proptest::collection::vec(fault, 0..120)
}
