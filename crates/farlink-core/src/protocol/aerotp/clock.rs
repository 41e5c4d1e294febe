//! Timestamps: microseconds in 32 bits, so that they come round after 71.6 minutes.

use crate::time::Time;

const PS_PER_TICK: u64 = 1_000_000;

/// Half of a round of the stamps, 35.8 minutes: no segment is under way for longer, and no round trip takes longer. `[L8]`
pub(super) const HALF_ROUND: Time = Time::from_ps((u32::MAX / 2) as u64 * PS_PER_TICK);

/// What a MACK can say about how long it was held back, 8.9 minutes: 29 bits. `[A3]`
pub(super) const LONGEST_HELD: Time = Time::from_ps(((1 << 29) - 1) * PS_PER_TICK);

/// An instant as whole microseconds.
#[inline]
pub(super) fn ticks(now: Time) -> u64 {
    now.as_ps() / PS_PER_TICK
}

/// An instant as it stands in a segment.
#[inline]
pub(super) fn stamp(now: Time) -> u32 {
    ticks(now) as u32
}

/// The latest instant up to now, in ticks, that such a stamp can mean; `None` if that is more than half of a round ago or
/// before the beginning of time: nothing that this side sent.
#[inline]
pub(super) fn instant(now: Time, stamp: u32) -> Option<u64> {
    let now = ticks(now);
    let age = (now as u32).wrapping_sub(stamp);
    if age > u32::MAX / 2 { None } else { now.checked_sub(u64::from(age)) }
}

/// A span of so many ticks.
#[inline]
pub(super) fn span(ticks: u64) -> Time {
    Time::from_ps(ticks.saturating_mul(PS_PER_TICK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_round() {
        let now = Time::from_secs(5_000);
        assert_eq!(instant(now, stamp(Time::from_secs(4_000))), Some(4_000_000_000));
        assert_eq!(instant(now, stamp(Time::from_secs(5_001))), None, "from the future");
        assert_eq!(instant(Time::from_secs(1), stamp(Time::from_secs(2)).wrapping_sub(3_000_000)), None, "before time");
    }
}
