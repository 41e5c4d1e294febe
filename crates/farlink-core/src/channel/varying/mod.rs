//! Channels whose bit error rate varies over time as recorded: each bit is wrong with the rate of the instant at which it is
//! sent.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, ChannelError, ChannelState, Fate, Frame, Prepared, Quiet};
use crate::ConfigError;
use crate::rng::Rng;
use crate::time::Time;
use crate::trace::Offset;
use crate::units::{BitRate, ErrorRate, Seconds};
use hazard::{Hazard, Position};

mod hazard;

/// What happens in a run that is longer than the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtEnd {
    /// The recording starts over, and a note tells the user.
    #[default]
    Loop,
    /// The scenario is refused. `duration_s` must be given, and `offset_s` must be a number.
    Refuse,
}

pub(super) fn from_the_start() -> Offset<Seconds> {
    Offset::At(Seconds::default())
}

pub(super) fn lost_above() -> ErrorRate {
    ErrorRate::new(0.1).expect("a constant within its range")
}

/// Checks that a run ends within the recording, or that the recording may start over.
pub(super) fn check_end(
    file: &str,
    at_end: AtEnd,
    offset: Offset<Seconds>,
    length_s: f64,
    run: Option<Time>,
    notes: &mut Vec<String>,
) -> Result<(), ChannelError> {
    let length = Time::from_secs_f64(length_s);
    let run_s = run.map_or("without end".to_owned(), |run| format!("{} s long", run.as_secs_f64()));
    match (at_end, offset, run) {
        (AtEnd::Loop, _, Some(run)) if run <= length => Ok(()),
        (AtEnd::Loop, _, Some(_)) => {
            notes.push(format!("{} is {length_s} s long and a run is {run_s}: the recording starts over", file));
            Ok(())
        }
        (AtEnd::Loop, _, None) => Ok(()),
        (AtEnd::Refuse, Offset::At(offset), Some(run)) if offset.time() + run <= length => Ok(()),
        (AtEnd::Refuse, offset, _) => {
            let from = match offset {
                Offset::Random => "a random place".to_owned(),
                Offset::At(offset) => format!("{} s", offset.get()),
            };
            Err(ChannelError::Key(ConfigError::new(
                "",
                format!("at_end = \"refuse\", but {} is {length_s} s long and a run from {from} on is {run_s}", file),
                "give a duration_s (and a number as offset_s) that end within the recording, or \
                         at_end = \"loop\"",
            )))
        }
    }
}

/// A channel whose bit error rate varies, ready to run.
#[derive(Debug)]
pub(super) struct Ready {
    hazard: Arc<Hazard>,
    offset: Offset<Seconds>,
    rate: Option<BitRate>,
    notes: Vec<String>,
}

impl Ready {
    /// Prepares the channel from the error rate of each sample. Frames sent at a rate above `lost_above` are lost. `rate` is the
    /// link's, if it is constant.
    pub(super) fn new(
        ber: impl Iterator<Item = f64>,
        duration_s: f64,
        lost_above: f64,
        offset: Offset<Seconds>,
        rate: Option<BitRate>,
        notes: Vec<String>,
    ) -> Self {
        Ready { hazard: Arc::new(Hazard::new(ber, duration_s, lost_above)), offset, rate, notes }
    }
}

impl Prepared for Ready {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        let hop = rng.detach();
        self.start_on_hop(rng, &hop)
    }

    fn start_on_hop(&self, rng: &mut Rng, hop: &Rng) -> Box<dyn Channel> {
        let offset = match self.offset {
            Offset::At(offset) => offset.time().as_ps() % self.hazard.duration(),
            Offset::Random => hop.clone().below(self.hazard.duration()),
        };
        let hazard = Arc::clone(&self.hazard);
        match self.rate {
            Some(rate) => Box::new(Steady::new(hazard, offset, rate, rng)),
            None => Box::new(Unsteady { hazard, offset }),
        }
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The running state on a link of constant rate.
///
/// Errors are a Poisson process in time, whose rate is the bit rate times the hazard -ln(1 - BER). A bit is wrong if at least one
/// point falls into it, which has the probability BER. Points between frames have no effect. One random number therefore gives
/// the time of the next error, however many frames it is ahead, and the frames before it need no work.
struct Steady {
    hazard: Arc<Hazard>,
    /// Position in the recording at time zero.
    offset: u64,
    bits_per_ps: f64,
    /// Position of the next point.
    next_error: u64,
    /// The present or next section in which all frames are lost: start and end.
    lost: (u64, u64),
}

impl Steady {
    fn new(hazard: Arc<Hazard>, offset: u64, rate: BitRate, rng: &mut Rng) -> Self {
        let bits_per_ps = rate.get() * 1e-12;
        let lost = hazard.next_lost(offset);
        let mut steady = Steady { hazard, offset, bits_per_ps, next_error: 0, lost };
        steady.next_error = steady.draw(offset, rng);
        steady
    }

    /// Draws the first point after a position.
    fn draw(&self, from: u64, rng: &mut Rng) -> u64 {
        self.hazard.reach(from, rng.exponential(1.0) / self.bits_per_ps)
    }
}

impl Channel for Steady {
    fn quiet(&self) -> Quiet {
        let until = self.next_error.min(self.lost.0);
        Quiet { frames: u64::MAX, bits: u64::MAX, until: time(until, self.offset) }
    }

    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate {
        let start = frame.start.as_ps().saturating_add(self.offset);
        let end = frame.end.as_ps().saturating_add(self.offset);
        if self.next_error < start {
            self.next_error = self.draw(start, rng);
        }
        if self.lost.1 <= start {
            self.lost = self.hazard.next_lost(start);
        }
        if self.lost.0 < end {
            if self.next_error < end {
                self.next_error = self.draw(end, rng);
            }
            return Fate::Lost;
        }
        let before = errors.len();
        let bits_per_ps = f64::from(frame.bits) / (end - start) as f64;
        while self.next_error < end {
            let bit = ((self.next_error - start) as f64 * bits_per_ps) as u32;
            let bit = bit.min(frame.bits - 1);
            if errors[before..].last() != Some(&bit) {
                errors.push(bit);
            }
            // Continue with the next bit, because more points may fall into this one and it must be reported only once.
            self.next_error = self.draw(self.next_error, rng);
        }
        if errors.len() > before { Fate::Damaged } else { Fate::Delivered }
    }

    fn state(&mut self, now: Time) -> ChannelState {
        self.hazard.state(now.as_ps().saturating_add(self.offset))
    }

    fn next_change(&mut self, now: Time) -> Time {
        time(self.hazard.next_sample(now.as_ps().saturating_add(self.offset)), self.offset)
    }
}

/// The running state on a link whose rate varies, or whose frames leave at one instant: errors are drawn for each frame.
struct Unsteady {
    hazard: Arc<Hazard>,
    /// Position in the recording at time zero.
    offset: u64,
}

impl Channel for Unsteady {
    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate {
        let start = frame.start.as_ps().saturating_add(self.offset);
        let end = frame.end.as_ps().saturating_add(self.offset);
        let (first, last) = self.hazard.next_lost(start);
        if first <= start.max(end.saturating_sub(1)) && last > start {
            return Fate::Lost;
        }
        let before = errors.len();
        let mut bit = 0.0;
        let bits = f64::from(frame.bits);
        // Go from sample to sample, and draw errors for the bits that are sent in each at its error rate.
        let mut at = start;
        while bit < bits {
            let until = self.hazard.next_sample(at).min(end).max(start);
            let is_last = until == end || end <= start;
            let after = if is_last { bits } else { (bits * (until - start) as f64 / (end - start) as f64).floor() };
            let per_bit = self.hazard.per_bit(at);
            let mut wrong = bit + (rng.exponential(1.0) / per_bit).floor();
            while wrong < after {
                errors.push(wrong as u32);
                wrong += 1.0 + (rng.exponential(1.0) / per_bit).floor();
            }
            bit = after;
            at = until;
        }
        if errors.len() > before { Fate::Damaged } else { Fate::Delivered }
    }

    fn state(&mut self, now: Time) -> ChannelState {
        self.hazard.state(now.as_ps().saturating_add(self.offset))
    }

    fn next_change(&mut self, now: Time) -> Time {
        time(self.hazard.next_sample(now.as_ps().saturating_add(self.offset)), self.offset)
    }
}

fn time(position: Position, offset: u64) -> Time {
    // A run may begin in a section where frames are lost, which began before time zero.
    if position == u64::MAX { Time::NEVER } else { Time::from_ps(position.saturating_sub(offset)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_offset_lies_anywhere_in_the_series() {
        // Frames are lost in the last of a thousand seconds, so the time until then shows where the channel began.
        let ber = (0..1000).map(|second| if second < 999 { 0.0 } else { 0.5 });
        let ready = Ready::new(ber, 1000.0, 0.1, Offset::Random, None, Vec::new());
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let mut channel = ready.start(&mut Rng::for_component(seed, 0, "test"));
            let left_s = (0..1000)
                .find(|&second| {
                    let start = Time::from_secs(second);
                    let frame = Frame { start, end: start, bits: 8, setting: Default::default() };
                    channel.carry(&frame, &mut Rng::for_component(0, 0, "bits"), &mut Vec::new()) == Fate::Lost
                })
                .unwrap();
            quarters[(999 - left_s as usize) / 250] += 1;
        }
        // A hundred each, with a standard deviation of nine.
        assert!(quarters.iter().all(|count| (65..=135).contains(count)), "{quarters:?}");
    }
}
