//! Losses of the whole rest of a round.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, ChannelConfig, ChannelError, Fate, Frame, Prepared, Quiet, Site};
use crate::rng::Rng;
use crate::time::Time;
use crate::units::{PositiveSeconds, Probability};

/// After a loss the rest of that round is lost as well; rounds are independent.
///
/// The first frame starts a round; frames that start less than `round_s` after it belong to that round, and the first later frame
/// starts the next one. If `round_s` is the round-trip time, a round is a window. The closed-form models of TCP assume this
/// pattern for the losses in a drop-tail queue: Padhye, Firoiu, Towsley and Kurose, "Modeling TCP throughput: a simple model and
/// its empirical validation", SIGCOMM 1998, section 2 (journal version: IEEE/ACM Transactions on Networking 8, 2000); Sikdar,
/// Kalyanaraman and Vastola, "Analytic models for the latency and steady-state throughput of TCP Tahoe, Reno, and SACK", same
/// transactions 11 (2003).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundLoss {
    /// Probability that a frame is the first lost one, given that none before it in its round is lost.
    pub loss: Probability,
    /// How long a round lasts, in seconds: usually the round-trip time.
    pub round_s: PositiveSeconds,
}

impl ChannelConfig for RoundLoss {
    fn prepare(&self, _site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        Ok(Arc::new(*self))
    }
}

impl Prepared for RoundLoss {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        let loss = self.loss.get();
        // A round shorter than a picosecond would not contain even its first frame.
        let round = self.round_s.time().max(Time::from_ps(1));
        let intact = rng.failures_before_success(loss);
        Box::new(State { loss, round, end: Time::ZERO, is_losing: false, intact })
    }
}

struct State {
    loss: f64,
    round: Time,
    /// Frames that start from here on belong to a later round.
    end: Time,
    /// Whether a frame of this round was lost.
    is_losing: bool,
    /// Number of intact frames before the next first loss, across rounds (the trials are memoryless).
    intact: u64,
}

impl Channel for State {
    fn quiet(&self) -> Quiet {
        if self.is_losing || self.end == Time::ZERO {
            return Quiet::NONE;
        }
        // The frame that starts the next round must be carried, also one of no duration that starts exactly at the end.
        Quiet { frames: self.intact, bits: u64::MAX, until: self.end - Time::from_ps(1) }
    }

    fn skip(&mut self, frames: u64, _bits: u64) {
        self.intact -= frames;
    }

    fn carry(&mut self, frame: &Frame, rng: &mut Rng, _errors: &mut Vec<u32>) -> Fate {
        if frame.start >= self.end {
            self.end = frame.start + self.round;
            self.is_losing = false;
        }
        if self.is_losing {
            return Fate::Lost;
        }
        if self.intact > 0 {
            self.intact -= 1;
            return Fate::Delivered;
        }
        self.intact = rng.failures_before_success(self.loss);
        self.is_losing = true;
        Fate::Lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::SettingId;

    #[test]
    fn a_loss_extends_to_the_end_of_its_round() {
        let config = RoundLoss { loss: Probability::new(0.1).unwrap(), round_s: PositiveSeconds::new(0.010).unwrap() };
        let mut rng = Rng::for_component(1, 0, "rounds");
        let mut channel = config.start(&mut rng);
        // Ten frames per round: one each millisecond.
        let lost: Vec<bool> = (0..100_000)
            .map(|i| {
                let start = Time::from_millis(i);
                let frame = Frame { start, end: start + Time::from_ps(1_000), bits: 8, setting: SettingId::default() };
                channel.carry(&frame, &mut rng, &mut Vec::new()) == Fate::Lost
            })
            .collect();
        let rounds: Vec<&[bool]> = lost.chunks(10).collect();
        assert!(rounds.iter().all(|round| round.is_sorted()), "a frame arrived after a loss of its round");
        // A round stays whole with probability 0.9^10 = 0.3487; standard error over 10,000 rounds 0.0048: five of them.
        let whole = rounds.iter().filter(|round| !round[9]).count() as f64 / rounds.len() as f64;
        assert!((whole - 0.9f64.powi(10)).abs() < 0.024, "whole rounds {whole}");
    }
}
