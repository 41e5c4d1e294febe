//! The sending half: keeps data until it is acknowledged, and the state of each packet.

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::protocol::parts::chunks::Chunks;

use super::config::StpConfig;
use super::congestion::Congestion;
use super::pdu::{Pdu, Range, Report, unwrap};

/// The state of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It was sent, and nothing has been reported about it since.
    InFlight,
    /// It is missing and waits for retransmission.
    Missing,
    /// It has arrived.
    Arrived,
}

/// A packet that was sent and is not covered by the cumulative acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Packet {
    start: u64,
    len: u32,
    /// Number of the latest POLL when it was last sent: the packet's N(PS) of SSCOP.
    mark: u32,
    fate: Fate,
    is_repeated: bool,
}

impl Packet {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// A range of the stream for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) len: u32,
    /// Index of its packet in `packets`, if it was sent before.
    again: Option<usize>,
}

/// The effect of a STAT or USTAT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportEffect {
    /// Whether it reported new missing data.
    pub(super) has_loss: bool,
    /// Whether the congestion window was reduced for that.
    pub(super) has_reacted: bool,
}

/// Sending state of one direction.
#[derive(Clone, Debug)]
pub(super) struct Sender<D> {
    /// First position that is not covered by the cumulative acknowledgement, VT(A).
    pub(super) una: u64,
    /// Position after all data that was sent, VT(S).
    pub(super) nxt: u64,
    /// Position after all data that was written.
    pub(super) written_end: u64,
    /// End of the window that the receiver offers, VT(MS).
    pub(super) peer_end: u64,
    /// Bytes in flight, as far as the sender knows.
    pub(super) in_flight: u64,
    pub(super) congestion: Congestion,
    pub(super) peak_in_buffer: u64,
    window_bytes: u64,
    mss: u32,
    /// Data from `una` on.
    buffer: Chunks<D>,
    /// Packets from `una` on, in order.
    packets: VecDeque<Packet>,
    /// Missing packets, by their start, in the order in which they were reported.
    again: VecDeque<u64>,
}

impl<D: Payload> Sender<D> {
    pub(super) fn new(config: &StpConfig) -> Self {
        Sender {
            una: 0,
            nxt: 0,
            written_end: 0,
            peer_end: config.buffer_bytes(),
            in_flight: 0,
            congestion: Congestion::new(config),
            peak_in_buffer: 0,
            window_bytes: config.window_bytes(),
            mss: u32::try_from(config.segment_bytes.whole()).unwrap_or(u32::MAX),
            buffer: Chunks::default(),
            packets: VecDeque::new(),
            again: VecDeque::new(),
        }
    }

    pub(super) fn write(&mut self, data: D) {
        self.written_end += data.len() as u64;
        self.buffer.push(data);
    }

    /// Whether data is unacknowledged.
    #[inline(always)]
    pub(super) fn is_outstanding(&self) -> bool {
        self.una < self.nxt
    }

    /// Number of unacknowledged packets.
    #[inline(always)]
    pub(super) fn packets_outstanding(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Whether nothing is left to be sent for the first time.
    #[inline(always)]
    pub(super) fn has_sent_all(&self) -> bool {
        self.nxt == self.written_end
    }

    /// The next packet to be sent; missing packets go first.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Span> {
        if !self.again.is_empty()
            && let Some(span) = self.next_missing()
        {
            let is_allowed = self.congestion.allows(self.in_flight + u64::from(span.len));
            self.congestion.is_limiting |= !is_allowed;
            return if is_allowed { Some(span) } else { self.first_if_missing() };
        }
        let len = (self.written_end - self.nxt).min(u64::from(self.mss)) as u32;
        let end = self.nxt + u64::from(len);
        if len == 0 || end > self.peer_end || end > self.una + self.window_bytes {
            return None;
        }
        if !self.congestion.allows(self.in_flight + u64::from(len)) {
            self.congestion.is_limiting = true;
            return None;
        }
        Some(Span { start: self.nxt, len, again: None })
    }

    /// The first packet that is still missing; it stays first until it is sent.
    #[cold]
    fn next_missing(&mut self) -> Option<Span> {
        while let Some(&start) = self.again.front() {
            let at = self.packets.partition_point(|packet| packet.start < start);
            if let Some(packet) = self.packets.get(at)
                && packet.start == start
                && packet.fate == Fate::Missing
            {
                return Some(Span { start, len: packet.len, again: Some(at) });
            }
            self.again.pop_front(); // it has arrived meanwhile
        }
        None
    }

    /// The first unacknowledged packet, if it is missing. It is sent however much is in flight.
    #[cold]
    fn first_if_missing(&self) -> Option<Span> {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-3.2
        //# The lost segment starting at SND.UNA MUST be retransmitted
        // Packets that a lost part of a STAT would have reported count as in flight until a later STAT reports them. If these
        // parts are lost each time, for example because they overflow a short queue, only this retransmission opens the window
        // again.
        let first = self.packets.front().filter(|packet| packet.fate == Fate::Missing)?;
        Some(Span { start: first.start, len: first.len, again: Some(0) })
    }

    /// Sends a packet after the POLL with this number; returns its data.
    #[inline(always)]
    pub(super) fn send(&mut self, span: Span, poll: u32) -> D {
        let payload = self.buffer.slice((span.start - self.una) as usize, span.len as usize);
        match span.again.and_then(|at| self.packets.get_mut(at)) {
            Some(packet) => {
                if let Some(at) = self.again.iter().position(|&start| start == span.start) {
                    self.again.remove(at);
                }
                *packet = Packet { mark: poll, fate: Fate::InFlight, is_repeated: true, ..*packet };
                self.in_flight += u64::from(packet.len);
            }
            None => {
                // A slice ends at the end of the chunk that was written in one call.
                let len = payload.len() as u32;
                let fate = Fate::InFlight;
                self.packets.push_back(Packet { start: span.start, len, mark: poll, fate, is_repeated: false });
                self.nxt += u64::from(len);
                self.in_flight += u64::from(len);
                self.peak_in_buffer = self.peak_in_buffer.max(self.nxt - self.una);
            }
        }
        payload
    }

    /// Takes a cumulative acknowledgement up to `position` and a window of `window` bytes. Returns the number of newly
    /// acknowledged bytes, or `None` if the position is impossible.
    #[inline]
    pub(super) fn on_position(&mut self, position: u32, window: u32) -> Option<u64> {
        let next = unwrap(position, self.una);
        if (next as i64) < 0 || next > self.nxt {
            return None; // acknowledges data that was never sent
        }
        self.peer_end = self.peer_end.max(next + u64::from(window));
        let mut arrived = 0;
        while let Some(packet) = self.packets.front()
            && packet.end() <= next
        {
            if packet.fate != Fate::Arrived {
                arrived += u64::from(packet.len);
            }
            if packet.fate == Fate::InFlight {
                self.in_flight -= u64::from(packet.len);
            }
            // Packets are acknowledged whole: our receiver never gives a position within one.
            self.buffer.advance(packet.len as usize);
            self.una = packet.end();
            self.packets.pop_front();
        }
        Some(arrived)
    }

    /// Takes the answer to a POLL: all data that it covers has either arrived or is listed as missing. `latest` is the number of
    /// the latest POLL.
    pub(super) fn on_stat(&mut self, stat: &Pdu<D>, latest: u32) -> Option<ReportEffect> {
        let in_flight = self.in_flight;
        let mut arrived = self.on_position(stat.position, stat.window)?;
        let mut effect = ReportEffect::default();
        if !stat.report.is_empty() {
            arrived += self.on_report(&stat.report, &mut effect, |packet| {
                // The rule of SSCOP: a STAT says nothing about packets that were sent after its POLL.
                (stat.poll.wrapping_sub(packet.mark) as i32) > 0
            });
        }
        self.conclude(arrived, effect, in_flight, latest);
        Some(effect)
    }

    /// Takes a USTAT, the report of a gap.
    pub(super) fn on_ustat(&mut self, ustat: &Pdu<D>, latest: u32) -> Option<ReportEffect> {
        let in_flight = self.in_flight;
        let mut arrived = self.on_position(ustat.position, ustat.window)?;
        let mut effect = ReportEffect::default();
        // A USTAT can only refer to first transmissions, because it was sent before any retransmission could arrive.
        arrived += self.on_report(&ustat.report, &mut effect, |packet| !packet.is_repeated);
        self.conclude(arrived, effect, in_flight, latest);
        Some(effect)
    }

    /// Applies a report: marks packets as missing if `is_known` says that the report can refer to them, and the others as
    /// arrived. Returns the number of newly arrived bytes.
    fn on_report(&mut self, report: &Report, effect: &mut ReportEffect, is_known: impl Fn(&Packet) -> bool) -> u64 {
        let una = self.una;
        let mut gaps = report.missing.iter().map(|gap| offsets(gap, una)).peekable();
        let (from, to) = offsets(&report.covers, una);
        let first = self.packets.partition_point(|packet| packet.start < from);
        let mut arrived = 0;
        for packet in self.packets.iter_mut().skip(first).take_while(|packet| packet.end() <= to) {
            while gaps.next_if(|gap| gap.1 <= packet.start).is_some() {}
            let is_missing = gaps.peek().is_some_and(|gap| gap.0 < packet.end());
            if packet.fate == Fate::Arrived || (is_missing && (packet.fate == Fate::Missing || !is_known(packet))) {
                continue;
            }
            if packet.fate == Fate::InFlight {
                self.in_flight -= u64::from(packet.len);
            }
            if is_missing {
                packet.fate = Fate::Missing;
                self.again.push_back(packet.start);
                effect.has_loss = true;
                effect.has_reacted |= self.congestion.calls_for_reduction(packet.mark);
            } else {
                packet.fate = Fate::Arrived;
                arrived += u64::from(packet.len);
            }
        }
        arrived
    }

    fn conclude(&mut self, arrived: u64, effect: ReportEffect, in_flight: u64, latest: u32) {
        if effect.has_reacted {
            self.congestion.on_loss(in_flight, latest);
        } else if !effect.has_loss {
            self.congestion.on_arrived(arrived);
        }
    }

    /// Whether the receiver's window has no room for the next packet.
    pub(super) fn is_shut_out(&self) -> bool {
        let len = (self.written_end - self.nxt).min(u64::from(self.mss));
        len > 0 && self.nxt + len > self.peer_end
    }
}

/// The 64-bit positions of a range; positions before the stream become 0.
fn offsets(range: &Range, near: u64) -> (u64, u64) {
    let offset = |position| {
        let offset = unwrap(position, near);
        if (offset as i64) < 0 { 0 } else { offset }
    };
    (offset(range.from), offset(range.to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use crate::protocol::stp::RateControl;
    use crate::units::Count;

    fn count(n: f64) -> Count {
        Count::new(n).unwrap()
    }

    /// A sender with rate control and packets of 100 bytes, with this many bytes written.
    fn sender(written: u32, config: StpConfig) -> Sender<Virtual> {
        let mut tx = Sender::new(&StpConfig { segment_bytes: count(100.0), ..config });
        tx.write(Virtual(written));
        tx
    }

    fn by_rate() -> StpConfig {
        StpConfig { congestion: RateControl::Rate, ..StpConfig::default() }
    }

    /// Sends all packets that may be sent after the POLL of this number; returns their starts.
    fn send(tx: &mut Sender<Virtual>, poll: u32) -> Vec<u64> {
        std::iter::from_fn(|| {
            let span = tx.next()?;
            assert_eq!(tx.send(span, poll), Virtual(span.len));
            Some(span.start)
        })
        .collect()
    }

    fn range((from, to): (u32, u32)) -> Range {
        Range { from, to }
    }

    fn stat(poll: u32, position: u32, covers_to: u32, missing: &[(u32, u32)]) -> Pdu<Virtual> {
        let missing = missing.iter().copied().map(range).collect();
        let report = Report { covers: range((position, covers_to)), missing };
        Pdu { poll, position, window: 1 << 20, report, ..Pdu::default() }
    }

    #[test]
    fn packets_missing_in_a_stat_are_retransmitted_before_new_data() {
        let mut tx = sender(600, StpConfig { max_window_segments: Some(count(5.0)), ..by_rate() });
        assert_eq!(send(&mut tx, 0), [0, 100, 200, 300, 400], "up to the window");
        let effect = tx.on_stat(&stat(1, 100, 500, &[(100, 200), (300, 400)]), 1).unwrap();
        assert!(effect.has_loss && !effect.has_reacted);
        assert_eq!((tx.una, tx.in_flight), (100, 0));
        assert_eq!(send(&mut tx, 1), [100, 300, 500]);
    }

    #[test]
    fn a_retransmission_is_repeated_only_if_a_later_poll_misses_it() {
        let mut tx = sender(300, by_rate());
        send(&mut tx, 0);
        let missing = [(0, 100)];
        assert!(tx.on_stat(&stat(1, 0, 300, &missing), 2).unwrap().has_loss);
        assert_eq!(send(&mut tx, 2), [0], "after POLL 2");
        for old in [1, 2] {
            assert!(!tx.on_stat(&stat(old, 0, 300, &missing), 2).unwrap().has_loss, "POLL {old} was sent before");
            assert!(send(&mut tx, 2).is_empty());
        }
        assert!(tx.on_stat(&stat(3, 0, 300, &missing), 3).unwrap().has_loss);
        assert_eq!(send(&mut tx, 3), [0]);
    }

    #[test]
    fn a_ustat_retransmits_only_packets_sent_once() {
        let mut tx = sender(300, by_rate());
        send(&mut tx, 0);
        let gap = stat(0, 0, 100, &[(0, 100)]);
        assert!(tx.on_ustat(&gap, 0).unwrap().has_loss);
        assert!(!tx.on_ustat(&gap, 0).unwrap().has_loss, "its retransmission is already pending");
        assert_eq!(send(&mut tx, 0), [0]);
        assert!(!tx.on_ustat(&gap, 0).unwrap().has_loss, "it was");
        assert!(tx.on_stat(&stat(1, 0, 300, &[(0, 100)]), 1).unwrap().has_loss, "a STAT knows better");
    }

    #[test]
    fn everything_is_kept_until_it_is_acknowledged_in_order() {
        let mut tx: Sender<Vec<u8>> = Sender::new(&StpConfig { segment_bytes: count(100.0), ..by_rate() });
        tx.write((0..=255).collect());
        while let Some(span) = tx.next() {
            tx.send(span, 0);
        }
        let report = Report { covers: range((0, 256)), missing: vec![range((0, 100))] };
        tx.on_stat(&Pdu { poll: 1, window: 1000, report, ..Pdu::default() }, 1).unwrap();
        let span = tx.next().unwrap();
        assert_eq!(tx.send(span, 1), (0..100).collect::<Vec<u8>>());
        assert_eq!((tx.una, tx.buffer.front_len()), (0, 256), "also data that has arrived after a gap");
        tx.on_stat(&Pdu { poll: 2, position: 256, window: 1000, ..Pdu::default() }, 2).unwrap();
        assert_eq!((tx.una, tx.buffer.front_len(), tx.in_flight), (256, 0, 0));
    }

    #[test]
    fn packets_that_have_arrived_late_are_not_retransmitted() {
        let mut tx = sender(300, by_rate());
        send(&mut tx, 0);
        tx.on_stat(&stat(1, 0, 300, &[(0, 100), (200, 300)]), 1).unwrap();
        tx.on_stat(&stat(2, 100, 300, &[(200, 300)]), 2).unwrap();
        assert_eq!(send(&mut tx, 2), [200]);
    }

    #[test]
    fn the_receivers_window_limits_only_new_data() {
        let mut tx = sender(1000, StpConfig { receive_window_segments: Some(count(3.0)), ..by_rate() });
        assert_eq!(send(&mut tx, 0), [0, 100, 200]);
        assert!(tx.is_shut_out());
        tx.on_ustat(&Pdu { window: 300, ..stat(0, 0, 100, &[(0, 100)]) }, 0).unwrap();
        assert_eq!(send(&mut tx, 0), [0]);
        tx.on_stat(&Pdu { window: 50, ..stat(1, 300, 300, &[]) }, 1).unwrap();
        assert!(send(&mut tx, 1).is_empty(), "no room for a packet");
        tx.on_stat(&Pdu { window: 250, ..stat(2, 300, 300, &[]) }, 2).unwrap();
        assert_eq!(send(&mut tx, 2), [300, 400]);
    }

    #[test]
    fn the_congestion_window_limits_the_data_in_flight() {
        let config = StpConfig { initial_window_segments: count(4.0), ..StpConfig::default() };
        let mut tx = sender(10_000, config);
        assert_eq!(send(&mut tx, 0).len(), 4);
        // One of four is lost: half of the data in flight may be, excluding the lost packet.
        assert!(tx.on_stat(&stat(1, 0, 400, &[(0, 100)]), 1).unwrap().has_reacted);
        assert_eq!((tx.congestion.cwnd, tx.in_flight), (200.0, 0));
        assert_eq!(send(&mut tx, 1), [0, 400]);
        // Both arrive: slow start ends, because the window has reached the threshold.
        tx.on_stat(&stat(2, 500, 500, &[]), 2).unwrap();
        assert_eq!(tx.congestion.cwnd, 200.0 + 100.0 * 500.0_f64.min(200.0) / 200.0);
    }

    /// STAT 1 was sent in parts, and all parts after the first were lost.
    #[test]
    fn the_first_missing_packet_is_retransmitted_regardless_of_the_window() {
        let config = StpConfig { initial_window_segments: count(8.0), ..StpConfig::default() };
        let mut tx = sender(10_000, config);
        assert_eq!(send(&mut tx, 0).len(), 8);
        let report = Report { covers: range((200, 300)), missing: vec![range((200, 300))] };
        tx.on_ustat(&Pdu { window: 1 << 20, report, ..Pdu::default() }, 0).unwrap();
        assert!(tx.on_stat(&stat(1, 0, 100, &[(0, 100)]), 1).unwrap().has_loss);
        assert!(tx.in_flight > tx.congestion.cwnd as u64, "{} of {}", tx.in_flight, tx.congestion.cwnd);
        assert_eq!(send(&mut tx, 1), [0], "and not 200, which was found before and waits for the window");
        assert!(!tx.on_stat(&stat(1, 0, 100, &[(0, 100)]), 1).unwrap().has_loss);
        assert!(send(&mut tx, 1).is_empty(), "once per POLL sent after it");
        tx.on_stat(&stat(2, 100, 800, &[(200, 300)]), 2).unwrap();
        assert_eq!(send(&mut tx, 2)[..2], [200, 800], "each waits in line once");
    }

    #[test]
    fn impossible_positions_are_ignored() {
        let mut tx = sender(300, by_rate());
        send(&mut tx, 0);
        assert_eq!(tx.on_stat(&stat(1, 400, 400, &[]), 1), None);
        assert_eq!(tx.on_ustat(&stat(1, u32::MAX, 100, &[(0, 100)]), 1), None);
        tx.on_stat(&stat(1, 0, u32::MAX, &[(u32::MAX - 5, 50), (80, 70), (90, 1 << 31)]), 1).unwrap();
        assert_eq!((tx.una, tx.nxt), (0, 300));
    }
}
