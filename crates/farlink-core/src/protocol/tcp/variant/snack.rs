//! Retransmission of data that the receiver reports missing (SNACK of SCPS-TP, CCSDS 714.0-B-2).

use std::collections::VecDeque;

use super::Reaction;
use super::reno::{enter_fast_recovery, inflate};
use super::scoreboard::Scoreboard;
use crate::protocol::tcp::config::TcpConfig;
use crate::protocol::tcp::congestion::{Congestion, Control};
use crate::protocol::tcp::segment::SnackReport;
use crate::protocol::tcp::span::Span;
use crate::protocol::tcp::window::{Phase, Window};
use crate::time::Time;

/// The round-trip time that is assumed until one was measured.
const UNKNOWN_ROUND_TRIP: Time = Time::from_secs(1);

/// A range of the stream that was sent again, and the time before which no report can take that into account.
#[derive(Clone, Copy, Debug)]
struct Resent {
    start: u64,
    end: u64,
    until: Time,
}

/// Retransmits at once what is reported missing, without waiting for duplicate acknowledgements, and again if it is still
/// reported missing a round trip later.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol::tcp) struct Snack {
    /// Data that the receiver has, or that was given up.
    board: Scoreboard,
    /// Ranges reported missing, to be sent again: disjoint, in the order of the reports.
    due: VecDeque<(u64, u64)>,
    /// Ranges that were sent again recently: disjoint, ascending.
    resent: Vec<Resent>,
    /// Whether the peer has sent a report. Until then, three duplicate acknowledgements mean a loss.
    has_reports: bool,
}

impl Reaction for Snack {
    fn new(_config: &TcpConfig) -> Self {
        Snack::default()
    }

    /// All data that is missing below received data was reported.
    fn lost_below(&self, window: &Window) -> u64 {
        self.board.lost_below(1, window.mss)
    }

    #[inline]
    fn on_acknowledged(&mut self, window: &mut Window, control: &mut Congestion, acked: u64) {
        window.dup_acks = 0;
        self.forget_below(window.una);
        if window.phase != Phase::Recovery {
            control.on_acknowledged(window, acked);
        } else if window.una >= window.recover {
            window.phase = Phase::Open;
            control.end_recovery(window);
        } else if !self.has_reports {
            // As NewReno (RFC 6582, section 3.2): a partial acknowledgement reveals the next loss.
            window.retransmit_first = true;
        }
        self.show(window);
    }

    fn on_duplicate(&mut self, window: &mut Window, control: &mut Congestion, _has_new_sack: bool) {
        if self.has_reports {
            return; // missing data is reported explicitly
        }
        if window.phase == Phase::Recovery {
            inflate(window);
        } else if window.is_loss_found() {
            enter_fast_recovery(window, control);
        }
    }

    /// Data that was given up counts as reported.
    fn on_sack_block(&mut self, window: &mut Window, left: u64, right: u64) -> bool {
        let is_plausible = left >= window.una && right <= window.max;
        let is_new = is_plausible && self.board.add(left, right, |_, _| {});
        self.cancel(left, right);
        self.show(window);
        is_new
    }

    fn on_timeout(&mut self, window: &mut Window, _control: &mut Congestion) {
        // All unreported data is sent again in order, and the segment at `una` even if it was reported, because otherwise nothing
        // would replace a lost acknowledgement.
        window.retransmit_first = self.board.gap_from(window.una).0 > window.una;
        self.due.clear();
        self.resent.clear();
        self.show(window);
    }

    #[inline]
    fn next_segment(&mut self, window: &mut Window) -> Option<Span> {
        if !window.retransmit_first
            && let Some(&(start, end)) = self.due.front()
        {
            let len = window.segment_len(start).min(u32::try_from(end - start).unwrap_or(u32::MAX));
            return Some(Span { start, len });
        }
        if !window.retransmit_first && window.phase == Phase::Loss && !self.board.is_empty() {
            self.board.skip_reported(window);
        }
        window.next_in_window()
    }

    #[inline]
    fn on_sent(&mut self, window: &mut Window, span: Span) {
        if span.start < window.max {
            let end = (span.start + u64::from(span.len)).min(window.max);
            self.cancel(span.start, end);
            let round_trip = window.rtt.latest.map_or(UNKNOWN_ROUND_TRIP, |latest| latest.max(window.rtt.smoothed));
            // A quarter is added for the variance of the round trip.
            self.note_resent(span.start, end, window.now + Time::from_ps(round_trip.as_ps() / 4 * 5));
            self.show(window);
        }
        window.on_sent(span);
    }
}

impl Snack {
    /// Handles a report in an acknowledgement of all data below `ack`; returns `true` if it reports newly arrived data.
    pub(in crate::protocol::tcp) fn on_report(
        &mut self,
        window: &mut Window,
        control: &mut Congestion,
        ack: u64,
        report: &SnackReport,
    ) -> bool {
        self.has_reports = true;
        let mss = u64::from(window.mss);
        let hole = ack + u64::from(report.offset) * mss;
        let base = hole + u64::from(report.size) * mss;
        let mut newest_loss = self.on_missing(window, hole, base);
        let mut has_new = false;
        for (from, to, is_there) in report.runs() {
            let (left, right) = (base + from * mss, base + to * mss);
            if !is_there {
                newest_loss = newest_loss.max(self.on_missing(window, left, right));
            } else if right > window.una && right <= window.max {
                has_new |= self.board.add(left.max(window.una), right, |left, right| window.on_reported(left, right));
            }
        }
        // Reacts once to all losses of a window.
        if newest_loss > window.recover && window.phase == Phase::Open && !window.is_corruption {
            window.flight_before_dup_acks = window.flight() - self.board.bytes_below(window.nxt).min(window.flight());
            window.begin_reaction(control);
            window.phase = Phase::Recovery;
            control.begin_recovery(window);
        }
        self.show(window);
        has_new
    }

    /// The receiver misses `left..right`. Returns the end of the part that is to be sent again now; 0 if there is none.
    fn on_missing(&mut self, window: &Window, left: u64, right: u64) -> u64 {
        // Data that the send pointer has not reached yet (again, after a timeout) will be sent anyway.
        let end = right.min(window.nxt).min(window.end);
        let (mut from, mut newest) = (left.max(window.una), 0);
        while from < end {
            // Data that arrived since or was given up: the report does not take it into account.
            let (gap, gap_end) = self.board.gap_from(from);
            if gap > from {
                from = gap;
                continue;
            }
            let end = gap_end.map_or(end, |gap_end| end.min(gap_end));
            let next = self.resent.partition_point(|resent| resent.end <= from);
            let mut until = end;
            if let Some(resent) = self.resent.get(next) {
                if resent.start <= from && window.now < resent.until {
                    from = resent.end;
                    continue;
                }
                until = if resent.start <= from { end.min(resent.end) } else { end.min(resent.start) };
            }
            self.forget_resent(from, until);
            newest = newest.max(self.put_due(from, until));
            from = until;
        }
        newest
    }

    /// Appends the parts of a range that are not due yet to those that are. Returns its end; 0 if there is none.
    fn put_due(&mut self, mut from: u64, until: u64) -> u64 {
        let mut newest = 0;
        while from < until {
            let covering = self.due.iter().find(|due| due.0 <= from && from < due.1);
            if let Some(&(_, end)) = covering {
                from = end;
                continue;
            }
            let end = self.due.iter().map(|due| due.0).filter(|&start| start > from).fold(until, u64::min);
            if let Some(last) = self.due.back_mut().filter(|last| last.1 == from) {
                last.1 = end;
            } else {
                self.due.push_back((from, end));
            }
            (newest, from) = (end, end);
        }
        newest
    }

    /// Removes a range from those that are due.
    fn cancel(&mut self, left: u64, right: u64) {
        for index in (0..self.due.len()).rev() {
            let (start, end) = self.due[index];
            if right <= start || end <= left {
                continue;
            }
            match (start < left, right < end) {
                (false, false) => drop(self.due.remove(index)),
                (false, true) => self.due[index].0 = right,
                (true, false) => self.due[index].1 = left,
                (true, true) => {
                    self.due[index].1 = left;
                    self.due.insert(index + 1, (right, end));
                }
            }
        }
    }

    /// A copy of a segment is sent without a loss; reports that cannot take it into account yet are ignored.
    pub(in crate::protocol::tcp) fn on_copy(&mut self, now: Time, window: &Window, span: Span) {
        if window.rtt.least != Time::NEVER {
            self.note_resent(span.start, span.start + u64::from(span.len), now + window.rtt.least);
        }
    }

    fn note_resent(&mut self, start: u64, end: u64, until: Time) {
        self.forget_resent(start, end);
        let at = self.resent.partition_point(|resent| resent.start < start);
        self.resent.insert(at, Resent { start, end, until });
    }

    /// Removes a range from those that were sent again.
    fn forget_resent(&mut self, left: u64, right: u64) {
        let first = self.resent.partition_point(|resent| resent.end <= left);
        let last = first + self.resent[first..].partition_point(|resent| resent.start < right);
        if first == last {
            return;
        }
        let before = Resent { end: left, ..self.resent[first] };
        let after = Resent { start: right, ..self.resent[last - 1] };
        self.resent.drain(first..last);
        for rest in [after, before] {
            if rest.start < rest.end {
                self.resent.insert(first, rest);
            }
        }
    }

    fn forget_below(&mut self, una: u64) {
        self.board.advance(una);
        if !self.due.is_empty() {
            self.cancel(0, una);
        }
        if self.resent.first().is_some_and(|resent| resent.start < una) {
            self.forget_resent(0, una);
        }
    }

    /// Updates the fields of the window that sending depends on.
    fn show(&self, window: &mut Window) {
        if self.has_reports || !self.board.is_empty() {
            // Received data is no longer in flight.
            window.extra = self.board.bytes_below(window.nxt);
        }
        window.has_holes_due = !self.due.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tcp::TcpConfig;
    use crate::units::Count;

    /// Twenty segments of 100 bytes are in flight from offset 1 on; a round trip takes 500 ms.
    fn under_way(is_corruption: bool) -> (Snack, Window, Congestion) {
        let config = TcpConfig {
            segment_bytes: Count::new(100.0).unwrap(),
            initial_window_segments: Count::new(20.0).unwrap(),
            ..TcpConfig::default()
        };
        let mut window = Window::new(&config, 1, 1 << 20, false);
        window.end = 100_001;
        window.rtt.latest = Some(Time::from_millis(500));
        window.is_corruption = is_corruption;
        let control = Congestion::new(&config);
        let mut snack = Snack::default();
        while let Some(span) = snack.next_segment(&mut window) {
            snack.on_sent(&mut window, span);
        }
        assert_eq!(window.nxt, 2001);
        (snack, window, control)
    }

    fn report(offset: u16, size: u16, bits: &[bool]) -> SnackReport {
        let mut report = SnackReport::new(offset, size);
        for (index, &bit) in bits.iter().enumerate() {
            report.set_bits(index, index + 1, bit);
        }
        report
    }

    /// All retransmissions that may be sent now.
    fn resent(snack: &mut Snack, window: &mut Window) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(span) = snack.next_segment(window).filter(|span| span.start < window.max) {
            snack.on_sent(window, span);
            all.push(span.start);
        }
        all
    }

    #[test]
    fn the_first_report_of_a_hole_causes_one_retransmission_per_round_trip() {
        let (mut snack, mut window, mut control) = under_way(true);
        // Segments 2 and 5 of the first seven are missing: a hole, and a bit vector after it.
        let said = report(1, 1, &[true, true, false, true]);
        window.now = Time::from_secs(1);
        assert!(snack.on_report(&mut window, &mut control, 1, &said));
        assert_eq!(resent(&mut snack, &mut window), [101, 401]);
        for (at_ms, expected) in [(1_100, &[][..]), (1_600, &[]), (1_700, &[101, 401])] {
            window.now = Time::from_millis(at_ms);
            assert!(!snack.on_report(&mut window, &mut control, 1, &said), "nothing new has arrived");
            assert_eq!(resent(&mut snack, &mut window), expected, "{at_ms} ms");
        }
    }

    #[test]
    fn zeros_after_the_last_one_bit_are_ignored() {
        let (mut snack, mut window, mut control) = under_way(true);
        snack.on_report(&mut window, &mut control, 1, &report(0, 1, &[true, false, false, false]));
        assert_eq!(resent(&mut snack, &mut window), [1]);
    }

    #[test]
    fn congestion_halves_the_window_once_and_corruption_does_not() {
        for (is_corruption, cwnd, phase) in [(false, 950.0, Phase::Recovery), (true, 2000.0, Phase::Open)] {
            let (mut snack, mut window, mut control) = under_way(is_corruption);
            snack.on_report(&mut window, &mut control, 1, &report(0, 1, &[true]));
            snack.on_report(&mut window, &mut control, 1, &report(0, 1, &[true, false, true]));
            assert_eq!((window.cwnd, window.phase), (cwnd, phase));
        }
    }

    #[test]
    fn delivered_data_is_not_in_flight() {
        let (mut snack, mut window, mut control) = under_way(true);
        snack.on_report(&mut window, &mut control, 1, &report(0, 1, &[true; 10]));
        assert_eq!(resent(&mut snack, &mut window), [1]);
        let mut new = 0;
        while let Some(span) = snack.next_segment(&mut window) {
            snack.on_sent(&mut window, span);
            new += 1;
        }
        assert_eq!(new, 10, "as many new segments as have left the network");
    }

    #[test]
    fn abandoned_segments_are_not_retransmitted() {
        let (mut snack, mut window, mut control) = under_way(true);
        snack.on_report(&mut window, &mut control, 1, &report(0, 3, &[true]));
        assert!(snack.on_sack_block(&mut window, 101, 201));
        assert_eq!(resent(&mut snack, &mut window), [1, 201]);
        window.now = Time::from_secs(9);
        snack.on_report(&mut window, &mut control, 1, &report(0, 3, &[true]));
        assert_eq!(resent(&mut snack, &mut window), [1, 201], "nor later");
    }

    #[test]
    fn without_reports_three_duplicates_mean_a_loss() {
        let (mut snack, mut window, mut control) = under_way(false);
        for _ in 0..3 {
            snack.on_duplicate(&mut window, &mut control, false);
        }
        assert_eq!(snack.next_segment(&mut window), Some(Span { start: 1, len: 100 }));
    }
}
