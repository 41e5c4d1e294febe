//! What receives a stream: one variant for each family of modes, all with the same face towards the connection.

use crate::payload::Payload;
use crate::time::Time;

use super::coded;
use super::config::AerotpConfig;
use super::mode::Mode;
use super::open_loop;
use super::reliable;
use super::segment::{Mack, Repair};

/// Pieces that a receiver of so many bytes keeps out of order: many small ones take no more than about what the bytes take.
/// `[B6]`, `[B9]`
pub(super) fn most_pieces(buffer_bytes: u64) -> usize {
    (buffer_bytes / BYTES_PER_PIECE) as usize + LEAST_PIECES
}

const LEAST_PIECES: usize = 64;
const BYTES_PER_PIECE: u64 = 64;

/// A segment's data, in positions of the stream.
#[derive(Clone, Debug)]
pub(super) struct Incoming<D> {
    pub(super) position: u64,
    pub(super) payload: D,
    pub(super) is_end: bool,
    /// Its block begins at a position, as far as that fits.
    pub(super) repair: Option<Repair>,
    pub(super) timestamp: u32,
    /// Its sender does not know yet that it was heard.
    pub(super) is_opening: bool,
}

/// Receives a stream.
#[derive(Clone, Debug)]
pub(super) enum Receiving<D> {
    Reliable(reliable::Receiver<D>),
    OpenLoop(open_loop::Receiver<D>),
    Datagrams(open_loop::Inbox<D>),
    Coded(Box<coded::Receiver<D>>),
}

macro_rules! each {
    ($self:expr, $receiver:ident => $call:expr) => {
        match $self {
            Receiving::Reliable($receiver) => $call,
            Receiving::OpenLoop($receiver) => $call,
            Receiving::Datagrams($receiver) => $call,
            Receiving::Coded($receiver) => $call,
        }
    };
}

impl<D: Payload> Receiving<D> {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        match config.mode {
            Mode::Reliable | Mode::NearReliable if config.coded.is_some() => {
                Receiving::Coded(Box::new(coded::Receiver::new(config)))
            }
            Mode::Reliable | Mode::NearReliable => Receiving::Reliable(reliable::Receiver::new(config)),
            Mode::QuasiReliable | Mode::Unreliable => Receiving::OpenLoop(open_loop::Receiver::new(config)),
            Mode::Datagram => Receiving::Datagrams(open_loop::Inbox::new(config)),
        }
    }

    /// A segment with data, the end, or a question has arrived whole. Whether it fits what came before.
    pub(super) fn on_segment(&mut self, now: Time, incoming: Incoming<D>) -> bool {
        each!(self, receiver => receiver.on_segment(now, incoming))
    }

    /// A segment has arrived with so many wrong bits that were mended.
    #[inline]
    pub(super) fn on_mended(&mut self, bits: u16) {
        if let Receiving::OpenLoop(receiver) = self {
            receiver.on_mended(bits);
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        each!(self, receiver => receiver.on_timeout(now));
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        each!(self, receiver => receiver.deadline())
    }

    /// The acknowledgement that is due, if one is: its ACK number 0 as a position, and the rest, whose edges a function puts
    /// into numbers.
    #[inline]
    pub(super) fn next_mack(&mut self, now: Time, number: impl Fn(u64) -> u32) -> Option<(u64, Mack)> {
        match self {
            Receiving::Reliable(receiver) => receiver.next_mack(now, number),
            Receiving::Coded(receiver) => receiver.next_mack(now, number),
            Receiving::OpenLoop(receiver) => receiver.next_mack(now),
            Receiving::Datagrams(_) => None,
        }
    }

    pub(super) fn read(&mut self) -> Option<D> {
        each!(self, receiver => receiver.read())
    }

    /// So many bytes are skipped now: what was next will not come.
    pub(super) fn take_skipped(&mut self) -> Option<u64> {
        match self {
            Receiving::OpenLoop(receiver) => receiver.take_skipped(),
            Receiving::Reliable(receiver) => receiver.take_skipped(),
            Receiving::Coded(receiver) => receiver.take_skipped(),
            Receiving::Datagrams(_) => None,
        }
    }

    /// The sender has given up what is missing before a position. Whether it may have.
    pub(super) fn go_forward(&mut self, to: u64) -> bool {
        match self {
            Receiving::Reliable(receiver) => receiver.go_forward(to),
            Receiving::Coded(receiver) => receiver.go_forward(to),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => false,
        }
    }

    /// The sender asks for room for so much beyond what is here. `[W1]`
    pub(super) fn make_room(&mut self, bytes: u64) {
        match self {
            Receiving::Reliable(receiver) => receiver.make_room(bytes),
            Receiving::Coded(receiver) => receiver.make_room(bytes),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => {}
        }
    }

    /// The length of the window, where there is one, while all is read.
    pub(super) fn buffer_bytes(&self) -> u64 {
        match self {
            Receiving::Reliable(receiver) => receiver.buffer_bytes(),
            Receiving::Coded(receiver) => receiver.buffer_bytes(),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => 0,
        }
    }

    /// Bytes that were given up by who sent them, modulo 2^32; none if nothing ever was.
    pub(super) fn skipped(&self) -> Option<u32> {
        match self {
            Receiving::Reliable(receiver) => receiver.skipped(),
            Receiving::Coded(receiver) => receiver.skipped(),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => None,
        }
    }

    /// The position that everything before has arrived up to.
    #[inline]
    pub(super) fn next_position(&self) -> u64 {
        each!(self, receiver => receiver.next_position())
    }

    /// Whether the stream's end and all before it is here.
    pub(super) fn is_complete(&self) -> bool {
        each!(self, receiver => receiver.is_complete())
    }

    /// Whether all of it was read as well.
    pub(super) fn is_read(&self) -> bool {
        each!(self, receiver => receiver.is_read())
    }

    pub(super) fn peak_bytes(&self) -> u64 {
        each!(self, receiver => receiver.peak_bytes())
    }
}
