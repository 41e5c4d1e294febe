//! The age of written data, and the limit before which data is too old to be sent.

use std::collections::VecDeque;

use crate::origin::instants;
use crate::time::Time;

/// The times at which positions of a stream were written. Without a deadline nothing is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteTimes {
    deadline: Option<Time>,
    /// For each write, the position after its data and its time; both ascend.
    written: VecDeque<(u64, Time)>,
    /// All data before this position is too old.
    expired: u64,
}

instants! { WriteTimes: written; fixed: deadline, expired }

impl WriteTimes {
    pub(super) fn new(deadline: Option<Time>) -> Self {
        WriteTimes { deadline, ..WriteTimes::default() }
    }

    /// Whether data becomes too old.
    #[inline]
    pub(super) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    /// The stream was written up to a position.
    #[inline]
    pub(super) fn on_written(&mut self, now: Time, end: u64) {
        if self.deadline.is_none() {
            return;
        }
        match self.written.back_mut() {
            Some((last, at)) if *at == now => *last = end,
            _ => self.written.push_back((end, now)),
        }
    }

    /// The position before which everything is too old. `[V1]`
    #[inline]
    pub(super) fn expired(&mut self, now: Time) -> u64 {
        while self.next_due() <= now
            && let Some((end, _)) = self.written.pop_front()
        {
            self.expired = end;
        }
        self.expired
    }

    /// Forgets data before a position, whose age no longer matters because it was acknowledged or given up.
    #[inline]
    pub(super) fn forget(&mut self, before: u64) {
        while self.written.front().is_some_and(|&(end, _)| end <= before) {
            self.written.pop_front();
        }
    }

    /// When the next data becomes too old.
    #[inline]
    pub(super) fn next_due(&self) -> Time {
        match (self.deadline, self.written.front()) {
            (Some(deadline), Some(&(_, at))) => at + deadline,
            _ => Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_write_expire_together() {
        let mut write_times = WriteTimes::new(Some(Time::from_secs(5)));
        for (second, end) in [(0, 100), (0, 200), (2, 300)] {
            write_times.on_written(Time::from_secs(second), end);
        }
        assert_eq!(write_times.next_due(), Time::from_secs(5));
        assert_eq!([4, 5, 6, 7].map(|second| write_times.expired(Time::from_secs(second))), [0, 200, 200, 300]);
        assert_eq!(write_times.next_due(), Time::NEVER);
    }

    #[test]
    fn settled_bytes_leave_no_entries() {
        let mut write_times = WriteTimes::new(Some(Time::from_secs(5)));
        write_times.on_written(Time::ZERO, 100);
        write_times.on_written(Time::from_secs(1), 200);
        write_times.forget(150);
        assert_eq!((write_times.next_due(), write_times.expired(Time::from_secs(5))), (Time::from_secs(6), 0));
        let mut endless = WriteTimes::default();
        endless.on_written(Time::ZERO, 100);
        assert_eq!((endless.next_due(), endless.written.len()), (Time::NEVER, 0));
    }
}
