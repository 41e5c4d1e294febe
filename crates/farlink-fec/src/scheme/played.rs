//! A link that replays error events.

use crate::awgn::Noise;
use crate::events::ErrorEvents;

use super::{Link, Outcome};

/// Approximate number of events of a batch; the limit of its bits follows.
const EVENTS: f64 = 4096.0;
const BATCH_BITS_MAX: f64 = (1u32 << 31) as f64;
/// Separates its random numbers from others of the same seed.
const STREAM: u64 = 0x00e7_e275;

/// Error events drawn from a library, with gaps of the least length plus a geometric number of bits.
///
/// Each batch begins in a gap, after its least length.
pub(super) struct Played {
    events: ErrorEvents,
    batch_bits: u64,
    /// Probability that a gap ends with the next bit once it has its least length.
    ends: f64,
}

impl Played {
    pub(super) fn new(events: ErrorEvents, frame_bits: u64) -> Played {
        let bits = (EVENTS * events.gap_mean_bits()).min(BATCH_BITS_MAX - frame_bits as f64);
        let ends = 1.0 / (1.0 + events.gap_mean_bits() - events.gap_min_bits());
        Played { events, batch_bits: (bits as u64).div_ceil(frame_bits).max(1) * frame_bits, ends }
    }
}

impl Link for Played {
    fn batch_bits(&self) -> u64 {
        self.batch_bits
    }

    fn run(&self, seed: u64, batch: u64) -> Outcome {
        let mut outcome = Outcome::default();
        if self.events.is_empty() {
            return outcome;
        }
        let mut noise = Noise::stream(seed ^ STREAM, batch);
        let least = self.events.gap_min_bits() as u64;
        let mut at = noise.failures_before_success(self.ends);
        while at < self.batch_bits {
            let event = self.events.event(noise.below(self.events.len() as u64) as usize);
            let within = event.iter().map(|&bit| at + u64::from(bit)).take_while(|&bit| bit < self.batch_bits);
            outcome.wrong.extend(within.map(|bit| bit as u32));
            let span = u64::from(event[event.len() - 1]) + 1;
            at = at.saturating_add(span + least).saturating_add(noise.failures_before_success(self.ends));
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_played_has_the_error_rate_of_the_events() {
        let events = ErrorEvents::new([&[0u32, 2, 3][..], &[0]], 6.0, 500.0);
        let expected = events.bit_error_rate();
        let played = Played::new(events, 1000);
        let wrong: usize = (0..20).map(|batch| played.run(3, batch).wrong.len()).sum();
        let rate = wrong as f64 / (20 * played.batch_bits()) as f64;
        // 80,000 events of 1 or 3 bits: 0.6 % is four deviations.
        assert!((rate / expected - 1.0).abs() < 0.008, "{rate} {expected}");
    }
}
