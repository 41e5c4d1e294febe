//! One side of a TCP connection: combines window, timer, reassembly and variant as an [`Endpoint`].
//!
//! Its steps are in files of their own: [`opening`](super::opening), [`sending`](super::sending),
//! [`acknowledgements`](super::acknowledgements).

use crate::endpoint::{Class, Counters, Ecn, Endpoint, Integrity, LinkHint, Packet, Probe, Rx, Stream, Transmit};
use crate::event::Event;
use crate::payload::Payload;
use crate::protocol::Pairs;
use crate::protocol::parts::chunks::Chunks;
use crate::protocol::parts::events::EventSet;
use crate::protocol::parts::pacer::Pacer;
use crate::protocol::parts::rto::{RetransmissionTimer, RtoAlgorithm};
use crate::rng::{RandomSource as _, Rng};
use crate::time::Time;

use super::ack_fields::AckFields;
use super::config::{TcpConfig, TimestampEcho};
use super::congestion::{Congestion, Control};
use super::ecn::Notification;
use super::extensions::Extensions;
use super::frto::FRto;
use super::reassembly::{AckDelay, Receiver};
use super::segment::{Flags, SackBlocks, Segment};
use super::variant::{Reaction, Running};
use super::window::Window;

/// The states that matter to the driver (RFC 9293, section 3.3.2); closing states are distinguished by the sent and
/// received FINs.
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
pub struct TcpConnection<D> {
    pub(super) window: Window,
    pub(super) timer: RetransmissionTimer,
    pub(super) running: Running,
    pub(super) control: Congestion,
    pub(super) frto: FRto,
    pub(super) pacer: Pacer,
    /// Whether a segment may be due as soon as the pacer allows it.
    pub(super) is_held_back: bool,
    pub(super) paces: bool,
    pub(super) rx: Receiver<D>,
    pub(super) state: State,
    pub(super) notification: Notification,
    /// The segment that is being timed, which was sent once: (offset after it, when it was sent).
    pub(super) timed: Option<(u64, Time)>,
    pub(super) initial_seq: u32,
    pub(super) peer_initial_seq: u32,
    most_retransmissions: u32,
    /// Data that was written and is not acknowledged; it starts at offset `buffer_start`.
    pub(super) buffer: Chunks<D>,
    pub(super) buffer_start: u64,
    /// Offset after the last byte written.
    pub(super) written_end: u64,
    /// When this offset is acknowledged, so little data is left that the application is asked for more.
    pub(super) writable_at: u64,
    pub(super) is_closing: bool,
    pub(super) has_peer_fin: bool,
    pub(super) events: EventSet,
    /// Sequence number of a reset that is due, in answer to a segment of a connection that does not exist here.
    pub(super) reset_due: Option<u32>,
    pub(super) sizes: Sizes,
    /// The peer's latest timestamp value, to echo (TS.Recent of RFC 7323).
    pub(super) timestamp_recent: u32,
    /// SACK blocks of the acknowledgement being built. They are stored here so that segments without blocks are small.
    pub(super) outgoing_sack: SackBlocks,
    pub(super) last_sent: Time,
    pub(super) restarts_after_idle: bool,
    /// Consecutive timeouts of the segment at `una`.
    pub(super) timeouts_in_a_row: u32,
    pub(super) peak_in_flight: u64,
    pub(super) timeouts: u64,
    /// State of the SCPS-TP extensions.
    pub(super) extensions: Option<Box<Extensions>>,
}

/// Header sizes, and the options agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) data_header_bytes: u16,
    pub(super) ack_header_bytes: u16,
    pub(super) window_shift: u8,
    pub(super) scales_window: bool,
    pub(super) has_timestamps: bool,
    /// Whether the latest timestamp is echoed, and not that of the oldest segment which is not yet acknowledged.
    pub(super) echoes_latest: bool,
    pub(super) uses_sack: bool,
    pub(super) has_fin: bool,
}

/// While more unsent data than this is buffered, the application is not asked for more.
const LOW_WATER_BYTES: u64 = 1 << 30;

impl<D: Payload> TcpConnection<D> {
    /// The two sides of a connection, the active opener first. Without `handshake` both start established.
    pub fn pair(config: &TcpConfig, seed: u64) -> (Self, Self) {
        let mut active = Self::new(config, seed as u32, (seed, 0));
        let mut passive = Self::new(config, (seed >> 32) as u32, (seed, 1));
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

    fn new(config: &TcpConfig, initial_seq: u32, (seed, side): (u64, u64)) -> Self {
        let random = |component| Rng::for_component(seed, side, component);
        let offered = config.offered_bytes();
        let window_shift = if config.window_scaling { shift_for(offered) } else { 0 };
        // Rounded up, so that the field as sent covers the whole window.
        let offered = offered.div_ceil(1 << window_shift) << window_shift;
        let first = u64::from(!config.handshake);
        let ack_every: u16 = if config.delayed_ack { 2 } else { 1 };
        let ack_delay = AckDelay::new(config.delayed_ack_timeout_s, random("delayed acknowledgements").next_u64());
        let mut rx = Receiver::new(ack_every, ack_delay, offered, config.reports_duplicates());
        rx.stream.next = first;
        rx.last_ack_sent = first;
        let (data_header_bytes, ack_header_bytes) = config.overhead_bytes();
        let mut control = Congestion::new(config);
        control.seed(random("congestion control"));
        let restarts_after_idle = config.restart_after_idle && control.restarts_after_idle();
        let running = Running::new(config);
        let mut window = Window::new(config, first, offered, control.wants_samples());
        let is_linux = config.rto.algorithm == RtoAlgorithm::Linux;
        if running.wants_order() {
            window.records.keep_order();
            window.records.recent.ignores_echoes = is_linux;
        }
        TcpConnection {
            window,
            timer: RetransmissionTimer::new(&config.rto),
            running,
            control,
            frto: FRto::new(config.tests_timeouts(), is_linux),
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
            reset_due: None,
            sizes: Sizes {
                data_header_bytes,
                ack_header_bytes,
                window_shift,
                scales_window: config.window_scaling,
                has_timestamps: config.timestamps,
                echoes_latest: config.timestamp_echo == TimestampEcho::Latest,
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

    /// Makes written data, and the FIN after it, visible to the window.
    pub(super) fn update_end(&mut self) {
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

    /// The stream offset of a sequence or acknowledgement number, given a nearby offset.
    #[inline]
    pub(super) fn unwrap(number: u32, initial: u32, near: u64) -> u64 {
        let near_number = initial.wrapping_add(near as u32);
        near.wrapping_add_signed(i64::from(number.wrapping_sub(near_number) as i32))
    }

    /// Handles a timer of loss detection, or of a probe that is sent instead of a retransmission timeout.
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
}

/// The smallest shift with which the window fits into the field of 16 bits.
fn shift_for(offered: u64) -> u8 {
    //= https://www.rfc-editor.org/rfc/rfc7323#section-2.3
    //# the shift count MUST be limited to 14
    (0..14).find(|shift| offered >> shift <= u64::from(u16::MAX)).unwrap_or(14)
}

impl<D: Payload> Endpoint for TcpConnection<D> {
    type Packet = Segment<D>;

    #[inline(always)]
    fn handle_packet(&mut self, now: Time, segment: &Segment<D>, rx: Rx) {
        if rx.integrity == Integrity::PayloadDamaged {
            return; // a damaged segment, which the checksum would have discarded
        }
        if let Some(timestamps) = segment.timestamps {
            //= https://www.rfc-editor.org/rfc/rfc7323#section-4.3
            //# If SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent, then SEG.TSval is copied to TS.Recent
            let start = Self::unwrap(segment.seq, self.peer_initial_seq, self.rx.stream.next);
            let is_newer = timestamps.value.wrapping_sub(self.timestamp_recent) as i32 >= 0;
            // Once the peer's initial sequence number is known, a SYN has to be at its place like any other segment.
            let is_first = segment.flags.has(Flags::SYN) && matches!(self.state, State::Listen | State::SynSent);
            if (is_newer && (start <= self.rx.last_ack_sent || self.sizes.echoes_latest)) || is_first {
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
        self.handle_acknowledgement(now, &AckFields::of(segment));
        self.handle_text(now, segment);
    }

    fn wants_hints(&self) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.wants_hints())
    }

    fn handle_link(&mut self, now: Time, hint: LinkHint) {
        self.handle_link_hint(now, hint);
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
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment<D>>> {
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
                span = self.next_span_by_variant(now);
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
            None => return self.reset_due.take().map(|seq| Transmit::plain(self.reset(seq))),
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

impl<D: Payload> Stream<D> for TcpConnection<D> {
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

    fn settled_bytes(&self) -> u64 {
        self.window.una.saturating_sub(1)
    }
}

impl<D: Payload> Pairs<D> for TcpConfig {
    type End = TcpConnection<D>;

    fn pair(&self, seed: u64) -> (TcpConnection<D>, TcpConnection<D>) {
        TcpConnection::pair(self, seed)
    }
}
