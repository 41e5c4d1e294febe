//! One path of a bundle: whether it carries, what is in flight on it, how fast it is sent into, and its probes.

use super::budget::Budget;
use super::config::PathRules;
use super::control::{Advice, Controller, Seen};
use super::estimate::Delays;
use super::flight::{Acknowledged, Content, Flight, Sent};
use super::packet::{Acknowledgement, DATA_BYTES, HEADER_BYTES, NUMBER_BITS, PIECE_BYTES, expand};
use super::received::{ACKNOWLEDGEMENT_DELAY, Received, covered};
use crate::payload::Payload;
use crate::time::Time;

/// Number of a path; the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

/// Whether a path carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The interface or line is down.
    NoCarrier,
    /// It does not answer, or has not answered yet; it is probed.
    Probing,
    /// It carries packets.
    Up,
    /// An acknowledgement is overdue: what is in flight was handed on, and it carries only what no other path can.
    Suspect,
    /// It would make things worse: it is probed, and carries only what no other path can.
    LeftOut,
}

/// Why a path does not carry packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The interface or line says so.
    Carrier,
    /// Acknowledgements did not come.
    Unanswered,
    /// The peer says that it does not use the path.
    Peer,
    /// It loses too many packets.
    Loss,
    /// It is too much slower than the fastest one.
    Lag,
}

/// Numbers of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathStats {
    /// Whether it carries packets; `None` if there is no such path.
    pub state: Option<PathState>,
    /// Smoothed round trip in seconds; `None` before the first one.
    pub round_trip: Option<f64>,
    /// Smoothed deviation of the round trip in seconds.
    pub variation: f64,
    /// Delay above the least one in seconds, lately.
    pub queue: f64,
    /// Bytes per second that arrive, headers included, as far as measured.
    pub rate: f64,
    /// Share of packets that is lost without load.
    pub loss: f64,
    /// Bytes sent, headers included.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes of the user sent, those sent again included.
    pub data_bytes: u64,
    /// Bytes of probes and of their answers, headers included.
    pub probe_bytes: u64,
    /// Packets that were taken for lost.
    pub lost_packets: u64,
    /// Bytes received, headers included.
    pub received_bytes: u64,
    /// Bytes in flight, headers included.
    pub flight_bytes: u64,
}

/// A driver that wakes up late while packets wait catches up with so much time, so many bytes, and always with some time; one that
/// had nothing to send with less. As AeroTP does: an operating system under load wakes programs up to 20 ms late.
const LATE: Time = Time::from_millis(20);
const LATE_BYTES: f64 = 65_536.0;
const LATE_ALWAYS: Time = Time::from_millis(5);
const LATE_IDLE: Time = Time::from_millis(2);

/// Between two probes of a path that does not answer.
const PROBE_AGAIN: (Time, Time) = (Time::from_millis(250), Time::from_secs(1));

/// Probes that a path that was left out has to answer, and how many of them it may lose.
const TRIAL: (u32, u32) = (20, 1);

/// Times after which a path that was left out is tried again.
const TRY_AGAIN: (Time, Time) = (Time::from_secs(5), Time::from_secs(120));

/// A path that was good for so long is tried again soon.
const FORGIVE: Time = Time::from_secs(60);

/// Most packets that are remembered on a path.
const MOST_PACKETS: usize = 1 << 16;

/// Most probes in flight that are sent along with answers.
const MOST_PROBES: usize = 256;

/// A probe that was not answered for so long is forgotten: later its answer could not be told from one to a newer probe, as timestamps
/// begin anew after 537 s.
const FORGET: Time = Time::from_secs(500);

/// The trial of a path that was left out.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    to_send: u32,
    answered: u32,
    decide_at: Option<Time>,
}

/// Changes by acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// It carries again.
    Up,
}

/// One end of a path.
#[derive(Clone, Debug)]
pub(super) struct PathEnd<D> {
    pub(super) id: PathId,
    pub(super) rules: PathRules,
    pub(super) state: PathState,
    pub(super) flight: Flight<D>,
    pub(super) received: Received,
    pub(super) delays: Delays,
    pub(super) control: Controller,
    pub(super) budget: Budget,
    pub(super) stats: PathStats,
    /// When the pace allows the next packet.
    next_send: Time,
    /// Whether packets wait for it.
    is_awaited: bool,
    /// Number of the packet that ends the present round.
    round_ends: u64,
    loss_due: Time,
    probe_due: Time,
    probe_interval: Time,
    suspect_until: Time,
    up_since: Time,
    /// Last time that data was sent.
    pub(super) used_at: Option<Time>,
    trial: Trial,
    trial_interval: Time,
    answers_probe: bool,
}

impl<D: Payload> PathEnd<D> {
    pub(super) fn new(now: Time, id: PathId, rules: PathRules) -> Self {
        PathEnd {
            id,
            state: PathState::Probing,
            flight: Flight::new(),
            received: Received::new(),
            delays: Delays::new(),
            control: Controller::new(rules.queue, rules.mtu + rules.overhead_bytes),
            budget: Budget::new(now, &rules),
            stats: PathStats::default(),
            next_send: Time::ZERO,
            is_awaited: false,
            round_ends: 0,
            loss_due: Time::NEVER,
            probe_due: now,
            probe_interval: PROBE_AGAIN.0,
            suspect_until: Time::NEVER,
            up_since: now,
            used_at: None,
            trial: Trial::default(),
            trial_interval: TRY_AGAIN.0,
            answers_probe: false,
            rules,
        }
    }

    pub(super) fn seen(&self) -> Seen {
        Seen { round_trip: self.delays.round_trip(), unqueued: self.delays.unqueued(), queue: self.delays.queue() }
    }

    /// How long an acknowledgement may take (RFC 9002, section 6.2.1).
    pub(super) fn patience(&self) -> Time {
        let delays = &self.delays;
        let margin = (4.0 * delays.variation()).max(delays.round_trip() / 8.0).max(0.005);
        ACKNOWLEDGEMENT_DELAY + Time::from_secs_f64(delays.round_trip() + margin)
    }

    /// Bytes of the user that fit into a packet that should not occupy the path longer than half of `latency`: another half may be
    /// waiting before it in the path's own buffers.
    pub(super) fn piece_bytes(&self, latency: Time, shortest: u32, header: usize) -> usize {
        let fits = (self.rules.mtu as usize).saturating_sub(header).max(1);
        let rate = self.control.rate();
        if rate <= 0.0 {
            return fits;
        }
        let around = header + self.rules.overhead_bytes as usize;
        let timely = (rate * latency.as_secs_f64() / 2.0) as usize;
        fits.min(timely.saturating_sub(around).max(shortest as usize))
    }

    /// Adapts the controller to the length that packets have now.
    pub(super) fn fit_packets(&mut self, latency: Time, shortest: u32) {
        let header = HEADER_BYTES + DATA_BYTES + PIECE_BYTES;
        let packet = self.piece_bytes(latency, shortest, header) + header;
        self.control.set_packet(packet as u32 + self.rules.overhead_bytes, latency);
    }

    /// Whether the window has room for another packet.
    pub(super) fn has_window(&self) -> bool {
        let most = match self.state {
            // Only what no other path can carry: a packet at a time, besides what may be lost.
            PathState::Suspect => 0.0,
            _ => self.control.window(self.seen()),
        };
        // Half a packet more or less: in the middle the window is right.
        (self.flight.data_bytes() as f64 + self.control.packet() / 2.0 <= most || self.flight.data_bytes() == 0)
            && self.flight.len() < MOST_PACKETS
    }

    /// When the pace allows a packet.
    pub(super) fn paced_at(&self) -> Time {
        self.next_send
    }

    /// When a packet of so many bytes would have been sent, if it waited for this path.
    pub(super) fn available_at(&self, now: Time, bytes: f64) -> Time {
        let rate = self.control.sending_rate().max(1.0);
        let window = self.control.window(self.seen());
        let over = (self.flight.data_bytes() as f64 + bytes - window).max(0.0);
        self.next_send.max(now + Time::from_secs_f64(if self.has_window() { 0.0 } else { over / rate }))
    }

    /// Whether a copy of a redundant packet may be sent, which windows and paces hardly hold back.
    pub(super) fn has_room_for_copy(&self) -> bool {
        let most = 1.25 * self.control.window(self.seen()) + 4.0 * f64::from(self.rules.mtu);
        (self.flight.data_bytes() as f64) < most && self.flight.len() < MOST_PACKETS
    }

    /// Seconds that a packet of so many bytes takes until it is there, up to the difference of the clocks.
    pub(super) fn transit(&self, bytes: f64) -> f64 {
        self.delays.one_way() + bytes / self.control.sending_rate().max(1.0)
    }

    /// Notes a packet with data or a probe that is sent now.
    pub(super) fn sent(&mut self, now: Time, bytes: u32, content: Content<D>) {
        let is_unloaded = self.control.is_unloaded(now);
        if let Content::Chunk(chunk) = &content {
            self.stats.data_bytes += chunk.data.len() as u64;
            self.answers_probe = false;
            self.budget.sent(now, bytes);
            self.used_at = Some(now);
            self.probe_due = now + self.rules.probe_interval;
            let pace = self.control.pace(self.seen());
            let spent = Time::from_secs_f64(f64::from(bytes) / pace);
            let earliest = Time::from_ps(now.as_ps().saturating_sub(self.catches_up(pace).as_ps()));
            self.next_send = self.next_send.max(earliest) + spent;
        }
        self.flight.send(now, bytes, content, is_unloaded);
        self.count_answer(bytes);
        self.count_sent(bytes);
    }

    /// How far the pace may lie behind: a driver that wakes up late sends what was due meanwhile. After an idle time nothing was.
    fn catches_up(&self, pace: f64) -> Time {
        if self.is_awaited { LATE.min(Time::from_secs_f64(LATE_BYTES / pace).max(LATE_ALWAYS)) } else { LATE_IDLE }
    }

    /// Packets wait for the pace of this path, or none does.
    pub(super) fn note_awaited(&mut self, is_awaited: bool) {
        self.is_awaited = is_awaited;
    }

    /// Notes a packet that nobody acknowledges.
    pub(super) fn sent_unanswered(&mut self, bytes: u32) {
        self.flight.pass();
        self.count_answer(bytes);
        self.count_sent(bytes);
    }

    fn count_answer(&mut self, bytes: u32) {
        if std::mem::take(&mut self.answers_probe) {
            self.stats.probe_bytes += u64::from(bytes);
            self.budget.probed(bytes);
        }
    }

    fn count_sent(&mut self, bytes: u32) {
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += u64::from(bytes);
    }

    /// A packet arrived; `false` if it was here before.
    pub(super) fn arrived(&mut self, now: Time, number: u32, bytes: u32, asks: bool, has_probe: bool) -> bool {
        let number = self.received.expand(number);
        if !self.received.insert(now, number, asks, has_probe) {
            return false;
        }
        self.answers_probe |= has_probe;
        self.stats.received_bytes += u64::from(bytes);
        if self.state == PathState::Probing {
            // The way here works: see soon whether the way there does.
            self.probe_interval = PROBE_AGAIN.0;
            self.probe_due = self.probe_due.min(now + PROBE_AGAIN.0);
        }
        true
    }

    /// Takes an acknowledgement. Packets that arrived go to `arrived`, lost ones to `lost`.
    pub(super) fn acknowledged(
        &mut self,
        now: Time,
        acknowledgement: &Acknowledgement,
        arrived: &mut Vec<Acknowledged<D>>,
        lost: &mut Vec<Sent<D>>,
    ) -> Change {
        let next = self.flight.next_number();
        let largest = expand(acknowledgement.largest, NUMBER_BITS, next);
        if largest >= next {
            return Change::None;
        }
        arrived.clear();
        for (start, end) in covered(acknowledgement, largest) {
            self.flight.acknowledge(now, start, end, arrived);
        }
        self.flight.saw(largest);
        let Some(newest) = arrived.iter().max_by_key(|acknowledged| acknowledged.number) else { return Change::None };
        let mut sample = None;
        if newest.number == largest {
            let held = acknowledgement.held.time();
            let sent = (newest.packet.at, newest.packet.bytes);
            // Before the rate is known it is often far too low.
            let rate = if self.control.is_explored() { self.control.sending_rate() } else { 0.0 };
            let far = self.delays.acknowledged(now, sent, acknowledgement.received, held, rate);
            sample = self.flight.sample(now, newest, far);
        }
        let newest = newest.number;
        for acknowledged in arrived.iter() {
            self.control.count(false, acknowledged.packet.is_unloaded);
            if let Content::Probe { is_trial: true } = acknowledged.packet.content {
                self.trial.answered += 1;
                if self.trial.answered + TRIAL.1 >= TRIAL.0 {
                    self.trial.decide_at = self.trial.decide_at.map(|_| now);
                }
            }
        }
        let bytes = arrived.iter().map(|acknowledged| acknowledged.packet.bytes).sum();
        let seen = self.seen();
        self.control.acknowledged(now, bytes, sample, seen);
        if newest >= self.round_ends {
            self.round_ends = self.flight.next_number();
            if self.control.round_ended(now, seen) == Advice::PathIsLonger {
                self.delays.lengthen(now);
            }
        }
        self.find_losses(now, lost);
        match self.state {
            PathState::Probing => {
                let (rate, round_trip) = (self.control.rate() / 2.0, self.delays.round_trip());
                self.control.begin(now, rate, round_trip);
                self.come_up(now);
                Change::Up
            }
            PathState::Suspect => {
                self.come_up(now);
                Change::Up
            }
            _ => Change::None,
        }
    }

    fn come_up(&mut self, now: Time) {
        (self.state, self.up_since) = (PathState::Up, now);
        self.probe_due = now + self.rules.probe_interval;
        self.probe_interval = PROBE_AGAIN.0;
    }

    /// Takes out what must be lost by now.
    pub(super) fn find_losses(&mut self, now: Time, lost: &mut Vec<Sent<D>>) {
        let delay = Time::from_secs_f64(self.delays.round_trip() * 1.125 + 0.001) + ACKNOWLEDGEMENT_DELAY;
        let before = lost.len();
        self.loss_due = self.flight.lose(now, delay, lost);
        for packet in &lost[before..] {
            self.control.count(true, packet.is_unloaded);
            self.stats.lost_packets += 1;
        }
    }

    /// Whether losses may be due.
    pub(super) fn loss_due(&self) -> Time {
        self.loss_due
    }

    /// When the oldest acknowledgement is overdue.
    pub(super) fn overdue_at(&self) -> Time {
        match self.state {
            PathState::Up => self.flight.waiting_since().map_or(Time::NEVER, |since| since + self.patience()),
            PathState::LeftOut => {
                self.flight.waiting_since().map_or(Time::NEVER, |since| since + self.patience().times(4))
            }
            PathState::Suspect => self.suspect_until,
            PathState::NoCarrier | PathState::Probing => Time::NEVER,
        }
    }

    /// An acknowledgement is overdue.
    pub(super) fn suspect(&mut self, now: Time) {
        let patience = self.patience();
        self.state = PathState::Suspect;
        self.suspect_until = now + patience.times(3).max(Time::from_secs(1));
        (self.probe_due, self.probe_interval) = (now, patience);
    }

    /// The path no longer carries anything. Returns what was in flight.
    pub(super) fn fail(&mut self, now: Time, state: PathState) -> Vec<Sent<D>> {
        self.state = state;
        (self.probe_due, self.probe_interval) = (now + PROBE_AGAIN.0, PROBE_AGAIN.0);
        self.loss_due = Time::NEVER;
        self.next_send = now;
        self.flight.clear()
    }

    /// The interface is back.
    pub(super) fn regain(&mut self, now: Time) {
        self.state = PathState::Probing;
        (self.probe_due, self.probe_interval) = (now, PROBE_AGAIN.0);
    }

    /// The path makes things worse.
    pub(super) fn leave_out(&mut self, now: Time) {
        self.state = PathState::LeftOut;
        self.trial = Trial::default();
        if now.since(self.up_since) > FORGIVE {
            self.trial_interval = TRY_AGAIN.0;
        }
        self.probe_due = now + self.trial_interval;
        self.trial_interval = self.trial_interval.times(2).min(TRY_AGAIN.1);
    }

    /// Length of a probe, headers included.
    fn probe_bytes(&self) -> u32 {
        HEADER_BYTES as u32 + 3 + self.rules.overhead_bytes
    }

    /// When the next probe is to be sent, as far as the budget allows.
    pub(super) fn probe_due(&self) -> Time {
        match self.state {
            PathState::NoCarrier => Time::NEVER,
            PathState::LeftOut => self.trial.decide_at.unwrap_or(self.probe_due),
            _ => self.probe_due,
        }
    }

    /// Whether a probe is to be sent now. Arranges the next one.
    pub(super) fn takes_probe(&mut self, now: Time) -> bool {
        let is_decided = self.state == PathState::LeftOut && self.trial.decide_at.is_some();
        if self.probe_due() > now || self.state == PathState::NoCarrier || is_decided {
            return false;
        }
        let (bytes, rules) = (self.probe_bytes(), &self.rules);
        let affordable = self.budget.probe_at(now, 2 * bytes, self.state == PathState::Up, rules);
        if affordable > now {
            self.probe_due = affordable;
            return false;
        }
        let patience = self.patience();
        match self.state {
            PathState::LeftOut => {
                if self.trial.to_send == 0 {
                    self.trial = Trial { to_send: TRIAL.0, ..Trial::default() };
                }
                self.trial.to_send -= 1;
                let spacing = 4.0 * f64::from(bytes) / self.control.rate().max(1.0);
                self.probe_due = now + Time::from_secs_f64(spacing.clamp(0.02, 2.0));
                if self.trial.to_send == 0 {
                    self.trial.decide_at = Some(now + patience.times(2));
                }
            }
            PathState::Up => self.probe_due = now + self.rules.probe_interval,
            _ => {
                self.probe_due = now + self.probe_interval;
                self.probe_interval = self.probe_interval.times(2).min(PROBE_AGAIN.1);
            }
        }
        self.stats.probe_bytes += u64::from(bytes);
        self.budget.probed(bytes);
        true
    }

    /// Whether an answer to the peer should be a probe as well: a path that does not carry yet learns more from the same packet.
    pub(super) fn probes_along(&self) -> bool {
        self.state == PathState::Probing && self.flight.len() < MOST_PROBES
    }

    /// Purpose of a probe that is sent now.
    pub(super) fn probe(&self) -> Content<D> {
        Content::Probe { is_trial: self.state == PathState::LeftOut }
    }

    /// Whether the trial is over, and how it ended.
    pub(super) fn take_verdict(&mut self, now: Time) -> Option<bool> {
        if self.state != PathState::LeftOut || self.trial.decide_at.is_none_or(|at| at > now) {
            return None;
        }
        let is_good = self.trial.answered + TRIAL.1 >= TRIAL.0;
        self.trial = Trial::default();
        Some(is_good)
    }

    /// The path that was left out is used again.
    pub(super) fn take_back(&mut self, now: Time) {
        self.control.forget_loss();
        self.come_up(now);
    }

    /// Forgets probes that nobody will answer: a path that is down is probed for long.
    pub(super) fn forget_old(&mut self, now: Time) {
        if self.state == PathState::Probing
            && self.flight.waiting_since().is_some_and(|since| now.since(since) > FORGET)
        {
            self.flight.clear();
        }
    }

    /// The peer has restarted.
    pub(super) fn peer_restarted(&mut self) -> Vec<Sent<D>> {
        self.received = Received::new();
        self.delays.forget_clock();
        self.flight.clear()
    }

    pub(super) fn stats(&self) -> PathStats {
        PathStats {
            state: Some(self.state),
            round_trip: self.delays.is_known().then(|| self.delays.round_trip()),
            variation: self.delays.variation(),
            queue: self.delays.queue(),
            rate: self.control.rate(),
            loss: self.control.loss(),
            flight_bytes: self.flight.bytes(),
            ..self.stats
        }
    }
}
