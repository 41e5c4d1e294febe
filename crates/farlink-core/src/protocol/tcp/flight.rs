//! A record of every segment under way: when it was sent, whether it was reported, and what it tells about the path.
//!
//! Kept only for those who want it (a congestion control that measures rates, loss detection by time). Delivery rates are
//! estimated as draft-ietf-ccwg-bbr, section 4.1, and its forerunner draft-cheng-iccrg-delivery-rate-estimation say.

use std::collections::VecDeque;

use crate::time::Time;

use super::window::Span;

/// A segment under way. It begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Offset behind its last byte.
    pub(super) end: u64,
    /// When it was sent last.
    pub(super) at: Time,
    /// Everything delivered when it was sent, bytes, and when the latest of that was.
    delivered: u64,
    delivered_at: Time,
    /// When the segment was sent whose delivery that latest one was.
    first_sent_at: Time,
    /// There was no more data to send behind it, so it tells nothing about the path's rate.
    is_app_limited: bool,
    pub(super) is_retransmitted: bool,
    /// The receiver has reported it selectively.
    pub(super) is_sacked: bool,
}

/// What an acknowledgement says about the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// When it arrived.
    pub(super) now: Time,
    /// Round-trip time of the segment sent last among those that it reports and that were sent once.
    pub(super) rtt: Option<Time>,
    /// Everything delivered so far, bytes, and what this acknowledgement adds to it.
    pub(super) delivered: u64,
    pub(super) newly_delivered: u64,
    /// Everything that had been delivered when the latest segment reported here was sent.
    pub(super) prior_delivered: u64,
    /// Delivery rate, bytes per second; none if nothing was delivered or the interval is too short to tell.
    pub(super) rate: Option<f64>,
    /// The rate is bounded by the application, not the path.
    pub(super) is_app_limited: bool,
    /// Bytes thought lost since the sample before.
    pub(super) newly_lost: u64,
}

/// Segments under way, in order of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    is_kept: bool,
    segments: VecDeque<Sent>,
    /// Where the first of them begins.
    base: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Everything up to this count of delivered bytes was sent while there was nothing else to send.
    app_limited_until: u64,
    /// The latest segment reported by the acknowledgement at hand.
    latest: Option<Sent>,
    newly_delivered: u64,
    newly_lost: u64,
}

impl Flight {
    /// A record, or none at all if nobody wants it.
    pub(super) fn new(is_kept: bool) -> Self {
        Flight { is_kept, ..Flight::default() }
    }

    /// Whether records are kept.
    #[inline(always)]
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Nobody wants them any more.
    pub(super) fn stop(&mut self) {
        *self = Flight::default();
    }

    /// A segment goes out, for the first time or again.
    pub(super) fn on_sent(&mut self, now: Time, span: Span) {
        let end = span.start + u64::from(span.len);
        if self.segments.is_empty() {
            self.base = span.start;
            //= https://datatracker.ietf.org/doc/html/draft-cheng-iccrg-delivery-rate-estimation-02#section-3.2
            //# If there are no packets in flight yet, then we can start the delivery rate interval at the current time
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let record = Sent {
            end,
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.app_limited_until > 0,
            is_retransmitted: false,
            is_sacked: false,
        };
        if self.segments.back().is_none_or(|last| span.start >= last.end) {
            self.segments.push_back(record);
            return;
        }
        // Sent again: whatever segments it covers, each keeps its own end.
        let first = self.segments.partition_point(|sent| sent.end <= span.start);
        let last = self.segments.partition_point(|sent| sent.end < end);
        for sent in self.segments.range_mut(first..self.segments.len().min(last + 1)) {
            *sent = Sent { end: sent.end, is_retransmitted: true, is_sacked: sent.is_sacked, ..record };
        }
        if self.segments.back().is_some_and(|last| last.end < end) {
            self.segments.push_back(record);
        }
    }

    /// Everything below `una` is acknowledged.
    pub(super) fn on_acknowledged(&mut self, now: Time, una: u64) {
        while let Some(sent) = self.segments.front().copied().filter(|sent| sent.end <= una) {
            self.segments.pop_front();
            let len = sent.end - self.base;
            self.base = sent.end;
            if !sent.is_sacked {
                self.note_delivered(now, sent, len);
            }
        }
    }

    /// The receiver has reported `left..right` for the first time.
    pub(super) fn on_sacked(&mut self, now: Time, left: u64, right: u64) {
        let mut index = self.segments.partition_point(|sent| sent.end <= left);
        let mut start = if index == 0 { self.base } else { self.segments[index - 1].end };
        while let Some(sent) = self.segments.get_mut(index).filter(|sent| sent.end <= right) {
            let (copy, len) = (*sent, sent.end - start);
            sent.is_sacked = true;
            (start, index) = (copy.end, index + 1);
            if !copy.is_sacked {
                self.note_delivered(now, copy, len);
            }
        }
    }

    fn note_delivered(&mut self, now: Time, sent: Sent, len: u64) {
        self.delivered += len;
        self.delivered_at = now;
        self.newly_delivered += len;
        if self.latest.is_none_or(|latest| (sent.at, sent.end) > (latest.at, latest.end)) {
            self.latest = Some(sent);
        }
    }

    /// So many bytes are thought lost.
    pub(super) fn note_lost(&mut self, bytes: u64) {
        self.newly_lost += bytes;
    }

    /// What the acknowledgement at hand says; everything that it reports has been noted.
    pub(super) fn take_sample(&mut self, now: Time) -> Sample {
        let mut sample = Sample {
            now,
            delivered: self.delivered,
            newly_delivered: std::mem::take(&mut self.newly_delivered),
            newly_lost: std::mem::take(&mut self.newly_lost),
            ..Sample::default()
        };
        let Some(latest) = self.latest.take() else { return sample };
        self.first_sent_at = latest.at;
        sample.prior_delivered = latest.delivered;
        sample.is_app_limited = latest.is_app_limited;
        if !latest.is_retransmitted {
            sample.rtt = Some(now.since(latest.at));
        }
        //= https://datatracker.ietf.org/doc/html/draft-cheng-iccrg-delivery-rate-estimation-02#section-3.3
        //# Use the longer of the send phase and ack phase to compute the delivery rate
        let interval = latest.at.since(latest.first_sent_at).max(now.since(latest.delivered_at));
        if interval > Time::ZERO {
            sample.rate = Some((self.delivered - latest.delivered) as f64 / interval.as_secs_f64());
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64) -> Span {
        Span { start, len: 100 }
    }

    /// Ten segments sent at once and acknowledged 10 ms apart: the rate is that of the acknowledgements.
    #[test]
    fn the_rate_is_that_at_which_data_are_delivered() {
        let mut flight = Flight::new(true);
        flight.base = 1;
        for n in 0..10 {
            flight.on_sent(Time::ZERO, span(1 + n * 100));
        }
        for n in 1..=10 {
            let now = Time::from_millis(500 + n * 10);
            flight.on_acknowledged(now, 1 + n * 100);
            let sample = flight.take_sample(now);
            assert_eq!((sample.newly_delivered, sample.rtt), (100, Some(now)));
        }
        // 100 bytes every 10 ms, each acknowledged 490 ms later.
        let mut flight = Flight { base: 1, ..Flight::new(true) };
        for n in 0..150 {
            let now = Time::from_millis(n * 10);
            flight.on_sent(now, span(1 + n * 100));
            if n >= 50 {
                flight.on_acknowledged(now, 1 + (n - 49) * 100);
                let rate = flight.take_sample(now).rate.expect("there is an interval");
                // Before, the interval holds the round trip in which nothing came back.
                assert!(n <= 100 || (rate - 1e4).abs() < 1.0, "{rate}");
            }
        }
    }

    #[test]
    fn what_was_reported_is_not_counted_twice_and_what_was_repeated_gives_no_round_trip() {
        let mut flight = Flight { base: 1, ..Flight::new(true) };
        for n in 0..4 {
            flight.on_sent(Time::ZERO, span(1 + n * 100));
        }
        flight.on_sacked(Time::from_millis(500), 101, 301);
        assert_eq!(flight.take_sample(Time::from_millis(500)).newly_delivered, 200);
        flight.on_sent(Time::from_millis(510), span(1));
        flight.on_acknowledged(Time::from_millis(1010), 301);
        let sample = flight.take_sample(Time::from_millis(1010));
        assert_eq!((sample.newly_delivered, sample.rtt, sample.delivered), (100, None, 300));
    }
}
