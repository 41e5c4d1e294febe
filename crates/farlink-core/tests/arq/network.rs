//! Two stations and the network between them, driven by hand in virtual time.

use std::collections::{BTreeMap, VecDeque};

use farlink_core::correction::PacketCode;
use farlink_core::protocol::Pairs;
use farlink_core::protocol::arq::{ArqConfig, Blocks, Flags, Frame, Station};
use farlink_core::{Damage, Endpoint, Event, Packet, Payload, Rx, Stream, Time, Virtual};

use crate::pair::Content;

/// What the network does to one frame.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Lose,
    /// It arrives after this many milliseconds: unequal delays reorder.
    Delay(u64),
    /// It arrives twice.
    Twice(u64, u64),
    /// Bits are flipped, counted from the end of the header, modulo the length after it; in a bare header, from its
    /// start.
    Flip(Vec<u32>),
}

/// A frame that left a side, without its blocks, and its blocks.
pub(crate) type Sent = (Time, usize, Frame<Virtual>, Vec<(u32, u32)>);

/// The frame with only the length of its payload.
pub(crate) fn lengths_of<D: Payload>(frame: &Frame<D>) -> Frame<Virtual> {
    let Frame { flags, number, position, skipped_bytes, ack, nak, nak_count, increment, .. } = *frame;
    let Frame { timestamp, echo, header_bytes, parity_bytes, ref blocks, ref payload, .. } = *frame;
    Frame {
        flags,
        number,
        position,
        skipped_bytes,
        ack,
        nak,
        nak_count,
        increment,
        timestamp,
        echo,
        header_bytes,
        parity_bytes,
        blocks: blocks.clone(),
        payload: Virtual(payload.len() as u32),
    }
}

/// Delay of a network without faults.
pub(crate) const ONE_WAY: Time = Time::from_millis(20);
/// Long enough for any number of timeouts that the faults can cause.
pub(crate) const LONG: Time = Time::from_secs(1_000_000);

/// Limit of frames sent by both sides per frame that arrives or meets a fault: its retransmissions and their
/// acknowledgements. Below five in 12,000 random networks, mostly with few blocks; needless requests could be any
/// number.
const PER_FRAME: usize = 10;
/// Frames in flight when the network becomes good.
const MOST_WINDOW: usize = 20;

pub(crate) struct Network<D> {
    pub(crate) ends: [Station<D>; 2],
    pub(crate) now: Time,
    /// Consumed one per frame sent, by either side; when they are used up, everything arrives after [`ONE_WAY`].
    pub(crate) faults: VecDeque<Fault>,
    /// All frames of this side are lost.
    pub(crate) is_cut: [bool; 2],
    /// Frames arrive in the order they were sent.
    pub(crate) keeps_order: bool,
    last_arrival: [Time; 2],
    under_way: BTreeMap<(Time, u64), (usize, Frame<D>, Rx)>,
    count: u64,
    /// Position of each reader in the other's stream, and the bytes of it that were given up.
    pub(crate) position: [usize; 2],
    pub(crate) skipped: [usize; 2],
    pub(crate) events: [Vec<Event>; 2],
    pub(crate) is_reader_asleep: [bool; 2],
    pub(crate) log: Vec<Sent>,
    /// A run with more frames than this does not end: [`PER_FRAME`] for each frame written and each that meets a fault.
    /// Tests that make a side wait raise it.
    pub(crate) most_sent: usize,
    /// Payload bytes of a full frame.
    shortest_bytes: usize,
    /// Whether to call for timeouts that are not due, repeatedly.
    pub(crate) is_impatient: bool,
}

impl<D: Content> Network<D> {
    pub(crate) fn new(config: &ArqConfig, faults: &[Fault]) -> Self {
        let (one, other) = Pairs::<D>::pair(config, 1);
        Network {
            ends: [one, other],
            now: Time::ZERO,
            faults: faults.iter().cloned().collect(),
            is_cut: [false; 2],
            keeps_order: false,
            last_arrival: [Time::ZERO; 2],
            under_way: BTreeMap::new(),
            count: 0,
            position: [0; 2],
            skipped: [0; 2],
            events: [vec![], vec![]],
            is_reader_asleep: [false; 2],
            log: Vec::new(),
            most_sent: PER_FRAME * (faults.len() + MOST_WINDOW),
            shortest_bytes: config.adaptive_length.map_or(config.segment_bytes, |length| length.min_bytes).whole()
                as usize,
            is_impatient: false,
        }
    }

    /// An application writes its whole stream in pieces, and closes.
    pub(crate) fn write_all(&mut self, side: usize, bytes: usize, piece: usize) {
        let mut at = 0;
        while at < bytes {
            let len = piece.min(bytes - at);
            self.most_sent += PER_FRAME * len.div_ceil(self.shortest_bytes);
            assert_eq!(self.ends[side].write(self.now, &mut D::of_stream(side, at, len)), len);
            at += len;
        }
        self.ends[side].close(self.now);
        assert_eq!(self.ends[side].write(self.now, &mut D::of_stream(side, at, 1)), 0, "it is closed");
    }

    /// Lets a side read, send and report events.
    pub(crate) fn pump(&mut self, side: usize) {
        self.read(side);
        while let Some(transmit) = self.ends[side].poll_transmit(self.now) {
            self.send(side, transmit.packet);
        }
        while !self.is_reader_asleep[side]
            && let Some(event) = self.ends[side].poll_event()
        {
            if let Event::Skipped(bytes) = event {
                self.position[side] += bytes as usize;
                self.skipped[side] += bytes as usize;
                self.read(side);
            }
            self.events[side].push(event);
        }
    }

    fn read(&mut self, side: usize) {
        while !self.is_reader_asleep[side]
            && let Some(data) = self.ends[side].read()
        {
            assert!(data.is_of_stream(1 - side, self.position[side]), "side {side} read other bytes than were sent");
            self.position[side] += data.len();
        }
    }

    fn send(&mut self, side: usize, frame: Frame<D>) {
        let blocks = frame.blocks.iter().map(|block| (block.left, block.right)).collect();
        self.log.push((self.now, side, Frame { blocks: Blocks::default(), ..lengths_of(&frame) }, blocks));
        assert!(self.log.len() < self.most_sent, "this does not end");
        if self.is_cut[side] {
            return;
        }
        let after = |ms| self.now + Time::from_millis(ms);
        let mut rx = Rx::default();
        let arrivals = match self.faults.pop_front() {
            None => vec![self.now + ONE_WAY],
            Some(Fault::Lose) => vec![],
            Some(Fault::Delay(ms)) => vec![after(ms)],
            Some(Fault::Twice(first, second)) => vec![after(first), after(second)],
            Some(Fault::Flip(bits)) => {
                let header = u32::from(frame.header_bytes) * 8;
                let behind = frame.wire_bytes() * 8 - header;
                let place = |bit: &u32| if behind > 0 { header + bit % behind } else { bit % header };
                let mut bits: Vec<u32> = bits.iter().map(place).collect();
                bits.sort_unstable();
                bits.dedup();
                match frame.inspect(&Damage { bits: &bits, code: PacketCode::None }) {
                    None => vec![],
                    Some(integrity) => {
                        rx.integrity = integrity;
                        vec![self.now + ONE_WAY]
                    }
                }
            }
        };
        for at in arrivals {
            let at = if self.keeps_order { at.max(self.last_arrival[side]) } else { at };
            self.last_arrival[side] = at;
            self.count += 1;
            self.under_way.insert((at, self.count), (1 - side, frame.clone(), rx));
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
            for side in [0, 1, 1, 0] {
                self.ends[side].handle_timeout(early);
            }
        }
        self.now = self.now.max(next);
        if let Some(key) = arrival.filter(|(at, _)| *at <= timeout) {
            let (to, frame, rx) = self.under_way.remove(&key).expect("it is the first");
            self.ends[to].handle_packet(next, &frame, rx);
            self.pump(to);
        } else {
            let side = usize::from(timeouts[1] < timeouts[0]);
            self.ends[side].handle_timeout(next);
            if self.is_impatient {
                self.pump(side);
                self.ends[side].handle_timeout(next);
            }
            self.pump(side);
        }
        true
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        self.pump(0);
        self.pump(1);
        while self.step(end) {}
    }

    /// All data has arrived, and no event is left.
    pub(crate) fn assert_done(&self, bytes: [usize; 2]) {
        assert_eq!(self.position, [bytes[1], bytes[0]], "where the readers are");
        for side in [0, 1] {
            let events = &self.events[side];
            assert_eq!(events.first(), Some(&Event::Connected));
            for once in [Event::Finished, Event::Closed] {
                assert_eq!(events.iter().filter(|&&event| event == once).count(), 1, "side {side}: {events:?}");
            }
            assert_eq!(self.ends[side].poll_timeout(), None, "side {side} waits for nothing");
            let given_up = self.ends[1 - side].given_up_bytes();
            assert!(self.skipped[side] as u64 <= given_up, "{} skipped, {given_up} given up", self.skipped[side]);
        }
    }

    /// Frames that a side sent and that have all of these flags.
    pub(crate) fn sent(&self, side: usize, flags: Flags) -> Vec<&Sent> {
        self.log.iter().filter(|sent| sent.1 == side && sent.2.flags.has(flags)).collect()
    }
}

pub(crate) fn transfer<D: Content>(
    config: &ArqConfig,
    faults: &[Fault],
    bytes: [usize; 2],
    piece: usize,
) -> Network<D> {
    let mut network = Network::new(config, faults);
    network.write_all(0, bytes[0], piece);
    network.write_all(1, bytes[1], piece);
    network.run_until(LONG);
    network
}
