//! The receiving half: reorders the stream and keeps track of missing data.

use crate::payload::Payload;
use crate::protocol::parts::reorder::Reorder;

use super::config::StpConfig;
use super::pdu::{Pdu, Range, Report, unwrap};

/// Largest number of gaps that wait for USTATs; the next STAT lists all gaps.
const MOST_USTATS: usize = 16;

/// An answer to a POLL that is still to be sent, or the rest of one.
#[derive(Clone, Copy, Debug)]
struct Owed {
    poll: u32,
    clock: u32,
    /// Position from which on the answer is still to be sent.
    from: u64,
    to: u64,
}

/// Receiving state of one direction.
#[derive(Clone, Debug)]
pub(super) struct Receiver<D> {
    /// The reordered stream.
    pub(super) stream: Reorder<D>,
    /// Position after all data that is known to have been sent, VR(H). Missing data before it was reported, or will be.
    highest: u64,
    buffer_bytes: u64,
    has_ustat: bool,
    stat_ranges: usize,
    owed: Option<Owed>,
    /// Gaps to be reported with USTATs.
    ustats: Vec<(u64, u64)>,
    /// Where the peer's stream ends.
    end: Option<u64>,
    is_finished: bool,
}

impl<D: Payload> Receiver<D> {
    pub(super) fn new(config: &StpConfig) -> Self {
        Receiver {
            stream: Reorder::default(),
            highest: 0,
            buffer_bytes: config.buffer_bytes(),
            has_ustat: config.ustat,
            stat_ranges: usize::try_from(config.stat_ranges.whole()).unwrap_or(usize::MAX),
            owed: None,
            ustats: Vec::new(),
            end: None,
            is_finished: false,
        }
    }

    /// Bytes that the peer may send beyond the next one in order.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.stream.unread_bytes)
    }

    /// Takes data.
    #[inline]
    pub(super) fn on_data(&mut self, position: u32, payload: &D) {
        let start = unwrap(position, self.stream.next);
        let len = payload.len() as u64;
        if start == self.stream.next && !self.stream.has_gaps() && len <= self.window() {
            self.stream.deliver(payload.clone());
            self.highest = self.highest.max(self.stream.next);
        } else {
            self.on_data_out_of_order(start, payload);
        }
    }

    #[cold]
    fn on_data_out_of_order(&mut self, start: u64, payload: &D) {
        let end = start.wrapping_add(payload.len() as u64);
        let is_beyond = (start as i64) < 0 || end > self.stream.next + self.window();
        if is_beyond || end <= self.stream.next {
            return;
        }
        if start > self.highest && self.has_ustat && self.ustats.len() < MOST_USTATS {
            self.ustats.push((self.highest, start));
        }
        self.highest = self.highest.max(end);
        self.stream.put(start, payload.clone());
    }

    /// Takes a POLL and schedules an answer.
    pub(super) fn on_poll(&mut self, pdu: &Pdu<D>) {
        let sent = unwrap(pdu.position, self.stream.next);
        let is_sensible = (sent as i64) >= 0 && sent <= self.stream.next + self.buffer_bytes;
        if !is_sensible {
            return;
        }
        // Gaps that the answer lists need no USTAT any more.
        self.highest = self.highest.max(sent);
        self.ustats.retain(|gap| gap.1 > sent);
        self.owed = Some(Owed { poll: pdu.poll, clock: pdu.clock, from: self.stream.next, to: sent });
    }

    /// Takes the end of the peer's stream; returns `false` if that position is impossible.
    pub(super) fn on_end(&mut self, position: u32) -> bool {
        let end = unwrap(position, self.stream.next);
        let is_sensible = (end as i64) >= 0
            && self.end.map_or(end >= self.highest && end <= self.highest + self.buffer_bytes, |known| known == end);
        if is_sensible {
            self.end = Some(end);
        }
        is_sensible
    }

    /// Whether the stream has just become complete; returns `true` only once.
    #[inline]
    pub(super) fn has_just_finished(&mut self) -> bool {
        let is_now = !self.is_finished && self.end == Some(self.stream.next);
        self.is_finished |= is_now;
        is_now
    }

    /// Whether the whole stream is complete.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The next STAT to be sent: the number and clock of its POLL, and the missing ranges.
    pub(super) fn next_stat(&mut self) -> Option<(u32, u32, Report)> {
        let owed = self.owed.take()?;
        let from = owed.from.max(self.stream.next);
        if from >= owed.to {
            return Some((owed.poll, owed.clock, Report::default()));
        }
        let (missing, to) = self.missing(from, owed.to);
        if to < owed.to {
            self.owed = Some(Owed { from: to, ..owed });
        }
        let covers = Range { from: from as u32, to: to as u32 };
        Some((owed.poll, owed.clock, Report { covers, missing }))
    }

    /// The next gap to report with a USTAT.
    #[inline]
    pub(super) fn next_ustat(&mut self) -> Option<Report> {
        if self.ustats.is_empty() {
            return None;
        }
        let (from, to) = self.ustats.remove(0);
        let gap = Range { from: from as u32, to: to as u32 };
        Some(Report { covers: gap, missing: vec![gap] })
    }

    /// The missing ranges between `from` and `to`, as many as a STAT holds, and the position up to which the list is complete.
    fn missing(&self, from: u64, to: u64) -> (Vec<Range>, u64) {
        let mut missing = Vec::new();
        let mut at = from;
        for (start, end) in self.stream.pieces().chain([(to, to)]) {
            let gap_end = start.min(to);
            if gap_end > at {
                if missing.len() == self.stat_ranges {
                    return (missing, at);
                }
                missing.push(Range { from: at as u32, to: gap_end as u32 });
            }
            at = at.max(end);
            if at >= to {
                break;
            }
        }
        (missing, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use crate::units::Count;

    fn receiver(config: StpConfig) -> Receiver<Virtual> {
        let count = |n| Some(Count::new(n).unwrap());
        Receiver::new(&StpConfig {
            receive_window_segments: count(10.0),
            segment_bytes: Count::new(100.0).unwrap(),
            ..config
        })
    }

    fn poll(number: u32, position: u32) -> Pdu<Virtual> {
        Pdu { poll: number, position, clock: 7, ..Pdu::default() }
    }

    fn ranges(report: &Report) -> Vec<(u32, u32)> {
        report.missing.iter().map(|range| (range.from, range.to)).collect()
    }

    #[test]
    fn a_stat_lists_every_missing_packet_up_to_the_last_one_sent() {
        let mut rx = receiver(StpConfig::default());
        for start in [0, 200, 300, 500] {
            rx.on_data(start, &Virtual(100));
        }
        rx.on_poll(&poll(3, 800));
        let (number, clock, report) = rx.next_stat().unwrap();
        assert_eq!((number, clock, report.covers), (3, 7, Range { from: 100, to: 800 }));
        assert_eq!(ranges(&report), [(100, 200), (400, 500), (600, 800)]);
        assert!(rx.next_stat().is_none(), "one POLL, one answer");
    }

    #[test]
    fn without_a_gap_a_stat_lists_nothing() {
        let mut rx = receiver(StpConfig::default());
        rx.on_data(0, &Virtual(100));
        rx.on_poll(&poll(1, 100));
        assert!(rx.next_stat().unwrap().2.is_empty());
    }

    #[test]
    fn a_long_list_is_split_into_parts_that_cover_every_packet_once() {
        let mut rx = receiver(StpConfig { stat_ranges: Count::new(2.0).unwrap(), ..StpConfig::default() });
        for start in [100, 300, 500, 700] {
            rx.on_data(start, &Virtual(100));
        }
        rx.on_poll(&poll(1, 900));
        let parts: Vec<Report> = std::iter::from_fn(|| rx.next_stat().map(|stat| stat.2)).collect();
        assert_eq!(
            parts.iter().map(|part| (part.covers.from, part.covers.to)).collect::<Vec<_>>(),
            [(0, 400), (400, 800), (800, 900)]
        );
        assert_eq!(
            parts.iter().flat_map(ranges).collect::<Vec<_>>(),
            [(0, 100), (200, 300), (400, 500), (600, 700), (800, 900)]
        );
    }

    #[test]
    fn a_gap_is_reported_by_one_ustat() {
        let mut rx = receiver(StpConfig::default());
        rx.on_data(0, &Virtual(100));
        rx.on_data(300, &Virtual(100));
        rx.on_data(300, &Virtual(100));
        rx.on_data(400, &Virtual(100));
        assert_eq!(ranges(&rx.next_ustat().unwrap()), [(100, 300)]);
        assert!(rx.next_ustat().is_none());

        let mut silent = receiver(StpConfig { ustat: false, ..StpConfig::default() });
        silent.on_data(300, &Virtual(100));
        assert!(silent.next_ustat().is_none());
    }

    #[test]
    fn a_gap_reported_by_a_stat_needs_no_ustat() {
        let mut rx = receiver(StpConfig::default());
        rx.on_poll(&poll(1, 200));
        rx.on_data(200, &Virtual(100));
        assert!(rx.next_ustat().is_none());
        rx.on_data(400, &Virtual(100));
        rx.on_poll(&poll(2, 500));
        assert!(rx.next_ustat().is_none(), "the STAT is sent first and reports the same");
    }

    #[test]
    fn packets_beyond_the_window_are_dropped() {
        let mut rx = receiver(StpConfig::default());
        rx.on_data(1000, &Virtual(1));
        rx.on_data(0, &Virtual(1000));
        rx.on_data(1000, &Virtual(1));
        assert_eq!((rx.stream.next, rx.window()), (1000, 0));
        assert!(rx.next_ustat().is_none());
        assert_eq!(rx.stream.read(), Some(Virtual(1000)));
        rx.on_data(1000, &Virtual(1));
        assert_eq!(rx.stream.next, 1001);
    }

    #[test]
    fn the_end_waits_for_missing_data() {
        let mut rx = receiver(StpConfig::default());
        rx.on_data(100, &Virtual(100));
        assert!(!rx.on_end(150), "an end before delivered data is refused");
        assert!(rx.on_end(200) && !rx.has_just_finished());
        assert!(!rx.on_end(300) && rx.on_end(200), "a second, different end is refused");
        rx.on_data(0, &Virtual(100));
        assert!(rx.has_just_finished() && !rx.has_just_finished() && rx.is_finished());
    }
}
