//! The identity of a connection: the assignment of segments by the peer's tag and timestamps, and resets for segments
//! of no connection.

use crate::endpoint::Rx;
use crate::event::Abort;
use crate::payload::Payload;
use crate::rng::RandomSource;
use crate::time::Time;

use super::Connection;
#[cfg(test)]
use super::model;
use crate::protocol::aerotp::admission::Reset;
use crate::protocol::aerotp::config::Opens;
use crate::protocol::aerotp::lifecycle::State;
use crate::protocol::aerotp::peer::Peer;
use crate::protocol::aerotp::segment::{Flags, Segment};

/// The random numbers that a side draws for each of its connections. They cannot be derived from earlier segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// Connection tag. `[L10]`
    pub(super) tag: u16,
    /// Sequence number at which the own stream begins. `[L9]`
    pub(super) initial: u32,
    /// Ticks by which the timestamps of a passive side lag behind its clock. `[G2]`
    pub(super) lag: u16,
}

impl Identity {
    pub(super) fn draw(random: &mut dyn RandomSource) -> Self {
        let bits = random.next_u64();
        Identity { tag: bits as u16, initial: (bits >> 16) as u32, lag: (bits >> 48) as u16 }
    }
}

/// Relation of a segment to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It belongs to the connection.
    Here,
    Dropped,
    /// Not this connection's peer sent it, and it may open another connection.
    Foreign,
}

impl<D: Payload> Connection<D> {
    /// Whether a segment belongs to this connection. A segment that answers an active opening, or meets it, belongs to it.
    pub(super) fn admit(&mut self, now: Time, segment: &Segment<D>, rx: Rx) -> Admission {
        let is_asyn = segment.flags.has(Flags::ASYN);
        #[cfg(test)]
        if self.peer.is_some() && self.without == Some(model::Without::Tags) {
            self.lifecycle.on_known();
            return Admission::Here;
        }
        if let Some(peer) = self.peer.as_mut().filter(|peer| peer.has_sent(segment)) {
            peer.latest.update(now, segment.timestamp);
            if is_asyn {
                self.lifecycle.on_asyn();
            } else {
                self.lifecycle.on_known();
            }
            return Admission::Here;
        }
        if self.lifecycle.is_listening() {
            return Admission::Foreign;
        }
        // An ASYN with another tag comes from a restarted sender or from a stranger.
        if self.peer.is_some() && is_asyn && segment.mack.is_none() {
            if self.is_passive && !self.may_send() && self.is_newer(now, segment.timestamp) && self.is_forgotten(now) {
                return Admission::Foreign; // there is no connection that a stranger could end
            }
            if self.is_passive || self.may_send() {
                self.question_opening(now, segment, rx);
            } else {
                self.answer_with_reset(segment); // it opens nothing here
            }
            return Admission::Dropped;
        }
        if !self.is_newer(now, segment.timestamp) {
            return Admission::Dropped; // of a past connection `[C11]`
        }
        if self.peer.is_some() {
            // A MACK with another tag that acknowledges data that this side sent: the peer has received it.
            let mack = segment.mack.as_ref().filter(|_| !self.is_passive);
            let begins_anew = mack.is_some_and(|mack| self.checked_mack_fields(now, segment, mack).is_some());
            if begins_anew && self.may_send() {
                self.abort(Abort::PeerRestarted);
            }
            self.answer_with_reset(segment);
            return Admission::Dropped;
        }
        if !self.is_answered_by(now, segment) {
            self.answer_with_reset(segment);
            return Admission::Dropped;
        }
        if is_asyn {
            self.lifecycle.on_asyn();
            if self.config.opens == Opens::Sender {
                self.lifecycle.on_known(); // the peer uses this side's sequence number
            }
        }
        let initial = if is_asyn { segment.opening } else { self.initial };
        self.peer = Some(Peer::new(now, segment.tag, initial, segment.timestamp));
        Admission::Here
    }

    /// Whether the peer of a connection that is over would have repeated itself by now, if it still missed an answer.
    fn is_forgotten(&self, now: Time) -> bool {
        now > self.last_received + self.config.longest_repetition()
    }

    /// A passive connection is opened by the first segment of its peer. Both streams of a connection begin at the sequence number
    /// that the opening side chose. `[C3]`, `[C4]`
    pub(in super::super) fn open(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        self.lifecycle.on_asyn();
        self.initial = segment.opening;
        self.peer = Some(Peer::new(now, segment.tag, segment.opening, segment.timestamp));
        self.take(now, segment, rx);
    }

    /// Drops a segment that belongs to no connection and opens none.
    pub(in super::super) fn refuse(&mut self, segment: &Segment<D>) {
        self.answer_with_reset(segment);
        self.drop_stray();
    }

    pub(in super::super) fn drop_stray(&mut self) {
        self.dropped.stray += 1;
    }

    /// Whether a segment with an unknown tag is newer than all segments of the peer.
    fn is_newer(&self, now: Time, timestamp: u32) -> bool {
        self.peer.is_none_or(|peer| peer.latest.is_before(now, timestamp))
    }

    /// Whether a segment from an unknown peer answers the opening of this side, or opens the other stream.
    fn is_answered_by(&self, now: Time, segment: &Segment<D>) -> bool {
        match &segment.mack {
            // Any MACK establishes the connection, if it acknowledges sent data. `[C5]`
            Some(mack) => {
                self.lifecycle.state() == State::AsynSent && self.checked_mack_fields(now, segment, mack).is_some()
            }
            None if !segment.flags.has(Flags::ASYN) => false,
            // A stream that does not begin at this side's number was not opened by this side. Unless both sides open, it belongs
            // to a past connection. `[C6]`
            None => self.config.opens == Opens::Both || segment.opening == self.initial,
        }
    }

    /// Answers a segment of no connection with a reset, unless it only acknowledges. `[C13]`
    pub(super) fn answer_with_reset(&mut self, segment: &Segment<D>) {
        let opening = (!self.is_passive && self.lifecycle.is_opening()).then_some(self.initial);
        self.reset = Reset::to(segment, opening).or(self.reset);
    }

    /// How much data is accepted from a peer that has not yet shown that it receives this side's segments, because its address
    /// may be forged. `[B7]`
    pub(super) fn most_unknown(&self) -> u64 {
        // Without acknowledgements the peer can never show that; the limit is then on the stored data.
        if self.is_half_open() && self.mode.is_acknowledged() { self.config.half_open() } else { u64::MAX }
    }

    /// Ends the connection and informs the application of the reason.
    pub(in super::super) fn abort(&mut self, why: Abort) {
        if self.is_alive() {
            self.pending_events.aborted = Some(why);
            self.lifecycle.end();
        }
    }

    /// Handles a reset: the peer does not know this connection. `[C14]`, `[G4]`
    pub(super) fn on_reset(&mut self, now: Time, segment: &Segment<D>) {
        let sent =
            self.clock.instant(now, segment.timestamp).zip(self.first_sent).is_some_and(|(sent, first)| sent >= first);
        let asks = self.may_send() || self.challenge.is_some() || self.confirmation.wait().is_some();
        let is_mine = segment.tag == self.tag && sent && asks;
        let (first, next) = self.sending.limits();
        let ahead = segment.sequence.wrapping_sub(self.number(first)) as i32;
        let is_recent = first.checked_add_signed(i64::from(ahead)).is_some_and(|position| position <= next);
        if !is_mine || !is_recent {
            self.dropped.stray += 1;
            return;
        }
        self.confirmation.on_reset();
        let has_restarted = self.on_answered_challenge(now, segment);
        if !self.may_send() {
            self.dropped.stray += u64::from(!has_restarted);
        } else if self.lifecycle.is_peer_ended() && self.sending.is_all_acknowledged() {
            // Only the acknowledgement of the end is missing, and the peer that would send it is gone.
            self.lifecycle.on_mack(true);
            self.last_received = now;
        } else {
            self.last_received = now;
            self.abort(if has_restarted { Abort::PeerRestarted } else { Abort::Reset });
            self.refuse_kept();
        }
    }
}
