//! One side of a TCP connection: ties window, timer, reassembly and version together behind [`Endpoint`].

use crate::endpoint::{
    Class, Counters, Ecn, Endpoint, Integrity, LinkHint, Packet, PathId, Probe, Rx, Stream, Transmit,
};
use crate::event::Event;
use crate::payload::Payload;
use crate::protocol::parts::chunks::Chunks;
use crate::protocol::parts::events::EventSet;
use crate::protocol::parts::pacer::Pacer;
use crate::protocol::parts::rto::RetransmissionTimer;
use crate::rng::Rng;
use crate::time::Time;

use super::config::TcpConfig;
use super::congestion::{Congestion, Control};
use super::ecn::Notification;
use super::extensions::Extensions;
use super::frto::FRto;
use super::reassembly::Receiver;
use super::segment::{Flags, PlainSegment, SackBlock, SackBlocks, Segment, SnackReport, SynOptions, Timestamps};
use super::variant::{Reaction, Running};
use super::window::{Acked, Phase, RoundTrips, Span, Window};

/// States that matter to the driver (RFC 9293, section 3.3.2, with the closing states told apart by what was sent and
/// received).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    Aborted,
}

/// One side of a TCP connection.
#[derive(Clone, Debug)]
pub struct Connection<D> {
    pub(super) window: Window,
    pub(super) timer: RetransmissionTimer,
    pub(super) running: Running,
    pub(super) control: Congestion,
    pub(super) frto: FRto,
    pub(super) pacer: Pacer,
    /// Something may be due once the pacer lets it go.
    pub(super) is_held_back: bool,
    pub(super) paces: bool,
    pub(super) rx: Receiver<D>,
    pub(super) state: State,
    pub(super) notification: Notification,
    /// A segment that was sent once and is being timed: (offset behind it, when it was sent).
    pub(super) timed: Option<(u64, Time)>,
    pub(super) initial_seq: u32,
    pub(super) peer_initial_seq: u32,
    most_retransmissions: u32,
    /// Data written and not acknowledged; starts at offset `buffer_start`.
    pub(super) buffer: Chunks<D>,
    pub(super) buffer_start: u64,
    /// Offset behind the last byte written.
    pub(super) written_end: u64,
    /// Offset whose acknowledgement leaves so little data that the application is asked for more.
    pub(super) writable_at: u64,
    is_closing: bool,
    has_peer_fin: bool,
    pub(super) events: EventSet,
    pub(super) sizes: Sizes,
    /// The peer's latest timestamp value, to echo (TS.Recent of RFC 7323).
    timestamp_recent: u32,
    /// Blocks of the acknowledgement being built; here, so that a segment without them needs no memory.
    outgoing_sack: SackBlocks,
    pub(super) last_sent: Time,
    restarts_after_idle: bool,
    /// Timeouts of the segment at `una` in a row.
    pub(super) timeouts_in_a_row: u32,
    pub(super) peak_in_flight: u64,
    timeouts: u64,
    /// What SCPS-TP adds.
    pub(super) extensions: Option<Box<Extensions>>,
}

/// Header sizes and options agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) data_header_bytes: u16,
    pub(super) ack_header_bytes: u16,
    pub(super) window_shift: u8,
    scales_window: bool,
    pub(super) has_timestamps: bool,
    pub(super) uses_sack: bool,
    pub(super) has_fin: bool,
}

/// More data than this waits unsent: no need to ask the application.
const LOW_WATER_BYTES: u64 = 1 << 30;

impl<D: Payload> Connection<D> {
    /// The two sides of a connection, the active opener first. Without `handshake` both start established.
    pub fn pair(config: &TcpConfig, seed: u64) -> (Self, Self) {
        let random = |side| Rng::for_component(seed, side, "congestion control");
        let mut active = Self::new(config, seed as u32, random(0));
        let mut passive = Self::new(config, (seed >> 32) as u32, random(1));
        active.peer_initial_seq = passive.initial_seq;
        passive.peer_initial_seq = active.initial_seq;
        if config.handshake {
            active.state = State::SynSent;
            active.window.end = 1;
            active.window.update(1);
        } else {
            for end in [&mut active, &mut passive] {
                end.agree_with_itself();
                end.set_first_pace();
            }
        }
        (active, passive)
    }

    fn new(config: &TcpConfig, initial_seq: u32, random: Rng) -> Self {
        let offered = config.offered_bytes();
        let window_shift = if config.window_scaling { shift_for(offered) } else { 0 };
        // Rounded up, so that the field as sent still covers the whole window.
        let offered = offered.div_ceil(1 << window_shift) << window_shift;
        let first = u64::from(!config.handshake);
        let ack_every: u16 = if config.delayed_ack { 2 } else { 1 };
        let mut rx =
            Receiver::new(ack_every, config.delayed_ack_timeout_s.time(), offered, config.reports_duplicates());
        rx.stream.next = first;
        rx.last_ack_sent = first;
        let (data_header_bytes, ack_header_bytes) = config.overhead_bytes();
        let mut control = Congestion::new(config);
        control.seed(random);
        let restarts_after_idle = config.restart_after_idle && control.restarts_after_idle();
        let running = Running::new(config);
        let mut window = Window::new(config, first, offered, control.wants_samples());
        if running.wants_order() {
            window.records.keep_order();
        }
        Connection {
            window,
            timer: RetransmissionTimer::new(&config.rto),
            running,
            control,
            frto: FRto::new(config.tests_timeouts()),
            pacer: Pacer::default(),
            is_held_back: false,
            paces: config.paces(),
            rx,
            state: if config.handshake { State::Listen } else { State::Established },
            notification: Notification::new(config.ecn, config.handshake),
            timed: None,
            most_retransmissions: config.most_retransmissions(),
            initial_seq,
            peer_initial_seq: 0,
            buffer: Chunks::default(),
            buffer_start: 1,
            written_end: 1,
            writable_at: 0,
            is_closing: false,
            has_peer_fin: false,
            events: if config.handshake { EventSet::default() } else { EventSet::CONNECTED },
            sizes: Sizes {
                data_header_bytes,
                ack_header_bytes,
                window_shift,
                scales_window: config.window_scaling,
                has_timestamps: config.timestamps,
                uses_sack: config.variant.uses_sack(),
                has_fin: config.fin,
            },
            timestamp_recent: 0,
            outgoing_sack: SackBlocks::default(),
            last_sent: Time::ZERO,
            restarts_after_idle,
            timeouts_in_a_row: 0,
            peak_in_flight: 0,
            timeouts: 0,
            extensions: Extensions::of_variant(config),
        }
    }

    /// Makes written data (and the FIN behind it) visible to the window.
    fn update_end(&mut self) {
        if self.state == State::Aborted {
            return;
        }
        if self.state == State::Established {
            let fin = u64::from(self.is_closing && self.sizes.has_fin);
            self.window.end = self.written_end + fin;
        }
        self.writable_at = if self.is_closing { u64::MAX } else { self.written_end.saturating_sub(LOW_WATER_BYTES) };
        self.window.update(self.written_end);
    }

    /// The stream offset that a sequence or acknowledgement number means, given one nearby.
    #[inline]
    pub(super) fn unwrap(number: u32, initial: u32, near: u64) -> u64 {
        let near_number = initial.wrapping_add(near as u32);
        near.wrapping_add_signed(i64::from(number.wrapping_sub(near_number) as i32))
    }

    #[inline(always)]
    pub(super) fn handle_acknowledgement(&mut self, now: Time, heard: &Heard<'_>) {
        let ack = Self::unwrap(heard.ack, self.initial_seq, self.window.una);
        let shift = if heard.flags.has(Flags::SYN) { 0 } else { self.sizes.window_shift };
        if ack > self.window.max || (ack as i64) < 0 {
            return; // acknowledges what was never sent
        }
        let peer_end = ack + (u64::from(heard.window) << shift);
        let is_awaited = self.window.expects_echo && !heard.has_payload;
        let has_blocks = !heard.sack.is_empty();
        if self.window.una == self.window.end && ack == self.window.una && !is_awaited && !has_blocks {
            // This side has nothing to send: only the peer's window can be news.
            self.window.peer_end = self.window.peer_end.max(peer_end);
            return;
        }
        self.window.now = now;
        if self.window.records.is_kept() {
            self.begin_acknowledgement(heard.echo);
        }
        if self.extensions.is_some() {
            self.hear_corruption(heard);
        }
        if heard.flags.has(Flags::ECE) && self.notification.is_agreed() {
            self.on_echo(now, ack);
        }
        let has_new_sack = self.sizes.uses_sack && has_blocks && self.note_sack(ack, heard.sack);
        let is_window_unchanged = peer_end <= self.window.peer_end;
        self.window.peer_end = self.window.peer_end.max(peer_end);
        let is_pure =
            !heard.has_payload && is_window_unchanged && !self.window.is_probing && !heard.flags.has(Flags::FIN);
        let is_duplicate = is_pure && ack == self.window.una && self.window.max > ack;
        let acked = Acked { is_new: ack > self.window.una, is_duplicate, is_pure };
        if acked.is_new {
            self.handle_new_acknowledgement(now, ack, heard.echo);
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
            self.hear_extensions(now, ack, heard);
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
    pub(super) fn note_round_trip(&mut self, now: Time, round_trip: Time) {
        self.timer.sample(now, round_trip);
        self.window.rtt = RoundTrips {
            latest: Some(round_trip),
            smoothed: self.timer.smoothed().unwrap_or(round_trip),
            least: self.window.rtt.least.min(round_trip),
            count: self.window.rtt.count + 1,
        };
    }

    /// Takes note of selective acknowledgements; `true` if they report something new.
    #[cold]
    fn note_sack(&mut self, ack: u64, sack: &[SackBlock]) -> bool {
        let offset = |number: u32| Self::unwrap(number, self.initial_seq, self.window.una);
        let range = |block: &SackBlock| (offset(block.left), offset(block.right));
        if let Some((left, right)) = sack.first().map(range) {
            // A duplicate is reported first, below the cumulative acknowledgement or inside the block that comes second
            // (RFC 2883, section 4).
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
            let elapsed_ms = timestamp(now).wrapping_sub(echo);
            self.note_round_trip(now, Time::from_millis(u64::from(elapsed_ms)));
        } else {
            self.time_round_trip(now, ack);
        }
        self.settle(now, ack, acked);
    }

    /// Everything below `offset` is done with, `acked` bytes of it newly acknowledged.
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

    /// Takes the round-trip time of the segment that is being timed if it is acknowledged.
    #[inline(always)]
    pub(super) fn time_round_trip(&mut self, now: Time, ack: u64) {
        if let Some((end, sent)) = self.timed
            && ack >= end
        {
            self.note_round_trip(now, now.since(sent));
            self.timed = None;
        }
    }

    fn note_closed(&mut self) {
        let is_peer_done = self.has_peer_fin || !self.sizes.has_fin;
        let is_open = self.state == State::Established;
        if is_open && self.is_closing && is_peer_done && self.window.una == self.window.end {
            self.events.insert(EventSet::CLOSED);
        }
    }

    #[cold]
    fn handle_control(&mut self, now: Time, segment: &Segment<D>) {
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
            State::SynReceived if segment.flags.has(Flags::ACK) => {
                self.handle_acknowledgement(now, &Heard::of(segment));
                if self.window.una > 0 {
                    self.establish();
                    self.handle_text(now, segment);
                }
            }
            State::Established => {
                self.handle_acknowledgement(now, &Heard::of(segment));
                self.handle_text(now, segment);
            }
            _ => {}
        }
    }

    /// The connection is over, and the application is told why.
    fn abort(&mut self, why: EventSet) {
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
            State::SynSent if segment.flags.has(Flags::ACK) => {
                self.agree(segment.syn.scps);
                self.peer_initial_seq = segment.seq;
                self.notification.on_syn_ack(segment.flags);
                self.rx.stream.next = 1;
                self.handle_acknowledgement(now, &Heard::of(segment));
                if self.window.una > 0 {
                    self.establish();
                    self.rx.ack_now = true;
                }
            }
            // A SYN that arrives again: its acknowledgement was lost.
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

    /// Payload and FIN of a segment in an established connection.
    #[inline(always)]
    fn handle_text(&mut self, now: Time, segment: &Segment<D>) {
        let start = Self::unwrap(segment.seq, self.peer_initial_seq, self.rx.stream.next);
        if (start as i64) < 0 {
            self.rx.ack_now = true; // begins before the peer's first number: old
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

    /// Takes the peer's FIN in if everything before it is.
    #[inline(always)]
    pub(super) fn take_fin(&mut self) {
        if self.rx.takes_fin() {
            self.has_peer_fin = true;
            self.events.insert(EventSet::FINISHED);
            self.note_closed();
        }
    }

    /// Whether the pacer holds back what may be due.
    #[inline(always)]
    pub(super) fn is_holding_back(&mut self, now: Time) -> bool {
        self.is_held_back =
            self.pacer.is_holding(now) && (self.window.needs_look || self.window.next_clear().is_some());
        self.is_held_back
    }

    /// Everything that is not the usual: retransmissions, recovery, SYN and FIN, the last segment, a shut window.
    #[inline(never)]
    pub(super) fn look_closely(&mut self, now: Time) -> Option<Span> {
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

    /// Builds the segment of a span and accounts for it.
    #[inline(always)]
    fn send_span(&mut self, now: Time, mut span: Span) -> (Segment<D>, Ecn) {
        let sent = if span.start == 0 {
            (self.syn(now), Ecn::NotCapable)
        } else {
            let len = (span.start + u64::from(span.len)).min(self.written_end).saturating_sub(span.start);
            let payload = self.buffer.slice((span.start - self.buffer_start) as usize, len as usize);
            let sent = payload.len() as u32;
            // The FIN is the offset behind the last byte. A slice may be cut short at a chunk's end; then neither the rest
            // nor the FIN is in this segment.
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

    #[inline(always)]
    fn syn(&mut self, now: Time) -> Segment<D> {
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

    /// A segment with what every segment has.
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

    /// The window as a segment says it, scaled.
    #[inline(always)]
    pub(super) fn window_field(&self) -> u16 {
        u16::try_from(self.rx.window() >> self.sizes.window_shift).unwrap_or(u16::MAX)
    }

    /// Writes what arrived out of order to `outgoing_sack`.
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
            self.timed = None; // Karn's algorithm: sent again, not to be timed
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
        self.peak_in_flight = self.peak_in_flight.max(self.window.max - self.window.una);
    }

    /// Slow start again after a pause: what was learnt about the path is old.
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

    /// Loss detection is woken, or a probe takes the place of a retransmission timeout.
    #[cold]
    fn handle_alarm(&mut self, now: Time) {
        self.window.now = now;
        if self.running.on_alarm(&mut self.window, &mut self.control) {
            //= https://www.rfc-editor.org/rfc/rfc8985#section-7.3
            //# After attempting to send a loss probe, regardless of whether a loss probe was sent, the sender MUST re-arm
            //# the RTO timer, not the PTO timer, if FlightSize is not zero.
            self.timer.restart(now);
        }
        self.window.update(self.written_end);
    }

    /// Nothing is in flight, data waits, and the peer's window is shut: ask from time to time.
    #[cold]
    fn arm_persist_timer(&mut self, now: Time) {
        if self.timer.deadline == Time::NEVER {
            self.timer.restart(now);
        }
    }

    fn is_window_shut(&self) -> bool {
        self.window.una == self.window.max
            && self.window.segment_len(self.window.nxt) > 0
            && self.window.nxt + u64::from(self.window.segment_len(self.window.nxt)) > self.window.peer_end
    }
}

/// What a segment says about the sending direction.
pub(super) struct Heard<'a> {
    pub(super) ack: u32,
    pub(super) window: u16,
    pub(super) flags: Flags,
    pub(super) has_payload: bool,
    /// The timestamp that the peer echoes.
    pub(super) echo: Option<u32>,
    pub(super) sack: &'a [SackBlock],
    pub(super) snack: Option<&'a SnackReport>,
    pub(super) has_corruption: bool,
}

impl<'a> Heard<'a> {
    #[inline(always)]
    pub(super) fn plain(segment: &'a PlainSegment) -> Self {
        let &PlainSegment { ack, window, flags, payload_bytes, .. } = segment;
        let has_payload = payload_bytes > 0;
        let sack = if segment.sack.is_empty() { &[] } else { std::slice::from_ref(&segment.sack) };
        Heard { ack, window, flags, has_payload, echo: None, sack, snack: None, has_corruption: false }
    }

    #[inline(always)]
    fn of<D: Payload>(segment: &'a Segment<D>) -> Self {
        Heard {
            ack: segment.ack,
            window: segment.window,
            flags: segment.flags,
            has_payload: !segment.payload.is_empty(),
            echo: segment.timestamps.map(|timestamps| timestamps.echo),
            sack: segment.sack.as_slice(),
            snack: segment.snack.as_ref(),
            has_corruption: segment.corruption_experienced,
        }
    }
}

/// The least shift with which a window fits the field of 16 bits.
fn shift_for(offered: u64) -> u8 {
    //= https://www.rfc-editor.org/rfc/rfc7323#section-2.3
    //# the shift count MUST be limited to 14
    (0..14).find(|shift| offered >> shift <= u64::from(u16::MAX)).unwrap_or(14)
}

/// The timestamp clock ticks in milliseconds (RFC 7323, section 5.4).
#[inline]
fn timestamp(now: Time) -> u32 {
    (now.as_ps() / 1_000_000_000) as u32
}

impl<D: Payload> Endpoint for Connection<D> {
    type Packet = Segment<D>;

    #[inline(always)]
    fn handle_packet(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        if rx.integrity == Integrity::PayloadDamaged {
            return; // the checksum would have dropped it
        }
        if let Some(timestamps) = segment.timestamps {
            //= https://www.rfc-editor.org/rfc/rfc7323#section-4.3
            //# If SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent, then SEG.TSval is copied to TS.Recent
            let start = Self::unwrap(segment.seq, self.peer_initial_seq, self.rx.stream.next);
            let is_newer = timestamps.value.wrapping_sub(self.timestamp_recent) as i32 >= 0;
            if (is_newer && start <= self.rx.last_ack_sent) || segment.flags.has(Flags::SYN) {
                self.timestamp_recent = timestamps.value;
            }
        }
        if self.notification.is_agreed() {
            self.note_congestion(segment, rx.ecn);
        }
        const SPECIAL: u8 = Flags::SYN.0 | Flags::RST.0;
        if segment.flags.0 & SPECIAL != 0 || self.state != State::Established {
            self.handle_control(now, segment);
            return;
        }
        self.handle_acknowledgement(now, &Heard::of(segment));
        self.handle_text(now, segment);
    }

    fn wants_hints(&self) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.wants_hints())
    }

    fn handle_link(&mut self, now: Time, hint: LinkHint) {
        self.hear_link(now, hint);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.rx.on_timeout(now);
        let alarm = self.window.alarm;
        //= https://www.rfc-editor.org/rfc/rfc8985#section-7.2
        //# If Now() + PTO > TCP_RTO_expiration(): PTO = TCP_RTO_expiration() - Now()
        if alarm.at <= now || alarm.is_probe && self.timer.deadline <= now {
            self.handle_alarm(now);
        }
        if self.rx.hold.is_some() {
            self.watch_holes(now);
        }
        if self.timer.deadline > now {
            return;
        }
        self.timer.deadline = Time::NEVER;
        self.timer.back_off();
        self.check_app_limited();
        if self.window.una == self.window.max {
            if self.is_window_shut() {
                //= https://www.rfc-editor.org/rfc/rfc9293#section-3.8.6.1
                //# The sending TCP peer must regularly transmit at least one octet of new data (if available), or
                //# retransmit to the receiving TCP peer even if the send window is zero
                self.window.peer_end = self.window.peer_end.max(self.window.nxt + 1);
                self.window.is_probing = true;
                self.window.update(self.written_end);
            }
            return;
        }
        if self.timeouts_in_a_row >= self.most_retransmissions {
            //= https://www.rfc-editor.org/rfc/rfc9293#section-3.8.3
            //# When the number of transmissions of the same segment reaches a threshold R2 greater than R1, close the
            //# connection.
            self.abort(EventSet::GIVEN_UP);
            return;
        }
        self.timeouts += 1;
        self.timed = None;
        self.window.now = now;
        self.frto.on_timeout(&mut self.window);
        self.window.on_timeout(&mut self.control, self.timeouts_in_a_row == 0);
        self.timeouts_in_a_row += 1;
        self.running.on_timeout(&mut self.window, &mut self.control);
        self.note_all_lost();
        self.window.update(self.written_end);
    }

    #[inline(always)]
    fn poll_transmit(&mut self, now: Time, _path: PathId) -> Option<Transmit<Segment<D>>> {
        if self.window.una == self.window.max {
            self.restart_if_idle(now);
        }
        if self.extensions.is_some()
            && let Some(copy) = self.poll_copy(now)
        {
            self.rx.on_ack_sent();
            return Some(Transmit::plain(copy));
        }
        let mut span = None;
        if !self.is_holding_back(now) {
            span = self.window.next_clear();
            if span.is_none() && self.window.needs_look {
                span = self.look_closely(now);
            }
        }
        let (packet, ecn) = match span {
            Some(span) => {
                let (segment, ecn) = self.send_span(now, span);
                if self.extensions.is_some() {
                    self.want_copies(now, span.start, segment.payload_bytes());
                }
                (segment, ecn)
            }
            None if self.rx.ack_now => {
                let header_bytes = self.sizes.ack_header_bytes;
                let flags = Flags::ACK.with(self.stamp().flags);
                (self.segment(now, self.window.max, flags, header_bytes, D::default()), Ecn::NotCapable)
            }
            None => return None,
        };
        self.rx.on_ack_sent();
        Some(Transmit { packet, class: Class::default(), ecn, token: 0 })
    }

    #[inline(always)]
    fn poll_event(&mut self) -> Option<Event> {
        if !self.events.is_empty() {
            return self.events.pop();
        }
        if self.rx.hold.is_some() { self.poll_skip() } else { None }
    }

    #[inline(always)]
    fn poll_timeout(&self) -> Option<Time> {
        let mut next = self.timer.deadline.min(self.rx.ack_deadline).min(self.window.alarm.at);
        if self.is_held_back {
            next = next.min(self.pacer.next());
        }
        if let Some(extensions) = &self.extensions {
            next = next.min(extensions.next_timeout(&self.pacer));
        }
        (next != Time::NEVER).then_some(next)
    }

    fn counters(&self) -> Counters {
        Counters {
            timeouts: self.timeouts,
            fast_retransmits: self.window.fast_retransmits,
            peak_reorder_bytes: self.rx.stream.peak_early_bytes,
            peak_send_buffer_bytes: self.peak_in_flight,
        }
    }

    fn probe(&self) -> Probe {
        Probe {
            cwnd_bytes: Some(self.window.cwnd),
            ssthresh_bytes: Some(self.window.ssthresh),
            rtt: self.timer.latest,
            in_flight_bytes: Some(self.window.flight()),
            acknowledged_bytes: Some(self.window.una.saturating_sub(1)),
            pacing_bps: self.pacer.bytes_per_s().map(|rate| rate * 8.0),
            bandwidth_bps: self.control.bandwidth().map(|rate| rate * 8.0),
        }
    }
}

impl<D: Payload> Stream<D> for Connection<D> {
    fn write(&mut self, _now: Time, data: &mut D) -> usize {
        let n = data.len();
        if n == 0 || self.is_closing {
            return 0;
        }
        self.check_app_limited();
        self.written_end += n as u64;
        self.buffer.push(std::mem::take(data));
        self.update_end();
        n
    }

    #[inline]
    fn read(&mut self) -> Option<D> {
        self.rx.read()
    }

    fn close(&mut self, _now: Time) {
        self.is_closing = true;
        self.update_end();
        self.note_closed();
    }
}
