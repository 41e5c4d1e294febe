//! What identifies a connection, the assignment of segments by the peer's tag and timestamps, and resets for segments of no
//! connection.

use crate::event::Abort;
use crate::payload::Payload;
use crate::rng::{RandomSource, SplitMix64};
use crate::time::Time;

use super::Connection;
#[cfg(test)]
use super::model;
use crate::protocol::aerotp::config::Opens;
use crate::protocol::aerotp::lifecycle::State;
use crate::protocol::aerotp::peer::Peer;
use crate::protocol::aerotp::segment::{Flags, Segment};

/// What a side draws at random for each of its connections. Nothing that was sent before tells any of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// Connection tag. `[L10]`
    pub(super) tag: u16,
    /// Sequence number at which the own stream begins. `[L9]`
    pub(super) initial: u32,
}

impl Identity {
    pub(super) fn draw(random: &mut dyn RandomSource) -> Self {
        let bits = random.next_u64();
        Identity { tag: bits as u16, initial: (bits >> 16) as u32 }
    }
}

/// A reset, the answer to a segment of no connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset {
    pub(super) tag: u16,
    pub(super) sequence: u32,
    pub(super) timestamp: u32,
}

impl Reset {
    fn of<D>(segment: &Segment<D>) -> Self {
        Reset { tag: segment.tag, sequence: segment.sequence, timestamp: segment.timestamp }
    }
}

impl<D: Payload> Connection<D> {
    /// Becomes a listener without a peer again. Everything that the last peer has sent so far belongs to the past connection.
    /// `[C12]`
    pub(super) fn listen_again(&mut self, random: SplitMix64) {
        let past = self.peer.or(self.past);
        let (dropped, pending_events, is_link_down) = (self.dropped, self.pending_events, self.is_link_down);
        #[cfg(test)]
        let without = self.without;
        *self = Self::listening(&self.config, random);
        #[cfg(test)]
        (self.without = without);
        self.past = past;
        self.dropped = dropped;
        if is_link_down {
            self.is_link_down = true;
            self.sending.on_link(Time::ZERO, false);
        }
        let is_unfinished = !pending_events.has_told_closed && pending_events.has_told_connected;
        self.pending_events.earlier = is_unfinished.then_some(Abort::PeerRestarted);
    }

    /// Whether a segment with an unknown tag is newer than all earlier segments of its sender.
    pub(super) fn is_newer(&self, now: Time, timestamp: u32) -> bool {
        self.peer.or(self.past).is_none_or(|peer| peer.latest.is_before(now, timestamp))
    }

    /// Whether a segment belongs to this connection. A segment that may open the connection opens it first.
    pub(super) fn admit(&mut self, now: Time, segment: &Segment<D>) -> bool {
        let is_asyn = segment.flags.has(Flags::ASYN);
        #[cfg(test)]
        if self.peer.is_some() && self.without == Some(model::Without::Tags) {
            self.lifecycle.on_known();
            return true;
        }
        if let Some(peer) = self.peer.as_mut().filter(|peer| peer.has_sent(segment)) {
            peer.latest.update(now, segment.timestamp);
            if is_asyn {
                self.lifecycle.on_asyn();
            } else {
                self.lifecycle.on_known();
            }
            return true;
        }
        if !self.is_newer(now, segment.timestamp) {
            return false; // of a past connection `[C11]`
        }
        if self.peer.is_some() {
            // An ASYN with another tag comes only from a restarted sender. If it carries an acknowledgement of data that this
            // side sent, the peer has received it.
            let random = match self.listener.clone() {
                Some(random) if is_asyn && segment.mack.is_none() => random,
                listener => {
                    let begins_anew = match &segment.mack {
                        Some(mack) => listener.is_none() && self.checked_mack_fields(now, segment, mack).is_some(),
                        None => is_asyn,
                    };
                    if begins_anew && self.may_send() {
                        self.abort(Abort::PeerRestarted);
                    }
                    self.answer_with_reset(segment);
                    return false;
                }
            };
            self.listen_again(random);
        }
        let is_of_past = self.past.is_some_and(|past| past.has_tag(segment.tag));
        if is_of_past || !self.is_opened_by(now, segment) {
            self.answer_with_reset(segment);
            return false;
        }
        if is_asyn {
            self.lifecycle.on_asyn();
            if self.listener.is_some() {
                // Both streams of a connection begin at the sequence number that the opening side chose. `[C3]`
                self.initial = segment.opening;
            } else if self.config.opens == Opens::Sender {
                self.lifecycle.on_known(); // the peer uses this side's sequence number
            }
        }
        let initial = if is_asyn { segment.opening } else { self.initial };
        self.peer = Some(Peer::new(now, segment.tag, initial, segment.timestamp));
        true
    }

    /// Whether a segment from an unknown peer opens the connection or answers its opening.
    fn is_opened_by(&self, now: Time, segment: &Segment<D>) -> bool {
        match &segment.mack {
            // Any MACK establishes the connection, if it acknowledges sent data. `[C5]`
            Some(mack) => {
                self.lifecycle.state() == State::AsynSent && self.checked_mack_fields(now, segment, mack).is_some()
            }
            None if !segment.flags.has(Flags::ASYN) => false,
            None if self.listener.is_some() => true,
            // A stream that does not begin at this side's number was not opened by this side. Unless both sides open, it belongs
            // to a past connection. `[C6]`
            None => self.config.opens == Opens::Both || segment.opening == self.initial,
        }
    }

    /// Answers a segment of no connection with a reset, unless it only acknowledges. `[C13]`
    pub(super) fn answer_with_reset(&mut self, segment: &Segment<D>) {
        if segment.mack.is_none() {
            self.reset = Some(Reset::of(segment));
        }
    }

    /// How much data is accepted from a peer that has not yet shown that it receives this side's segments, because its address
    /// may be forged. `[B7]`
    pub(super) fn most_unknown(&self) -> u64 {
        let is_half_open = self.listener.is_some() && self.lifecycle.is_opening();
        // Without acknowledgements the peer can never show that; the limit is then on the stored data.
        if is_half_open && self.mode.is_acknowledged() { self.config.half_open() } else { u64::MAX }
    }

    pub(super) fn abort(&mut self, why: Abort) {
        if self.is_alive() {
            self.pending_events.aborted = Some(why);
            self.lifecycle.end();
        }
    }

    /// Handles a reset: the peer does not know this connection. `[C14]`
    pub(super) fn on_reset(&mut self, now: Time, segment: &Segment<D>) {
        let sent =
            self.clock.instant(now, segment.timestamp).zip(self.first_sent).is_some_and(|(sent, first)| sent >= first);
        let is_mine = segment.tag == self.tag && sent && self.may_send();
        let (first, next) = self.sending.limits();
        let ahead = segment.sequence.wrapping_sub(self.number(first)) as i32;
        let is_recent = first.checked_add_signed(i64::from(ahead)).is_some_and(|position| position <= next);
        if !is_mine || !is_recent {
            self.dropped.stray += 1;
        } else if self.lifecycle.is_peer_ended() && self.sending.is_all_acknowledged() {
            // Only the acknowledgement of the end is missing, and the peer that would send it is gone.
            self.lifecycle.on_mack(true);
            self.last_heard = now;
        } else {
            self.abort(Abort::Reset);
        }
    }

    pub(super) fn leave(&mut self) {
        match self.listener.clone() {
            Some(random) => self.listen_again(random),
            None => self.lifecycle.end(),
        }
    }
}
