//! The behaviour of a connection with extensions.

use crate::endpoint::LinkHint;
use crate::event::Event;
use crate::payload::Payload;
use crate::protocol::parts::pacer::Pacer;
use crate::protocol::parts::repeats::Repeats;
use crate::protocol::tcp::ack_fields::AckFields;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::connection::{State, TcpConnection};
use crate::protocol::tcp::reassembly::AckDelay;
use crate::protocol::tcp::segment::{Flags, ScpsCapabilities, Segment};
use crate::protocol::tcp::span::Span;
use crate::protocol::tcp::variant::{Reaction, Running};
use crate::protocol::tcp::window::Phase;
use crate::time::Time;

use super::best_effort::Transmissions;
use super::{Extensions, ExtensionsConfig, LossMeans, SNACK};

impl<D: Payload> TcpConnection<D> {
    /// The two sides of a connection with extensions, the active opener first.
    pub(in crate::protocol) fn extended(config: &TcpConfig, wanted: &ExtensionsConfig, seed: u64) -> (Self, Self) {
        let (mut active, mut passive) = Self::pair(config, seed);
        for end in [&mut active, &mut passive] {
            end.extend(config, wanted);
        }
        (active, passive)
    }

    fn extend(&mut self, config: &TcpConfig, wanted: &ExtensionsConfig) {
        let mut bits = if config.variant.uses_snack() { SNACK } else { 0 };
        if wanted.best_effort.is_some() {
            bits |= ScpsCapabilities::BEST_EFFORT;
        }
        if wanted.compression.is_some() {
            bits |= ScpsCapabilities::COMPRESSION;
        }
        let mut extensions = Extensions::new(bits, wanted.snack_vector_bytes);
        extensions.loss_means = wanted.loss_means;
        extensions.corruption_hold = wanted.corruption_hold;
        extensions.compression = wanted.compression;
        extensions.copies = Repeats::new(wanted.copies, wanted.copy_spacing);
        let most = wanted.best_effort.and_then(|best_effort| best_effort.max_transmissions);
        extensions.transmissions = most.map(Transmissions::new);
        self.window.is_corruption = wanted.loss_means == LossMeans::Corruption;
        self.pacer = Pacer::new(wanted.rate);
        self.rx.ack_every = wanted.ack_every;
        self.rx.ack_delay = AckDelay::Fixed(wanted.ack_delay);
        self.rx.expects_repeats = wanted.copies > 1;
        self.rx.hold = wanted.best_effort.map(|best_effort| best_effort.hold);
        self.extensions = Some(Box::new(extensions));
        if self.state == State::Established {
            self.agree_with_itself();
        }
    }

    /// Without a handshake, the peer is assumed to have the same capabilities.
    pub(in crate::protocol::tcp) fn agree_with_itself(&mut self) {
        self.agree(self.extensions.as_ref().map(|extensions| extensions.own));
    }

    /// Takes the peer's capabilities; `None` if it does not use SCPS-TP.
    #[cold]
    pub(in crate::protocol::tcp) fn agree(&mut self, peer: Option<ScpsCapabilities>) {
        let Some(extensions) = &mut self.extensions else { return };
        extensions.agreed = extensions.own.bits & peer.unwrap_or_default().bits;
        self.rx.names_holes = extensions.has(ScpsCapabilities::SNACK_SHORT);
        if !extensions.has(ScpsCapabilities::BEST_EFFORT) {
            self.rx.hold = None;
            extensions.transmissions = None;
        }
        if let Some(compression) = extensions.compression.filter(|_| extensions.has(ScpsCapabilities::COMPRESSION)) {
            // The header size that the pacer counts.
            self.sizes.data_header_bytes = compression.data_bytes(self.sizes.has_timestamps);
        }
    }

    /// Adds the options of the extensions to a segment.
    #[cold]
    pub(in crate::protocol::tcp) fn add_options(&mut self, now: Time, segment: &mut Segment<D>) {
        let Some(extensions) = &mut self.extensions else { return };
        extensions.now = extensions.now.max(now);
        if segment.flags.has(Flags::SYN) {
            segment.syn.scps = Some(extensions.own);
            segment.header_bytes += 4;
            return;
        }
        // The option takes four bytes with two no-operations.
        let mut option_bytes = 0;
        if extensions.agreed != 0 && now < extensions.corruption_until {
            segment.corruption_experienced = true;
            option_bytes += 4;
        }
        if self.rx.stream.has_gaps() && extensions.has(ScpsCapabilities::SNACK_SHORT) {
            let room = 40 - option_bytes - if self.sizes.has_timestamps { 12 } else { 0 };
            segment.snack = extensions.reporter.report(&mut self.rx, self.window.mss, usize::from(room));
            option_bytes += segment.snack.map_or(0, |snack| snack.option_bytes().next_multiple_of(4));
        }
        segment.header_bytes += option_bytes;
        if let Some(compression) = extensions.compression.filter(|_| extensions.has(ScpsCapabilities::COMPRESSION)) {
            let (has_sent, has_heard) = (self.window.max > 1, self.rx.stream.next > 1);
            segment.header_bytes = compression.header_bytes(segment, has_sent, has_heard);
        }
    }

    /// Handles the options of an acknowledgement that matter before it is processed.
    #[inline]
    pub(in crate::protocol::tcp) fn note_corruption(&mut self, fields: &AckFields<'_>) {
        if let Some(extensions) = &self.extensions
            && extensions.loss_means == LossMeans::Signalled
        {
            self.window.is_corruption = fields.has_corruption;
        }
    }

    /// Handles the options of an acknowledgement after the acknowledged data was processed.
    #[cold]
    pub(in crate::protocol::tcp) fn handle_ack_of_extensions(&mut self, now: Time, ack: u64, fields: &AckFields<'_>) {
        if let (Some(snack), Running::Snack(state)) = (fields.snack, &mut self.running)
            && state.on_report(&mut self.window, &mut self.control, ack, snack)
        {
            // Reported data has arrived, so the path works, and the missing data is known.
            self.timer.restart(now);
        }
        if self.window.phase == Phase::Open
            && let Some(ssthresh) = self.window.kept_ssthresh.take()
        {
            self.window.ssthresh = ssthresh;
        }
        self.pass_over_abandoned(now);
    }

    /// A segment is sent; returns the bytes of its header that count at a fixed rate.
    pub(in crate::protocol::tcp) fn note_extended(&mut self, now: Time, span: Span) -> u32 {
        self.window.now = now;
        let Some(extensions) = &mut self.extensions else { return 0 };
        if let Some(transmissions) = &mut extensions.transmissions {
            transmissions.on_sent(span.start, span.start + u64::from(span.len), self.window.una);
        }
        u32::from(self.sizes.data_header_bytes)
    }

    /// Whether the segment that is due has reached its limit of transmissions; then it is given up and another one is due.
    pub(in crate::protocol::tcp) fn gives_up(&mut self, now: Time, span: Span) -> bool {
        let Some(extensions) = &mut self.extensions else { return false };
        let Some(transmissions) = &mut extensions.transmissions else { return false };
        // SYN and FIN have no limit.
        if span.start == 0 || span.start >= self.window.max {
            return false;
        }
        let Some(end) = transmissions.exhausted(span.start).map(|end| end.min(self.written_end)) else { return false };
        // The receiver notices a hole only by data after it, for which its window must have room.
        if end <= span.start || end >= self.window.peer_end {
            return false;
        }
        transmissions.abandon(span.start);
        if span.start == self.window.una {
            self.window.retransmit_first = false;
            self.pass_over_abandoned(now);
            return true;
        }
        let is_noted = self.running.on_sack_block(&mut self.window, span.start, end);
        let is_pointer = self.window.nxt == span.start;
        if is_pointer {
            self.window.nxt = end;
        }
        is_noted || is_pointer
    }

    /// Data that was given up counts as acknowledged as soon as all data before it is acknowledged.
    fn pass_over_abandoned(&mut self, now: Time) {
        let Some(transmissions) = self.extensions.as_mut().and_then(|extensions| extensions.transmissions.as_mut())
        else {
            return;
        };
        let end = transmissions.abandoned_from(self.window.una).min(self.written_end);
        if end > self.window.una {
            self.window.now = now;
            self.timed = None;
            self.window.advance(end);
            self.settle(now, end, 0);
        }
    }

    /// Sends a copy of an earlier segment, if one is due.
    #[cold]
    pub(in crate::protocol::tcp) fn poll_copy(&mut self, now: Time) -> Option<Segment<D>> {
        let copies = self.extensions.as_mut()?.copies.as_mut()?;
        if self.pacer.is_holding(now) {
            return None;
        }
        // Data that was acknowledged meanwhile is not copied.
        let una = self.buffer_start.max(self.window.una);
        let span = copies.poll(now, |span| span.start >= una)?;
        let payload = self.buffer.slice((span.start - self.buffer_start) as usize, span.len as usize);
        let bytes = payload.len() as u32;
        let segment = self.segment(now, span.start, Flags::ACK, self.sizes.data_header_bytes, payload);
        self.pacer.on_sent(now, bytes + u32::from(self.sizes.data_header_bytes));
        if let Running::Snack(state) = &mut self.running {
            state.on_copy(now, &self.window, span);
        }
        Some(segment)
    }

    /// A segment with data was sent; schedules its copies.
    pub(in crate::protocol::tcp) fn want_copies(&mut self, now: Time, start: u64, len: u32) {
        if let Some(copies) = self.extensions.as_mut().and_then(|extensions| extensions.copies.as_mut())
            && len > 0
        {
            copies.put(now, Span { start, len });
        }
    }

    /// Updates the time at which the first hole is given up.
    #[cold]
    pub(in crate::protocol::tcp) fn watch_holes(&mut self, now: Time) {
        let deadline = self.rx.hold_deadline();
        let Some(extensions) = &mut self.extensions else { return };
        extensions.now = extensions.now.max(now);
        extensions.hold_deadline = deadline;
        extensions.is_skip_due = deadline <= now;
    }

    /// Gives up the first hole if that is due and all data before it was read.
    #[cold]
    pub(in crate::protocol::tcp) fn poll_skip(&mut self) -> Option<Event> {
        let extensions = self.extensions.as_mut().filter(|extensions| extensions.is_skip_due)?;
        let now = extensions.now;
        if self.rx.stream.unread_bytes > 0 || self.state != State::Established {
            return None;
        }
        let len = self.rx.skip_hole();
        self.watch_holes(now);
        let len = len?;
        self.take_fin();
        Some(Event::Skipped(len))
    }

    /// Handles a hint of the link.
    pub(in crate::protocol::tcp) fn handle_link_hint(&mut self, now: Time, hint: LinkHint) {
        if let (LinkHint::Corrupted, Some(extensions)) = (hint, &mut self.extensions) {
            extensions.corruption_until = now + extensions.corruption_hold;
        }
    }
}
