//! Data for which nothing is to be done but to take it: a shortcut of the simulator.

use crate::endpoint::{Ecn, Integrity, Packet, Rx};
use crate::payload::Payload;
use crate::time::Time;

use super::Connection;
use crate::protocol::aerotp::absorbed::Absorbed;
use crate::protocol::aerotp::mode::Mode;
use crate::protocol::aerotp::segment::{Flags, Segment};

/// Flags of a segment that carries data and nothing else.
const PLAIN: Flags = Flags::CRC.with(Flags::FEC);

impl<D: Payload> Connection<D> {
    /// Takes data as [`handle`](Self::handle) does, if nothing else has to be done for it: nothing is to be sent or told. Data in order
    /// counts as read. Since the last call of `poll_transmit` or `poll_event`, which had nothing, nothing may have changed. Returns `None`,
    /// without any effect, if `handle` is to be used.
    pub(in super::super) fn absorb(&mut self, now: Time, segment: &Segment<D>, rx: Rx) -> Option<Absorbed> {
        if !is_plain(segment, rx) || !self.is_at_rest() {
            return None;
        }
        let peer = self.peer.as_mut().filter(|peer| peer.has_sent(segment))?;
        if peer.is_of_past_round(now, segment.timestamp) {
            return None;
        }
        let base = self.receiving.next_position();
        let ahead = segment.sequence.wrapping_sub(peer.initial.wrapping_add(base as u32)) as i32;
        let absorbed = if ahead == 0 {
            self.receiving.absorb(now, segment.payload.len() as u64, segment.timestamp)?
        } else {
            let ahead = u64::try_from(ahead).ok()?;
            self.receiving.absorb_early(now, base + ahead, &segment.payload, segment.timestamp)?
        };
        peer.latest.update(now, segment.timestamp);
        peer.on_progress(self.receiving.next_position());
        (self.last_sign, self.last_received, self.asked) = (now, now, None);
        if !self.allowance.is_proven() {
            self.allowance.on_received(u64::from(segment.wire_bytes()).max(self.constants.header_bytes));
        }
        Some(absorbed)
    }

    /// Whether the arrival of data can have no effect on anything but the receiving half.
    #[inline]
    fn is_at_rest(&self) -> bool {
        #[cfg(test)]
        if self.without.is_some() {
            return false;
        }
        // With enough left, whatever was to be asked was asked.
        let has_asked = !self.is_question_due
            && !self.is_proof_due
            && self.confirmation.wait().is_none()
            && self.allowance.left() >= self.constants.question_bytes;
        let is_usual = self.is_passive || !self.may_confirm();
        has_asked
            && is_usual
            && self.is_alive()
            && !self.is_link_down
            && self.may_send()
            && self.has_states()
            && !self.lifecycle.is_opening()
            && self.reset.is_none()
            && self.challenge.is_none()
            && self.mode_changes_made == self.config.mode_changes.len()
            && self.sending.ready_at() == Time::NEVER
    }
}

/// Whether a segment is intact and has data and nothing else.
#[inline]
fn is_plain<D: Payload>(segment: &Segment<D>, rx: Rx) -> bool {
    let &Segment { flags, mode, ref mack, ref repair, forward, skipped, overtaken_by, mack_bytes_per_s, .. } = segment;
    let has_options = forward.is_some() || skipped.is_some() || overtaken_by.is_some() || mack_bytes_per_s.is_some();
    flags.0 & !PLAIN.0 == 0
        && rx.integrity == Integrity::Intact
        && rx.ecn != Ecn::Congestion
        && mode != Mode::Datagram
        && mack.is_none()
        && repair.is_none()
        && !has_options
        && !segment.payload.is_empty()
}
