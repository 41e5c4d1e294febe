//! How fast a connection sends (`docs/aerotp.md`, section on rate control).
//!
//! Packets are spread evenly at a rate that is given, or learnt. Learnt, it follows the bottleneck: what tells of it are
//! arrivals that are farther apart than the segments were sent ([`Arrivals`]), a round trip that grows, and congestion marks.
//! Segments that are lost or damaged while the round trip does not grow tell of wrong bits, and change nothing. `[P8]`

mod arrivals;
mod burst;
mod friendly;
mod learnt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::parts::pacer::Pacer;
use crate::time::Time;
use crate::units::BitRate;

use super::clock::Clock;
use super::config::AerotpConfig;
use burst::SPACING;
use learnt::Learnt;

/// Where the rate is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateControl {
    /// There is none: all that the receiver has room for goes out at once.
    None,
    /// It is `rate_bps`, whatever happens.
    Fixed,
    /// It is learnt from arrivals, the round trip and congestion marks.
    Learnt,
    /// As `learnt`, but where there is congestion not above what TCP would reach (RFC 5348, section 3.1).
    Friendly,
}

/// Sends no faster than the path carries.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    pub(super) pacer: Pacer,
    learnt: Option<Learnt>,
}

/// What an acknowledgement tells of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// When the segment was sent that it echoes, in ticks.
    pub(super) echo: u64,
    /// The round trip of that segment, without the time for which the receiver held it.
    pub(super) round_trip: Time,
    /// For how long it held it.
    pub(super) held: Time,
    /// Congestion marks so far; wraps.
    pub(super) marked: u16,
    /// How much of the stream it says has arrived, and whether something before that has not, or may not have.
    pub(super) arrived_bytes: u64,
    pub(super) has_gaps: bool,
}

impl Rate {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        let control = config.rate_control();
        let learnt = match control {
            Some(RateControl::Learnt | RateControl::Friendly) => Some(Learnt::new(config)),
            Some(RateControl::Fixed | RateControl::None) | None => None,
        };
        let mut rate = Rate { pacer: Pacer::new(config.rate_bps), learnt };
        if let Some(learnt) = &rate.learnt {
            rate.pacer.set_bytes_per_s(learnt.bytes_per_s());
            rate.pacer.set_quantum(learnt.first_burst_bytes());
        }
        rate
    }

    /// A segment of so many bytes on the wire goes out, with data or without.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, clock: Clock, bytes: u32, has_data: bool) {
        if self.pacer.is_on() {
            self.pacer.on_sent(now, bytes);
        }
        if let Some(learnt) = &mut self.learnt {
            let sent = clock.sending(now); // as an answer will say it
            learnt.on_sent(sent, bytes);
            if let Some(burst) = learnt.burst.as_mut().filter(|burst| has_data && !burst.has_ended()) {
                burst.on_sent(sent, bytes);
                self.pacer.hold_until(SPACING + if burst.is_question_due() { sent } else { now });
            }
        }
    }

    /// Whether an answer is to be asked for now, whatever else is to be sent; once for each time. `[P11]`
    #[inline]
    pub(super) fn ask(&mut self) -> bool {
        self.learnt.as_mut().and_then(|learnt| learnt.burst.as_mut()).is_some_and(|burst| burst.ask())
    }

    pub(super) fn on_answer(&mut self, now: Time, answer: &Answer) {
        let Some(learnt) = &mut self.learnt else { return };
        learnt.on_answer(now, answer);
        self.pacer.set_bytes_per_s(learnt.bytes_per_s());
        self.pacer.set_quantum(0);
    }

    /// The link says how fast it is.
    pub(super) fn on_hint(&mut self, rate: BitRate) {
        let Some(learnt) = &mut self.learnt else { return };
        learnt.on_hint(rate);
        self.pacer.set_bytes_per_s(learnt.bytes_per_s());
    }
}
