//! An opening under another tag: the peer has restarted, or a stranger forges. Only the peer itself can tell.

use crate::endpoint::Rx;
use crate::origin::instants;
use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
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

instants! { Challenge<D>: at; fixed: opening, rx, is_due, is_answered }

impl<D> Challenge<D> {
    /// Whether the sender of a RESET has sent the opening. `[C13]`
    fn is_of_sender(&self, reset: &Segment<D>) -> bool {
        reset.flags.has(Flags::ASYN) && reset.opening == self.opening.opening
    }
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
        self.allowance.on_stray(self.constants.header_bytes + u64::from(OPENING_BYTES));
        let (_, next) = self.sending.limits();
        Some(Segment { sequence: self.number(next), ..self.blank(now) })
    }

    /// A valid RESET shows that the peer does not know this connection any more; this one also that the opening which was kept is the
    /// peer's present one, not an earlier one that arrives late, or a stranger's. `[C22]`
    pub(super) fn on_answered_challenge(&mut self, now: Time, reset: &Segment<D>) -> bool {
        let until = self.questions_until();
        match &mut self.challenge {
            Some(challenge) if now < until && challenge.is_of_sender(reset) => {
                challenge.is_answered = true;
                true
            }
            _ => false,
        }
    }

    /// Until when an answer to the question of an opening counts; the beginning of time without one.
    pub(super) fn questions_until(&self) -> Time {
        self.challenge.as_ref().map_or(Time::ZERO, |challenge| challenge.at + self.config.longest_repetition())
    }

    /// A side that opened its connection itself opens no other one: the sender of the opening that was kept learns it. `[C13]`
    pub(super) fn refuse_kept(&mut self) {
        if !self.is_passive
            && let Some(challenge) = self.challenge.take()
        {
            self.answer_with_reset(&challenge.opening);
        }
    }

    /// The opening of the peer that has restarted; returned once.
    pub(in super::super) fn take_successor(&mut self) -> Option<(Segment<D>, Rx)> {
        let challenge = self.challenge.take_if(|challenge| challenge.is_answered)?;
        Some((challenge.opening, challenge.rx))
    }
}
