//! No code: the decoded bits are those of the demodulator.

use crate::awgn::{Channel, Noise};
use crate::bits;
use crate::modulation::{Decision, Modulation};

use super::{Link, Outcome};

/// About how many bits a batch has.
const BATCH_BITS: u64 = 24 << 15;

pub(super) struct Uncoded {
    channel: Channel,
    is_antipodal: bool,
    batch_bits: usize,
}

impl Uncoded {
    pub(super) fn new(modulation: Modulation, es_n0_db: f64, frame_bits: u64) -> Uncoded {
        // Whole frames, symbols and bytes.
        let unit = lcm(24, frame_bits);
        Uncoded {
            channel: Channel::new(modulation, Decision::Hard, es_n0_db),
            is_antipodal: modulation.is_antipodal(),
            batch_bits: (BATCH_BITS.div_ceil(unit) * unit) as usize,
        }
    }
}

impl Link for Uncoded {
    fn batch_bits(&self) -> u64 {
        self.batch_bits as u64
    }

    fn run(&self, seed: u64, batch: u64) -> Outcome {
        let mut noise = Noise::stream(seed, batch);
        let bits_sent = self.batch_bits;
        let wrong = if self.is_antipodal {
            // Wrong bits are independent: jump from one to the next.
            wrong_bits(&mut noise, self.channel.bit_error_rate(), bits_sent as u64).map(|at| at as u32).collect()
        } else {
            let mut sent = vec![0; bits_sent / 8];
            noise.fill(&mut sent);
            let mut received = Vec::new();
            self.channel.carry(&sent, bits_sent, &mut noise, &mut received);
            let is_wrong = |at: &usize| bits::get(&sent, *at) != (received[*at] < 0);
            (0..bits_sent).filter(is_wrong).map(|at| at as u32).collect()
        };
        Outcome { wrong, gave_up: 0 }
    }
}

/// Least common multiple.
pub(super) fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// Which of `count` bits are wrong, each with probability `p` of its own.
pub(super) fn wrong_bits(noise: &mut Noise, p: f64, count: u64) -> impl Iterator<Item = u64> {
    let mut next = 0u64;
    std::iter::from_fn(move || {
        let at = next.checked_add(noise.failures_before_success(p)).filter(|&at| at < count)?;
        next = at + 1;
        Some(at)
    })
}
