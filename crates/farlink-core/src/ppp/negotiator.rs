//! One end of a negotiation: the automaton with its packets, timer and counters, for any protocol's options.

use std::collections::VecDeque;

use bytes::Bytes;

use super::automaton::{Action, Event, State, transition};
use super::control::{Choice, ControlPacket, code, decode_choices, encode_choices};
use crate::rng::RandomSource;
use crate::time::Time;

/// An end's answer to the peer's Configure-Request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All options are acceptable.
    Ack,
    /// These options should have other values.
    Nak(Vec<Choice>),
    /// These options are not negotiated here.
    Reject(Vec<Choice>),
}

/// The options of a protocol.
pub trait Options {
    /// A negotiation begins: from the wishes of the configuration again.
    fn begin(&mut self, random: &mut dyn RandomSource);
    /// Options of the next Configure-Request.
    fn wanted(&self) -> Vec<Choice>;
    /// Judges the peer's request; `None` if it is nonsense. What is acceptable takes effect when it is acknowledged.
    fn judge(&mut self, choices: &[Choice], random: &mut dyn RandomSource) -> Verdict;
    /// The peer would like other values.
    fn naked(&mut self, choices: &[Choice], random: &mut dyn RandomSource);
    /// The peer does not negotiate these.
    fn rejected(&mut self, choices: &[Choice]);
}

/// Timer and counters (RFC 1661, section 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// From a request to its repetition: longer than the round trip, or ends negotiate for ever.
    pub restart: Time,
    /// Configure-Requests without an answer.
    pub max_configure: u8,
    /// Terminate-Requests without an answer.
    pub max_terminate: u8,
    /// Configure-Naks before options are rejected.
    pub max_failure: u8,
}

impl Default for Limits {
    /// Counters of the RFC; a timer that suits a satellite telephone, whose round trip takes up to 5.4 s.
    fn default() -> Self {
        Limits { restart: Time::from_secs(8), max_configure: 10, max_terminate: 2, max_failure: 5 }
    }
}

/// Events of a negotiation for the layers beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Both ends agree.
    Up,
    /// They no longer do.
    Down,
    /// The lower layer is needed.
    Started,
    /// It is not: the negotiation has ended or failed.
    Finished,
}

/// Packets that are waiting to be sent, at most: a peer's requests are answered no faster than the line carries answers.
const MOST_WAITING: usize = 16;

/// A repeated request is acknowledged so often; a peer that still repeats it has begun anew, with the same request.
const MOST_REPETITIONS: u8 = 3;

/// One end of a negotiation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Negotiator<O> {
    /// Options of the protocol.
    pub options: O,
    limits: Limits,
    state: State,
    /// Requests that may still be sent without an answer.
    restart_count: u8,
    /// Naks sent since the last Ack.
    failures: u8,
    due: Option<Time>,
    id: u8,
    /// The request that waits for its answer.
    pending: Option<Bytes>,
    /// The request that was acknowledged last, and how many times again since the negotiation ended.
    acknowledged: Option<(u8, Bytes)>,
    repetitions: u8,
    outgoing: VecDeque<ControlPacket>,
    layers: VecDeque<Layer>,
    reject_id: u8,
}

impl<O: Options> Negotiator<O> {
    /// An end that waits for its lower layer and for leave to open.
    pub fn new(options: O, limits: Limits) -> Self {
        Negotiator {
            options,
            limits,
            state: State::Initial,
            restart_count: 0,
            failures: 0,
            due: None,
            id: 0,
            pending: None,
            acknowledged: None,
            repetitions: 0,
            outgoing: VecDeque::new(),
            layers: VecDeque::new(),
            reject_id: 0,
        }
    }

    /// State of the automaton.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether both ends agree.
    pub fn is_open(&self) -> bool {
        self.state == State::Opened
    }

    /// The lower layer carries packets.
    pub fn up(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.acknowledged = None;
        self.outgoing.clear();
        self.apply(now, Event::Up, None, random);
    }

    /// The lower layer no longer carries packets.
    pub fn down(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.apply(now, Event::Down, None, random);
        self.outgoing.clear();
    }

    /// The negotiation may begin.
    pub fn open(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.apply(now, Event::Open, None, random);
    }

    /// It has to end.
    pub fn close(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.apply(now, Event::Close, None, random);
    }

    /// A request that is equal to the one that was acknowledged last counts as a new one.
    pub fn forget_acknowledged(&mut self) {
        self.acknowledged = None;
    }

    /// The acknowledgement that this end waits for, if it waits.
    pub fn pending_as_ack(&self) -> Option<ControlPacket> {
        Some(ControlPacket { code: code::ACK, id: self.id, data: self.pending.clone()? })
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    /// Repeats or gives up what got no answer. Early calls do nothing.
    pub fn on_timeout(&mut self, now: Time, random: &mut dyn RandomSource) {
        if self.due.is_some_and(|due| due <= now) {
            let event = if self.restart_count > 0 { Event::TimeoutRetry } else { Event::TimeoutGiveUp };
            self.apply(now, event, None, random);
        }
    }

    /// The next packet to be sent.
    pub fn poll_transmit(&mut self) -> Option<ControlPacket> {
        self.outgoing.pop_front()
    }

    /// The next thing that other layers have to know.
    pub fn poll_layer(&mut self) -> Option<Layer> {
        self.layers.pop_front()
    }

    /// The peer refuses the whole protocol (RFC 1661, section 5.7).
    pub fn protocol_rejected(&mut self, now: Time, random: &mut dyn RandomSource) {
        self.apply(now, Event::FatalReject, None, random);
    }

    /// Takes a packet of the codes 1 to 7, or of a code that the protocol does not have. Echo and the like are the link's own.
    /// Returns whether the packet meant something.
    pub fn handle(&mut self, now: Time, packet: &ControlPacket, random: &mut dyn RandomSource) -> bool {
        let event = match packet.code {
            code::REQUEST => return self.requested(now, packet, random),
            code::ACK => {
                if packet.id != self.id || self.pending.as_ref() != Some(&packet.data) {
                    return false;
                }
                self.pending = None;
                Event::Ack
            }
            code::NAK | code::REJECT => {
                let choices = decode_choices(&packet.data).filter(|_| packet.id == self.id && self.pending.is_some());
                let Some(choices) = choices else { return false };
                self.pending = None;
                if packet.code == code::NAK {
                    self.options.naked(&choices, random);
                } else {
                    self.options.rejected(&choices);
                }
                Event::NakOrReject
            }
            code::TERMINATE_REQUEST => Event::TerminateRequest,
            code::TERMINATE_ACK => Event::TerminateAck,
            // A peer that does not have the codes of every protocol has no negotiation.
            code::CODE_REJECT => match packet.data.first() {
                Some(code::REQUEST..=code::CODE_REJECT) => Event::FatalReject,
                Some(_) => Event::BearableReject,
                None => return false,
            },
            _ => Event::UnknownCode,
        };
        self.apply(now, event, Some(packet), random)
    }

    /// A Configure-Request has come.
    fn requested(&mut self, now: Time, packet: &ControlPacket, random: &mut dyn RandomSource) -> bool {
        let Some(choices) = decode_choices(&packet.data) else { return false };
        // The peer has not got our acknowledgement yet, or its repetition crossed it on a long line. The automaton would begin anew, and
        // so would the peer: over a round trip longer than its timer for ever.
        let is_repeated = self.acknowledged.as_ref().is_some_and(|(id, data)| *id == packet.id && *data == packet.data);
        if self.is_open() && is_repeated && self.repetitions < MOST_REPETITIONS {
            self.repetitions += 1;
            self.send(code::ACK, packet.id, packet.data.clone());
            return true;
        }
        if matches!(self.state, State::Stopped | State::Opened) {
            self.begin(random);
        }
        let mut verdict = self.options.judge(&choices, random);
        if let Verdict::Nak(naks) = &verdict
            && self.failures >= self.limits.max_failure
        {
            //= https://www.rfc-editor.org/rfc/rfc1661#section-4.6
            //# Any further Configure-Nak packets for peer requested options are converted to Configure-Reject packets
            let is_naked = |choice: &&Choice| naks.iter().any(|nak| nak.kind == choice.kind);
            verdict = Verdict::Reject(choices.iter().filter(is_naked).cloned().collect());
        }
        let event = if verdict == Verdict::Ack { Event::GoodRequest } else { Event::BadRequest };
        let answer = match &verdict {
            Verdict::Ack => (code::ACK, packet.data.clone()),
            Verdict::Nak(choices) => (code::NAK, encode_choices(choices)),
            Verdict::Reject(choices) => (code::REJECT, encode_choices(choices)),
        };
        let answer = ControlPacket { code: answer.0, id: packet.id, data: answer.1 };
        self.apply(now, event, Some(&answer), random)
    }

    /// Takes a step of the automaton. `packet` is what it is about: the answer to a request, or what came.
    fn apply(
        &mut self,
        now: Time,
        event: Event,
        packet: Option<&ControlPacket>,
        random: &mut dyn RandomSource,
    ) -> bool {
        let before = self.state;
        let Some((actions, next)) = transition(before, event) else { return false };
        let was_negotiating = matches!(before, State::ReqSent | State::AckRcvd | State::AckSent);
        let is_begun = matches!(event, Event::GoodRequest | Event::BadRequest);
        if actions.contains(&Action::SendRequest) && !was_negotiating && !is_begun {
            self.begin(random);
        }
        self.state = next;
        for action in actions {
            self.act(now, *action, event, packet);
        }
        if !self.state.has_timer() {
            self.due = None;
        } else if self.due.is_none() {
            self.due = Some(now + self.limits.restart);
        }
        true
    }

    fn begin(&mut self, random: &mut dyn RandomSource) {
        self.options.begin(random);
        self.failures = 0;
    }

    fn act(&mut self, now: Time, action: Action, event: Event, packet: Option<&ControlPacket>) {
        let is_terminating = matches!(self.state, State::Closing | State::Stopping);
        match action {
            Action::LayerUp => {
                self.repetitions = 0;
                self.layers.push_back(Layer::Up);
            }
            Action::LayerDown => self.layers.push_back(Layer::Down),
            Action::LayerStarted => self.layers.push_back(Layer::Started),
            Action::LayerFinished => self.layers.push_back(Layer::Finished),
            Action::InitRestartCount => {
                self.restart_count = if is_terminating { self.limits.max_terminate } else { self.limits.max_configure };
            }
            Action::ZeroRestartCount => {
                self.restart_count = 0;
                self.due = Some(now + self.limits.restart);
            }
            Action::SendRequest => self.send_request(now, event),
            Action::SendAck => {
                self.failures = 0;
                if let Some(answer) = packet {
                    self.acknowledged = Some((answer.id, answer.data.clone()));
                }
                self.answer(packet);
            }
            Action::SendNak => {
                self.failures =
                    self.failures.saturating_add(u8::from(packet.is_some_and(|answer| answer.code == code::NAK)));
                self.answer(packet);
            }
            Action::SendTerminateRequest => {
                self.id = self.id.wrapping_add(1);
                self.pending = None;
                self.send(code::TERMINATE_REQUEST, self.id, Bytes::new());
                self.arm(now);
            }
            Action::SendTerminateAck => {
                let id = packet.filter(|_| event == Event::TerminateRequest).map_or(self.id, |request| request.id);
                self.send(code::TERMINATE_ACK, id, Bytes::new());
            }
            Action::SendCodeReject => {
                let Some(packet) = packet else { return };
                self.reject_id = self.reject_id.wrapping_add(1);
                self.send(code::CODE_REJECT, self.reject_id, packet.encode().into());
            }
            // The link answers echoes itself, as it knows the magic number.
            Action::SendEchoReply => {}
        }
    }

    /// Sends a request. One that is repeated keeps its number, so that an answer that is only late still counts.
    fn send_request(&mut self, now: Time, event: Event) {
        let data = encode_choices(&self.options.wanted());
        if event != Event::TimeoutRetry || self.pending.as_ref() != Some(&data) {
            self.id = self.id.wrapping_add(1);
        }
        self.pending = Some(data.clone());
        self.send(code::REQUEST, self.id, data);
        self.arm(now);
    }

    fn arm(&mut self, now: Time) {
        self.restart_count = self.restart_count.saturating_sub(1);
        self.due = Some(now + self.limits.restart);
    }

    fn answer(&mut self, packet: Option<&ControlPacket>) {
        if let Some(answer) = packet {
            self.send(answer.code, answer.id, answer.data.clone());
        }
    }

    fn send(&mut self, code: u8, id: u8, data: Bytes) {
        if self.outgoing.len() < MOST_WAITING {
            self.outgoing.push_back(ControlPacket { code, id, data });
        }
    }
}
