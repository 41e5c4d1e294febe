//! Packets at equal distances, described by the first of them.

use crate::time::Time;

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

impl<P> Train<P> {
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

    /// The distance of all packets if this train and then `other` are one; `None` if it is not the same for all.
    #[inline(always)]
    pub fn gap_to<Q>(&self, other: &Train<Q>) -> Option<Time> {
        let gap = other.at.since(self.time(self.count - 1));
        let is_kept = (self.count == 1 || self.gap == gap) && (other.count == 1 || other.gap == gap);
        is_kept.then_some(gap)
    }
}

/// The next transmission of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<P> {
    /// Send this packet, and call again.
    Send(P),
    /// There is nothing to send, and no event.
    Nothing,
    /// Something rare is or may be due: poll [`Endpoint`](crate::Endpoint).
    Ask,
}
