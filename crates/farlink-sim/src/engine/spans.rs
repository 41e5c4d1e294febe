//! Which bytes of a flow: what passes a gateway keeps its place in the stream from source to sink.

use std::collections::VecDeque;

/// Consecutive bytes of a flow's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first.
    pub(super) from: u64,
    /// Behind the last.
    pub(super) to: u64,
}

impl Span {
    pub(super) fn len(self) -> u64 {
        self.to - self.from
    }
}

/// A queue of bytes by their places; one span as long as nothing between them was lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    spans: VecDeque<Span>,
    bytes: u64,
}

impl Spans {
    /// How many bytes there are.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The place of the first byte.
    pub(super) fn start(&self) -> Option<u64> {
        self.spans.front().map(|span| span.from)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.spans.iter().copied()
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, span: Span) {
        if span.from >= span.to {
            return;
        }
        self.bytes += span.len();
        match self.spans.back_mut() {
            Some(last) if last.to == span.from => last.to = span.to,
            _ => self.spans.push_back(span),
        }
    }

    /// Removes some of the first bytes, at most so many and as far as they are consecutive; `None` if there is nothing.
    pub(super) fn pop(&mut self, most: u64) -> Option<Span> {
        let first = self.spans.front_mut().filter(|_| most > 0)?;
        let taken = Span { from: first.from, to: first.to.min(first.from + most) };
        first.from = taken.to;
        if first.from == first.to {
            self.spans.pop_front();
        }
        self.bytes -= taken.len();
        Some(taken)
    }

    /// Removes the first `count` bytes.
    pub(super) fn drop_front(&mut self, mut count: u64) {
        while let Some(span) = self.pop(count) {
            count -= span.len();
        }
    }

    /// Puts others in front.
    pub(super) fn prepend(&mut self, before: Spans) {
        let behind = std::mem::replace(self, before);
        behind.iter().for_each(|span| self.push(span));
    }

    pub(super) fn clear(&mut self) {
        *self = Spans::default();
    }
}

/// How many different bytes from `from` up to `to` are in any of the spans.
pub(super) fn covered(from: u64, to: u64, spans: impl Iterator<Item = Span>) -> u64 {
    let mut all: Vec<(u64, u64)> = spans.map(|span| (span.from.max(from), span.to.min(to))).collect();
    all.retain(|(from, to)| from < to);
    all.sort_unstable();
    let mut end = from;
    let mut bytes = 0;
    for (from, to) in all {
        bytes += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    bytes
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
    fn neighbours_join_and_are_cut_again() {
        let mut queue = spans(&[(0, 10), (10, 30), (50, 60), (60, 60)]);
        assert_eq!((queue.bytes(), queue.start(), queue.iter().count()), (40, Some(0), 2));
        assert_eq!(queue.pop(25), Some(Span { from: 0, to: 25 }));
        assert_eq!(queue.pop(25), Some(Span { from: 25, to: 30 }), "as far as they are consecutive");
        queue.drop_front(4);
        assert_eq!((queue.bytes(), queue.start()), (6, Some(54)));
        assert_eq!((queue.pop(0), queue.pop(9), queue.pop(9)), (None, Some(Span { from: 54, to: 60 }), None));
    }

    #[test]
    fn what_was_lent_comes_back_in_front() {
        let mut waiting = spans(&[(20, 30)]);
        waiting.prepend(spans(&[(5, 8), (10, 20)]));
        assert_eq!(waiting.iter().collect::<Vec<_>>(), [Span { from: 5, to: 8 }, Span { from: 10, to: 30 }]);
        assert_eq!(waiting.bytes(), 23);
    }

    #[test]
    fn bytes_that_several_hold_count_once() {
        let pieces = [(0, 10), (5, 20), (30, 40), (90, 200), (35, 36)];
        assert_eq!(covered(8, 100, spans(&pieces).iter()), 12 + 10 + 10);
    }
}
