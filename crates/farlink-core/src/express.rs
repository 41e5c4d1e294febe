//! A shortcut for drivers in virtual time: usual packets one by one, and trains of packets in one step.
//!
//! Everything that uses it could use [`Endpoint`] with the same outcome, and a driver falls back to that whenever the shortcut
//! says so. It exists because a packet with all its options costs more to build and copy than to handle, and because packets at
//! equal distances mostly have the same effect.

use crate::endpoint::{Endpoint, Packet};
use crate::time::Time;

/// A packet without options or damage; many consecutive ones differ in one number only.
pub trait PlainPacket: Packet + Copy + Default {
    /// The difference between that number in `next` and in this packet; `None` if they differ otherwise.
    fn step_to(&self, _next: &Self) -> Option<u32> {
        None
    }

    /// The packet `n` steps later.
    fn ahead(&self, _step: u32, _n: u32) -> Self {
        *self
    }
}

/// Packets that follow each other at equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Train<P> {
    /// The first packet.
    pub first: P,
    /// Difference between the numbers of successive packets.
    pub step: u32,
    /// Number of packets; 0 is an empty train.
    pub count: u32,
    /// When the first one is sent or arrives.
    pub at: Time,
    /// Time between two successive packets.
    pub gap: Time,
}

impl<P: PlainPacket> Train<P> {
    /// A train of one.
    #[inline(always)]
    pub fn one(first: P, at: Time) -> Self {
        Train { first, step: 0, count: 1, at, gap: Time::ZERO }
    }

    /// When packet `n` is sent or arrives; the first is number 0.
    #[inline(always)]
    pub fn time(&self, n: u32) -> Time {
        // The last packet's time is valid, so none overflows.
        Time::from_ps(self.at.as_ps().wrapping_add(self.gap.as_ps().wrapping_mul(u64::from(n))))
    }

    /// Removes the first `n` packets.
    #[inline(always)]
    pub fn skip(&mut self, n: u32) {
        self.at = self.time(n);
        self.first = self.first.ahead(self.step, n);
        self.count -= n;
    }

    /// Appends `other`; returns `false`, without any effect, if it does not continue this train.
    #[inline]
    pub fn couple(&mut self, other: &Self) -> bool {
        let last = self.count - 1;
        let Some(step) = self.first.ahead(self.step, last).step_to(&other.first) else { return false };
        let gap = other.at.since(self.time(last));
        let fits = |train: &Self| train.count == 1 || (train.step == step && train.gap == gap);
        let Some(count) = self.count.checked_add(other.count).filter(|_| fits(self) && fits(other)) else {
            return false;
        };
        *self = Train { step, gap, count, ..*self };
        true
    }
}

/// An endpoint with the shortcut; the default implementation never uses it.
pub trait Express: Endpoint {
    /// A packet without rare options.
    type Plain: PlainPacket;

    /// As [`Endpoint::handle_packet`], for an intact packet. Returns `false`, without any effect, if `handle_packet` is to be
    /// used.
    fn handle_plain(&mut self, _now: Time, _plain: &Self::Plain) -> bool {
        false
    }

    /// As [`Endpoint::poll_transmit`], for packets whose loss is not reported to the endpoint.
    fn poll_plain(&mut self, _now: Time) -> Plain<Self::Plain> {
        Plain::Ask
    }

    /// Handles as many of a train's first packets as it can, each at its own time: [`handle_plain`](Self::handle_plain), then
    /// reading all data, then [`poll_plain`](Self::poll_plain) until there is nothing more to send. Appends the packets to send
    /// to `sent`, in order.
    ///
    /// Returns the number of packets handled. After the last of them, something may be left to send. The caller guarantees that
    /// nothing else happens to the endpoint meanwhile: no timeout, no write.
    fn handle_train(&mut self, _train: &Train<Self::Plain>, _sent: &mut Vec<Train<Self::Plain>>) -> u32 {
        0
    }
}

/// The result of [`Express::poll_plain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<P> {
    /// Send this packet, and call again.
    Send(P),
    /// There is nothing to send, and no event.
    Nothing,
    /// Something rare is or may be due: poll [`Endpoint`].
    Ask,
}
