//! One side of an STP connection: combines sender, receiver and POLLs as an [`Endpoint`].

use crate::endpoint::{Counters, Endpoint, Integrity, Probe, Rx, Stream, Transmit};
use crate::event::{Abort, Event};
use crate::payload::Payload;
use crate::protocol::Pairs;
use crate::protocol::parts::events::EventSet;
use crate::protocol::parts::pacer::Pacer;
use crate::protocol::parts::rto::RetransmissionTimer;
use crate::time::Time;
use crate::units::Count;

use super::config::StpConfig;
use super::pdu::{Kind, Pdu, Report};
use super::polling::{Polling, Standstill};
use super::receiver::Receiver;
use super::sender::{Sender, Span};

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for a BEGIN.
    Listening,
    /// Has a BEGIN to send, or has sent one.
    Beginning,
    Open,
    Aborted,
}

/// The state of the END of the own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The application may write more, or not all of its data has been sent.
    NotYet,
    /// END must be sent.
    Due,
    Sent,
    /// The peer has acknowledged the END.
    Done,
}

/// One side of an STP connection.
#[derive(Clone, Debug)]
pub struct StpConnection<D> {
    state: State,
    tx: Sender<D>,
    rx: Receiver<D>,
    polling: Polling,
    pacer: Pacer,
    /// Whether data waits for the pacer.
    is_paced: bool,
    /// The retransmission timer, which runs while a BEGIN, POLL or END is unanswered.
    timer: RetransmissionTimer,
    /// Time of the last answer; `silences` counts the expiries of the timer since then.
    silent_since: Time,
    silences: u32,
    give_up_after: Time,
    has_handshake: bool,
    is_closing: bool,
    is_closed: bool,
    /// Whether a BEGIN, or the answer to one or to an END, must be sent.
    begin_due: bool,
    begin_ack_due: bool,
    end_ack_due: bool,
    /// When the BEGIN was sent, if it was sent only once.
    begin_sent: Option<Time>,
    ending: Ending,
    /// Position whose acknowledgement leaves so little unsent data that the application is asked for more.
    writable_at: u64,
    events: EventSet,
    /// Headers of a data packet, of a POLL and of a STAT.
    header_bytes: [u16; 3],
    timeouts: u64,
    repairs: u64,
}

/// The application is not asked for more data while more than this waits unsent.
const LOW_WATER_BYTES: u64 = 1 << 30;

impl<D: Payload> StpConnection<D> {
    /// The two sides of a connection, the one that opens it first. Without `handshake` both start open.
    pub fn pair(config: &StpConfig) -> (Self, Self) {
        let mut active = Self::new(config);
        let passive = Self::new(config);
        if config.handshake {
            active.state = State::Beginning;
            active.begin_due = true;
        }
        (active, passive)
    }

    fn new(config: &StpConfig) -> Self {
        StpConnection {
            state: if config.handshake { State::Listening } else { State::Open },
            tx: Sender::new(config),
            rx: Receiver::new(config),
            polling: Polling::new(config.poll_interval_s.time(), config.poll_every_segments.map(Count::whole)),
            pacer: Pacer::new(config.rate_bps),
            is_paced: false,
            timer: RetransmissionTimer::new(&config.rto),
            silent_since: Time::ZERO,
            silences: 0,
            give_up_after: config.give_up_s.map_or(Time::NEVER, |span| span.time()),
            has_handshake: config.handshake,
            is_closing: false,
            is_closed: false,
            begin_due: false,
            begin_ack_due: false,
            end_ack_due: false,
            begin_sent: None,
            ending: Ending::NotYet,
            writable_at: 0,
            events: if config.handshake { EventSet::default() } else { EventSet::CONNECTED },
            header_bytes: config.overhead_bytes(),
            timeouts: 0,
            repairs: 0,
        }
    }

    fn establish(&mut self) {
        self.state = State::Open;
        self.events.insert(EventSet::CONNECTED);
    }

    /// Whether a BEGIN, POLL or END is unanswered.
    fn is_waiting(&self) -> bool {
        self.state == State::Beginning || self.polling.is_waiting() || self.ending == Ending::Sent
    }

    /// Handles an answer: the timer is restarted if other answers are due.
    fn note_answer(&mut self, now: Time) {
        self.silences = 0;
        if self.is_waiting() {
            self.silent_since = now;
            self.timer.restart(now);
        } else {
            self.timer.deadline = Time::NEVER;
        }
    }

    /// Starts the timer because a packet that needs an answer is sent.
    fn note_question(&mut self, now: Time) {
        if self.timer.deadline == Time::NEVER && self.silences == 0 {
            self.silent_since = now;
        }
        self.timer.on_sent(now);
    }

    /// Whether there is data that a POLL would ask about.
    fn needs_poll(&self) -> bool {
        self.tx.is_outstanding() || self.tx.is_shut_out()
    }

    fn handle_stat(&mut self, now: Time, stat: &Pdu<D>) {
        let Some(is_latest) = self.polling.is_own_poll(stat.poll) else { return };
        let Some(effect) = self.tx.on_stat(stat, self.polling.number) else { return };
        self.repairs += u64::from(effect.has_loss);
        if is_latest {
            let elapsed_us = clock(now).wrapping_sub(stat.clock);
            self.timer.sample(now, Time::from_ps(u64::from(elapsed_us) * PS_PER_US));
            self.polling.on_answer(now, stat.poll, self.needs_poll());
            self.note_answer(now);
        }
        self.note_progress();
    }

    fn handle_ustat(&mut self, ustat: &Pdu<D>) {
        if let Some(effect) = self.tx.on_ustat(ustat, self.polling.number) {
            self.repairs += u64::from(effect.has_loss);
            self.note_progress();
        }
    }

    /// Updates the state of the application's stream after an acknowledgement.
    fn note_progress(&mut self) {
        if self.tx.una >= self.writable_at && !self.is_closing {
            self.events.insert(EventSet::WRITABLE);
            self.writable_at = u64::MAX; // until more is written
        }
        self.note_closed();
    }

    fn note_closed(&mut self) {
        let is_acknowledged = self.is_closing && self.tx.una == self.tx.written_end;
        let is_agreed = !self.has_handshake || (self.ending == Ending::Done && self.rx.is_finished());
        if self.state == State::Open && !self.is_closed && is_acknowledged && is_agreed {
            self.is_closed = true;
            self.polling.stop();
            self.events.insert(EventSet::CLOSED);
        }
    }

    fn note_received(&mut self) {
        if self.rx.has_just_finished() {
            self.events.insert(EventSet::FINISHED);
            self.note_closed();
        }
    }

    /// Handles packets that open and close the connection, and packets that arrive before it is open.
    #[cold]
    fn handle_control(&mut self, now: Time, pdu: &Pdu<D>) {
        match (pdu.kind, self.state) {
            (Kind::Begin, State::Listening | State::Open) => {
                // A repeated BEGIN means that the answer to it was lost.
                self.begin_ack_due = true;
                if self.state == State::Listening {
                    self.tx.peer_end = u64::from(pdu.window);
                    self.establish();
                }
            }
            (Kind::BeginAck, State::Beginning) => {
                self.tx.peer_end = u64::from(pdu.window);
                //= https://www.rfc-editor.org/rfc/rfc6298#section-3
                //# RTT samples MUST NOT be made using segments that were retransmitted
                if let Some(sent) = self.begin_sent {
                    self.timer.sample(now, now.since(sent));
                }
                self.begin_due = false;
                self.establish();
                self.note_answer(now);
            }
            (Kind::End, State::Open) if self.rx.on_end(pdu.position) => {
                self.end_ack_due = true;
                self.note_received();
            }
            (Kind::EndAck, State::Open) if self.ending == Ending::Sent => {
                self.ending = Ending::Done;
                self.note_answer(now);
                self.note_closed();
            }
            _ => {}
        }
    }

    /// Handles the expiry of the timer: unanswered packets are repeated.
    #[cold]
    fn handle_silence(&mut self, now: Time) {
        self.timer.deadline = Time::NEVER;
        if now.since(self.silent_since) >= self.give_up_after {
            self.state = State::Aborted;
            self.polling.stop();
            self.events.insert(EventSet::ABORTED);
            return;
        }
        self.timeouts += 1;
        self.silences += 1;
        self.timer.back_off();
        if self.state == State::Beginning {
            self.begin_due = true;
        }
        if self.ending == Ending::Sent {
            self.ending = Ending::Due;
        }
        if self.polling.is_waiting() {
            let is_first = self.polling.on_silence();
            self.tx.congestion.on_silence(is_first, self.tx.in_flight, self.polling.number);
        }
    }

    fn control(&self, kind: Kind, position: u64) -> Pdu<D> {
        let [_, header_bytes, _] = self.header_bytes;
        Pdu { kind, header_bytes, position: position as u32, ..Pdu::default() }
    }

    fn window_field(&self) -> u32 {
        u32::try_from(self.rx.window()).unwrap_or(u32::MAX)
    }

    /// The next packet that opens, answers or polls. These go before data.
    #[inline]
    fn next_control(&mut self, now: Time) -> Option<Pdu<D>> {
        if std::mem::take(&mut self.begin_due) {
            self.begin_sent = if self.timeouts == 0 { Some(now) } else { None };
            self.note_question(now);
            return Some(Pdu { window: self.window_field(), ..self.control(Kind::Begin, 0) });
        }
        if self.state != State::Open {
            return None;
        }
        if std::mem::take(&mut self.begin_ack_due) {
            return Some(Pdu { window: self.window_field(), ..self.control(Kind::BeginAck, 0) });
        }
        if let Some((poll, clock, report)) = self.rx.next_stat() {
            return Some(Pdu { poll, clock, ..self.report(Kind::Stat, report) });
        }
        if let Some(report) = self.rx.next_ustat() {
            return Some(self.report(Kind::Ustat, report));
        }
        if std::mem::take(&mut self.end_ack_due) {
            return Some(self.control(Kind::EndAck, 0));
        }
        self.is_asking(now).then(|| self.poll(now))
    }

    fn report(&self, kind: Kind, report: Report) -> Pdu<D> {
        let [_, _, header_bytes] = self.header_bytes;
        // The report of a USTAT is counted in its header, because it has no other content.
        let header_bytes = header_bytes + if kind == Kind::Stat { report.stat_bytes() } else { 0 };
        let (position, window) = (self.rx.stream.next as u32, self.window_field());
        Pdu { kind, header_bytes, position, window, report, ..Pdu::default() }
    }

    /// Whether a POLL is sent now. A POLL that covers nothing new is paced like data and waits behind it; otherwise
    /// POLLs alone could use up the rate and leave nothing for data.
    #[inline]
    fn is_asking(&mut self, now: Time) -> bool {
        if !self.polling.is_due {
            return false;
        }
        if !self.pacer.is_on() || !self.polling.is_repetition() {
            return true;
        }
        self.is_paced = self.pacer.is_holding(now);
        !self.is_paced && self.tx.next().is_none()
    }

    fn poll(&mut self, now: Time) -> Pdu<D> {
        let poll = self.polling.send(now);
        self.note_question(now);
        Pdu { poll, clock: clock(now), ..self.control(Kind::Poll, self.tx.nxt) }
    }

    fn data(&mut self, now: Time, span: Span) -> Pdu<D> {
        let payload = self.tx.send(span, self.polling.number);
        self.polling.on_data_sent(now, self.tx.packets_outstanding());
        let [header_bytes, ..] = self.header_bytes;
        Pdu { header_bytes, position: span.start as u32, payload, ..Pdu::default() }
    }

    /// The next packet when no more data can be sent now.
    fn next_at_standstill(&mut self, now: Time) -> Option<Pdu<D>> {
        let is_at_end = self.is_closing && self.tx.has_sent_all();
        self.polling.on_standstill(Standstill {
            is_outstanding: self.tx.is_outstanding(),
            is_at_end,
            is_shut_out: self.tx.is_shut_out(),
        });
        if self.is_asking(now) {
            return Some(self.poll(now));
        }
        if is_at_end && self.has_handshake && matches!(self.ending, Ending::NotYet | Ending::Due) {
            self.ending = Ending::Sent;
            self.note_question(now);
            return Some(self.control(Kind::End, self.tx.written_end));
        }
        None
    }
}

const PS_PER_US: u64 = 1_000_000;

/// The clock that a POLL carries: microseconds, wrapping after 71 minutes.
fn clock(now: Time) -> u32 {
    (now.as_ps() / PS_PER_US) as u32
}

impl<D: Payload> Endpoint for StpConnection<D> {
    type Packet = Pdu<D>;

    #[inline]
    fn handle_packet(&mut self, now: Time, pdu: &Pdu<D>, rx: Rx) {
        if rx.integrity == Integrity::PayloadDamaged {
            return; // the checksum would have dropped it
        }
        if self.state != State::Open {
            self.handle_control(now, pdu);
            return;
        }
        match pdu.kind {
            Kind::Data => {
                self.rx.on_data(pdu.position, &pdu.payload);
                self.note_received();
            }
            Kind::Poll => self.rx.on_poll(pdu),
            Kind::Stat => self.handle_stat(now, pdu),
            Kind::Ustat => self.handle_ustat(pdu),
            _ => self.handle_control(now, pdu),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.timer.deadline.min(self.give_up_at()) <= now {
            self.handle_silence(now);
        }
        self.polling.on_time(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Pdu<D>>> {
        self.is_paced = false;
        let mut pdu = self.next_control(now);
        if pdu.is_none() && self.state == State::Open {
            pdu = match self.tx.next() {
                Some(_) if self.pacer.is_holding(now) => {
                    self.is_paced = true;
                    return None;
                }
                Some(span) => Some(self.data(now, span)),
                None => self.next_at_standstill(now),
            };
        }
        let pdu = pdu?;
        if matches!(pdu.kind, Kind::Data | Kind::Poll) {
            self.pacer.on_sent(now, crate::Packet::wire_bytes(&pdu));
        }
        Some(Transmit::plain(pdu))
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            return None;
        }
        match self.events.pop() {
            // STP has no reset.
            Some(Event::Aborted(_)) => Some(Event::Aborted(Abort::TooManyRetries)),
            event => event,
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        let next = self.timer.deadline.min(self.polling.at).min(self.give_up_at());
        let next = if self.is_paced { next.min(self.pacer.next()) } else { next };
        (next != Time::NEVER).then_some(next)
    }

    fn counters(&self) -> Counters {
        Counters {
            timeouts: self.timeouts,
            fast_retransmits: self.repairs,
            peak_reorder_bytes: self.rx.stream.peak_early_bytes,
            peak_send_buffer_bytes: self.tx.peak_in_buffer,
        }
    }

    fn probe(&self) -> Probe {
        let congestion = Some(&self.tx.congestion).filter(|congestion| congestion.is_on);
        Probe {
            cwnd_bytes: congestion.map(|congestion| congestion.cwnd),
            ssthresh_bytes: congestion.map(|congestion| congestion.ssthresh),
            rtt: self.timer.latest,
            in_flight_bytes: Some(self.tx.in_flight),
            acknowledged_bytes: Some(self.tx.una),
            ..Probe::default()
        }
    }
}

impl<D: Payload> StpConnection<D> {
    /// When the connection is given up unless an answer arrives before.
    #[inline]
    fn give_up_at(&self) -> Time {
        if self.give_up_after == Time::NEVER || self.timer.deadline == Time::NEVER {
            return Time::NEVER;
        }
        self.silent_since + self.give_up_after
    }
}

impl<D: Payload> Stream<D> for StpConnection<D> {
    fn write(&mut self, _now: Time, data: &mut D) -> usize {
        let n = data.len();
        if n == 0 || self.is_closing {
            return 0;
        }
        self.tx.write(std::mem::take(data));
        self.writable_at = self.tx.written_end.saturating_sub(LOW_WATER_BYTES);
        n
    }

    #[inline]
    fn read(&mut self) -> Option<D> {
        self.rx.stream.read()
    }

    fn close(&mut self, _now: Time) {
        self.is_closing = true;
        self.note_closed();
    }

    fn settled_bytes(&self) -> u64 {
        self.tx.una
    }
}

impl<D: Payload> Pairs<D> for StpConfig {
    type End = StpConnection<D>;

    fn pair(&self, _seed: u64) -> (StpConnection<D>, StpConnection<D>) {
        StpConnection::pair(self)
    }
}
