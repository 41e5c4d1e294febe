//! Positions of the wrong bits in a simulated run.

use crate::monte_carlo::{Ended, Watch, run};
use crate::scheme::Scheme;

/// Wrong bits at a decoder's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Positions of the wrong bits, from 0 on, ascending.
    pub wrong: Vec<u64>,
    /// Number of data bits examined; fewer than requested if the run was stopped.
    pub bits: u64,
    /// Number of frames that a decoder gave up, in whole batches.
    pub gave_up: u64,
    /// Whether the run was stopped.
    pub is_interrupted: bool,
}

/// Positions of the wrong bits among the first `bits` data bits of a simulated run of a scheme at an Eb/N0 in dB.
///
/// These are the bits that [`error_rate`](crate::monte_carlo::error_rate) counts for the same seed. `watch` is called with the
/// bits done and the bits to do, and stops the run by returning `false`. All positions are stored, unlike with [`walk`].
pub fn trace(scheme: &Scheme, eb_n0_db: f64, bits: u64, seed: u64, watch: Watch<'_>) -> Trace {
    let mut wrong = Vec::new();
    let walked = walk(scheme, eb_n0_db, bits, seed, watch, |at| wrong.push(at));
    Trace { wrong, bits: walked.bits, gave_up: walked.gave_up, is_interrupted: walked.is_interrupted }
}

/// The result of a walk along the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Number of decoded data bits; fewer than requested if the run was stopped.
    pub bits: u64,
    /// Number of frames that a decoder gave up, in whole batches.
    pub gave_up: u64,
    /// Whether the run was stopped.
    pub is_interrupted: bool,
}

/// Passes each wrong bit of [`trace`] to `visit`, in ascending order, without storing it: the memory does not depend on the
/// number of bits.
pub fn walk(
    scheme: &Scheme,
    eb_n0_db: f64,
    bits: u64,
    seed: u64,
    watch: Watch<'_>,
    mut visit: impl FnMut(u64),
) -> Walked {
    let link = scheme.link(eb_n0_db);
    let batch_bits = link.batch_bits();
    let mut walked = Walked { bits: 0, gave_up: 0, is_interrupted: false };
    let ended = run(
        bits,
        batch_bits,
        watch,
        |batch, goes_on| link.run_while(seed, batch, goes_on),
        |outcome, batch, watch| {
            let positions = outcome.wrong.iter().map(|&at| batch * batch_bits + u64::from(at));
            positions.take_while(|&at| at < bits).for_each(&mut visit);
            walked.bits = ((batch + 1) * batch_bits).min(bits);
            walked.gave_up += outcome.gave_up;
            (walked.bits == bits, watch(walked.bits, bits))
        },
    );
    walked.is_interrupted = ended == Ended::Interrupted;
    walked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolutional::Code;
    use crate::modulation::{Decision, Modulation};
    use crate::scheme::{Coding, Convolutional};

    fn scheme() -> Scheme {
        let code = Code::new(4, &[0o17, 0o15]).unwrap();
        let coding = Coding::Convolutional(Convolutional::new(code));
        Scheme::new(coding, Modulation::Bpsk, Decision::Hard).unwrap()
    }

    #[test]
    fn a_longer_trace_begins_with_the_shorter_one() {
        let short = trace(&scheme(), 4.0, 700_001, 3, &|_, _| true);
        let long = trace(&scheme(), 4.0, 1_500_000, 3, &|_, _| true);
        assert_eq!((short.bits, long.bits, short.is_interrupted), (700_001, 1_500_000, false));
        assert!(short.wrong.len() > 100 && short.wrong.iter().all(|&at| at < 700_001));
        assert_eq!(short.wrong[..], long.wrong[..short.wrong.len()]);
        assert!(long.wrong.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_stopped_trace_says_how_far_it_came() {
        let stopped = trace(&scheme(), 4.0, 1 << 40, 3, &|done, _| done < 1_000_000);
        assert!(stopped.is_interrupted && stopped.bits >= 1_000_000 && stopped.bits < 3_000_000);
    }
}
