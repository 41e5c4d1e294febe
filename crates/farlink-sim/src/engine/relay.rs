//! A relay reads from one connection and writes into the next.

use farlink_core::{Event, Time};

/// Progress of the stream at the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// This many bytes were read.
    Read(u64),
    /// This many bytes were given up and will not arrive.
    Skipped(u64),
}

/// Data and events that a connection of a chain keeps for the relays at its ends.
#[derive(Debug, Default)]
pub(super) struct Relay {
    pub(super) chain: u32,
    /// Bytes that the relay at the receiving end has room for.
    pub(super) room: u64,
    /// Whether the last read found no more data.
    pub(super) is_drained: bool,
    pub(super) moved: Vec<Progress>,
    /// Events, with the side of each.
    pub(super) events: Vec<(usize, Event)>,
    /// Position after the last sent byte that was reported to the relay.
    pub(super) sent_end: Option<u32>,
}

impl Relay {
    pub(super) fn on_read(&mut self, bytes: u64) {
        self.room = self.room.saturating_sub(bytes);
        match self.moved.last_mut() {
            Some(Progress::Read(sum)) => *sum += bytes,
            _ => self.moved.push(Progress::Read(bytes)),
        }
    }

    pub(super) fn on_skipped(&mut self, bytes: u64) {
        self.moved.push(Progress::Skipped(bytes));
    }
}

/// The operations of a flow that relays need, independent of the protocol.
pub(super) trait RelayedFlow {
    fn relay(&mut self) -> Option<&mut Relay>;

    /// Side 0 writes; returns how many bytes were taken.
    fn write(&mut self, now: Time, bytes: u32) -> u64;

    /// Side 0 has no more data to write.
    fn close(&mut self, now: Time);

    /// [`Stream::settled_bytes`](farlink_core::Stream::settled_bytes) of side 0.
    fn settled_bytes(&self) -> u64;

    /// Side 1 reads as much as its relay has room for.
    fn read(&mut self, now: Time);

    /// Calls `each` with the length and the time of every new transmission of side 0.
    fn new_transmissions(&mut self, each: &mut dyn FnMut(u64, Time));

    fn take_down(&mut self, side: usize);

    fn is_up(&self, side: usize) -> bool;

    /// See [`Flow::take_reset`](super::flow::Flow::take_reset).
    fn take_reset(&mut self) -> Option<usize>;

    fn has_ended(&self) -> bool;

    /// Index of its [`FlowSetup`](super::FlowSetup).
    fn spec(&self) -> usize;

    /// See [`Flow::restart_transfer`](super::flow::Flow::restart_transfer).
    fn restart_transfer(&mut self, side: usize, asked_bytes: Option<u64>, now: Time);
}
