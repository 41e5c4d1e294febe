//! Errors in bursts: a good and a bad state.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, ChannelConfig, ChannelError, Fate, Frame, Prepared, Quiet, Site};
use crate::ConfigError;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::Probability;

/// Errors that come in bursts: a Markov chain alternates between a good and a bad state, each with its own probability of
/// an error.
///
/// With `per = "frame"` the chain steps once per frame and a frame is lost with `loss_good` or `loss_bad`; with `per = "bit"` it
/// steps once per bit on the wire and a bit is wrong with `ber_good` or `ber_bad`. The chain stays in the bad state for 1 /
/// `p_bad_to_good` steps on average, and in the good state for 1 / `p_good_to_bad`. A run starts in the bad state with its
/// stationary probability, p_good_to_bad / (p_good_to_bad + p_bad_to_good), so that no warm-up is needed.
///
/// Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39 (1960): no errors in the good state.
/// Elliott, "Estimates of error rates for codes on burst-noise channels", same journal 42 (1963): errors in both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of leaving the good state, per step.
    pub p_good_to_bad: Probability,
    /// Probability of leaving the bad state, per step.
    pub p_bad_to_good: Probability,
    /// Length of a step: a frame or a bit.
    #[serde(default)]
    pub per: Per,
    /// Probability that a frame is lost in the good state (only with `per = "frame"`; default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_good: Option<Probability>,
    /// Probability that a frame is lost in the bad state (required with `per = "frame"`, not allowed otherwise).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bad: Option<Probability>,
    /// Probability that a bit is wrong in the good state (only with `per = "bit"`; default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ber_good: Option<Probability>,
    /// Probability that a bit is wrong in the bad state (required with `per = "bit"`, not allowed otherwise).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ber_bad: Option<Probability>,
}

/// How often a Gilbert-Elliott chain steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Once per frame; frames are lost.
    #[default]
    Frame,
    /// Once per bit; bits are wrong.
    Bit,
}

impl ChannelConfig for GilbertElliott {
    fn prepare(&self, _site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let (per, good, bad, prefix, strangers) = match self.per {
            Per::Frame => ("frame", self.loss_good, self.loss_bad, "loss", [self.ber_good, self.ber_bad]),
            Per::Bit => ("bit", self.ber_good, self.ber_bad, "ber", [self.loss_good, self.loss_bad]),
        };
        if strangers.iter().any(Option::is_some) {
            let other = if self.per == Per::Frame { "ber" } else { "loss" };
            return Err(ChannelError::Key(ConfigError::new(
                "",
                format!("{other}_good and {other}_bad do not belong to per = \"{per}\""),
                format!("give {prefix}_good and {prefix}_bad, or change per"),
            )));
        }
        let Some(bad) = bad else {
            return Err(ChannelError::Key(ConfigError::new(
                "",
                format!("{prefix}_bad is missing: per = \"{per}\" needs it"),
                format!("add {prefix}_bad, a probability from 0 to 1"),
            )));
        };
        let good = good.map_or(0.0, Probability::get);
        let chain = [
            Stay { p_leave: self.p_good_to_bad.get(), p_error: good },
            Stay { p_leave: self.p_bad_to_good.get(), p_error: bad.get() },
        ];
        Ok(Arc::new(Ready { per: self.per, chain }))
    }
}

#[derive(Debug)]
struct Ready {
    per: Per,
    chain: [Stay; 2],
}

impl Prepared for Ready {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        let burst = Burst::start(self.chain, rng);
        match self.per {
            Per::Frame => Box::new(Frames(burst)),
            Per::Bit => Box::new(Bits(burst)),
        }
    }
}

/// One state of the chain.
#[derive(Clone, Copy, Debug)]
struct Stay {
    p_leave: f64,
    p_error: f64,
}

/// The running chain. Both the length of a stay in a state and the distance to the next error are geometric, so random numbers
/// are needed only for stays and errors, not for each step.
struct Burst {
    chain: [Stay; 2],
    is_bad: bool,
    /// Steps left in the present state.
    left: u64,
    /// Steps before the next error, if the chain stays in this state that long.
    gap: u64,
}

impl Burst {
    fn start(chain: [Stay; 2], rng: &mut Rng) -> Self {
        let [good, bad] = chain;
        let either = good.p_leave + bad.p_leave;
        // If neither state is ever left, there is no stationary distribution: start in the good state.
        let is_bad = either > 0.0 && rng.chance(good.p_leave / either);
        let mut burst = Burst { chain, is_bad, left: 0, gap: 0 };
        burst.stay(rng);
        burst
    }

    fn stay(&mut self, rng: &mut Rng) {
        let Stay { p_leave, p_error } = self.chain[usize::from(self.is_bad)];
        // The step that enters a state is spent in it.
        self.left = rng.failures_before_success(p_leave).saturating_add(1);
        self.gap = rng.failures_before_success(p_error);
    }

    /// Number of steps that are certain to have no error.
    fn quiet(&self) -> u64 {
        self.left.min(self.gap)
    }

    fn skip(&mut self, steps: u64) {
        self.left -= steps;
        self.gap -= steps;
    }

    /// Takes `steps` steps and reports the index of each error among them, counted from 0.
    fn advance(&mut self, steps: u32, rng: &mut Rng, mut error: impl FnMut(u32)) {
        let mut at = 0;
        while at < steps {
            if self.left == 0 {
                self.is_bad = !self.is_bad;
                self.stay(rng);
            }
            let quiet = self.quiet().min(u64::from(steps - at));
            self.skip(quiet);
            at += quiet as u32;
            if at < steps && self.left > 0 {
                error(at);
                at += 1;
                self.left -= 1;
                self.gap = rng.failures_before_success(self.chain[usize::from(self.is_bad)].p_error);
            }
        }
    }
}

struct Frames(Burst);

impl Channel for Frames {
    fn quiet(&self) -> Quiet {
        Quiet { frames: self.0.quiet(), bits: u64::MAX, until: Time::NEVER }
    }

    fn skip(&mut self, frames: u64, _bits: u64) {
        self.0.skip(frames);
    }

    fn carry(&mut self, _frame: &Frame, rng: &mut Rng, _errors: &mut Vec<u32>) -> Fate {
        let mut fate = Fate::Delivered;
        self.0.advance(1, rng, |_| fate = Fate::Lost);
        fate
    }
}

struct Bits(Burst);

impl Channel for Bits {
    fn quiet(&self) -> Quiet {
        Quiet { frames: u64::MAX, bits: self.0.quiet(), until: Time::NEVER }
    }

    fn skip(&mut self, _frames: u64, bits: u64) {
        self.0.skip(bits);
    }

    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate {
        let before = errors.len();
        self.0.advance(frame.bits, rng, |at| errors.push(at));
        if errors.len() > before { Fate::Damaged } else { Fate::Delivered }
    }
}
