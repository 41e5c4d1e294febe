//! The least of what was measured recently.

use crate::origin::{MoveOrigin, OriginShift};
use crate::time::Time;

/// The least value of the present period and the one before it, so that a value is forgotten after one to two periods.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct RecentLeast<T> {
    before: Option<T>,
    present: Option<T>,
    /// When the present period began.
    since: Time,
}

impl<T> MoveOrigin for RecentLeast<T> {
    fn move_origin(&mut self, by: OriginShift) {
        let RecentLeast { before: _, present: _, since } = self;
        since.move_origin(by);
    }
}

impl<T> Default for RecentLeast<T> {
    fn default() -> Self {
        RecentLeast { before: None, present: None, since: Time::ZERO }
    }
}

impl<T: Copy + Ord> RecentLeast<T> {
    /// Begins another period if the present one is older than `period`.
    #[inline]
    pub(in crate::protocol) fn turn(&mut self, now: Time, period: Time) {
        if now.since(self.since) > period {
            (self.before, self.present, self.since) = (self.present, None, now);
        }
    }

    #[inline]
    pub(in crate::protocol) fn add(&mut self, value: T) {
        self.present = Some(self.present.map_or(value, |least| least.min(value)));
    }

    /// The least value; none if there was none.
    #[inline]
    pub(in crate::protocol) fn get(&self) -> Option<T> {
        self.before.into_iter().chain(self.present).min()
    }

    /// Changes the values, for example to count them from another zero. Their order has to stay.
    pub(in crate::protocol) fn map(&mut self, change: impl Fn(T) -> T) {
        (self.before, self.present) = (self.before.map(&change), self.present.map(&change));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_forgotten_after_one_to_two_periods() {
        let mut least = RecentLeast::default();
        let mut after = |seconds, value| {
            least.turn(Time::from_secs(seconds), Time::from_secs(10));
            least.add(value);
            least.get()
        };
        assert_eq!(
            [(1, 5), (9, 3), (10, 4), (11, 8), (21, 6), (22, 9)].map(|(at, value)| after(at, value)),
            [Some(5), Some(3), Some(3), Some(3), Some(3), Some(6),]
        );
        least.map(|value| value + 1);
        assert_eq!(least.get(), Some(7));
    }
}
