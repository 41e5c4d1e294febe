//! Go-back-N ARQ on a line: how long a fragment occupies it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::{Count, Factor, Fraction, Probability, Seconds};

/// Go-back-N on each line, below PPP. A fragment is sent as several frames. A damaged frame costs the line time of a whole
/// window, because the frame and those sent after it are sent again (Zaghloul, section 4.1.6; the model is
/// `farlink.models.multilink.go_back_n`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkArq {
    /// Data in a frame, in bytes.
    pub frame_bytes: Count,
    /// Number of frames that are sent again when one is damaged: the damaged frame and those sent within one round trip of the
    /// line.
    pub window_frames: Count,
    /// Probability that the first transmission of a frame is damaged.
    pub loss: Probability,
    /// Probability that a retransmission of a frame is damaged. Defaults to `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_again: Option<Fraction>,
    /// Number of transmissions after which the line gives up a frame, and with it the fragment. Defaults to no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Count>,
    /// Changes of the line during a run, in order of time: of its speed, and with it of the loss of frames, or of its rate
    /// (Zaghloul, section 6.4.2). None by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArqChange>,
}

/// From a given time on, a line loses frames with other probabilities, and may have another rate. Fragments that it begins to send
/// from then on have them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArqChange {
    /// When, in seconds of the run.
    pub at_s: Seconds,
    /// Probability that the first transmission of a frame is damaged.
    pub loss: Probability,
    /// Probability that a retransmission of a frame is damaged. Defaults to `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_again: Option<Fraction>,
    /// Rate of the line over its rate at the beginning, in both directions. 1 by default. The shares of a scheduler and the set-up
    /// of calls by PPP go on reckoning with the beginning.
    #[serde(default = "unchanged")]
    pub rate_factor: Factor,
}

fn unchanged() -> Factor {
    Factor::new(1.0).expect("a constant within its range")
}

/// Quality of a line from a given time on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quality {
    from: Time,
    pub(super) arq: Arq,
    pub(super) rate_factor: f64,
}

/// [`LinkArq`] in the numbers that a line computes with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arq {
    frame_bytes: u64,
    window: u64,
    first: f64,
    again: f64,
    attempts: u64,
}

/// Outcome of sending one fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Line time used, in bytes: the fragment's frames and all retransmissions.
    pub(super) bytes: u64,
    /// Whether every frame got through.
    pub(super) is_whole: bool,
}

impl LinkArq {
    /// Qualities of the line, in order of time and from the beginning on.
    pub(super) fn qualities(&self) -> Vec<Quality> {
        let first = Quality { from: Time::ZERO, arq: self.start(), rate_factor: 1.0 };
        let changed = |change: &ArqChange| Quality {
            from: change.at_s.time(),
            arq: Arq {
                first: change.loss.get(),
                again: change.loss_again.map_or(change.loss.get(), Fraction::get),
                ..self.start()
            },
            rate_factor: change.rate_factor.get(),
        };
        std::iter::once(first).chain(self.changes.iter().map(changed)).collect()
    }

    pub(super) fn start(&self) -> Arq {
        Arq {
            frame_bytes: self.frame_bytes.whole(),
            window: self.window_frames.whole(),
            first: self.loss.get(),
            again: self.loss_again.map_or(self.loss.get(), Fraction::get),
            attempts: self.attempts.map_or(u64::MAX, Count::whole),
        }
    }

    /// Largest rate of the line over its rate at the beginning.
    pub fn fastest_factor(&self) -> f64 {
        self.changes.iter().map(|change| change.rate_factor.get()).fold(1.0, f64::max)
    }

    /// Mean line time of a packet of `bytes` bytes, in bytes at the rate of the beginning, when the line is worst.
    pub(super) fn mean_bytes(&self, bytes: u64) -> f64 {
        let mean = |quality: Quality| quality.arq.mean_bytes(bytes) / quality.rate_factor;
        self.qualities().into_iter().map(mean).fold(0.0, f64::max)
    }

    /// Line time of a packet of `bytes` bytes without losses, in bytes.
    pub(super) fn least_bytes(&self, bytes: u64) -> u64 {
        self.start().least_bytes(bytes)
    }

    /// Checks rules that the types cannot express; paths are relative to the table `arq`.
    ///
    /// # Errors
    /// If changes are out of order, or a frame would be retransmitted for ever, because no transmission succeeds and the number of
    /// attempts has no limit.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let never_ends = |loss: Probability, again: Option<Fraction>| {
            again.is_none() && loss.get() >= 1.0 && self.attempts.is_none()
        };
        if never_ends(self.loss, self.loss_again) {
            return Err(ConfigError::new("loss", "no frame ever gets through", "give less than 1, or attempts"));
        }
        let mut before = 0.0;
        for change in &self.changes {
            let at_s = change.at_s.get();
            if at_s <= before {
                let what = format!("a change at {at_s} s follows one at {before} s, or the beginning");
                return Err(ConfigError::new(
                    "changes.at_s",
                    what,
                    "give the changes in order of time, the first after 0 s",
                ));
            }
            if never_ends(change.loss, change.loss_again) {
                let what = format!("no frame gets through from {at_s} s on");
                return Err(ConfigError::new("changes.loss", what, "give less than 1, or attempts"));
            }
            before = at_s;
        }
        Ok(())
    }
}

impl Quality {
    /// The quality at `time`.
    pub(super) fn at(qualities: &[Quality], time: Time) -> Option<&Quality> {
        let after = qualities.partition_point(|quality| quality.from <= time);
        after.checked_sub(1).and_then(|at| qualities.get(at))
    }
}

impl Arq {
    /// Mean line time of a packet of `bytes` bytes, in bytes (`farlink.models.multilink.go_back_n`).
    fn mean_bytes(&self, bytes: u64) -> f64 {
        let repeats = (1.0 / (1.0 - self.again)).min(self.attempts as f64);
        let frames = bytes.div_ceil(self.frame_bytes) as f64;
        frames * self.frame_bytes as f64 * (1.0 + self.window as f64 * self.first * repeats)
    }

    /// Line time of a packet of `bytes` bytes without losses, in bytes.
    pub(super) fn least_bytes(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.frame_bytes).saturating_mul(self.frame_bytes)
    }

    /// Sends a fragment of `bytes` bytes and draws which of its frames are damaged.
    pub(super) fn send(&self, bytes: u32, rng: &mut Rng) -> Passage {
        let frames = u64::from(bytes).div_ceil(self.frame_bytes);
        let (mut failures, mut is_whole) = (0_u64, true);
        // Jump from one frame whose first transmission fails to the next.
        let mut frame = rng.failures_before_success(self.first);
        while frame < frames {
            let repeats = rng.failures_before_success(1.0 - self.again).saturating_add(1);
            if repeats >= self.attempts {
                is_whole = false;
            }
            failures = failures.saturating_add(repeats.min(self.attempts));
            frame = frame.saturating_add(1).saturating_add(rng.failures_before_success(self.first));
        }
        let sent = frames.saturating_add(failures.saturating_mul(self.window));
        Passage { bytes: sent.saturating_mul(self.frame_bytes), is_whole }
    }
}

/// Time that a line of `ps_per_byte` needs for `bytes` bytes.
pub(super) fn airtime(bytes: u64, ps_per_byte: f64) -> Time {
    Time::from_ps(libm::round(bytes as f64 * ps_per_byte) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arq(json: &str) -> Arq {
        serde_json::from_str::<LinkArq>(json).unwrap().start()
    }

    #[test]
    fn without_errors_a_fragment_takes_its_frames() {
        let arq = arq(r#"{"frame_bytes": 60, "window_frames": 6, "loss": 0}"#);
        let mut rng = Rng::for_component(1, 0, "arq");
        assert_eq!(arq.send(1500, &mut rng), Passage { bytes: 1500, is_whole: true });
        assert_eq!(arq.send(1501, &mut rng), Passage { bytes: 1560, is_whole: true });
    }

    /// n t (1 + N a / (1 - c)) on average: `farlink.models.multilink.go_back_n.rtt_mean_s`.
    #[test]
    fn the_mean_line_time_matches_the_model() {
        let arq = arq(r#"{"frame_bytes": 60, "window_frames": 6, "loss": 0.02, "loss_again": 0.5}"#);
        let mut rng = Rng::for_component(1, 0, "arq");
        let sent: u64 = (0..100_000).map(|_| arq.send(1500, &mut rng).bytes).sum();
        let mean = sent as f64 / 1e5 / 1500.0;
        // 25 frames with 0.04 failures each, of variance 0.02 x 3 / 0.25 ...: the standard error is below 0.0009.
        assert!((mean - (1.0 + 6.0 * 0.04)).abs() < 0.004, "{mean}");
    }

    /// A line that becomes worse and slower, and good again.
    #[test]
    fn a_change_counts_from_its_time_on() {
        let arq: LinkArq = serde_json::from_str(
            r#"{"frame_bytes": 60, "window_frames": 6, "loss": 0, "changes":
                [{"at_s": 10, "loss": 0.02, "loss_again": 0.5, "rate_factor": 0.5}, {"at_s": 20, "loss": 0}]}"#,
        )
        .unwrap();
        let qualities = arq.qualities();
        let mean = |ms: u64| {
            let quality = Quality::at(&qualities, Time::from_millis(ms)).unwrap();
            (quality.arq.mean_bytes(1500) / 1500.0, quality.rate_factor)
        };
        assert_eq!([0, 9_999, 20_000].map(mean), [(1.0, 1.0); 3]);
        assert_eq!([10_000, 19_999].map(mean), [(1.0 + 6.0 * 0.04, 0.5); 2]);
        assert_eq!(arq.mean_bytes(1500), 1500.0 * 1.24 / 0.5, "of the worst");
    }

    #[test]
    fn changes_out_of_order_or_without_end_are_refused() {
        for (changes, key, what) in [
            (r#"[{"at_s": 0, "loss": 0.1}]"#, "changes.at_s", "a change at 0 s follows one at 0 s, or the beginning"),
            (
                r#"[{"at_s": 5, "loss": 0.1}, {"at_s": 5, "loss": 0.2}]"#,
                "changes.at_s",
                "a change at 5 s follows one at 5 s",
            ),
            (r#"[{"at_s": 5, "loss": 1}]"#, "changes.loss", "no frame gets through from 5 s on"),
        ] {
            let json = format!(r#"{{"frame_bytes": 60, "window_frames": 6, "loss": 0, "changes": {changes}}}"#);
            let error = serde_json::from_str::<LinkArq>(&json).unwrap().check().unwrap_err();
            assert_eq!(error.path, key);
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    /// If no retransmission succeeds, a frame whose first transmission is damaged is lost.
    #[test]
    fn a_line_on_which_nothing_arrives_loses_everything() {
        let arq = arq(r#"{"frame_bytes": 60, "window_frames": 6, "loss": 1, "attempts": 2}"#);
        let mut rng = Rng::for_component(1, 0, "arq");
        assert_eq!(arq.send(60, &mut rng), Passage { bytes: 60 * (1 + 2 * 6), is_whole: false });
    }

    /// A frame is given up with probability a c^(A - 1), `farlink.models.multilink.go_back_n.residual_loss`.
    #[test]
    fn residual_loss_matches_the_model() {
        let arq = arq(r#"{"frame_bytes": 60, "window_frames": 6, "loss": 0.1, "loss_again": 0.5, "attempts": 3}"#);
        let mut rng = Rng::for_component(1, 0, "arq");
        let lost = (0..100_000).filter(|_| !arq.send(600, &mut rng).is_whole).count() as f64 / 1e5;
        let expected = 1.0 - (1.0_f64 - 0.1 * 0.25).powi(10);
        assert!((lost - expected).abs() < 0.006, "{lost} {expected}");
    }
}
