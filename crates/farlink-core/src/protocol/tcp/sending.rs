//! The sending side of a connection: the next segment, its content, and its bookkeeping.

use crate::endpoint::Ecn;
use crate::payload::Payload;
use crate::time::Time;

use super::congestion::Control;
use super::connection::{State, TcpConnection};
use super::segment::{Flags, SackBlock, SackBlocks, Segment, SynOptions, Timestamps};
use super::span::Span;
use super::variant::Reaction;
use super::window::Phase;

impl<D: Payload> TcpConnection<D> {
    /// Whether the pacer delays a segment that may be due.
    #[inline(always)]
    pub(super) fn is_holding_back(&mut self, now: Time) -> bool {
        self.is_held_back =
            self.pacer.is_holding(now) && (self.window.needs_look || self.window.next_clear().is_some());
        self.is_held_back
    }

    /// Chooses the segment in unusual cases: retransmissions, recovery, SYN and FIN, the last segment, a closed window.
    #[inline(never)]
    pub(super) fn next_span_by_variant(&mut self, now: Time) -> Option<Span> {
        if self.state == State::Aborted {
            return None;
        }
        if self.frto.holds(&self.window) {
            return None;
        }
        let mut span = self.running.next_segment(&mut self.window);
        while let Some(again) = span.filter(|_| self.extensions.is_some())
            && self.gives_up(now, again)
        {
            span = self.running.next_segment(&mut self.window);
        }
        if std::mem::take(&mut self.window.restarts_timer) {
            self.timer.restart(now);
        }
        if span.is_none() && self.is_window_shut() {
            self.arm_persist_timer(now);
        }
        span
    }

    /// Builds the segment of a span and records it.
    #[inline(always)]
    pub(super) fn send_span(&mut self, now: Time, mut span: Span) -> (Segment<D>, Ecn) {
        let sent = if span.start == 0 {
            (self.syn(now), Ecn::NotCapable)
        } else {
            let len = (span.start + u64::from(span.len)).min(self.written_end).saturating_sub(span.start);
            let payload = self.buffer.slice((span.start - self.buffer_start) as usize, len as usize);
            let sent = payload.len() as u32;
            // The FIN is at the offset after the last byte. A slice may be cut short at a chunk's end; then this segment has
            // neither the rest nor the FIN.
            let has_fin = u64::from(span.len) > len && u64::from(sent) == len;
            let flags = if has_fin { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
            let stamp = if sent > 0 { self.data_stamp(span.start) } else { self.stamp() };
            span.len = sent + u32::from(has_fin);
            let sizes = &self.sizes;
            let header_bytes = if sent > 0 { sizes.data_header_bytes } else { sizes.ack_header_bytes };
            (self.segment(now, span.start, flags.with(stamp.flags), header_bytes, payload), stamp.ecn)
        };
        self.note_sent(now, span);
        sent
    }

    /// A segment with the fields that every segment has.
    #[inline(always)]
    pub(super) fn segment(&mut self, now: Time, start: u64, flags: Flags, header_bytes: u16, payload: D) -> Segment<D> {
        let mut segment = Segment {
            seq: self.initial_seq.wrapping_add(start as u32),
            ack: self.peer_initial_seq.wrapping_add(self.rx.stream.next as u32),
            flags,
            header_bytes,
            window: self.window_field(),
            timestamps: None,
            syn: SynOptions::default(),
            sack: SackBlocks::default(),
            snack: None,
            corruption_experienced: false,
            payload,
        };
        if self.sizes.has_timestamps {
            segment.timestamps = Some(Timestamps { value: timestamp(now), echo: self.timestamp_recent });
        }
        if self.sizes.uses_sack && self.rx.has_report() {
            self.write_sack_blocks();
            segment.sack = self.outgoing_sack;
            segment.header_bytes += 4 + 8 * segment.sack.as_slice().len() as u16;
        }
        if self.extensions.is_some() && !flags.has(Flags::SYN) {
            self.add_options(now, &mut segment);
        }
        segment
    }

    /// The window field, scaled.
    #[inline(always)]
    pub(super) fn window_field(&self) -> u16 {
        u16::try_from(self.rx.window() >> self.sizes.window_shift).unwrap_or(u16::MAX)
    }

    /// Writes the blocks that arrived out of order to `outgoing_sack`.
    #[cold]
    fn write_sack_blocks(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc2018#section-3
        //# a SACK option that specifies n blocks will have a length of 8*n+2 bytes, so the 40 bytes available for TCP
        //# options can specify a maximum of 4 blocks [...] with the Timestamp option [...] a maximum of 3 SACK blocks
        let most = if self.sizes.has_timestamps { 3 } else { 4 };
        let mut sack = SackBlocks::default();
        self.rx.sack_blocks(most, |left, right| {
            let number = |offset: u64| self.peer_initial_seq.wrapping_add(offset as u32);
            sack.push(SackBlock { left: number(left), right: number(right) });
        });
        self.outgoing_sack = sack;
    }

    /// Bookkeeping of a segment that takes up sequence numbers.
    #[inline(always)]
    pub(super) fn note_sent(&mut self, now: Time, span: Span) {
        let end = span.start + u64::from(span.len);
        if span.start < self.window.max {
            self.timed = None; // Karn's algorithm: a retransmission is not timed
        } else if self.timed.is_none() && !self.sizes.has_timestamps && !self.window.records.is_kept() {
            self.timed = Some((end, now));
        }
        if self.window.records.is_kept() {
            self.record_sent(now, span);
        }
        let mut paced_bytes = span.len;
        if self.extensions.is_some() {
            paced_bytes += self.note_extended(now, span);
        }
        self.pacer.on_sent(now, paced_bytes);
        self.running.on_sent(&mut self.window, span);
        self.timer.on_sent(now);
        self.last_sent = now;
        // Data only: the SYN is before offset 1, the FIN after the written data.
        let (from, to) = (self.window.una.max(1), self.window.max.min(self.written_end));
        self.peak_in_flight = self.peak_in_flight.max(to.saturating_sub(from));
    }

    /// Restarts slow start after an idle period, because the measurements of the path are outdated.
    #[inline(always)]
    pub(super) fn restart_if_idle(&mut self, now: Time) {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-4.1
        //# a TCP SHOULD set cwnd to no more than RW before beginning transmission if the TCP has not sent data in an
        //# interval exceeding the retransmission timeout.
        if self.window.una > 1 {
            self.control.on_idle(now);
        }
        if self.restarts_after_idle && self.window.una > 1 {
            let is_idle = now.since(self.last_sent) > self.timer.rto();
            if is_idle && self.window.phase == Phase::Open {
                //= https://www.rfc-editor.org/rfc/rfc5681#section-4.1
                //# we define RW = min(IW,cwnd)
                self.window.cwnd = self.window.cwnd.min(self.window.initial_cwnd);
                self.window.update(self.written_end);
            }
        }
    }

    /// Nothing is in flight, data waits, and the peer's window is closed: probes it from time to time.
    #[cold]
    fn arm_persist_timer(&mut self, now: Time) {
        if self.timer.deadline == Time::NEVER {
            self.timer.restart(now);
        }
    }

    pub(super) fn is_window_shut(&self) -> bool {
        self.window.una == self.window.max
            && self.window.segment_len(self.window.nxt) > 0
            && self.window.nxt + u64::from(self.window.segment_len(self.window.nxt)) > self.window.peer_end
    }
}

/// The timestamp clock ticks in milliseconds (RFC 7323, section 5.4).
#[inline]
pub(super) fn timestamp(now: Time) -> u32 {
    (now.as_ps() / 1_000_000_000) as u32
}
