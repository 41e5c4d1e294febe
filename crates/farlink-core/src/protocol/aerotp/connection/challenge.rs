//! An opening under another tag: the peer has restarted, or a stranger forges. Only the peer itself can tell.

use crate::endpoint::Rx;
use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
use crate::protocol::aerotp::clock::ticks;
use crate::protocol::aerotp::segment::{Flags, OPENING_BYTES, Segment};

/// An opening of another sender, which opens the next connection once the peer has shown that it restarted. `[C22]`
#[derive(Clone, Debug)]
pub(super) struct Challenge<D> {
    opening: Segment<D>,
    rx: Rx,
    at: Time,
    /// Whether the question that it is answered with is to be sent.
    is_due: bool,
    /// Whether the peer has answered the question with a RESET.
    is_answered: bool,
}

impl<D: Payload> Connection<D> {
    /// Answers an opening under another tag with a question to the peer. The first such opening is kept until an opener would have
    /// repeated it, so that further ones do not displace it. `[C22]`
    pub(super) fn question_opening(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        if !self.is_passive && self.lifecycle.is_opening() {
            return; // the peer may not know this connection either, and its answers to this side's ASYN tell
        }
        let patience = self.config.initial_rto_s.time();
        match &mut self.challenge {
            Some(challenge) if now < challenge.at + patience => {
                challenge.is_due |= challenge.opening.tag != segment.tag; // one question for each opener
            }
            _ => {
                let (opening, at) = (segment.clone(), now);
                self.challenge = Some(Box::new(Challenge { opening, rx, at, is_due: true, is_answered: false }));
            }
        }
    }

    /// A segment is no newer than the last one of a peer whose connection has failed: an opening under another tag is questioned.
    pub(in super::super) fn on_late(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        let is_opening = segment.flags.has(Flags::ASYN) && segment.mack.is_none();
        if is_opening && self.peer.is_some_and(|peer| !peer.has_tag(segment.tag)) {
            self.question_opening(now, segment, rx);
        }
    }

    /// The question with which an opening under another tag is answered.
    pub(super) fn challenge_segment(&mut self, now: Time) -> Option<Segment<D>> {
        let challenge = self.challenge.as_mut().filter(|challenge| challenge.is_due)?;
        challenge.is_due = false;
        // It is no longer than the opening, which has the same fields.
        self.allowance.on_stray(self.config.header_bytes.whole() + u64::from(OPENING_BYTES));
        let (_, next) = self.sending.limits();
        Some(Segment { sequence: self.number(next), ..self.blank(now) })
    }

    /// A valid RESET answers a question: whether the peer has restarted, as an opening has claimed. `[C22]`
    pub(super) fn on_answered_challenge(&mut self, now: Time, reset: &Segment<D>) -> bool {
        let sent = self.clock.instant(now, reset.timestamp);
        match &mut self.challenge {
            Some(challenge) if sent.is_some_and(|sent| sent >= ticks(challenge.at)) => {
                challenge.is_answered = true;
                true
            }
            _ => false,
        }
    }

    /// The opening of the peer that has restarted; returned once.
    pub(in super::super) fn take_successor(&mut self) -> Option<(Segment<D>, Rx)> {
        let challenge = self.challenge.take_if(|challenge| challenge.is_answered)?;
        Some((challenge.opening, challenge.rx))
    }
}
