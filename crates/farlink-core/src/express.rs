//! A shortcut for drivers in virtual time: usual packets one by one, and trains of them in one step.
//!
//! Whatever goes through it could go through [`Endpoint`] as well, with the same outcome; a driver falls back to that
//! whenever the shortcut says so. It exists because a packet with all its options costs more to build and copy than to
//! handle, and because packets that follow each other at equal distances mostly have the same effect.

use crate::endpoint::{Endpoint, Packet};
use crate::time::Time;

/// A packet without options or damage, of which many in a row differ in one number only.
pub trait PlainPacket: Packet + Copy + Default {
    /// By how much that number of `next` exceeds this packet's; `None` if they differ otherwise.
    fn step_to(&self, _next: &Self) -> Option<u32> {
        None
    }

    /// The packet `n` steps on.
    fn ahead(&self, _step: u32, _n: u32) -> Self {
        *self
    }
}

/// Packets that follow each other at equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Train<P> {
    /// The first packet.
    pub first: P,
    /// What each adds to its predecessor's number.
    pub step: u32,
    /// How many there are; 0 is an empty train.
    pub count: u32,
    /// When the first one is sent or arrives.
    pub at: Time,
    /// Between one and the next.
    pub gap: Time,
}

impl<P: PlainPacket> Train<P> {
    /// A train of one.
    #[inline(always)]
    pub fn one(first: P, at: Time) -> Self {
        Train { first, step: 0, count: 1, at, gap: Time::ZERO }
    }

    /// When packet `n` is sent or arrives; the first is 0.
    #[inline(always)]
    pub fn time(&self, n: u32) -> Time {
        // The last packet's instant exists, so none overflows.
        Time::from_ps(self.at.as_ps().wrapping_add(self.gap.as_ps().wrapping_mul(u64::from(n))))
    }

    /// Uncouples the first `n` packets.
    #[inline(always)]
    pub fn skip(&mut self, n: u32) {
        self.at = self.time(n);
        self.first = self.first.ahead(self.step, n);
        self.count -= n;
    }

    /// Couples `other` to its end; `false` if it does not fit.
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

/// An endpoint with the shortcut; as it stands, with none of it.
pub trait Express: Endpoint {
    /// A packet without anything rare.
    type Plain: PlainPacket;

    /// As [`Endpoint::handle_packet`], for an intact packet; `false` if nothing was done and that should be used.
    fn handle_plain(&mut self, _now: Time, _plain: &Self::Plain) -> bool {
        false
    }

    /// As [`Endpoint::poll_transmit`] over the only path, for packets whose drop nobody wants to hear of.
    fn poll_plain(&mut self, _now: Time) -> Plain<Self::Plain> {
        Plain::Ask
    }

    /// Does for as many of a train's first packets as it can, each at its instant, what
    /// [`handle_plain`](Self::handle_plain) does, reading all data, and [`poll_plain`](Self::poll_plain) until there is no
    /// more to send. Appends to `sent` what goes out, in order.
    ///
    /// Returns how many packets it handled; after the last of them, something may be left to send. Nothing else may
    /// happen to the endpoint meanwhile: no timeout, no write.
    fn handle_train(&mut self, _train: &Train<Self::Plain>, _sent: &mut Vec<Train<Self::Plain>>) -> u32 {
        0
    }
}

/// What [`Express::poll_plain`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<P> {
    /// Send this, and ask again.
    Send(P),
    /// Nothing is to be sent, and there is no event.
    Nothing,
    /// Something unusual is or may be due: poll [`Endpoint`].
    Ask,
}
