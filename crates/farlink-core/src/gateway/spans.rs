//! Ranges of bytes in a stream, by position.

use std::collections::VecDeque;

/// Consecutive bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Position of the first byte.
    pub from: u64,
    /// Position after the last byte.
    pub to: u64,
}

impl Span {
    /// Number of bytes.
    pub fn len(self) -> u64 {
        self.to - self.from
    }

    /// Whether the range is empty.
    pub fn is_empty(self) -> bool {
        self.from >= self.to
    }
}

/// A queue of ranges of bytes. Positions rise from front to back. Adjacent ranges are joined, so the queue holds a
/// single range unless bytes were given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    spans: VecDeque<Span>,
    bytes: u64,
}

impl Spans {
    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The position of the first byte.
    pub fn start(&self) -> Option<u64> {
        self.spans.front().map(|span| span.from)
    }

    /// The ranges, from front to back.
    pub fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.spans.iter().copied()
    }

    /// Appends a range, which must begin at or after the end of the last one.
    pub fn push(&mut self, span: Span) {
        debug_assert!(self.spans.back().is_none_or(|last| last.to <= span.from), "positions rise");
        if span.is_empty() {
            return;
        }
        self.bytes += span.len();
        match self.spans.back_mut() {
            Some(last) if last.to == span.from => last.to = span.to,
            _ => self.spans.push_back(span),
        }
    }

    /// The first consecutive bytes, at most `most` of them; `None` if there are none.
    pub fn first(&self, most: u64) -> Option<Span> {
        let first = self.spans.front().filter(|_| most > 0)?;
        Some(Span { from: first.from, to: first.to.min(first.from.saturating_add(most)) })
    }

    /// Removes and returns the first consecutive bytes, at most `most` of them; `None` if there are none.
    pub fn pop(&mut self, most: u64) -> Option<Span> {
        let taken = self.first(most)?;
        let first = self.spans.front_mut()?;
        first.from = taken.to;
        if first.is_empty() {
            self.spans.pop_front();
        }
        self.bytes -= taken.len();
        Some(taken)
    }

    /// Removes the first `count` bytes, or all if there are fewer.
    pub fn drop_front(&mut self, mut count: u64) {
        while let Some(span) = self.pop(count) {
            count -= span.len();
        }
    }

    /// Inserts `before` in front.
    pub fn prepend(&mut self, before: Spans) {
        let behind = std::mem::replace(self, before);
        behind.iter().for_each(|span| self.push(span));
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        *self = Spans::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(pieces: &[(u64, u64)]) -> Spans {
        let mut spans = Spans::default();
        pieces.iter().for_each(|&(from, to)| spans.push(Span { from, to }));
        spans
    }

    #[test]
    fn adjacent_ranges_are_joined_and_can_be_split() {
        let mut queue = spans(&[(0, 10), (10, 30), (50, 60), (60, 60)]);
        assert_eq!((queue.bytes(), queue.start(), queue.iter().count()), (40, Some(0), 2));
        assert_eq!(queue.pop(25), Some(Span { from: 0, to: 25 }));
        assert_eq!(queue.pop(25), Some(Span { from: 25, to: 30 }), "as far as they are consecutive");
        queue.drop_front(4);
        assert_eq!((queue.bytes(), queue.start()), (6, Some(54)));
        assert_eq!((queue.pop(0), queue.pop(9), queue.pop(9)), (None, Some(Span { from: 54, to: 60 }), None));
    }

    #[test]
    fn prepended_ranges_join_the_front() {
        let mut waiting = spans(&[(20, 30)]);
        waiting.prepend(spans(&[(5, 8), (10, 20)]));
        assert_eq!(waiting.iter().collect::<Vec<_>>(), [Span { from: 5, to: 8 }, Span { from: 10, to: 30 }]);
        assert_eq!(waiting.bytes(), 23);
    }
}
