//! A relay: reads at the end of one connection and writes into the next.

use farlink_core::{Event, Time};

/// What came out of a connection, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// So many bytes.
    Read(u64),
    /// So many bytes will not come.
    Skipped(u64),
}

/// What a connection that is part of a chain keeps for the relays at its ends until they look.
#[derive(Debug, Default)]
pub(super) struct Relay {
    pub(super) chain: u32,
    /// Bytes that the relay behind it has room for.
    pub(super) room: u64,
    /// There was nothing more to read at the last look.
    pub(super) is_drained: bool,
    pub(super) moved: Vec<Moved>,
    /// Events, with the side of each.
    pub(super) mail: Vec<(usize, Event)>,
    /// Position behind the last byte sent that the relay knows of.
    pub(super) sent_end: Option<u32>,
}

impl Relay {
    pub(super) fn on_read(&mut self, bytes: u64) {
        self.room = self.room.saturating_sub(bytes);
        match self.moved.last_mut() {
            Some(Moved::Read(sum)) => *sum += bytes,
            _ => self.moved.push(Moved::Read(bytes)),
        }
    }

    pub(super) fn on_skipped(&mut self, bytes: u64) {
        self.moved.push(Moved::Skipped(bytes));
    }
}

/// A flow, whatever its protocol, as relays see it.
pub(super) trait Joint {
    fn relay(&mut self) -> Option<&mut Relay>;

    /// Side 0 writes; returns how many bytes were taken.
    fn write(&mut self, now: Time, bytes: u32) -> u64;

    /// Side 0 has no more to write.
    fn close(&mut self, now: Time);

    /// See [`Stream::settled_bytes`](farlink_core::Stream::settled_bytes); of side 0.
    fn settled_bytes(&self) -> u64;

    /// Side 1 reads what its relay has room for.
    fn read(&mut self, now: Time);

    /// Side 0's new transmissions: bytes and instant of each.
    fn new_transmissions(&mut self, each: &mut dyn FnMut(u64, Time));

    fn take_down(&mut self, side: usize);

    fn is_up(&self, side: usize) -> bool;

    /// See [`Flow::take_reset`](super::flow::Flow::take_reset).
    fn take_reset(&mut self) -> Option<usize>;

    fn has_ended(&self) -> bool;

    /// Which of the scenario's flows it is.
    fn spec(&self) -> usize;

    /// See [`Flow::begin_anew`](super::flow::Flow::begin_anew).
    fn begin_anew(&mut self, side: usize, asked_bytes: Option<u64>, now: Time);
}
