//! Acknowledgements of farlink's receiver, over the way back of the line that brought a fragment.
//!
//! Simulated simply: each takes the line's delay and its own bytes at the return rate. It waits behind nothing, takes no bytes from
//! what the other direction sends, and is lost only with its call.

use std::collections::VecDeque;

use super::super::line_config::LineConfig;
use crate::time::Time;

/// Bytes of an acknowledgement on the line: a frame of PPP (8 bytes) with a number and a range.
const ACK_BYTES: f64 = 16.0;

/// The acknowledgements of one line.
#[derive(Clone, Debug)]
pub(super) struct Acks {
    /// From the arrival of a fragment to that of its acknowledgement.
    back: Time,
    /// When each that is under way arrives, and what it acknowledges.
    under_way: VecDeque<(Time, u32)>,
    /// The fragments that are not acknowledged, and when their acknowledgements are overdue.
    awaited: VecDeque<(Time, u32)>,
}

impl Acks {
    pub(super) fn new(line: &LineConfig) -> Self {
        let back = line.delay.time() + Time::from_secs_f64(8.0 * ACK_BYTES / line.return_rate.get());
        Acks { back, under_way: VecDeque::new(), awaited: VecDeque::new() }
    }

    /// The line has taken a fragment, whose last bit leaves at `end` and arrives at `arrival`. The near end sees it leave, and gives
    /// its acknowledgement up after twice the time that it takes otherwise.
    pub(super) fn expect(&mut self, number: u32, end: Time, arrival: Time) {
        let usual = arrival.since(end) + self.back;
        self.awaited.push_back((end + usual + usual, number));
    }

    /// A fragment arrives at `at`, and is acknowledged.
    pub(super) fn send(&mut self, at: Time, number: u32) {
        self.under_way.push_back((at + self.back, number));
    }

    /// The next acknowledgement that has arrived by `now`. Those awaited before it will not come.
    pub(super) fn pop(&mut self, now: Time) -> Option<u32> {
        let &(_, number) = self.under_way.front().filter(|&&(at, _)| at <= now)?;
        self.under_way.pop_front();
        while self.awaited.pop_front().is_some_and(|(_, awaited)| awaited != number) {}
        Some(number)
    }

    /// Whether the next acknowledgement that is awaited is overdue; it is then no longer awaited.
    pub(super) fn is_overdue(&mut self, now: Time) -> bool {
        let is_overdue = self.awaited.front().is_some_and(|&(at, _)| at <= now);
        if is_overdue {
            self.awaited.pop_front();
        }
        is_overdue
    }

    /// When one arrives or is overdue.
    pub(super) fn next(&self) -> Time {
        let [under_way, awaited] =
            [&self.under_way, &self.awaited].map(|each| each.front().map_or(Time::NEVER, |&(at, _)| at));
        under_way.min(awaited)
    }

    /// Whether none is awaited.
    pub(super) fn is_empty(&self) -> bool {
        self.awaited.is_empty()
    }

    /// The call has dropped: what is under way is lost.
    pub(super) fn lose(&mut self) {
        self.under_way.clear();
    }

    /// The line is down.
    pub(super) fn clear(&mut self) {
        self.under_way.clear();
        self.awaited.clear();
    }
}
