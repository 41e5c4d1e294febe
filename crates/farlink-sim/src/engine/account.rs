//! Measurements from source to sink of a flow that gateways split.

use farlink_core::Time;
use farlink_core::event::Abort;
use farlink_core::gateway::Span;

use super::delays::{DelaySum, Delays, Histogram, Shared};
use super::fifo::Fifo;

/// A first transmission by the source that has not reached the sink.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Position after its last byte.
    end: u64,
    sent: Time,
}

/// The account of a flow from source to sink.
#[derive(Debug)]
pub(super) struct Account {
    asked: Option<u64>,
    pending: Fifo<Pending>,
    sent_end: u64,
    /// Everything below this position is delivered, skipped or lost.
    position: u64,
    /// Ranges above `position` that a connection has skipped.
    skipped: Vec<Span>,
    delay: Delays,
    delivered_bytes: u64,
    delivered_packets: u64,
    skipped_bytes: u64,
    lost_bytes: u64,
    /// Lost before the measurement began.
    lost_before: u64,
    finished: Option<Time>,
    last_progress: Time,
    pub(super) last_write: Time,
    /// When and why a connection gave up.
    pub(super) aborted: Option<(Time, Abort)>,
}

/// The final account.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) asked: Option<u64>,
    pub(super) finished: Option<Time>,
    pub(super) last_progress: Time,
    pub(super) aborted: Option<(Time, Abort)>,
    pub(super) delivered_bytes: u64,
    pub(super) delivered_packets: u64,
    pub(super) skipped_bytes: u64,
    pub(super) lost_bytes: u64,
    pub(super) undelivered_bytes: u64,
    pub(super) delay: DelaySum,
    pub(super) histogram: Option<Histogram>,
}

impl Account {
    pub(super) fn new(asked: Option<u64>, start: Time) -> Self {
        Account {
            asked,
            pending: Fifo::default(),
            sent_end: 0,
            position: 0,
            skipped: Vec::new(),
            delay: Delays::default(),
            delivered_bytes: 0,
            delivered_packets: 0,
            skipped_bytes: 0,
            lost_bytes: 0,
            lost_before: 0,
            finished: None,
            last_progress: start,
            last_write: start,
            aborted: None,
        }
    }

    pub(super) fn keep_histogram(&mut self, histogram: Shared) {
        self.delay.keep_histogram(histogram);
    }

    /// Everything below this position is delivered, skipped or lost.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Ranges above the position that connections have skipped.
    pub(super) fn skipped(&self) -> impl Iterator<Item = Span> + '_ {
        self.skipped.iter().copied()
    }

    /// The source has sent all bytes below `end`. Bytes sent again over another connection do not count.
    pub(super) fn on_sent(&mut self, end: u64, at: Time) {
        if end > self.sent_end {
            self.sent_end = end;
            *self.pending.push_slot() = Pending { end, sent: at };
        }
    }

    /// A connection has skipped bytes: they will not reach the sink.
    pub(super) fn on_skipped(&mut self, span: Span) {
        self.skipped.push(span);
    }

    /// The sink has read bytes that are new to it.
    pub(super) fn deliver(&mut self, span: Span, now: Time) {
        self.pass_over(span.from);
        self.delivered_bytes += span.len();
        self.last_progress = now;
        self.position = span.to;
        while let Some(&Pending { end, sent }) = self.pending.front().filter(|pending| pending.end <= span.to) {
            self.pending.drop_front();
            debug_assert!(end > span.from || sent <= now, "sent before it is delivered");
            self.delay.add(now.since(sent));
            self.delivered_packets += 1;
        }
        self.note_finished(now);
    }

    /// The end of the stream, at position `end`, has reached the sink.
    pub(super) fn on_end(&mut self, end: u64, now: Time) {
        self.pass_over(end);
        self.note_finished(now);
    }

    /// Counts the bytes missing below `to` as skipped or lost.
    fn pass_over(&mut self, to: u64) {
        if to <= self.position {
            return;
        }
        let skipped = covered(self.position, to, self.skipped.iter().copied());
        self.skipped_bytes += skipped;
        self.lost_bytes += to - self.position - skipped;
        self.position = to;
        self.skipped.retain(|span| span.to > to);
        while self.pending.front().is_some_and(|pending| pending.end <= to) {
            self.pending.drop_front();
        }
    }

    /// Marks a file as finished. A file with lost bytes never finishes; one with skipped bytes may.
    fn note_finished(&mut self, now: Time) {
        let is_whole = self.lost_bytes + self.lost_before == 0;
        if self.asked == Some(self.position) && is_whole && self.finished.is_none() {
            self.finished = Some(now);
        }
    }

    pub(super) fn last_sign_of_life(&self) -> Time {
        self.last_write.max(self.last_progress)
    }

    /// Resets all counts at the end of the warm-up.
    pub(super) fn begin_measurement(&mut self) {
        self.lost_before += std::mem::take(&mut self.lost_bytes);
        (self.delivered_bytes, self.delivered_packets, self.skipped_bytes) = (0, 0, 0);
        self.delay.clear();
    }

    /// Closes the account; `lost` bytes were lost without the sink noticing.
    pub(super) fn finish(self, lost: u64) -> Closed {
        let (delay, histogram) = self.delay.finish();
        Closed {
            asked: self.asked,
            finished: self.finished,
            last_progress: self.last_progress,
            aborted: self.aborted,
            delivered_bytes: self.delivered_bytes,
            delivered_packets: self.delivered_packets,
            skipped_bytes: self.skipped_bytes,
            lost_bytes: self.lost_bytes + lost,
            undelivered_bytes: self.asked.map_or(0, |asked| asked - self.position - lost),
            delay,
            histogram,
        }
    }
}

/// Number of distinct bytes from `from` up to `to` that are in any of the spans.
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

    #[test]
    fn bytes_in_several_spans_count_once() {
        let pieces = [(0, 10), (5, 20), (30, 40), (90, 200), (35, 36)];
        let spans = pieces.into_iter().map(|(from, to)| Span { from, to });
        assert_eq!(covered(8, 100, spans), 12 + 10 + 10);
    }
}
