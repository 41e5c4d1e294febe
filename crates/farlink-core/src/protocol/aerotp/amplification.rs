//! How much a side sends to an address before the peer has proven that it is there.

use crate::time::Time;

/// A side sends at most this many times the bytes that it received. `[G1]`
const RATIO: u64 = 3;
/// Number of timestamps whose echo proves an address: those of the latest segments that the peer answers.
const STAMPS: usize = 8;

/// Bytes that may still be sent to a peer that may have forged its address. `[G1]`
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Bytes that may still be sent; no limit once the address is proven.
    left: Option<u64>,
    /// Whether something waits for the proof, or may have to be repeated before it.
    is_short: bool,
    /// Whether a question that asks for the proof may be sent: one for each segment that arrives. `[G3]`
    may_ask: bool,
    /// Timestamps of the latest segments that the peer answers, at instants that differ.
    stamps: [u32; STAMPS],
    stamp_count: u8,
}

impl Allowance {
    /// An address that the application chose itself, or that is proven.
    pub(super) const PROVEN: Allowance =
        Allowance { left: None, is_short: false, may_ask: false, stamps: [0; STAMPS], stamp_count: 0 };
    /// An address from which nothing has arrived.
    pub(super) const UNPROVEN: Allowance = Allowance { left: Some(0), ..Allowance::PROVEN };

    /// The layer below has proof: nothing limits what is sent. The own proof is still given, as the peer asks for it until it has
    /// acknowledged something. `[G5]`
    pub(super) fn lift(&mut self) {
        self.left = self.left.map(|_| u64::MAX);
    }

    #[inline]
    pub(super) fn is_proven(&self) -> bool {
        self.left.is_none()
    }

    /// Bytes that may be sent now.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.left.unwrap_or(u64::MAX)
    }

    /// A segment of the peer has arrived.
    #[inline]
    pub(super) fn on_received(&mut self, bytes: u64) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_add(bytes.saturating_mul(RATIO));
            self.may_ask = true;
        }
    }

    /// A segment of another sender has arrived, and is answered by one that is no longer. `[C22]`
    pub(super) fn on_stray(&mut self, bytes: u64) {
        self.left = self.left.map(|left| left.saturating_add(bytes));
    }

    /// A segment was sent; `is_answered` says whether the peer answers it with a MACK.
    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u64, stamp: u32, is_answered: bool) {
        let Some(left) = &mut self.left else { return };
        *left = left.saturating_sub(bytes);
        self.is_short |= is_answered; // if it is lost, nothing may be left to repeat it
        if is_answered && !self.has_sent(stamp) {
            self.stamps.rotate_right(1);
            self.stamps[0] = stamp;
            self.stamp_count = (self.stamp_count + 1).min(STAMPS as u8);
        }
    }

    fn has_sent(&self, stamp: u32) -> bool {
        self.stamps[..usize::from(self.stamp_count)].contains(&stamp)
    }

    /// A MACK echoes a timestamp: one that was sent proves the address. `[G2]`
    pub(super) fn on_echo(&mut self, stamp: u32) {
        if !self.is_proven() && self.has_sent(stamp) {
            *self = Allowance::PROVEN;
        }
    }

    /// Something could not be sent.
    pub(super) fn on_short(&mut self) {
        self.is_short = !self.is_proven();
    }

    /// Whether something waits for the proof, or may have to be repeated before it.
    #[inline]
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Whether a question of `bytes` may ask for the proof now. `[G3]`
    pub(super) fn may_ask(&self, bytes: u64) -> bool {
        self.may_ask && self.left() >= bytes
    }

    /// A question asks for the proof.
    pub(super) fn on_asked(&mut self) {
        self.may_ask = false;
    }
}

/// When an opener asks a peer to which the opener's address may not be proven: that peer may have something to send that it must
/// not send. `[G4]`
#[derive(Clone, Copy, Debug)]
pub(super) struct Confirmation {
    /// The next wait; `None` if nothing is to be confirmed.
    wait: Option<Time>,
    /// Whether it has sent a MACK, without which no address is proven.
    has_acknowledged: bool,
}

impl Confirmation {
    pub(super) const NONE: Confirmation = Confirmation { wait: None, has_acknowledged: false };

    /// A segment of the peer arrived, with ASYN or without.
    #[inline]
    pub(super) fn on_segment(&mut self, is_asyn: bool, first: Time) {
        self.wait = if is_asyn || !self.has_acknowledged { self.wait.or(Some(first)) } else { None };
    }

    /// A MACK was sent.
    #[inline]
    pub(super) fn on_acknowledged(&mut self) {
        self.has_acknowledged = true;
    }

    /// A peer that does not know this connection waits for no proof.
    pub(super) fn on_reset(&mut self) {
        self.wait = None;
    }

    /// How long after the last segment it asks; never if nothing is to be confirmed.
    #[inline]
    pub(super) fn wait(&self) -> Option<Time> {
        self.wait
    }

    pub(super) fn on_asked(&mut self, longest: Time) {
        self.wait = self.wait.map(|wait| wait.times(2).min(longest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_times_what_arrived_may_be_sent() {
        let mut allowance = Allowance::UNPROVEN;
        assert_eq!((allowance.left(), allowance.may_ask(0)), (0, false));
        allowance.on_received(45);
        allowance.on_sent(100, 7, true);
        assert_eq!((allowance.left(), allowance.may_ask(35), allowance.may_ask(36)), (35, true, false));
        allowance.on_asked();
        assert!(!allowance.may_ask(35), "one question for each segment that arrives");
        allowance.on_received(1);
        assert_eq!((allowance.left(), allowance.may_ask(38)), (38, true));
        allowance.on_stray(44);
        assert_eq!(allowance.left(), 82);
    }

    #[test]
    fn only_the_echo_of_a_timestamp_that_is_answered_proves_an_address() {
        let mut allowance = Allowance::UNPROVEN;
        allowance.on_received(1000);
        allowance.on_echo(0);
        allowance.on_sent(50, 7, false);
        allowance.on_echo(7);
        assert!(!allowance.is_proven(), "nothing that would be answered was sent");
        for stamp in [8, 8, 9, 10, 11, 12, 13, 14, 15, 16] {
            allowance.on_sent(50, stamp, true);
        }
        for stamp in [7, 8, 17] {
            allowance.on_echo(stamp);
            assert!(!allowance.is_proven(), "{stamp}");
        }
        allowance.on_echo(9);
        assert!(allowance.is_proven() && allowance.left() == u64::MAX);
    }

    #[test]
    fn an_opener_asks_ever_less_often() {
        let (mut confirmation, second) = (Confirmation::NONE, Time::from_secs(1));
        assert_eq!(confirmation.wait(), None);
        confirmation.on_segment(true, second);
        let waits: Vec<_> = (0..5)
            .map(|_| {
                let wait = confirmation.wait();
                confirmation.on_asked(second.times(8));
                confirmation.on_segment(true, second);
                wait
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 8].map(|seconds| Some(Time::from_secs(seconds))));
        confirmation.on_segment(false, second);
        assert!(confirmation.wait().is_some(), "it has not sent anything that proves its address");
        confirmation.on_acknowledged();
        assert!(confirmation.wait().is_some(), "that may be lost");
        confirmation.on_segment(false, second);
        assert_eq!(confirmation.wait(), None);
    }
}
