//! A record of every segment in flight: when it was sent, whether it was reported or lost, and what it says about the path.
//!
//! Records are kept only for a congestion control that measures rates and for loss detection by time. Delivery rates are sampled
//! as in draft-ietf-ccwg-bbr, section 4.1.

mod by_time;

use std::collections::VecDeque;

use crate::time::Time;

use super::span::Span;

use by_time::Order;
pub(super) use by_time::{Late, Recent};

/// A segment in flight. It begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Offset after its last byte.
    pub(super) end: u64,
    /// When it was sent last.
    pub(super) at: Time,
    /// Number of that transmission, if their order is kept.
    transmission: u64,
    /// Bytes delivered in all when it was sent, and when the latest of them was delivered.
    delivered: u64,
    delivered_at: Time,
    /// When the segment was sent that had been delivered last at that time.
    first_sent_at: Time,
    /// Bytes declared lost in all when it was sent.
    lost: u64,
    /// Bytes in flight when it was sent, including itself.
    in_flight: u64,
    /// Whether there was no more data to send after it, so that it says nothing about the path's rate.
    is_app_limited: bool,
    pub(super) is_retransmitted: bool,
    /// Whether the receiver has reported it selectively.
    pub(super) is_sacked: bool,
    /// Whether it is declared lost and was not sent again since.
    pub(super) is_lost: bool,
}

/// Measurements of the path from an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// When it arrived.
    pub(super) now: Time,
    /// Round-trip time of the most recently sent segment among those that it reports and that were sent once.
    pub(super) rtt: Option<Time>,
    /// Bytes delivered so far, and those that this acknowledgement adds.
    pub(super) delivered: u64,
    pub(super) newly_delivered: u64,
    /// Bytes that had been delivered when the latest segment reported here was sent.
    pub(super) prior_delivered: u64,
    /// Bytes delivered since then, from which the rate is computed; 0 if this acknowledgement reports nothing new.
    pub(super) delivered_since: u64,
    /// Delivery rate, bytes per second; `None` if nothing was delivered or the interval is too short.
    pub(super) rate: Option<f64>,
    /// Whether the application limited the rate, not the path.
    pub(super) is_app_limited: bool,
    /// Bytes declared lost because of this acknowledgement.
    pub(super) newly_lost: u64,
    /// Bytes in flight now, and before this acknowledgement.
    pub(super) in_flight: u64,
    pub(super) prior_in_flight: u64,
    /// Bytes in flight when the latest segment reported here was sent, including itself, and bytes lost since.
    pub(super) sent_in_flight: u64,
    pub(super) lost_since: u64,
}

/// A segment that is declared lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    /// Offset of its first byte.
    pub(super) start: u64,
    pub(super) len: u64,
    /// Bytes in flight when it was sent and bytes lost since, both including itself.
    pub(super) sent_in_flight: u64,
    pub(super) lost_since: u64,
    pub(super) is_app_limited: bool,
    /// Bytes delivered so far.
    pub(super) delivered: u64,
}

/// Segments in flight, in order of the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    is_kept: bool,
    segments: VecDeque<Sent>,
    /// Offset at which the first of them begins.
    base: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Bytes declared lost so far.
    lost: u64,
    /// Bytes sent and neither reported nor declared lost since ("pipe" of RFC 6675), and bytes declared lost and not sent again.
    in_flight: u64,
    lost_out: u64,
    prior_in_flight: u64,
    /// Losses were looked for below `looked_until`, and are to be looked for below `lost_below`.
    looked_until: u64,
    lost_below: u64,
    /// Data up to this count of delivered bytes was sent while there was nothing else to send; 0 if there is more to send.
    app_limited_until: u64,
    /// The least round-trip time of any segment.
    least_rtt: Option<Time>,
    /// The latest segment that the present acknowledgement reports.
    latest: Option<Sent>,
    newly_delivered: u64,
    newly_lost: u64,
    /// Bytes that are reported selectively, and the number of their segments.
    sacked_bytes: u64,
    sacked_segments: u32,
    order: Order,
    /// Used if the order of transmissions is kept.
    pub(super) recent: Recent,
}

impl Flight {
    /// Keeps records if `is_kept`.
    pub(super) fn new(is_kept: bool) -> Self {
        Flight { is_kept, ..Flight::default() }
    }

    /// Whether records are kept.
    #[inline(always)]
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Records are no longer needed.
    pub(super) fn stop(&mut self) {
        *self = Flight::default();
    }

    /// Bytes sent and neither reported nor declared lost since.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When the oldest segment in flight was last sent; `None` if none is in flight.
    pub(super) fn first_at(&self) -> Option<Time> {
        self.segments.front().map(|sent| sent.at)
    }

    /// A segment is sent, for the first time or again.
    pub(super) fn on_sent(&mut self, now: Time, span: Span) {
        let end = span.start + u64::from(span.len);
        if self.segments.is_empty() {
            self.base = span.start;
        }
        if self.in_flight == 0 {
            //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1.2.2
            //# If there is no data in flight yet, then we can start the delivery rate interval at the current time
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let new_from = self.segments.back().map_or(span.start, |last| last.end.max(span.start));
        let record = Sent {
            end,
            at: now,
            transmission: 0,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: self.in_flight,
            is_app_limited: self.app_limited_until > 0,
            is_retransmitted: false,
            is_sacked: false,
            is_lost: false,
        };
        if span.start < new_from {
            self.on_sent_again(span.start, end.min(new_from), &Sent { is_retransmitted: true, ..record });
        }
        if new_from < end {
            self.in_flight += end - new_from;
            let transmission = self.order.on_sent(self.segments.len());
            self.segments.push_back(Sent { in_flight: self.in_flight, transmission, ..record });
        }
    }

    /// A retransmission may cover parts of several segments; each keeps its own end.
    fn on_sent_again(&mut self, start: u64, end: u64, record: &Sent) {
        self.split(start);
        self.split(end);
        let first = self.segments.partition_point(|sent| sent.end <= start);
        let mut from = self.start_of(first);
        for (index, sent) in (first..).zip(self.segments.range_mut(first..)).take_while(|(_, sent)| sent.end <= end) {
            let len = sent.end - from;
            from = sent.end;
            if sent.is_sacked {
                continue; // delivered, even if the receiver no longer reports it
            }
            if sent.is_lost {
                self.in_flight += len;
                self.lost_out -= len;
            }
            let transmission = self.order.on_sent(index);
            *sent = Sent { end: sent.end, in_flight: self.in_flight, transmission, ..*record };
        }
    }

    /// Splits the segment that contains an offset.
    fn split(&mut self, offset: u64) {
        if self.order.is_kept {
            return; // with an order, segments are sent and counted as they were first cut
        }
        let index = self.segments.partition_point(|sent| sent.end <= offset);
        let start = self.start_of(index);
        if index < self.segments.len() && start < offset {
            let first = Sent { end: offset, ..self.segments[index] };
            self.sacked_segments += u32::from(first.is_sacked);
            self.segments.insert(index, first);
        }
    }

    /// An acknowledgement has arrived: its effects are counted from here.
    pub(super) fn begin_acknowledgement(&mut self) {
        self.prior_in_flight = self.in_flight;
        self.newly_lost = 0;
        self.recent.begin_acknowledgement();
    }

    /// All data below `una` is acknowledged.
    pub(super) fn on_acknowledged(&mut self, now: Time, una: u64) {
        while let Some(front) = self.segments.front() {
            let mut sent = *front;
            let is_whole = sent.end <= una;
            if is_whole {
                self.segments.pop_front();
                self.order.first_serial += 1;
            } else if self.base < una {
                sent.end = una; // acknowledged in part
            } else {
                return;
            }
            let len = sent.end - self.base;
            self.base = sent.end;
            if sent.is_sacked {
                self.sacked_bytes -= len;
                self.sacked_segments -= u32::from(is_whole);
            } else {
                self.note_delivered(now, sent, len);
            }
        }
    }

    /// The receiver has reported `left..right` for the first time.
    pub(super) fn on_sacked(&mut self, now: Time, left: u64, right: u64) {
        self.split(left);
        self.split(right);
        let mut index = self.segments.partition_point(|sent| sent.end <= left);
        let mut start = self.start_of(index);
        while let Some(sent) = self.segments.get_mut(index).filter(|sent| sent.end <= right) {
            let (copy, len) = (*sent, sent.end - start);
            (sent.is_sacked, sent.is_lost) = (true, false);
            (start, index) = (copy.end, index + 1);
            if !copy.is_sacked {
                self.sacked_bytes += len;
                self.sacked_segments += 1;
                self.note_delivered(now, copy, len);
            }
        }
    }

    fn note_delivered(&mut self, now: Time, sent: Sent, len: u64) {
        *(if sent.is_lost { &mut self.lost_out } else { &mut self.in_flight }) -= len;
        self.delivered += len;
        self.delivered_at = now;
        self.newly_delivered += len;
        if self.order.is_kept {
            self.recent.on_delivered(now, &sent);
        }
        if self.latest.is_none_or(|latest| (sent.at, sent.end) > (latest.at, latest.end)) {
            self.latest = Some(sent);
        }
    }

    /// Unreported segments that begin below an offset count as lost; see [`next_lost`](Self::next_lost).
    pub(super) fn note_lost_below(&mut self, offset: u64) {
        self.lost_below = self.lost_below.max(offset);
    }

    /// All unreported segments count as lost, including retransmitted ones; see [`next_lost`](Self::next_lost).
    pub(super) fn note_all_lost(&mut self) {
        self.looked_until = self.base;
        self.lost_below = u64::MAX;
    }

    /// Takes the next segment that counts as lost; to be called until there is none. Retransmitted segments count as lost only
    /// after [`note_all_lost`](Self::note_all_lost).
    pub(super) fn next_lost(&mut self) -> Option<Lost> {
        let is_all = self.lost_below == u64::MAX;
        let mut from = self.looked_until.max(self.base);
        let mut index = None;
        while from < self.lost_below {
            let at = *index.get_or_insert_with(|| self.segments.partition_point(|sent| sent.end <= from));
            let Some(sent) = self.segments.get_mut(at) else { break };
            let (start, len) = (from, sent.end - from);
            from = sent.end;
            index = Some(at + 1);
            if sent.is_sacked || sent.is_lost || (sent.is_retransmitted && !is_all) {
                continue;
            }
            sent.is_lost = true;
            self.in_flight -= len;
            self.lost_out += len;
            self.lost += len;
            self.newly_lost += len;
            self.looked_until = from;
            return Some(Lost {
                start,
                len,
                sent_in_flight: sent.in_flight,
                lost_since: self.lost - sent.lost,
                is_app_limited: sent.is_app_limited,
                delivered: self.delivered,
            });
        }
        self.looked_until = from;
        self.lost_below = self.lost_below.min(from);
        None
    }

    /// Whether there was nothing to send recently although the window had room.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// Checks whether the sender has run out of data. To be called at each write, acknowledgement and timeout, before it changes
    /// anything.
    pub(super) fn check_app_limited(&mut self, has_unsent_data: bool, cwnd: f64) {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1.2.4
        //# if (NoUnsentData() && C.pending_transmissions == 0 && C.inflight < C.cwnd && C.lost_out <= C.retrans_out)
        //#   MarkConnectionAppLimited()
        if !has_unsent_data && (self.in_flight as f64) < cwnd && self.lost_out == 0 {
            self.mark_app_limited();
        }
    }

    /// The data in flight says nothing about the path's rate.
    pub(super) fn mark_app_limited(&mut self) {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1.2.4
        //# C.app_limited = max(C.delivered + C.inflight, 1)
        self.app_limited_until = (self.delivered + self.in_flight).max(1);
    }

    /// The sample of the present acknowledgement, after everything that it reports was noted.
    pub(super) fn take_sample(&mut self, now: Time) -> Sample {
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1.2.3
        //# Clear app-limited field if bubble is ACKed and gone.
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let mut sample = Sample {
            now,
            delivered: self.delivered,
            newly_delivered: std::mem::take(&mut self.newly_delivered),
            newly_lost: self.newly_lost,
            in_flight: self.in_flight,
            prior_in_flight: self.prior_in_flight,
            ..Sample::default()
        };
        let Some(latest) = self.latest.take() else { return sample };
        self.first_sent_at = latest.at;
        sample.prior_delivered = latest.delivered;
        sample.delivered_since = self.delivered - latest.delivered;
        sample.is_app_limited = latest.is_app_limited;
        sample.sent_in_flight = latest.in_flight;
        sample.lost_since = self.lost - latest.lost;
        if !latest.is_retransmitted {
            let rtt = now.since(latest.at);
            sample.rtt = Some(rtt);
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1.2.3
        //# Use the longer of the send_elapsed and ack_elapsed
        let interval = latest.at.since(latest.first_sent_at).max(now.since(latest.delivered_at));
        //= https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1.2.3
        //# if (RS.interval < C.min_rtt) return /* no reliable rate sample */
        if interval > Time::ZERO && self.least_rtt.is_none_or(|least| interval >= least) {
            sample.rate = Some(sample.delivered_since as f64 / interval.as_secs_f64());
        }
        sample
    }
}

#[cfg(test)]
mod tests;
