//! A histogram of durations, with buckets of 1.6 % width.

use std::fmt;

use crate::time::Time;

/// Sub-buckets per octave, as a power of two.
const SUB_BITS: u32 = 6;
/// Durations below this (2^20 ps, one microsecond) share the first bucket.
const FLOOR_BITS: u32 = 20;
/// Durations from 2^63 ps (107 days) on share the last.
const BUCKETS: usize = ((63 - FLOOR_BITS) << SUB_BITS) as usize;

/// Counts of durations in buckets of equal width on a logarithmic scale.
#[derive(Clone)]
pub struct Histogram(Box<[u32]>);

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let median = self.quantile(0.5);
        f.debug_struct("Histogram").field("count", &self.count()).field("median_s", &median).finish_non_exhaustive()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram(vec![0; BUCKETS].into())
    }
}

impl Histogram {
    #[inline]
    fn bucket(duration: Time) -> usize {
        let ps = duration.as_ps().max(1 << FLOOR_BITS);
        let octave = ps.ilog2();
        let sub = (ps >> (octave - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
        ((((octave - FLOOR_BITS) << SUB_BITS) as usize) + sub).min(BUCKETS - 1)
    }

    /// Counts a duration so many times.
    #[inline]
    pub fn record(&mut self, duration: Time, times: u32) {
        let bucket = &mut self.0[Self::bucket(duration)];
        *bucket = bucket.saturating_add(times);
    }

    /// Forgets all counts.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|&count| u64::from(count)).sum()
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum = sum.saturating_add(*count);
        }
    }

    /// The `q` quantile in seconds: the middle of its bucket, within 0.8 %.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = ((q * total as f64) as u64).min(total - 1);
        let mut below = 0;
        let index = self.0.iter().position(|&count| {
            below += u64::from(count);
            below > rank
        })?;
        let octave = (index >> SUB_BITS) as u32 + FLOOR_BITS;
        let sub = (index & ((1 << SUB_BITS) - 1)) as u64;
        let low = (1u64 << octave) + (sub << (octave - SUB_BITS));
        Some(Time::from_ps(low + (1 << (octave - SUB_BITS)) / 2).as_secs_f64())
    }
}
