//! The beginning and the end of a connection: SYN, handshake, RST, and the end of both streams (RFC 9293, sections 3.5 to 3.6).

use crate::payload::Payload;
use crate::protocol::parts::events::EventSet;
use crate::time::Time;

use super::ack_fields::AckFields;
use super::connection::{State, TcpConnection};
use super::segment::{Flags, Segment, SynOptions};
use super::window::Phase;

impl<D: Payload> TcpConnection<D> {
    #[cold]
    pub(super) fn handle_control(&mut self, now: Time, segment: &Segment<D>) {
        if segment.flags.has(Flags::RST) {
            //= https://www.rfc-editor.org/rfc/rfc9293#section-3.10.7.4
            //# If the RST bit is set and the sequence number does not exactly match the next expected sequence value,
            //# yet is within the current receive window, TCP endpoints MUST send an acknowledgment [...] If the RST bit
            //# is set and the sequence number is outside the current receive window, silently drop the segment.
            let start = Self::unwrap(segment.seq, self.peer_initial_seq, self.rx.stream.next);
            let is_answer_to_syn = segment.flags.has(Flags::ACK) && segment.ack == self.initial_seq.wrapping_add(1);
            let is_valid = match self.state {
                State::Listen => false,
                State::SynSent => is_answer_to_syn,
                _ => start == self.rx.stream.next,
            };
            if !is_valid {
                self.rx.ack_now |= self.state == State::Established
                    && start > self.rx.stream.next
                    && start < self.rx.stream.next + self.rx.window();
                return;
            }
            self.abort(EventSet::ABORTED);
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.handle_syn(now, segment);
            return;
        }
        match self.state {
            State::Listen | State::SynSent => self.refuse(segment),
            State::SynReceived if segment.flags.has(Flags::ACK) && !self.acknowledges_syn(segment) => {
                self.refuse(segment)
            }
            State::SynReceived if segment.flags.has(Flags::ACK) => {
                self.handle_acknowledgement(now, &AckFields::of(segment));
                if self.window.una > 0 {
                    self.establish();
                    self.handle_text(now, segment);
                }
            }
            State::Established => {
                self.handle_acknowledgement(now, &AckFields::of(segment));
                self.handle_text(now, segment);
            }
            _ => {}
        }
    }

    /// Handles a segment of a connection that this side does not know, for example after a restart.
    fn refuse(&mut self, segment: &Segment<D>) {
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.10.7.2
        //# Any acknowledgment is bad if it arrives on a connection still in the LISTEN state. An acceptable reset segment
        //# should be formed for any arriving ACK-bearing segment.
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.10.7.3
        //# If SEG.ACK =< ISS or SEG.ACK > SND.NXT, send a reset
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.10.7.4
        //# If the segment acknowledgment is not acceptable, form a reset segment
        let is_own = self.state != State::Listen && self.acknowledges_syn(segment);
        if segment.flags.has(Flags::ACK) && !is_own {
            self.reset_due = Some(segment.ack);
        }
    }

    fn acknowledges_syn(&self, segment: &Segment<D>) -> bool {
        segment.ack == self.initial_seq.wrapping_add(1)
    }

    /// A reset with the sequence number that the peer expects.
    pub(super) fn reset(&self, seq: u32) -> Segment<D> {
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.10.7.2
        //# <SEQ=SEG.ACK><CTL=RST>
        Segment { seq, flags: Flags::RST, header_bytes: self.sizes.ack_header_bytes, ..Segment::default() }
    }

    /// Ends the connection and tells the application why.
    pub(super) fn abort(&mut self, why: EventSet) {
        self.state = State::Aborted;
        self.window.halt();
        self.timer.deadline = Time::NEVER;
        self.rx.ack_deadline = Time::NEVER;
        self.rx.ack_now = false;
        self.events.insert(why);
    }

    fn handle_syn(&mut self, now: Time, segment: &Segment<D>) {
        match self.state {
            State::Listen => {
                self.agree(segment.syn.scps);
                self.peer_initial_seq = segment.seq;
                self.notification.on_syn(segment.flags);
                self.rx.stream.next = 1;
                self.window.peer_end = u64::from(segment.window);
                self.window.end = 1;
                self.state = State::SynReceived;
                self.window.update(self.written_end);
            }
            State::SynSent if segment.flags.has(Flags::ACK) && !self.acknowledges_syn(segment) => {
                self.refuse(segment);
            }
            State::SynSent if segment.flags.has(Flags::ACK) => {
                self.agree(segment.syn.scps);
                self.peer_initial_seq = segment.seq;
                self.notification.on_syn_ack(segment.flags);
                self.rx.stream.next = 1;
                self.handle_acknowledgement(now, &AckFields::of(segment));
                if self.window.una > 0 {
                    self.establish();
                    self.rx.ack_now = true;
                }
            }
            // The SYN arrived again, so its acknowledgement was lost.
            State::SynReceived => {
                self.window.nxt = self.window.una;
                self.window.update(self.written_end);
            }
            State::Established => self.rx.ack_now = true,
            State::SynSent | State::Aborted => {}
        }
    }

    fn establish(&mut self) {
        self.state = State::Established;
        self.events.insert(EventSet::CONNECTED);
        if self.timeouts > 0 {
            self.timer.begin_after_lost_syn();
        }
        self.window.phase = Phase::Open;
        self.window.recover = 0;
        self.set_first_pace();
        self.update_end();
        self.note_closed();
    }

    pub(super) fn note_closed(&mut self) {
        let is_peer_done = self.has_peer_fin || !self.sizes.has_fin;
        let is_open = self.state == State::Established;
        if is_open && self.is_closing && is_peer_done && self.window.una == self.window.end {
            self.events.insert(EventSet::CLOSED);
        }
    }

    #[inline(always)]
    pub(super) fn syn(&mut self, now: Time) -> Segment<D> {
        let is_first = self.state == State::SynSent;
        let flags = if is_first { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
        let flags = flags.with(self.notification.syn_flags(is_first));
        let mut segment = self.segment(now, 0, flags, self.sizes.ack_header_bytes, D::default());
        //= https://www.rfc-editor.org/rfc/rfc7323#section-2.2
        //# The window field in a segment where the SYN bit is set [...] MUST NOT be scaled.
        segment.window = u16::try_from(self.rx.window()).unwrap_or(u16::MAX);
        segment.syn = SynOptions {
            mss: u16::try_from(self.window.mss).unwrap_or(u16::MAX),
            window_shift: self.sizes.scales_window.then_some(self.sizes.window_shift),
            sack_permitted: self.sizes.uses_sack,
            scps: None,
        };
        if is_first {
            segment.ack = 0;
        }
        if self.extensions.is_some() {
            self.add_options(now, &mut segment);
        }
        segment
    }
}
