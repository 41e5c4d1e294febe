//! Segments that are sent several times without waiting for a loss, and when the next time is.

use std::collections::VecDeque;

use crate::time::Time;

/// Items to be sent again, in the order in which they are due.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct Repeats<T> {
    /// Number of transmissions after the first one.
    more: u32,
    spacing: Time,
    waiting: VecDeque<Repeat<T>>,
}

#[derive(Clone, Debug)]
struct Repeat<T> {
    due: Time,
    item: T,
    /// Number of transmissions, this one included.
    left: u32,
}

impl<T: Clone> Repeats<T> {
    /// For so many transmissions of each item, `spacing` apart; `None` if each is sent once.
    pub(in crate::protocol) fn new(transmissions: u32, spacing: Time) -> Option<Self> {
        (transmissions > 1).then(|| Repeats { more: transmissions - 1, spacing, waiting: VecDeque::new() })
    }

    /// An item was sent for the first time.
    pub(in crate::protocol) fn put(&mut self, now: Time, item: T) {
        self.waiting.push_back(Repeat { due: now + self.spacing, item, left: self.more });
    }

    /// When the next item is due; `None` if there is none.
    pub(in crate::protocol) fn next(&self) -> Option<Time> {
        self.waiting.front().map(|repeat| repeat.due)
    }

    /// The next item that is due and still wanted; others are forgotten.
    pub(in crate::protocol) fn poll(&mut self, now: Time, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        loop {
            self.waiting.front().filter(|repeat| repeat.due <= now)?;
            let mut repeat = self.waiting.pop_front()?;
            if !is_wanted(&repeat.item) {
                continue;
            }
            let item = repeat.item.clone();
            if repeat.left > 1 {
                repeat.left -= 1;
                if self.spacing == Time::ZERO {
                    // All transmissions of an item follow each other.
                    self.waiting.push_front(repeat);
                } else {
                    repeat.due = now + self.spacing;
                    self.waiting.push_back(repeat);
                }
            }
            return Some(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_transmissions_are_the_first_and_two_spaced_repetitions() {
        assert!(Repeats::<u64>::new(1, Time::ZERO).is_none());
        let mut repeats = Repeats::new(3, Time::from_millis(10)).unwrap();
        repeats.put(Time::ZERO, 1);
        repeats.put(Time::ZERO, 101);
        assert_eq!((repeats.poll(Time::from_millis(9), |_| true), repeats.next()), (None, Some(Time::from_millis(10))));
        let mut sent = Vec::new();
        for ms in 0..50 {
            while let Some(item) = repeats.poll(Time::from_millis(ms), |_| true) {
                sent.push((ms, item));
            }
        }
        assert_eq!(sent, [(10, 1), (10, 101), (20, 1), (20, 101)]);
        assert_eq!(repeats.next(), None);
    }

    #[test]
    fn without_spacing_transmissions_of_an_item_follow_each_other() {
        let mut repeats = Repeats::new(3, Time::ZERO).unwrap();
        repeats.put(Time::ZERO, 7);
        repeats.put(Time::ZERO, 8);
        let sent: Vec<i32> = std::iter::from_fn(|| repeats.poll(Time::ZERO, |_| true)).collect();
        assert_eq!(sent, [7, 7, 8, 8]);
    }

    #[test]
    fn what_is_not_wanted_any_more_is_forgotten() {
        let mut repeats = Repeats::new(2, Time::ZERO).unwrap();
        repeats.put(Time::ZERO, 1);
        repeats.put(Time::ZERO, 101);
        assert_eq!(repeats.poll(Time::ZERO, |&item| item >= 101), Some(101));
    }
}
