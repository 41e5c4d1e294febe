//! Sending while the peer's address is not proven, and the request for the proof. `[G1]`, `[G3]`

use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
use crate::protocol::aerotp::fec::CRC_BYTES;
use crate::protocol::aerotp::parity::Parity;
use crate::protocol::aerotp::segment::Segment;

impl<D: Payload> Connection<D> {
    /// The room for data in the next segment; `None` if the peer's address has to be proven first. `[G1]`
    #[inline]
    pub(super) fn allowed_room(&self) -> Option<u32> {
        let most = self.size.room(self.carries_asyn());
        if self.allowance.is_proven() {
            return Some(most);
        }
        // Data is not acknowledged in every mode; a question always is.
        let question = if self.mode.is_acknowledged() { 0 } else { self.constants.question_bytes };
        let left = self.allowance.left().saturating_sub(question);
        let packet_bytes = self.size.packet_bytes.max(self.config.packet_bytes.whole());
        if left >= packet_bytes {
            return Some(most);
        }
        // The length of symbols is fixed, and parity takes room.
        if self.config.coded.is_some() || self.config.erasure.is_some() || self.size.parity != Parity::NONE {
            return None;
        }
        let overhead = self.constants.question_bytes + u64::from(CRC_BYTES);
        u32::try_from(left.saturating_sub(overhead)).ok().map(|room| room.min(most)).filter(|&room| room > 0)
    }

    /// Data is due, and the peer's address has to be proven first: a question asks for an answer that proves it. `[G3]`
    pub(super) fn ask_for_proof(&mut self, now: Time) -> Option<Segment<D>> {
        if !self.wants_proof(now) {
            return None;
        }
        self.allowance.on_short();
        self.may_ask_for_proof().then(|| self.proof_question(now))
    }

    /// Whether something is due that cannot be sent before the peer's address is proven, or an opener asks for that.
    pub(super) fn wants_proof(&self, now: Time) -> bool {
        let is_data_held = self.sending.ready_at() <= now && self.allowed_room().is_none();
        self.is_question_due || self.is_proof_due || is_data_held
    }

    pub(super) fn may_ask_for_proof(&self) -> bool {
        self.allowance.may_ask(self.constants.question_bytes)
    }

    pub(super) fn proof_question(&mut self, now: Time) -> Segment<D> {
        self.allowance.on_asked();
        (self.is_question_due, self.is_proof_due) = (false, false);
        self.question(now)
    }

    /// Whether nothing can be sent before something arrives. `[G1]`
    #[inline]
    pub(super) fn waits_for_proof(&self) -> bool {
        !self.allowance.is_proven() && self.allowed_room().is_none() && !self.may_ask_for_proof()
    }

    /// Whether segments carry ASYN: it also says that the peer's address is not proven and data waits for that. `[C2]`, `[G3]`
    #[inline]
    pub(super) fn carries_asyn(&self) -> bool {
        self.lifecycle.is_opening() || (self.is_passive && self.allowance.is_short())
    }
}
