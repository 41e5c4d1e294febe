//! Handling of a segment in the established state: its acknowledgement, its payload and its FIN.

use crate::payload::Payload;
use crate::protocol::parts::events::EventSet;
use crate::protocol::parts::rto::Progress;
use crate::time::Time;

use super::ack_fields::AckFields;
use super::connection::TcpConnection;
use super::segment::{Flags, SackBlock, Segment};
use super::sending::timestamp;
use super::variant::Reaction;
use super::window::{Acked, RoundTrips};

impl<D: Payload> TcpConnection<D> {
    #[inline(always)]
    pub(super) fn handle_acknowledgement(&mut self, now: Time, fields: &AckFields<'_>) {
        let ack = Self::unwrap(fields.ack, self.initial_seq, self.window.una);
        let shift = if fields.flags.has(Flags::SYN) { 0 } else { self.sizes.window_shift };
        if ack > self.window.max || (ack as i64) < 0 {
            return; // acknowledges data that was never sent
        }
        let peer_end = ack + (u64::from(fields.window) << shift);
        let is_awaited = self.window.expects_echo && !fields.has_payload;
        let has_blocks = !fields.sack.is_empty();
        if self.window.una == self.window.end && ack == self.window.una && !is_awaited && !has_blocks {
            // This side has nothing to send, so only the peer's window can have changed.
            self.window.peer_end = self.window.peer_end.max(peer_end);
            return;
        }
        self.window.now = now;
        if self.window.records.is_kept() {
            self.begin_acknowledgement(fields.echo);
        }
        if self.extensions.is_some() {
            self.note_corruption(fields);
        }
        if fields.flags.has(Flags::ECE) && self.notification.is_agreed() {
            self.on_echo(now, ack);
        }
        let has_new_sack = self.sizes.uses_sack && has_blocks && self.note_sack(ack, fields.sack);
        let is_window_unchanged = peer_end <= self.window.peer_end;
        self.window.peer_end = self.window.peer_end.max(peer_end);
        let is_pure =
            !fields.has_payload && is_window_unchanged && !self.window.is_probing && !fields.flags.has(Flags::FIN);
        let is_duplicate = is_pure && ack == self.window.una && self.window.max > ack;
        let acked = Acked { is_new: ack > self.window.una, is_duplicate, is_pure };
        if acked.is_new {
            self.handle_new_acknowledgement(now, ack, fields.echo);
        } else if is_duplicate {
            self.running.on_duplicate(&mut self.window, &mut self.control, has_new_sack);
            if self.window.retransmit_first || self.window.nxt == self.window.una {
                //= https://www.rfc-editor.org/rfc/rfc6298#section-3
                //# RTT samples MUST NOT be made using segments that were retransmitted
                self.timed = None;
                self.timer.restart(now);
            }
        } else if self.window.is_probing {
            //= https://www.rfc-editor.org/rfc/rfc9293#section-3.8.6.1
            //# As long as the receiving TCP peer continues to send acknowledgments in response to the probe segments, the
            //# sending TCP peer MUST allow the connection to stay open
            self.timeouts_in_a_row = 0;
        }
        if self.extensions.is_some() {
            self.handle_ack_of_extensions(now, ack, fields);
        }
        if self.window.records.is_kept() || self.paces {
            self.learn(now, acked);
        }
        if self.frto.is_waiting() {
            self.frto.on_acknowledged(&mut self.window, &mut self.running, &mut self.control, acked);
        }
        self.window.update(self.written_end);
    }

    /// A round-trip time was measured.
    #[inline(always)]
    pub(super) fn note_round_trip(&mut self, round_trip: Time) {
        self.timer.sample_at(Progress::of_stream(self.window.una, self.window.nxt), round_trip);
        self.window.rtt = RoundTrips {
            latest: Some(round_trip),
            smoothed: self.timer.smoothed().unwrap_or(round_trip),
            least: self.window.rtt.least.min(round_trip),
            count: self.window.rtt.count + 1,
            limit_of_probes: self.timer.limits_probes(),
        };
    }

    /// Takes selective acknowledgements. Returns `true` if they report something new.
    #[cold]
    fn note_sack(&mut self, ack: u64, sack: &[SackBlock]) -> bool {
        let offset = |number: u32| Self::unwrap(number, self.initial_seq, self.window.una);
        let range = |block: &SackBlock| (offset(block.left), offset(block.right));
        if let Some((left, right)) = sack.first().map(range) {
            // A duplicate is reported in the first block: below the cumulative acknowledgement, or inside the second block (RFC
            // 2883, section 4).
            let is_within = |block: (u64, u64)| block.0 <= left && right <= block.1;
            if left < right && (left < ack || sack.get(1).map(range).is_some_and(is_within)) {
                self.running.on_duplicate_report(right);
            }
        }
        let mut has_new = false;
        for block in sack {
            let left = Self::unwrap(block.left, self.initial_seq, self.window.una);
            let right = Self::unwrap(block.right, self.initial_seq, self.window.una);
            has_new |= self.running.on_sack_block(&mut self.window, left, right);
        }
        has_new
    }

    #[inline(always)]
    fn handle_new_acknowledgement(&mut self, now: Time, ack: u64, echo: Option<u32>) {
        let acked = ack - self.window.una;
        self.window.advance(ack);
        if let Some(echo) = echo.filter(|_| self.sizes.has_timestamps) {
            // An echo of a time in the future was not sent by this side.
            if let Ok(elapsed_ms) = u64::try_from(timestamp(now).wrapping_sub(echo) as i32) {
                self.note_round_trip(Time::from_millis(elapsed_ms));
            }
        } else {
            self.time_round_trip(now, ack);
        }
        self.settle(now, ack, acked);
    }

    /// All data below `offset` is acknowledged or given up; `acked` bytes of it are newly acknowledged.
    #[inline(always)]
    pub(super) fn settle(&mut self, now: Time, offset: u64, acked: u64) {
        self.timeouts_in_a_row = 0;
        let data_acked = offset.min(self.written_end).saturating_sub(self.buffer_start);
        self.buffer.advance(data_acked as usize);
        self.buffer_start += data_acked;
        self.running.on_acknowledged(&mut self.window, &mut self.control, acked);
        if !std::mem::take(&mut self.window.keeps_timer) {
            self.timer.on_acknowledged(now, self.window.una == self.window.max);
        }
        if offset >= self.writable_at {
            self.events.insert(EventSet::WRITABLE);
        }
        if self.window.una == self.window.end && self.is_closing {
            self.note_closed();
        }
    }

    /// Takes a round-trip sample if the segment that is being timed is acknowledged.
    #[inline(always)]
    pub(super) fn time_round_trip(&mut self, now: Time, ack: u64) {
        if let Some((end, sent)) = self.timed
            && ack >= end
        {
            self.note_round_trip(now.since(sent));
            self.timed = None;
        }
    }

    /// Handles the payload and the FIN of a segment on an established connection.
    #[inline(always)]
    pub(super) fn handle_text(&mut self, now: Time, segment: &Segment<D>) {
        let start = Self::unwrap(segment.seq, self.peer_initial_seq, self.rx.stream.next);
        if (start as i64) < 0 {
            self.rx.ack_now = true; // old: begins before the peer's initial sequence number
            return;
        }
        if !segment.payload.is_empty() {
            self.rx.on_data(now, start, &segment.payload);
        }
        if segment.flags.has(Flags::FIN) {
            self.rx.on_fin(now, start + segment.payload.len() as u64, self.has_peer_fin);
        }
        self.take_fin();
        if self.rx.hold.is_some() {
            self.watch_holes(now);
        }
    }

    /// Accepts the peer's FIN if all data before it has arrived.
    #[inline(always)]
    pub(super) fn take_fin(&mut self) {
        if self.rx.takes_fin() {
            self.has_peer_fin = true;
            self.events.insert(EventSet::FINISHED);
            self.note_closed();
        }
    }
}
