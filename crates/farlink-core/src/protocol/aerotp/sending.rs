//! What sends a stream: one variant for each family of modes, all with the same face towards the connection.

use crate::payload::Payload;
use crate::time::Time;

use super::asking::Left;
use super::coded;
use super::config::AerotpConfig;
use super::mode::Mode;
use super::open_loop;
use super::reliable;
use super::segment::{MOST_EDGES, Repair};

/// What may be written ahead of what was sent, in the reliable modes: less than who has no end of data writes at once, so that
/// such a writer is told when there is room again.
pub(super) const ROOM_BYTES: u64 = 1 << 30;

/// Something to be sent. The connection makes a segment of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outgoing<D> {
    /// Where its first byte stands in the stream.
    pub(super) position: u64,
    pub(super) payload: D,
    /// The stream ends behind it.
    pub(super) is_end: bool,
    /// It is a repair symbol instead of data, or describes the coded block that its data is of; the block's beginning is a
    /// position, as far as it fits.
    pub(super) repair: Option<Repair>,
}

/// What a MACK said, in positions of the stream; checked against what was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Everything before has arrived.
    pub(super) ack: u64,
    /// When the segment was sent that it echoes, in ticks.
    pub(super) echo: u64,
    /// The round trip that this makes, without the time for which the receiver held it.
    pub(super) round_trip: Time,
    /// Up to where may be sent.
    pub(super) window_end: u64,
    pub(super) blocks: [(u64, u64); MOST_EDGES / 2],
    pub(super) block_count: usize,
    pub(super) is_from_start: bool,
    pub(super) is_to_end: bool,
    /// What the MACK said of room, as it stood there: without acknowledgements, how many wrong bits were mended.
    pub(super) window: u32,
    /// Segments that arrived damaged so far.
    pub(super) damaged: u16,
    /// Where coded blocks begin, and how many symbols each wants; none if it lists blocks that have arrived.
    pub(super) deficits: [(u64, u64); MOST_EDGES / 2],
    pub(super) deficit_count: usize,
    /// It says how many segments have arrived so far, instead of blocks; and how many.
    pub(super) counts_segments: bool,
    pub(super) arrived: u32,
    /// Bytes that the peer has skipped so far, modulo 2^32, if any.
    pub(super) skipped: Option<u32>,
}

impl Heard {
    /// What has arrived beyond `ack`, in ascending order.
    pub(super) fn blocks(&self) -> &[(u64, u64)] {
        &self.blocks[..self.block_count]
    }

    /// `[A9]` Whether it says of a position beyond `ack` if it has arrived: it does between blocks, unless an empty block stands
    /// there.
    pub(super) fn describes(&self, position: u64) -> bool {
        let at = self.blocks().partition_point(|block| block.1 <= position);
        let is_before_known = self.blocks().get(at).map_or(self.is_to_end, |block| block.0 < block.1);
        let is_behind_known = match at.checked_sub(1) {
            Some(before) => self.blocks()[before].0 < self.blocks()[before].1,
            None => self.is_from_start,
        };
        is_before_known && is_behind_known
    }

    /// How much of the stream has arrived by it; segments count as full ones where it counts those.
    pub(super) fn arrived_bytes(&self, payload_bytes: u64) -> u64 {
        let beyond: u64 = self.blocks().iter().map(|(start, end)| end - start).sum();
        if self.counts_segments { u64::from(self.arrived) * payload_bytes } else { self.ack + beyond }
    }

    /// Whether something before what has arrived is missing, or may be.
    pub(super) fn has_gaps(&self) -> bool {
        self.counts_segments || self.block_count > 0
    }

    /// Coded blocks that are known to the peer, and how many symbols each wants.
    pub(super) fn deficits(&self) -> &[(u64, u64)] {
        &self.deficits[..self.deficit_count]
    }
}

/// Sends a stream.
#[derive(Clone, Debug)]
pub(super) enum Sending<D> {
    Reliable(reliable::Sender<D>),
    OpenLoop(open_loop::Sender<D>),
    Datagrams(open_loop::Outbox<D>),
    Coded(Box<coded::Sender<D>>),
}

/// The same call for each variant.
macro_rules! each {
    ($self:expr, $sender:ident => $call:expr) => {
        match $self {
            Sending::Reliable($sender) => $call,
            Sending::OpenLoop($sender) => $call,
            Sending::Datagrams($sender) => $call,
            Sending::Coded($sender) => $call,
        }
    };
}

impl<D: Payload> Sending<D> {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        match config.mode {
            Mode::Reliable | Mode::NearReliable if config.coded.is_some() => {
                Sending::Coded(Box::new(coded::Sender::new(config)))
            }
            Mode::Reliable | Mode::NearReliable => Sending::Reliable(reliable::Sender::new(config)),
            Mode::QuasiReliable | Mode::Unreliable => Sending::OpenLoop(open_loop::Sender::new(config)),
            Mode::Datagram => Sending::Datagrams(open_loop::Outbox::new(config)),
        }
    }

    /// Takes data; how much of it.
    pub(super) fn write(&mut self, now: Time, data: &mut D) -> usize {
        each!(self, sender => sender.write(now, data))
    }

    /// Nothing more will be written.
    pub(super) fn close(&mut self) {
        each!(self, sender => sender.close());
    }

    /// The next thing to send, of at most so many bytes of payload; when it goes out, it is sent.
    #[inline]
    pub(super) fn next(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        each!(self, sender => sender.next(now, most_bytes))
    }

    pub(super) fn on_mack(&mut self, now: Time, heard: &Heard) {
        each!(self, sender => sender.on_mack(now, heard));
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        each!(self, sender => sender.on_timeout(now));
    }

    /// The link carries something again, or nothing.
    pub(super) fn on_link(&mut self, now: Time, is_up: bool) {
        each!(self, sender => sender.on_link(now, is_up));
    }

    /// The link's bit error rate is this from now on.
    pub(super) fn on_ber(&mut self, now: Time, ber: f64) {
        match self {
            Sending::Reliable(sender) => sender.on_ber(now, ber),
            Sending::Coded(sender) => sender.on_ber(now, ber),
            Sending::OpenLoop(_) | Sending::Datagrams(_) => {}
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due, but for the pacer.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        each!(self, sender => sender.deadline())
    }

    /// From when on [`next`](Self::next) gives something; never if it does not.
    #[inline]
    pub(super) fn ready_at(&self) -> Time {
        each!(self, sender => sender.ready_at())
    }

    /// Since when an answer is awaited; never if none is.
    pub(super) fn awaits_since(&self) -> Time {
        each!(self, sender => sender.awaits_since())
    }

    /// First position that is not acknowledged, and the one behind everything that was sent, the end included.
    #[inline]
    pub(super) fn limits(&self) -> (u64, u64) {
        each!(self, sender => sender.limits())
    }

    /// What is left of the peer's window, if there is data for it.
    pub(super) fn left(&self) -> Option<Left> {
        match self {
            Sending::Reliable(sender) => sender.left(),
            Sending::Coded(sender) => sender.left(),
            Sending::OpenLoop(_) | Sending::Datagrams(_) => None,
        }
    }

    /// Up to where nothing goes out again. `[U1]`, `[N3]`
    pub(super) fn settled_bytes(&self) -> u64 {
        match self {
            Sending::Reliable(_) | Sending::Coded(_) => self.limits().0,
            Sending::OpenLoop(sender) => sender.settled_bytes(),
            Sending::Datagrams(sender) => sender.limits().1,
        }
    }

    /// Whether all data was written, sent and acknowledged; perhaps not its end.
    pub(super) fn is_all_acknowledged(&self) -> bool {
        each!(self, sender => sender.is_all_acknowledged())
    }

    /// Whether the end was acknowledged as well.
    pub(super) fn is_done(&self) -> bool {
        each!(self, sender => sender.is_done())
    }

    /// The class of what [`next`](Self::next) gave last.
    #[inline]
    pub(super) fn class(&self) -> u8 {
        if let Sending::Datagrams(outbox) = self { outbox.class() } else { 0 }
    }

    /// Whether codes across packets are made, if there are any.
    pub(super) fn set_coded(&mut self, is_coded: bool) {
        if let Sending::OpenLoop(sender) = self {
            sender.set_coded(is_coded);
        }
    }

    /// Bytes that were given up for their age since the last call.
    pub(super) fn take_expired(&mut self) -> u64 {
        match self {
            Sending::Reliable(sender) => sender.take_expired(),
            Sending::Coded(sender) => sender.take_expired(),
            Sending::OpenLoop(sender) => sender.take_expired(),
            Sending::Datagrams(sender) => sender.take_expired(),
        }
    }

    /// Where the stream goes on behind what was given up, if the peer has to be told and there are so many bytes of room.
    #[inline]
    pub(super) fn tell_forward(&mut self, now: Time, room: u32) -> Option<u64> {
        match self {
            Sending::Reliable(sender) => sender.tell_forward(now, room),
            Sending::Coded(sender) => sender.tell_forward(now, room),
            Sending::OpenLoop(_) | Sending::Datagrams(_) => None,
        }
    }

    /// Whether there is room again that somebody waits for; tells once.
    pub(super) fn take_writable(&mut self) -> bool {
        each!(self, sender => sender.take_writable())
    }

    pub(super) fn account(&self) -> &Account {
        each!(self, sender => &sender.account)
    }
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Segments whose answer was overdue.
    pub(super) timeouts: u64,
    /// Segments that later ones overtook.
    pub(super) overtaken: u64,
    pub(super) peak_bytes: u64,
    pub(super) in_flight_bytes: u64,
    pub(super) latest_round_trip: Option<Time>,
}
