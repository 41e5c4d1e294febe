//! A path that real packets take: the hops of the simulator with packets that have bytes, in both directions.
//!
//! An [`Emulator`] has neither clock nor device. A driver calls [`handle_packet`](Emulator::handle_packet) with each packet that comes in
//! at one end and the time at which it came. At [`poll_timeout`](Emulator::poll_timeout) it takes the packets that leave, by
//! [`poll`](Emulator::poll) until that returns `None`. Hops decide as in the simulator: the same seed, run and arrivals lose, damage and
//! delay the same packets.

mod counts;
pub mod ip;
mod playable;
mod way;

use crate::hop::Hop;
use crate::link::LinkState;
use crate::path::PathSetup;
use crate::time::Time;

pub use counts::Counts;
pub use playable::{check_playable, classes_of};
use way::Way;

/// A packet, as hops see and change it.
pub trait Parcel {
    /// Bytes on the wire, headers included.
    fn wire_bytes(&self) -> u32;

    /// Its class of service, 0 to 7. It counts at hops that serve classes.
    fn class(&self) -> usize;

    /// Marks it with congestion experienced; returns whether it was marked, which only ECN-capable packets can be.
    fn mark(&mut self) -> bool;

    /// Inverts bits of it, counted from the first bit of its first header. Returns whether anybody would pass it on still: a router drops
    /// packets whose header is wrong.
    fn damage(&mut self, bits: &[u32]) -> bool;
}

/// An end of a path. Packets that come in at one leave at the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender of a scenario's flows.
    Near,
    /// Their receiver.
    Far,
}

impl End {
    /// Both ends: of the way forward, then of the way back.
    pub const BOTH: [End; 2] = [End::Near, End::Far];

    /// The other one.
    #[must_use]
    pub fn other(self) -> End {
        match self {
            End::Near => End::Far,
            End::Far => End::Near,
        }
    }
}

/// A packet that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// When it is due.
    pub due: Time,
    /// When it came in.
    pub came: Time,
    /// The packet, with its mark and its wrong bits.
    pub packet: P,
}

/// A run of a path with real packets.
pub struct Emulator<P> {
    /// From the near end to the far one, and back.
    ways: [Way<P>; 2],
}

impl<P: Parcel> Emulator<P> {
    /// Begins a run. Each way holds up to `most_bytes` bytes of packets, and refuses further ones: a queue without a limit would fill the
    /// memory.
    pub fn new(path: &PathSetup, seed: u64, run: u64, most_bytes: u64) -> Self {
        let hops = Hop::start_both([&path.forward, &path.back], seed, run);
        Emulator { ways: hops.map(|hops| Way::new(hops, most_bytes)) }
    }

    /// A packet comes in at an end. `now` must not decrease from call to call.
    pub fn handle_packet(&mut self, now: Time, at: End, packet: P) {
        self.way_mut(at).handle_packet(now, packet);
    }

    /// When the next packet leaves or a hop has to decide; never if none is under way.
    pub fn poll_timeout(&self) -> Time {
        let [there, back] = &self.ways;
        there.poll_timeout().min(back.poll_timeout())
    }

    /// The next packet that leaves at an end by `now`.
    pub fn poll(&mut self, now: Time, at: End) -> Option<Departure<P>> {
        self.way_mut(at.other()).poll(now)
    }

    /// Counts of the way that begins at an end.
    pub fn counts(&self, from: End) -> &Counts {
        self.ways[from as usize].counts()
    }

    /// Bytes of the packets on the way that begins at an end.
    pub fn held_bytes(&self, from: End) -> u64 {
        self.ways[from as usize].held_bytes()
    }

    /// Whether each hop of the way that begins at an end is up.
    pub fn are_up(&mut self, now: Time, from: End) -> bool {
        self.way_mut(from).is_up(now)
    }

    /// The state of the link into which an end sends, and until when it lasts: what that host's modem knows.
    pub fn own_link(&mut self, now: Time, at: End) -> (LinkState, Time) {
        self.way_mut(at).first_link(now)
    }

    fn way_mut(&mut self, from: End) -> &mut Way<P> {
        &mut self.ways[from as usize]
    }
}

#[cfg(test)]
mod tests;
