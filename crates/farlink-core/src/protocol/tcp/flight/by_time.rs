//! Segments in flight in the order in which they were sent, and lost segments, for RACK (RFC 8985).
//!
//! No step walks over a whole window: every transmission enters a queue once and leaves it once, and a segment is found by its
//! serial number.

use std::collections::VecDeque;

use crate::time::Time;

use super::{Flight, Lost, Sent, Span};

/// Transmissions in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    pub(super) is_kept: bool,
    /// Serial number of the first segment in flight.
    pub(super) first_serial: u64,
    /// (serial number, number of the transmission). Segments that were delivered or sent again meanwhile are skipped when their
    /// turn comes.
    queue: VecDeque<(u64, u64)>,
    transmissions: u64,
    /// Serial numbers of segments to send again, ascending. Those that were sent again or delivered meanwhile are skipped when
    /// their turn comes.
    lost: VecDeque<u64>,
}

impl Order {
    /// A segment is sent; returns the number of the transmission, from 1 on, or 0 if no order is kept.
    #[inline]
    pub(super) fn on_sent(&mut self, index: usize) -> u64 {
        if !self.is_kept {
            return 0;
        }
        self.transmissions += 1;
        self.queue.push_back((self.first_serial + index as u64, self.transmissions));
        self.transmissions
    }

    /// A segment is found lost; mostly it lies above those found before.
    fn on_lost(&mut self, serial: u64) {
        let at = match self.lost.back() {
            Some(&last) if last >= serial => self.lost.partition_point(|&other| other < serial),
            _ => self.lost.len(),
        };
        if self.lost.get(at) != Some(&serial) {
            self.lost.insert(at, serial);
        }
    }

    /// A segment that was found lost may still arrive: its transmission waits at its place again.
    fn on_unmarked(&mut self, serial: u64, transmission: u64) {
        let at = self.queue.partition_point(|&(_, other)| other < transmission);
        if self.queue.get(at) != Some(&(serial, transmission)) {
            self.queue.insert(at, (serial, transmission));
        }
    }
}

/// The most recently sent segment among those delivered, and what deliveries say about the network (RFC 8985, section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocol::tcp) struct Recent {
    /// Number of its transmission. It replaces RACK.xmit_ts and RACK.end_seq: the RFC compares times, and offsets where times are
    /// equal because of the clock's resolution. Here the order of transmissions is known.
    transmission: u64,
    /// Its round-trip time (RACK.rtt).
    rtt: Time,
    /// The highest offset delivered (RACK.fack).
    highest: u64,
    /// The value of `highest` before the present acknowledgement. With delayed acknowledgements, one segment may acknowledge a
    /// segment that waited and report one after a hole. These were delivered in order, whichever is handled first.
    highest_before: u64,
    /// Whether an original transmission was delivered after one of a higher offset (RACK.reordering_seen).
    pub(in crate::protocol::tcp) has_reordering: bool,
    /// The least round-trip time (RACK.min_RTT), and the timestamp that the present acknowledgement echoes, ms.
    pub(in crate::protocol::tcp) least_rtt: Time,
    pub(in crate::protocol::tcp) echo: Option<u32>,
    /// Whether echoes do not tell transmissions apart, as in Linux (`tcp_rack_advance`).
    pub(in crate::protocol::tcp) ignores_echoes: bool,
    /// The lowest end of a segment sent once that the present acknowledgement reports; `None` if it reports none.
    pub(in crate::protocol::tcp) original_end: Option<u64>,
}

impl Recent {
    /// An acknowledgement has arrived.
    pub(super) fn begin_acknowledgement(&mut self) {
        self.highest_before = self.highest;
    }

    pub(super) fn on_delivered(&mut self, now: Time, sent: &Sent) {
        if !sent.is_retransmitted {
            self.original_end = Some(self.original_end.map_or(sent.end, |end| end.min(sent.end)));
        }
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
        //# If Segment.end_seq > RACK.fack: [...] Else if Segment.end_seq < RACK.fack AND
        //# Segment.retransmitted is FALSE: RACK.reordering_seen = TRUE
        self.has_reordering |= sent.end < self.highest_before && !sent.is_retransmitted;
        self.highest = self.highest.max(sent.end);
        let rtt = now.since(sent.at);
        if sent.is_retransmitted {
            //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
            //# If Segment.retransmitted is TRUE: If ACK.ts_option.echo_reply < Segment.xmit_ts: continue
            //# If rtt < RACK.min_RTT: continue
            let sent_ms = (sent.at.as_ps() / 1_000_000_000) as u32;
            let echo = self.echo.filter(|_| !self.ignores_echoes);
            let is_of_an_earlier_one = echo.is_some_and(|echo| (echo.wrapping_sub(sent_ms) as i32) < 0);
            if is_of_an_earlier_one || rtt < self.least_rtt {
                return;
            }
        }
        if sent.transmission > self.transmission {
            (self.transmission, self.rtt) = (sent.transmission, rtt);
        }
    }
}

/// The result of [`Flight::next_late`].
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol::tcp) enum Late {
    /// A segment is lost. The time is that of its last transmission, if that was not the first.
    Lost(Lost, Option<Time>),
    /// When the next segment is to be declared lost if it is not reported until then; `None` if there is no candidate.
    Later(Option<Time>),
}

impl Flight {
    /// Keeps the order of transmissions too.
    pub(in crate::protocol::tcp) fn keep_order(&mut self) {
        (self.is_kept, self.order.is_kept) = (true, true);
    }

    /// Whether the order of transmissions is kept.
    pub(in crate::protocol::tcp) fn is_ordered(&self) -> bool {
        self.order.is_kept
    }

    /// Takes the next segment that is lost by now; to be called until there is none. A segment is lost if it was sent before the
    /// most recently sent delivered one, and was not reported within its round-trip time and `patience` (the reordering window).
    /// Only candidates are examined, oldest first, up to one that is recent enough.
    pub(in crate::protocol::tcp) fn next_late(&mut self, now: Time, patience: Time) -> Late {
        while let Some(&(serial, transmission)) = self.order.queue.front() {
            if let Some(index) = self.undecided(serial, transmission) {
                //= https://www.rfc-editor.org/rfc/rfc8985#section-6.2
                //# If RACK_sent_after(RACK.xmit_ts, RACK.end_seq, Segment.xmit_ts, Segment.end_seq):
                //# remaining = Segment.xmit_ts + RACK.rtt + RACK.reo_wnd - Now()
                //# If remaining <= 0: Segment.lost = TRUE
                if self.recent.transmission <= transmission {
                    break;
                }
                let due = self.segments[index].at + self.recent.rtt + patience;
                if due > now {
                    // The RFC arms the timer for the last candidate. The first one is known without a walk over all, and each one
                    // is then found lost at its own time.
                    return Late::Later(Some(due));
                }
                self.order.queue.pop_front();
                let sent = self.segments[index];
                return Late::Lost(self.mark_lost(index), sent.is_retransmitted.then_some(sent.at));
            }
            self.order.queue.pop_front();
        }
        Late::Later(None)
    }

    /// The retransmission timer expired: takes the next segment that is lost by this rule; to be called until there is none.
    pub(in crate::protocol::tcp) fn next_late_on_timeout(&mut self, now: Time, patience: Time) -> Option<Lost> {
        //= https://www.rfc-editor.org/rfc/rfc8985#section-6.3
        //# Upon RTO timer expiration, RACK marks the first outstanding segment as lost (since it was sent an RTO ago); for
        //# all the other segments, RACK only marks the segment as lost if the time elapsed since the segment was
        //# transmitted is at least the sum of the recent RTT and the reordering window.
        let first = self.segments.front()?;
        if first.is_sacked {
            // It was reported and is missing, so the receiver has discarded data that it reported (as Linux concludes,
            // tcp_check_sack_reneging in net/ipv4/tcp_input.c).
            self.forget_reports();
        }
        if !self.segments.front()?.is_lost {
            return Some(self.mark_lost(0));
        }
        while let Some(&(serial, transmission)) = self.order.queue.front() {
            let index = self.undecided(serial, transmission);
            if index.is_some_and(|index| self.segments[index].at + self.recent.rtt + patience > now) {
                return None;
            }
            self.order.queue.pop_front();
            if let Some(index) = index {
                return Some(self.mark_lost(index));
            }
        }
        None
    }

    /// The index of a segment whose latest transmission is this one and may still arrive.
    fn undecided(&self, serial: u64, transmission: u64) -> Option<usize> {
        let index = serial.checked_sub(self.order.first_serial)? as usize;
        let sent = self.segments.get(index)?;
        (!sent.is_sacked && !sent.is_lost && sent.transmission == transmission).then_some(index)
    }

    /// Offset at which a segment begins.
    pub(super) fn start_of(&self, index: usize) -> u64 {
        if index == 0 { self.base } else { self.segments[index - 1].end }
    }

    fn mark_lost(&mut self, index: usize) -> Lost {
        let start = self.start_of(index);
        let sent = &mut self.segments[index];
        let len = sent.end - start;
        sent.is_lost = true;
        self.in_flight -= len;
        self.lost_out += len;
        self.lost += len;
        self.newly_lost += len;
        self.order.on_lost(self.order.first_serial + index as u64);
        Lost {
            start,
            len,
            sent_in_flight: sent.in_flight,
            lost_since: self.lost - sent.lost,
            is_app_limited: sent.is_app_limited,
            delivered: self.delivered,
        }
    }

    /// Discards the receiver's reports: the segments are candidates again, with their original times.
    #[cold]
    fn forget_reports(&mut self) {
        for index in 0..self.segments.len() {
            let len = self.segments[index].end - self.start_of(index);
            let serial = self.order.first_serial + index as u64;
            let sent = &mut self.segments[index];
            if std::mem::take(&mut sent.is_sacked) {
                self.in_flight += len;
                self.order.queue.push_front((serial, sent.transmission));
            }
        }
        (self.sacked_bytes, self.sacked_segments) = (0, 0);
    }

    /// The next segment to send again, without the part of it that is acknowledged: the lowest one, as RFC 6675 has it (NextSeg,
    /// section 4) and Linux (tcp_xmit_retransmit_queue). What a timeout finds lost is therefore sent first, although others may
    /// have been found lost before and not sent again yet.
    pub(in crate::protocol::tcp) fn next_to_repeat(&mut self, una: u64) -> Option<Span> {
        while let Some(&serial) = self.order.lost.front() {
            let index = serial.checked_sub(self.order.first_serial).map(|index| index as usize);
            if let Some(index) = index
                && let Some(sent) = self.segments.get(index).filter(|sent| sent.is_lost)
            {
                let start = self.start_of(index).max(una);
                return Some(Span { start, len: (sent.end - start) as u32 });
            }
            self.order.lost.pop_front();
        }
        None
    }

    /// The segment with the highest offset.
    pub(in crate::protocol::tcp) fn last(&self, una: u64) -> Option<Span> {
        let index = self.segments.len().checked_sub(1)?;
        let start = self.start_of(index).max(una);
        Some(Span { start, len: (self.segments[index].end - start) as u32 })
    }

    /// Undoes the loss marks of a spurious timeout: the marked segments may still arrive. With `keeps_recent`, the most recently
    /// sent segment among those delivered is known to be so.
    pub(in crate::protocol::tcp) fn unmark_lost(&mut self, keeps_recent: bool) {
        while let Some(serial) = self.order.lost.pop_back() {
            let index = serial.checked_sub(self.order.first_serial).map(|index| index as usize);
            if let Some(sent) = index.and_then(|index| self.segments.get_mut(index)).filter(|sent| sent.is_lost) {
                sent.is_lost = false;
                let transmission = sent.transmission;
                self.order.on_unmarked(serial, transmission);
            }
        }
        self.in_flight += std::mem::take(&mut self.lost_out);
        if !keeps_recent {
            // The acknowledgement that was attributed to a retransmission was for the original.
            self.recent.transmission = 0;
        }
    }

    /// End of the first segment in flight.
    pub(in crate::protocol::tcp) fn first_end(&self) -> Option<u64> {
        self.segments.front().map(|sent| sent.end)
    }

    /// Bytes that the receiver has reported above the cumulative acknowledgement, and the number of their segments.
    pub(in crate::protocol::tcp) fn sacked(&self) -> (u64, u32) {
        (self.sacked_bytes, self.sacked_segments)
    }

    /// Bytes declared lost and not yet sent again.
    pub(in crate::protocol::tcp) fn lost_bytes(&self) -> u64 {
        self.lost_out
    }

    /// Bytes that have left the network: reported, or declared lost.
    pub(in crate::protocol::tcp) fn gone_bytes(&self) -> u64 {
        self.sacked_bytes + self.lost_out
    }

    /// Bytes declared lost since the present acknowledgement arrived.
    pub(in crate::protocol::tcp) fn newly_lost(&self) -> u64 {
        self.newly_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn span(number: u64) -> Span {
        Span { start: 1 + number * 100, len: 100 }
    }

    /// All segments lost by now: bytes, the latest time that one of them had been sent again, and when to look again.
    struct Found {
        bytes: u64,
        again_at: Option<Time>,
        next: Option<Time>,
    }

    fn find_lost(flight: &mut Flight, now: Time, patience: Time) -> Found {
        let (mut bytes, mut latest) = (0, None);
        loop {
            match flight.next_late(now, patience) {
                Late::Lost(lost, again_at) => {
                    bytes += lost.len;
                    latest = latest.max(again_at);
                }
                Late::Later(next) => return Found { bytes, again_at: latest, next },
            }
        }
    }

    fn expire(flight: &mut Flight, now: Time) {
        while flight.next_late_on_timeout(now, Time::ZERO).is_some() {}
    }

    /// Ten segments, a millisecond apart.
    fn ten() -> Flight {
        let mut flight = Flight::new(false);
        flight.keep_order();
        (0..10).for_each(|n| flight.on_sent(ms(n), span(n)));
        flight
    }

    /// RFC 8985, section 6.2, step 5: the most recently sent delivered segment was sent at 5 ms and took 100 ms. Each
    /// segment sent before it is lost 100 ms and the reordering window after its transmission.
    #[test]
    fn segments_sent_earlier_and_overdue_are_lost() {
        let mut flight = ten();
        flight.on_sacked(ms(105), 501, 601);
        let found = find_lost(&mut flight, ms(105), Time::ZERO);
        assert_eq!((found.bytes, found.next), (500, None), "0 to 4, not 6 to 9");
        assert_eq!((flight.gone_bytes(), flight.next_to_repeat(1)), (600, Some(span(0))));

        let mut flight = ten();
        flight.on_sacked(ms(105), 501, 601);
        let found = find_lost(&mut flight, ms(105), ms(3));
        assert_eq!((found.bytes, found.next), (300, Some(ms(106))), "0 to 2 were sent more than 103 ms ago");
        let found = find_lost(&mut flight, ms(106), ms(3));
        assert_eq!((found.bytes, found.next), (100, Some(ms(107))));
    }

    /// A retransmitted segment is judged by its last transmission, and can be found lost again.
    #[test]
    fn a_lost_retransmission_is_detected_when_a_later_segment_arrives() {
        let mut flight = ten();
        flight.on_sacked(ms(101), 101, 201);
        assert_eq!(find_lost(&mut flight, ms(101), Time::ZERO).bytes, 100);
        flight.on_sent(ms(101), span(0));
        assert_eq!((flight.lost_bytes(), flight.next_to_repeat(1)), (0, None));
        flight.on_sacked(ms(109), 201, 1001);
        assert_eq!(find_lost(&mut flight, ms(109), Time::ZERO).bytes, 0, "all of these were sent before");
        flight.on_sent(ms(110), span(10));
        flight.on_sacked(ms(210), 1001, 1101);
        let found = find_lost(&mut flight, ms(210), Time::ZERO);
        assert_eq!((found.bytes, found.again_at), (100, Some(ms(101))));
    }

    /// RFC 8985, section 6.2, step 2: an acknowledgement that may be for the first transmission says nothing about the
    /// second. Linux looks at the time only.
    #[test]
    fn an_ambiguous_acknowledgement_is_ignored() {
        for (least, echo, is_taken, is_taken_by_linux) in [
            (50, None, false, false),
            (5, None, true, true),
            (50, Some(99), false, false),
            (5, Some(99), false, true),
            (5, Some(101), true, true),
        ] {
            for (ignores_echoes, expected) in [(false, is_taken), (true, is_taken_by_linux)] {
                let mut flight = ten();
                flight.on_sent(ms(100), span(9));
                flight.recent = Recent { least_rtt: ms(least), echo, ignores_echoes, ..flight.recent };
                flight.on_sacked(ms(110), 901, 1001);
                assert_eq!(find_lost(&mut flight, ms(300), Time::ZERO).bytes > 0, expected, "{least} {echo:?}");
            }
        }
    }

    #[test]
    fn only_a_late_original_indicates_reordering() {
        let mut flight = ten();
        flight.on_sacked(ms(100), 101, 201);
        assert!(!flight.recent.has_reordering);
        flight.begin_acknowledgement();
        let mut again = flight.clone();
        again.on_sent(ms(101), span(0));
        again.on_acknowledged(ms(200), 201);
        assert!(!again.recent.has_reordering, "it was sent twice");
        flight.on_acknowledged(ms(101), 201);
        assert!(flight.recent.has_reordering);
    }

    /// The first duplicate of a receiver with delayed acknowledgements: it acknowledges the segment that waited, and reports the
    /// one after the hole.
    #[test]
    fn segments_delivered_by_one_acknowledgement_are_not_reordered() {
        let mut flight = ten();
        flight.begin_acknowledgement();
        flight.on_sacked(ms(100), 201, 301);
        flight.on_acknowledged(ms(100), 101);
        assert!(!flight.recent.has_reordering);
        flight.begin_acknowledgement();
        flight.on_acknowledged(ms(101), 301);
        assert!(flight.recent.has_reordering, "the hole fills without a retransmission");
    }

    /// Data that a timeout finds lost goes first, although more was found lost before and could not be sent again yet.
    #[test]
    fn the_lowest_lost_segment_is_repeated_first() {
        let mut flight = ten();
        flight.on_sacked(ms(109), 901, 1001);
        assert_eq!(find_lost(&mut flight, ms(109), Time::ZERO).bytes, 900);
        for number in 0..2 {
            assert_eq!(flight.next_to_repeat(1), Some(span(number)));
            flight.on_sent(ms(110), span(number));
        }
        expire(&mut flight, ms(1000));
        for number in 0..9 {
            assert_eq!(
                flight.next_to_repeat(1),
                Some(span(number)),
                "both repetitions are overdue, the first of all goes first"
            );
            flight.on_sent(ms(1000), span(number));
        }
        assert_eq!(flight.next_to_repeat(1), None);
    }

    #[test]
    fn reneged_data_is_retransmitted() {
        let mut flight = ten();
        flight.on_sacked(ms(100), 1, 1001);
        expire(&mut flight, ms(1000));
        assert_eq!((flight.sacked(), flight.lost_bytes()), ((0, 0), 1000));
    }

    /// RFC 8985, section 6.3: on a timeout the first segment is lost, and the others only if a round trip has passed.
    #[test]
    fn a_timeout_spares_recent_segments_and_can_be_undone() {
        let mut flight = ten();
        flight.on_acknowledged(ms(100), 101);
        flight.on_sent(ms(990), span(10));
        expire(&mut flight, ms(1000));
        assert_eq!(flight.lost_bytes(), 900);
        flight.unmark_lost(false);
        assert_eq!((flight.lost_bytes(), flight.next_to_repeat(101)), (0, None));
        flight.on_sacked(ms(1090), 1001, 1101);
        assert_eq!(find_lost(&mut flight, ms(1090), Time::ZERO).bytes, 900, "they are candidates again");
    }

    proptest! {
        /// The counts agree with the segments after any sequence of sending, cutting again, reporting, acknowledging
        /// and losing.
        #[test]
        fn counts_agree_with_the_segments(operations in proptest::collection::vec((0_u8..6, 0_u64..30, 1_u32..250), 1..120)) {
            let mut flight = Flight::new(false);
            flight.keep_order();
            let (mut una, mut max) = (1, 1);
            for (now, (operation, place, len)) in (1..).map(ms).zip(operations) {
                let at = una + (max - una) * place / 30;
                match operation {
                    0 | 1 => {
                        flight.on_sent(now, Span { start: max, len });
                        max += u64::from(len);
                    }
                    // Cut again: segments that begin and end anywhere, possibly beyond the last one.
                    2 if at < max => {
                        flight.on_sent(now, Span { start: at, len });
                        max = max.max(at + u64::from(len));
                    }
                    3 => flight.on_sacked(now, at, max.min(at + u64::from(len))),
                    4 => {
                        una = at;
                        flight.on_acknowledged(now, una);
                    }
                    _ => {
                        if place % 7 == 0 {
                            expire(&mut flight, now);
                        }
                        find_lost(&mut flight, now, Time::ZERO);
                        if let Some(span) = flight.next_to_repeat(una).filter(|_| place % 2 == 0) {
                            flight.on_sent(now, span);
                        } else if place % 5 == 0 {
                            flight.unmark_lost(false);
                        }
                    }
                }
                let (mut sacked, mut segments, mut lost) = (0, 0, 0);
                for (index, sent) in flight.segments.iter().enumerate() {
                    let len = sent.end - flight.start_of(index);
                    prop_assert!(!(sent.is_sacked && sent.is_lost));
                    sacked += if sent.is_sacked { len } else { 0 };
                    segments += u32::from(sent.is_sacked);
                    lost += if sent.is_lost { len } else { 0 };
                }
                prop_assert_eq!((flight.sacked(), flight.lost_bytes()), ((sacked, segments), lost));
                let all = flight.segments.back().map_or(0, |last| last.end - flight.base);
                prop_assert_eq!(flight.in_flight(), all - sacked - lost);
                let has_lost = flight.next_to_repeat(una).is_some();
                prop_assert_eq!(has_lost, lost > 0, "every lost segment waits to be sent again");
                let last = flight.segments.back().map_or(max, |last| last.end);
                prop_assert_eq!(last, max);
            }
        }
    }
}
