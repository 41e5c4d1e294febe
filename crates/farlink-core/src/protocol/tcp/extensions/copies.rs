//! Sends every data segment several times, without waiting for a loss (n-fold transmission of SCPS-TP).

use std::collections::VecDeque;

use crate::protocol::tcp::span::Span;
use crate::time::Time;

/// A segment of which more copies are to be sent.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    due: Time,
    span: Span,
    left: u32,
}

/// Copies to be sent, in the order in which they are due.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    /// Number of copies in addition to the segment itself.
    more: u32,
    spacing: Time,
    waiting: VecDeque<Repeat>,
}

impl Copies {
    /// Sends every segment `copies` times in all; `None` if once is enough.
    pub(super) fn new(copies: u32, spacing: Time) -> Option<Self> {
        (copies > 1).then(|| Copies { more: copies - 1, spacing, waiting: VecDeque::new() })
    }

    /// A segment was sent.
    pub(super) fn put(&mut self, now: Time, span: Span) {
        self.waiting.push_back(Repeat { due: now + self.spacing, span, left: self.more });
    }

    /// When the next copy is due; `Time::NEVER` if there is none.
    pub(super) fn next(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |repeat| repeat.due)
    }

    /// The next copy, if it is due. Data below `una` is not copied.
    pub(super) fn poll(&mut self, now: Time, una: u64) -> Option<Span> {
        loop {
            let repeat = self.waiting.front_mut().filter(|repeat| repeat.due <= now)?;
            if repeat.span.start < una {
                self.waiting.pop_front();
                continue;
            }
            let span = repeat.span;
            repeat.left -= 1;
            let again = Repeat { due: now + self.spacing, ..*repeat };
            if again.left == 0 {
                self.waiting.pop_front();
            } else if self.spacing > Time::ZERO {
                self.waiting.pop_front();
                self.waiting.push_back(again);
            }
            return Some(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64) -> Span {
        Span { start, len: 100 }
    }

    #[test]
    fn three_copies_are_the_segment_and_two_spaced_repetitions() {
        assert!(Copies::new(1, Time::ZERO).is_none());
        let mut copies = Copies::new(3, Time::from_millis(10)).unwrap();
        copies.put(Time::ZERO, span(1));
        copies.put(Time::ZERO, span(101));
        assert_eq!((copies.poll(Time::from_millis(9), 0), copies.next()), (None, Time::from_millis(10)));
        let mut sent = Vec::new();
        for ms in [10, 20, 30] {
            while let Some(span) = copies.poll(Time::from_millis(ms), 1) {
                sent.push((ms, span.start));
            }
        }
        assert_eq!(sent, [(10, 1), (10, 101), (20, 1), (20, 101)]);
        assert_eq!(copies.next(), Time::NEVER);
    }

    #[test]
    fn acknowledged_segments_are_not_copied() {
        let mut copies = Copies::new(2, Time::ZERO).unwrap();
        copies.put(Time::ZERO, span(1));
        copies.put(Time::ZERO, span(101));
        assert_eq!(copies.poll(Time::ZERO, 101), Some(span(101)));
    }
}
