//! A policer in front of a queue: a token bucket that drops what exceeds a rate and a burst.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;
use crate::units::{BitRate, Count};

/// A token bucket: it passes packets up to a rate and a burst, and drops those that exceed both. No packet waits in it.
///
/// The bucket holds `burst_bytes` tokens and is full at first. It gains `rate_bps` / 8 tokens per second. A packet that finds a
/// token for each of its bytes takes them and passes; another one is dropped and takes none. This is the meter of RFC 2697 with the
/// bucket of the committed burst alone, whose green packets pass and whose others are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerConfig {
    /// Rate at which the bucket gains tokens: what the policer passes in the long run. It is the committed information rate, CIR, of
    /// RFC 2697, with a packet's whole length counted.
    pub rate_bps: BitRate,
    /// Depth of the bucket: the most bytes that pass at once. It is the committed burst size, CBS, of RFC 2697, and at least as long
    /// as the longest packet.
    pub burst_bytes: Count,
}

/// The bucket of a policer in one run.
///
/// Tokens are counted in integers that hold the gain of each picosecond, so that no rounding error grows with time. The rate is
/// exact if it is a multiple of 2^-20 bit/s.
#[derive(Clone, Debug)]
pub(super) struct Policer {
    /// Gain per picosecond.
    gain: u64,
    depth: u128,
    /// Tokens at the last arrival.
    tokens: u128,
    last_arrival: Time,
}

/// The gain per picosecond of a rate of 1 bit/s. The largest rate, 1e13 bit/s, just fits into 64 bits.
const GAIN_OF_ONE_BPS: u64 = 1 << 20;

/// The tokens of one byte: 8e12 bits per second fill it in a picosecond.
const BYTE: u128 = 8_000_000_000_000 * GAIN_OF_ONE_BPS as u128;

impl Policer {
    /// A policer whose bucket is full.
    pub(super) fn new(config: PolicerConfig) -> Self {
        let depth = u128::from(config.burst_bytes.whole()) * BYTE;
        let gain = (config.rate_bps.get() * GAIN_OF_ONE_BPS as f64).round().max(1.0) as u64;
        Policer { gain, depth, tokens: depth, last_arrival: Time::ZERO }
    }

    /// Whether a packet that arrives at `now` passes; it then takes its tokens. `now` must not decrease from call to call.
    pub(super) fn passes(&mut self, now: Time, bytes: u32) -> bool {
        let gained = u128::from(now.since(self.last_arrival).as_ps()) * u128::from(self.gain);
        self.last_arrival = now;
        self.tokens = (self.tokens + gained).min(self.depth);
        match self.tokens.checked_sub(u128::from(bytes) * BYTE) {
            Some(rest) => {
                self.tokens = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 8 Mb/s: a token per microsecond.
    const TOKEN_PER_US: f64 = 8e6;

    fn policer(rate_bps: f64, burst_bytes: u64) -> Policer {
        let rate_bps = BitRate::new(rate_bps).unwrap();
        Policer::new(PolicerConfig { rate_bps, burst_bytes: Count::new(burst_bytes as f64).unwrap() })
    }

    const fn micros(us: u64) -> Time {
        Time::from_ps(us * 1_000_000)
    }

    #[test]
    fn the_bucket_is_full_at_first_and_refills_with_the_rate() {
        let mut policer = policer(TOKEN_PER_US, 3000);
        let passed = [0, 0, 0, 1499, 1500, 1500].map(|us| policer.passes(micros(us), 1500));
        // 0 tokens after two packets; 1499 do not suffice for 1500 bytes, and nobody takes them.
        assert_eq!(passed, [true, true, false, false, true, false]);
    }

    #[test]
    fn shorter_packets_pass_on_the_tokens_that_longer_ones_left() {
        let mut policer = policer(TOKEN_PER_US, 1500);
        assert!(policer.passes(Time::ZERO, 1000));
        assert!(!policer.passes(Time::ZERO, 501) && policer.passes(Time::ZERO, 500));
        assert!(!policer.passes(micros(39), 40) && policer.passes(micros(40), 40));
    }

    #[test]
    fn a_long_idle_time_fills_the_bucket_and_no_more() {
        let mut policer = policer(1e13, 3000);
        assert!(policer.passes(Time::ZERO, 3000));
        let idle = Time::from_secs(200 * 86_400);
        assert_eq!([1500, 1500, 1].map(|bytes| policer.passes(idle, bytes)), [true, true, false]);
    }

    /// 7 Mb/s: a byte takes no whole number of picoseconds. A packet of each 10 ms, for a day.
    #[test]
    fn tokens_do_not_drift() {
        let mut policer = policer(7e6, 8750);
        assert!(policer.passes(Time::ZERO, 8750));
        for n in 1..=8_640_000 {
            let at = Time::from_millis(10 * n);
            assert!(!policer.passes(at - Time::from_ps(1), 8750), "packet {n} a picosecond early");
            assert!(policer.passes(at, 8750), "packet {n}");
        }
    }

    #[test]
    fn rates_below_the_unit_of_gain_still_gain() {
        let mut policer = policer(1e-12, 1);
        assert!(policer.passes(Time::ZERO, 1) && !policer.passes(Time::from_secs(100), 1));
        assert!(policer.gain == 1);
    }

    proptest! {
        /// The meter of RFC 2697 step by step, in ticks: at 8 Mb/s a token arrives each microsecond.
        #[test]
        fn each_packet_has_the_fate_of_a_bucket_that_is_filled_token_by_token(
            burst_bytes in 1_u64..9000,
            arrivals in proptest::collection::vec((0_u64..3000, 1_u32..2000), 1..200),
        ) {
            let mut policer = policer(TOKEN_PER_US, burst_bytes);
            let (mut now, mut tokens) = (0, burst_bytes);
            for (gap_us, bytes) in arrivals {
                for _ in 0..gap_us {
                    tokens += u64::from(tokens < burst_bytes);
                }
                now += gap_us;
                let is_green = tokens >= u64::from(bytes);
                tokens -= if is_green { u64::from(bytes) } else { 0 };
                prop_assert_eq!(policer.passes(micros(now), bytes), is_green);
            }
        }

        /// Over any interval no more passes than the burst and what the rate gives, and nothing that fits is dropped: a packet is
        /// dropped only if some interval that ends with it would have carried more.
        #[test]
        fn any_interval_conforms(
            rate_bps in 1_u64..10_000_000,
            burst_bytes in 1_u64..9000,
            arrivals in proptest::collection::vec((0_u64..10_000_000_000, 1_u32..2000), 1..80),
        ) {
            let mut policer = policer(rate_bps as f64, burst_bytes);
            // Bits times 1e12, so that rate and time multiply without rounding.
            let exceeds = |bits: u128, from: u64, to: u64| {
                bits * 1_000_000_000_000
                    > u128::from(burst_bytes) * 8_000_000_000_000 + u128::from(rate_bps) * u128::from(to - from)
            };
            let mut passed: Vec<(u64, u128)> = Vec::new();
            let mut now = 0;
            for (gap_ps, bytes) in arrivals {
                now += gap_ps;
                let bits = u128::from(bytes) * 8;
                let mut sum = bits;
                let mut is_too_much = exceeds(sum, now, now);
                for &(at, of_packet) in passed.iter().rev() {
                    sum += of_packet;
                    is_too_much |= exceeds(sum, at, now);
                }
                prop_assert_eq!(policer.passes(Time::from_ps(now), bytes), !is_too_much);
                if !is_too_much {
                    passed.push((now, bits));
                }
            }
        }
    }
}
