//! Receivers of a stream: one variant for each family of modes, with a common interface for the connection.

use crate::origin::{MoveOrigin, OriginShift};
use crate::payload::Payload;
use crate::time::Time;

#[cfg(feature = "trains")]
use super::absorbed::Absorbed;
use super::coded;
use super::config::AerotpConfig;
use super::incoming::Incoming;
use super::mode::Mode;
use super::open_loop;
use super::reliable;
use super::segment::Mack;

/// Receives a stream.
#[derive(Clone, Debug)]
pub(super) enum Receiving<D> {
    Reliable(reliable::Receiver<D>),
    OpenLoop(open_loop::Receiver<D>),
    Datagrams(open_loop::Inbox<D>),
    Coded(Box<coded::Receiver<D>>),
}

impl<D: Payload> MoveOrigin for Receiving<D> {
    fn move_origin(&mut self, by: OriginShift) {
        match self {
            Receiving::Reliable(receiver) => receiver.move_origin(by),
            Receiving::OpenLoop(receiver) => receiver.move_origin(by),
            Receiving::Datagrams(_) => {} // messages that have arrived
            Receiving::Coded(receiver) => receiver.move_origin(by),
        }
    }
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

    /// Takes an intact segment with data, the end of the stream, or a question. Returns whether it is consistent with earlier
    /// ones.
    pub(super) fn on_segment(&mut self, now: Time, incoming: Incoming<D>) -> bool {
        each!(self, receiver => receiver.on_segment(now, incoming))
    }

    /// Takes the next data in order and counts it as read, if nothing else is to be done for it; without any effect otherwise.
    #[cfg(feature = "trains")]
    #[inline]
    pub(super) fn absorb(&mut self, now: Time, bytes: u64, timestamp: u32) -> Option<Absorbed> {
        match self {
            Receiving::Reliable(receiver) => receiver.absorb(now, bytes, timestamp),
            Receiving::OpenLoop(receiver) => receiver.absorb(now, bytes, timestamp),
            Receiving::Datagrams(_) | Receiving::Coded(_) => None,
        }
    }

    /// Takes data behind a gap, if nothing else is to be done for it; without any effect otherwise.
    #[cfg(feature = "trains")]
    #[inline]
    pub(super) fn absorb_early(&mut self, now: Time, position: u64, payload: &D, timestamp: u32) -> Option<Absorbed> {
        match self {
            Receiving::Reliable(receiver) => receiver.absorb_early(now, position, payload, timestamp),
            _ => None,
        }
    }

    /// A segment has arrived of which `bits` wrong bits were corrected.
    #[inline]
    pub(super) fn on_mended(&mut self, bits: u16) {
        if let Receiving::OpenLoop(receiver) = self {
            receiver.on_mended(bits);
        }
    }

    /// Whether data was skipped or the stream has an end, of which the application is to be told. It may know it already.
    #[inline]
    pub(super) fn may_have_event(&self) -> bool {
        match self {
            Receiving::Reliable(receiver) => receiver.may_have_event(),
            Receiving::OpenLoop(receiver) => receiver.may_have_event(),
            Receiving::Datagrams(_) | Receiving::Coded(_) => true,
        }
    }

    #[inline]
    pub(super) fn on_timeout(&mut self, now: Time) {
        each!(self, receiver => receiver.on_timeout(now));
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        each!(self, receiver => receiver.deadline())
    }

    /// Whether an acknowledgement is due.
    pub(super) fn is_mack_due(&self) -> bool {
        match self {
            Receiving::Reliable(receiver) => receiver.is_mack_due(),
            Receiving::Coded(receiver) => receiver.is_mack_due(),
            Receiving::OpenLoop(receiver) => receiver.is_mack_due(),
            Receiving::Datagrams(_) => false,
        }
    }

    /// Whether an acknowledgement is due, or will be without anything more arriving.
    pub(super) fn owes_mack(&self) -> bool {
        self.is_mack_due() || self.deadline() < Time::NEVER
    }

    /// The acknowledgement that is due, if any: its ACK number 0 as a position, and the rest. `number` converts positions to
    /// sequence numbers.
    #[inline]
    pub(super) fn next_mack(&mut self, now: Time, number: impl Fn(u64) -> u32) -> Option<(u64, Box<Mack>)> {
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

    /// The number of bytes to skip now, because the next data will not arrive.
    pub(super) fn take_skipped(&mut self) -> Option<u64> {
        match self {
            Receiving::OpenLoop(receiver) => receiver.take_skipped(),
            Receiving::Reliable(receiver) => receiver.take_skipped(),
            Receiving::Coded(receiver) => receiver.take_skipped(),
            Receiving::Datagrams(_) => None,
        }
    }

    /// The sender has given up all missing data before a position. Returns whether that is allowed.
    pub(super) fn go_forward(&mut self, to: u64) -> bool {
        match self {
            Receiving::Reliable(receiver) => receiver.go_forward(to),
            Receiving::Coded(receiver) => receiver.go_forward(to),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => false,
        }
    }

    /// The sender requests a window of `bytes` beyond the received data. `[W1]`
    pub(super) fn make_room(&mut self, bytes: u64) {
        match self {
            Receiving::Reliable(receiver) => receiver.make_room(bytes),
            Receiving::Coded(receiver) => receiver.make_room(bytes),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => {}
        }
    }

    /// The length of the window when all data was read, where there is a window.
    pub(super) fn buffer_bytes(&self) -> u64 {
        match self {
            Receiving::Reliable(receiver) => receiver.buffer_bytes(),
            Receiving::Coded(receiver) => receiver.buffer_bytes(),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => 0,
        }
    }

    /// The report on overtaken segments in the acknowledgement that was just made. `[A10]`
    pub(super) fn take_overtaken(&mut self) -> Option<u32> {
        match self {
            Receiving::Reliable(receiver) => receiver.take_overtaken(),
            Receiving::Coded(receiver) => receiver.take_overtaken(),
            Receiving::OpenLoop(receiver) => receiver.take_overtaken(),
            Receiving::Datagrams(_) => None,
        }
    }

    /// Bytes that the sender gave up and this side skipped, modulo 2^32; `None` if there were none.
    pub(super) fn skipped(&self) -> Option<u32> {
        match self {
            Receiving::Reliable(receiver) => receiver.skipped(),
            Receiving::Coded(receiver) => receiver.skipped(),
            Receiving::OpenLoop(_) | Receiving::Datagrams(_) => None,
        }
    }

    /// The position up to which all data has arrived.
    #[inline]
    pub(super) fn next_position(&self) -> u64 {
        each!(self, receiver => receiver.next_position())
    }

    /// Whether the whole stream including its end has arrived.
    pub(super) fn is_complete(&self) -> bool {
        each!(self, receiver => receiver.is_complete())
    }

    /// Whether the whole stream was read as well.
    pub(super) fn is_read(&self) -> bool {
        each!(self, receiver => receiver.is_read())
    }

    pub(super) fn peak_bytes(&self) -> u64 {
        each!(self, receiver => receiver.peak_bytes())
    }
}
