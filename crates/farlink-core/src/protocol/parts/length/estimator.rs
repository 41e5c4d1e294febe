//! Estimates the bit error rate from intact and lost frames, with a larger weight for recent ones.

use crate::origin::instants;
use crate::time::Time;

/// Sums are aged in steps of this fraction of the memory, and the estimate is computed when it may have changed by as much: once
/// in many frames, not for each.
const STEPS: u64 = 64;
/// A weight of losses below this counts as none, because the quotient for their mean length would be undefined.
const NONE: f64 = 1e-12;

/// Estimates -ln(1 - BER), the hazard of a bit.
///
/// With independent bit errors, a frame of L bits is intact with the probability exp(-h L). With intact frames of A bits together
/// and k lost frames of L bits, the likelihood is largest at h = ln(1 + k L / A) / L. Lost frames of several lengths count with
/// their mean length. All sums are weighted by exp(-age / memory).
///
/// Because no loss does not mean an error rate of zero, some losses among some bits are assumed at the start and never forgotten.
/// Their rate is the estimate without any observation; because they are few, observations soon outweigh them.
#[derive(Clone, Debug)]
pub(super) struct Estimator {
    memory: Time,
    step: Time,
    prior_losses: f64,
    prior_bits: f64,
    /// Time up to which the sums are aged.
    since: Time,
    intact_bits: f64,
    losses: f64,
    lost_bits: f64,
    has_news: bool,
    /// With more intact bits than this, the estimate has to be computed again.
    enough_bits: f64,
}

instants! {
    Estimator: since;
    fixed: memory, step, prior_losses, prior_bits, intact_bits, losses, lost_bits, has_news, enough_bits
}

impl Estimator {
    /// Starts from the hazard `start`, with the weight of `prior_losses` losses.
    pub(super) fn new(memory: Time, prior_losses: f64, start: f64) -> Self {
        Estimator {
            memory,
            step: Time::from_ps((memory.as_ps() / STEPS).max(1)),
            prior_losses,
            prior_bits: prior_losses / start,
            since: Time::ZERO,
            intact_bits: 0.0,
            losses: 0.0,
            lost_bits: 0.0,
            has_news: false,
            enough_bits: 0.0,
        }
    }

    /// Frames with `bits` bits in all are known to be intact.
    #[inline]
    pub(super) fn add_intact(&mut self, now: Time, bits: f64) {
        self.age(now);
        self.intact_bits += bits;
        self.has_news |= self.intact_bits > self.enough_bits;
    }

    /// A frame of `bits` bits counts as lost.
    pub(super) fn add_lost(&mut self, now: Time, bits: f64) {
        self.age(now);
        self.losses += 1.0;
        self.lost_bits += bits;
        self.has_news = true;
    }

    /// The estimate, if it has to be computed again: after a loss, and when time or bits may have changed it noticeably.
    #[inline]
    pub(super) fn poll(&mut self, now: Time) -> Option<f64> {
        self.age(now);
        if !std::mem::take(&mut self.has_news) {
            return None;
        }
        self.enough_bits = self.intact_bits + (self.intact_bits + self.prior_bits) / STEPS as f64;
        Some(self.hazard())
    }

    /// The estimate.
    pub(super) fn hazard(&self) -> f64 {
        let (losses, bits) = (self.losses + self.prior_losses, self.intact_bits + self.prior_bits);
        if self.losses < NONE {
            return losses / bits;
        }
        let mean_bits = self.lost_bits / self.losses;
        libm::log1p(losses * mean_bits / bits) / mean_bits
    }

    #[inline]
    fn age(&mut self, now: Time) {
        let passed = now.since(self.since);
        if passed < self.step {
            return;
        }
        let kept = libm::exp(-passed.as_secs_f64() / self.memory.as_secs_f64());
        self.intact_bits *= kept;
        self.losses *= kept;
        self.lost_bits *= kept;
        self.since = now;
        self.has_news = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const HEADER_BITS: f64 = 160.0;

    /// Frames of 8160 bits, back to back at 100 Mb/s, over a channel with the error rate `ber`.
    fn feed(estimator: &mut Estimator, rng: &mut Rng, from: Time, frames: u64, ber: f64) -> Time {
        let bits = 8000.0 + HEADER_BITS;
        let mut now = from;
        for _ in 0..frames {
            now += Time::from_secs_f64(bits / 1e8);
            if rng.chance(1.0 - libm::exp(bits * libm::log1p(-ber))) {
                estimator.add_lost(now, bits);
            } else {
                estimator.add_intact(now, bits);
            }
        }
        now
    }

    /// The assumption has the weight of a thousand bits.
    fn estimator(memory_s: f64) -> Estimator {
        Estimator::new(Time::from_secs_f64(memory_s), 1e-5, 1e-8)
    }

    /// A memory of m seconds holds 2 m seconds of independent samples; here that is at least 49,000 frames.
    #[test]
    fn converges_to_the_error_rate_within_its_standard_error() {
        for (ber, seed) in [(1e-6, 1), (1e-5, 2), (1e-4, 3), (5e-4, 4)] {
            let mut estimator = estimator(2.0);
            let mut rng = Rng::for_component(seed, 0, "estimator");
            feed(&mut estimator, &mut rng, Time::ZERO, 200_000, ber);
            // Standard deviation of the number of lost frames, divided by the slope of the loss probability.
            let (bits, frames) = (8160.0, 2.0 * 2.0 * 1e8 / 8160.0);
            let intact = libm::exp(-ber * bits);
            let deviation = ((1.0 - intact) / (intact * frames)).sqrt() / bits;
            let error = estimator.hazard() + libm::log1p(-ber);
            assert!(error.abs() < 3.0 * deviation, "{ber}: off by {error}, one standard deviation is {deviation}");
        }
    }

    /// Old observations do not matter.
    #[test]
    fn follows_a_step_up_and_a_step_down() {
        let mut rng = Rng::for_component(1, 0, "estimator");
        let mut estimator = estimator(0.05);
        let mut now = feed(&mut estimator, &mut rng, Time::ZERO, 50_000, 1e-6);
        assert!(estimator.hazard() < 3e-6, "{}", estimator.hazard());
        now = feed(&mut estimator, &mut rng, now, 5_000, 1e-4); // 0.4 s, eight memories
        assert!((estimator.hazard() / 1e-4 - 1.0).abs() < 0.25, "{}", estimator.hazard());
        feed(&mut estimator, &mut rng, now, 5_000, 1e-6);
        assert!(estimator.hazard() < 3e-6, "{}", estimator.hazard());
    }

    #[test]
    fn without_observations_the_estimate_is_the_prior() {
        let mut estimator = estimator(0.1);
        assert!((estimator.hazard() / 1e-8 - 1.0).abs() < 1e-9);
        estimator.add_intact(Time::ZERO, 1e9);
        assert!(estimator.hazard() < 1e-8, "less than assumed, but not nothing");
        assert!(estimator.hazard() > 0.0);
        estimator.add_lost(Time::ZERO, 8160.0);
        // And again after a long silence.
        assert!(estimator.poll(Time::from_secs(1000)).is_some_and(|hazard| (hazard / 1e-8 - 1.0).abs() < 1e-9));
    }

    #[test]
    fn losses_alone_raise_the_estimate_without_end() {
        let mut estimator = estimator(0.1);
        let mut before = estimator.hazard();
        for _ in 0..50 {
            estimator.add_lost(Time::ZERO, 8160.0);
            assert!(estimator.hazard() > before && estimator.hazard().is_finite());
            before = estimator.hazard();
        }
        assert!(before > 1e-4, "{before}");
    }

    #[test]
    fn the_estimate_is_recomputed_only_after_a_loss_a_step_or_many_bits() {
        let mut estimator = estimator(0.1);
        let now = Time::from_millis(1);
        estimator.add_lost(now, 8160.0);
        assert!(estimator.poll(now).is_some());
        assert_eq!(estimator.poll(now), None);
        estimator.add_intact(now, 10.0);
        assert_eq!(estimator.poll(now + Time::from_ps(1)), None, "within a step");
        estimator.add_intact(now, 1e5);
        assert!(estimator.poll(now + Time::from_ps(1)).is_some(), "many bits more");
        assert!(estimator.poll(now + Time::from_millis(2)).is_some(), "a step later");
    }
}
