//! How fast a connection sends (`docs/aerotp.md`, section on rate control).
//!
//! Packets are paced at a given or a learnt rate. A learnt rate first doubles until the bottleneck shows in arrivals that are farther apart
//! than the segments were sent ([`Arrivals`](arrivals::Arrivals)), in a growing round trip, in more losses or in congestion marks. Then it goes
//! up and down in phases ([`Phases`](phases::Phases)), and follows what more sending brings ([`Margin`](margin::Margin)). Beside others it
//! does so only where the channel loses packets at every rate ([`LeastLoss`](gate::LeastLoss)), and is never below the rate that CUBIC
//! would have ([`Floor`](floor::Floor)). A given rate is watched ([`Breaker`](breaker::Breaker)).

mod arrivals;
mod breaker;
mod burst;
mod common;
mod floor;
mod gate;
mod learnt;
mod least_round_trip;
mod margin;
mod outcomes;
mod overload;
mod packets;
mod phases;
mod runs;
mod silence;

use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::protocol::parts::pacer::Pacer;
use crate::time::Time;
use crate::units::BitRate;

use super::clock::Clock;
use super::config::AerotpConfig;
use super::packet_size::PacketSize;
use super::rate_control::RateControl;
use breaker::Breaker;
use burst::SPACING;
pub use common::CommonRate;
use learnt::Learnt;
use outcomes::Outcome;
pub(super) use outcomes::{Outcomes, ReportTimes};
use silence::Silence;

/// The rate of a connection: paced, and not above the capacity of the path.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    pub(super) pacer: Pacer,
    control: Control,
    /// Limits a rate whose reports do not come, in modes without acknowledgements.
    silence: Option<Box<Silence>>,
    /// The peer's reports so far, over all connections that send at this rate.
    told: Told,
    /// Whether another connection has the rate meanwhile.
    is_lent: bool,
}

instants! { Rate: pacer, control, silence; fixed: told, is_lent }

/// The reports in a peer's MACKs so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Congestion marks; wraps.
    pub(super) marked: u16,
    /// Bytes of the stream that have arrived.
    pub(super) arrived_bytes: u64,
}

/// Source of the pacer's rate.
#[derive(Clone, Debug)]
enum Control {
    /// Nothing: the rate is given, or there is none.
    None,
    Learnt(Box<Learnt>),
    /// A given rate on a path that others may share.
    Watched(Box<Breaker>),
}

impl MoveOrigin for Control {
    fn move_origin(&mut self, by: OriginShift) {
        match self {
            Control::None => {}
            Control::Learnt(learnt) => learnt.move_origin(by),
            Control::Watched(breaker) => breaker.move_origin(by),
        }
    }
}

/// The information of an acknowledgement about the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// When the echoed segment was sent, in ticks.
    pub(super) echo: u64,
    /// The round-trip time of that segment, without the time for which the receiver held it.
    pub(super) round_trip: Time,
    /// How long the acknowledgement waited on the way back, which the round trip leaves out. `[M1]`
    pub(super) waited: Time,
    /// How long the receiver held it.
    pub(super) held: Time,
    /// Congestion marks so far; wraps.
    pub(super) marked: u16,
    /// Bytes of the stream that it reports as received; `has_gaps` says whether earlier data is missing, or may be.
    pub(super) arrived_bytes: u64,
    pub(super) has_gaps: bool,
}

impl Rate {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        let mut pacer = Pacer::new(config.rate_bps);
        let control = match (config.rate_control(), config.rate_bps) {
            (Some(RateControl::Learnt | RateControl::Friendly), _) => {
                let learnt = Box::new(Learnt::new(config));
                pacer.set_bytes_per_s(learnt.bytes_per_s());
                pacer.set_quantum(learnt.first_burst_bytes());
                Control::Learnt(learnt)
            }
            (Some(RateControl::Fixed), Some(rate)) if config.mode.is_acknowledged() && !config.is_alone() => {
                Control::Watched(Box::new(Breaker::new(rate.get() / 8.0)))
            }
            (Some(RateControl::Fixed | RateControl::None) | None, _) => Control::None,
        };
        let silence = config.has_rate_reports().then(|| Box::new(Silence::new(config)));
        Rate { pacer, control, silence, told: Told::default(), is_lent: false }
    }

    /// In place of a rate that connections share, while another one has it: no data may be sent. `[P21]`
    fn lent() -> Self {
        let mut pacer = Pacer::new(None);
        pacer.hold_until(Time::NEVER);
        Rate { pacer, control: Control::None, silence: None, told: Told::default(), is_lent: true }
    }

    /// Whether another connection has it.
    pub(super) fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Adds what a MACK tells a connection: marks and bytes so far. `before` is what the connection knew, and becomes what it knows.
    pub(super) fn add(&mut self, before: &mut Told, marked: u16, arrived_bytes: u64) -> Told {
        let now = Told { marked, arrived_bytes };
        let before = std::mem::replace(before, now);
        self.told.marked = self.told.marked.wrapping_add(now.marked.wrapping_sub(before.marked));
        // Less than before, if an older MACK has overtaken that one.
        let more = now.arrived_bytes.wrapping_sub(before.arrived_bytes);
        self.told.arrived_bytes = self.told.arrived_bytes.wrapping_add(more);
        self.told
    }

    /// A segment of `bytes` bytes on the wire is sent, with data or without.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, clock: Clock, bytes: u32, has_data: bool) {
        if self.pacer.is_on() {
            self.pacer.on_sent(now, bytes);
        }
        match &mut self.control {
            Control::None => {}
            Control::Watched(breaker) => breaker.on_sent(bytes, has_data),
            Control::Learnt(learnt) => {
                let sent = clock.sending(now); // the time that an answer will echo
                learnt.on_sent(sent, bytes, has_data);
                if let Some(silence) = self.silence.as_mut().filter(|_| has_data) {
                    silence.on_sent(now, learnt.bytes_per_s());
                    if silence.limit() < f64::INFINITY {
                        self.pacer.set_quantum(0); // the first burst went out, and no answer ended it
                    }
                }
                self.pacer.set_bytes_per_s(limited(learnt, self.silence.as_deref()));
                if has_data && !learnt.burst.has_ended() {
                    learnt.burst.on_sent(sent, bytes);
                    self.pacer.hold_until(SPACING + if learnt.burst.is_question_due() { sent } else { now });
                }
            }
        }
    }

    /// Whether an answer is to be requested now, before any data; `true` once per request. `[P11]`
    #[inline]
    pub(super) fn ask(&mut self) -> bool {
        let Control::Learnt(learnt) = &mut self.control else { return false };
        learnt.burst.ask()
    }

    /// Whether it wants to know what became of each packet.
    pub(super) fn wants_outcomes(&self) -> bool {
        !matches!(self.control, Control::None)
    }

    /// Takes what became of packets, and that a report told it, before the answer that showed it. `[P4]`
    pub(super) fn on_outcomes(&mut self, now: Time, outcomes: &mut Outcomes) {
        for Outcome { sent, arrived } in outcomes.take() {
            match &mut self.control {
                Control::None => {}
                Control::Learnt(learnt) => learnt.on_outcome(now, sent, f64::from(arrived)),
                Control::Watched(breaker) => breaker.on_outcome(sent, f64::from(arrived)),
            }
        }
        if let (Control::Learnt(learnt), Some(ReportTimes { timeout, spacing })) =
            (&mut self.control, outcomes.take_report())
        {
            learnt.on_report(now, timeout, spacing);
            if let Some(silence) = &mut self.silence {
                silence.on_report(now, timeout, learnt.bytes_per_s());
            }
        }
    }

    /// Whether the lack of reports shows that the peer is gone. `[U11]`
    pub(super) fn is_unanswered(&self) -> bool {
        self.silence.as_ref().is_some_and(|silence| silence.is_too_long())
    }

    /// The rate in place of a set one that the path does not carry, in bit/s; told once. `[P17]`
    pub(super) fn take_lowered(&mut self) -> Option<u64> {
        let Control::Watched(breaker) = &mut self.control else { return None };
        breaker.take_lowered().map(|bytes_per_s| (bytes_per_s * 8.0) as u64)
    }

    /// Whether a set rate was lowered.
    #[inline]
    pub(super) fn is_lowered(&self) -> bool {
        matches!(&self.control, Control::Watched(breaker) if breaker.is_open())
    }

    pub(super) fn on_answer(&mut self, now: Time, answer: &Answer) {
        match &mut self.control {
            Control::None => {}
            Control::Watched(breaker) => {
                breaker.on_answer(now, answer.echo, answer.round_trip);
                self.pacer.set_bytes_per_s(breaker.bytes_per_s());
            }
            Control::Learnt(learnt) => {
                learnt.on_answer(now, answer);
                self.pacer.raise_bytes_per_s(now, limited(learnt, self.silence.as_deref()));
                if learnt.burst.has_ended() {
                    self.pacer.set_quantum(0);
                }
            }
        }
    }

    /// Packets have another size from now on; the rate stays. `[S6]`
    pub(super) fn set_packet_size(&mut self, size: PacketSize) {
        if let Control::Learnt(learnt) = &mut self.control {
            learnt.set_packet_size(size);
        }
    }

    /// Packets are longer from now on. `[P5]`
    pub(super) fn forget_least_round_trip(&mut self, now: Time) {
        if let Control::Learnt(learnt) = &mut self.control {
            learnt.forget_least_round_trip(now);
        }
    }

    /// Takes the rate that the link reports.
    pub(super) fn on_hint(&mut self, rate: BitRate) {
        if let Control::Learnt(learnt) = &mut self.control {
            learnt.on_hint(rate);
            self.pacer.set_bytes_per_s(limited(learnt, self.silence.as_deref()));
        }
    }
}

/// A learnt rate in bytes per second, unless a lack of reports limits it.
#[inline]
fn limited(learnt: &Learnt, silence: Option<&Silence>) -> f64 {
    learnt.bytes_per_s().min(silence.map_or(f64::INFINITY, Silence::limit))
}
