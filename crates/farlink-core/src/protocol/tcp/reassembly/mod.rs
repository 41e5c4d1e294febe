//! The receiving half: orders segments, reports missing data, and decides when to acknowledge.

mod ack_delay;
#[cfg(feature = "trains")]
mod trains;

use std::collections::VecDeque;

use crate::payload::Payload;
use crate::time::Time;

use crate::protocol::parts::reorder::Reorder;

pub(super) use ack_delay::AckDelay;

/// Number of recently changed blocks that are kept for the SACK option (RFC 2018, section 4).
const RECENT: usize = 4;

/// Reassembly and acknowledgement policy of one direction. Offsets count the peer's stream from its SYN.
#[derive(Clone, Debug)]
pub(super) struct Receiver<D> {
    /// The stream in order.
    pub(super) stream: Reorder<D>,
    /// The acknowledgement number of the latest acknowledgement (Last.ACK.sent of RFC 7323).
    pub(super) last_ack_sent: u64,
    /// Position of the peer's FIN if it arrived before data that is missing.
    early_fin: Option<u64>,
    /// When a delayed acknowledgement is due; `Time::NEVER` if none is.
    pub(super) ack_deadline: Time,
    /// Whether an acknowledgement is due now.
    pub(super) ack_now: bool,
    /// In-order segments since the last acknowledgement.
    unacknowledged: u16,
    pub(super) ack_every: u16,
    pub(super) ack_delay: AckDelay,
    /// Offsets inside the blocks that changed last, latest first.
    recent: [u64; RECENT],
    reports_duplicates: bool,
    /// Data that arrived a second time, to be reported with the next acknowledgement (RFC 2883).
    pub(super) duplicate: Option<(u64, u64)>,
    /// Largest amount of data buffered for the application.
    buffer_bytes: u64,
    /// End of the latest advertised window.
    advertised_end: u64,
    /// Whether holes are reported by SNACK: a new hole is acknowledged at once, but not every segment after it.
    pub(super) names_holes: bool,
    /// Whether data is expected to arrive repeatedly (several copies of each segment), so that it is not acknowledged at once.
    pub(super) expects_repeats: bool,
    /// Offset of the most recently found hole, until it is reported.
    pub(super) newest_hole: Option<u64>,
    /// How long a hole is waited for; without limit if `None`.
    pub(super) hold: Option<Time>,
    /// End of each hole and when it was found, ascending; kept only if there is such a limit.
    holes: VecDeque<(u64, Time)>,
}

impl<D: Payload> Receiver<D> {
    pub(super) fn new(ack_every: u16, ack_delay: AckDelay, buffer_bytes: u64, reports_duplicates: bool) -> Self {
        Receiver {
            stream: Reorder::default(),
            last_ack_sent: 0,
            early_fin: None,
            ack_deadline: Time::NEVER,
            ack_now: false,
            unacknowledged: 0,
            ack_every,
            ack_delay,
            recent: [0; RECENT],
            reports_duplicates,
            duplicate: None,
            buffer_bytes,
            advertised_end: buffer_bytes,
            names_holes: false,
            expects_repeats: false,
            newest_hole: None,
            hold: None,
            holes: VecDeque::new(),
        }
    }

    /// Whether an acknowledgement has more content than the next expected offset.
    #[inline(always)]
    pub(super) fn has_report(&self) -> bool {
        self.stream.has_gaps() || self.duplicate.is_some()
    }

    /// Bytes that the peer may send beyond `next`.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.stream.unread_bytes)
    }

    /// Takes the payload of a segment that starts at `start`.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time, start: u64, payload: &D) {
        let len = payload.len() as u64;
        if start == self.stream.next && !self.stream.has_gaps() && len <= self.window() {
            self.stream.deliver(payload.clone());
            //= https://www.rfc-editor.org/rfc/rfc5681#section-4.2
            //# an ACK SHOULD be generated for at least every second full-sized segment, and MUST be generated
            //# within 500 ms of the arrival of the first unacknowledged packet.
            // A driver may deliver any number of segments before it polls.
            self.count_segment(now);
        } else {
            self.on_data_out_of_order(now, start, payload.clone());
        }
    }

    /// Counts a segment whose acknowledgement may be delayed.
    #[inline(always)]
    fn count_segment(&mut self, now: Time) {
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        if self.unacknowledged >= self.ack_every {
            self.ack_now = true;
        } else if self.ack_deadline == Time::NEVER {
            self.ack_deadline = now + self.ack_delay.at(self.stream.next);
        }
    }

    #[cold]
    fn on_data_out_of_order(&mut self, now: Time, start: u64, payload: D) {
        //= https://www.rfc-editor.org/rfc/rfc5681#section-4.2
        //# Out-of-order data segments SHOULD be acknowledged immediately
        //# [...] the receiver SHOULD send an immediate ACK when it receives a data segment that fills in all or part
        //# of a gap in the sequence space.
        let end = start + payload.len() as u64;
        if self.reports_duplicates {
            self.note_duplicate(start, end);
        }
        let next = self.stream.next;
        if end <= next || end > next + self.window() {
            // An old duplicate, or data beyond the window.
            if self.expects_repeats && end <= next {
                self.ack_deadline = self.ack_deadline.min(now + self.ack_delay.at(next));
            } else {
                self.ack_now = true;
            }
            return;
        }
        let highest = self.stream.early_end().max(next);
        let is_early = self.stream.put(start, payload);
        if is_early {
            self.remember(start);
            self.note_hole(now, highest, start);
        }
        if self.names_holes && self.stream.next == next && start <= highest {
            self.count_segment(now);
        } else {
            self.ack_now = true;
        }
    }

    /// Notes a hole if data arrives at `start` while all earlier arrivals end at `highest`.
    fn note_hole(&mut self, now: Time, highest: u64, start: u64) {
        if start > highest {
            self.newest_hole = Some(highest);
            if self.hold.is_some() {
                self.holes.push_back((start, now));
            }
        }
    }

    /// When the wait for the first hole ends; `Time::NEVER` if there is no hole or no limit.
    pub(super) fn hold_deadline(&mut self) -> Time {
        let Some(hold) = self.hold else { return Time::NEVER };
        while self.holes.front().is_some_and(|hole| hole.0 <= self.stream.next) {
            self.holes.pop_front();
        }
        self.holes.front().map_or(Time::NEVER, |hole| hole.1 + hold)
    }

    /// Gives up the first hole, so that the data after it can be read. Returns its length.
    pub(super) fn skip_hole(&mut self) -> Option<u64> {
        let end = self.stream.early_start().or(self.early_fin).filter(|&end| end > self.stream.next)?;
        let len = end - self.stream.next;
        self.stream.skip_to(end);
        self.ack_now = true;
        Some(len)
    }

    /// Notes the part of a segment that has arrived before.
    fn note_duplicate(&mut self, start: u64, end: u64) {
        //= https://www.rfc-editor.org/rfc/rfc2883#section-4
        //# a D-SACK block is only used to report a duplicate contiguous sequence of data received by the receiver in the
        //# most recent packet.
        let known_end = end.min(self.stream.next);
        if start < known_end {
            self.duplicate = Some((start, known_end));
        } else if self.stream.block_around(start).is_some_and(|block| block.1 >= end) {
            self.duplicate = Some((start, end));
        }
    }

    /// Notes that the block around `start` changed last.
    fn remember(&mut self, start: u64) {
        let Some((left, right)) = self.stream.block_around(start) else { return };
        let is_same_block = |anchor: &u64| (left..right).contains(anchor);
        let keep = self.recent.iter().position(is_same_block).unwrap_or(RECENT - 1);
        self.recent.copy_within(0..keep, 1);
        self.recent[0] = start;
    }

    /// Blocks for the SACK option as offsets, each once, the most recently changed first.
    pub(super) fn sack_blocks(&self, most: usize, mut push: impl FnMut(u64, u64)) {
        let mut reported = [(0, 0); RECENT];
        let mut count = 0;
        if let Some((left, right)) = self.duplicate {
            //= https://www.rfc-editor.org/rfc/rfc2883#section-4
            //# If the D-SACK block reports a duplicate contiguous sequence from a (possibly larger) block of data in the
            //# receiver's data queue above the cumulative acknowledgement, then the second SACK block in that SACK option
            //# should specify that (possibly larger) block of data.
            push(left, right);
            if let Some(block) = self.stream.block_around(left) {
                push(block.0, block.1);
                reported[1] = block;
            }
            count = if reported[1] == (0, 0) { 1 } else { 2 };
        }
        //= https://www.rfc-editor.org/rfc/rfc2018#section-4
        //# The first SACK block (i.e., the one immediately following the kind and length fields in the option) MUST
        //# specify the contiguous block of data containing the segment which triggered this ACK
        for &anchor in &self.recent {
            let Some(block) = self.stream.block_around(anchor) else { continue };
            if count < most && !reported[..count].contains(&block) {
                reported[count] = block;
                count += 1;
                push(block.0, block.1);
            }
        }
    }

    /// An acknowledgement was sent.
    #[inline]
    pub(super) fn on_ack_sent(&mut self) {
        self.ack_now = false;
        self.duplicate = None;
        self.unacknowledged = 0;
        self.ack_deadline = Time::NEVER;
        self.advertised_end = self.stream.next + self.window();
        self.last_ack_sent = self.stream.next;
    }

    /// Handles a FIN at `offset`, after the last byte; another one may have been handled before.
    #[cold]
    pub(super) fn on_fin(&mut self, now: Time, offset: u64, is_repeated: bool) {
        self.ack_now = true;
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.10.7.4
        //# segments with higher beginning sequence numbers SHOULD be held for later processing
        if !is_repeated && (self.stream.next..=self.stream.next + self.window()).contains(&offset) {
            if self.early_fin.is_none() {
                self.note_hole(now, self.stream.early_end().max(self.stream.next), offset);
            }
            self.early_fin = Some(offset);
        }
    }

    /// Accepts the FIN if all data before it has arrived; returns whether it did.
    #[inline(always)]
    pub(super) fn takes_fin(&mut self) -> bool {
        let is_next = self.early_fin == Some(self.stream.next);
        if is_next {
            self.stream.next += 1;
            self.early_fin = None;
        }
        is_next
    }

    /// Checks whether a delayed acknowledgement is due.
    #[inline]
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.ack_deadline <= now {
            self.ack_now = true;
            self.ack_deadline = Time::NEVER;
        }
    }

    /// The next data in order. Announces when a nearly closed window reopens.
    #[inline]
    pub(super) fn read(&mut self) -> Option<D> {
        let data = self.stream.read()?;
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.8.6.2.2
        //# avoid advancing the right window edge in small increments
        let known_to_peer = self.advertised_end.saturating_sub(self.stream.next);
        if known_to_peer < self.buffer_bytes / 4 && self.window() >= known_to_peer + self.buffer_bytes / 2 {
            self.ack_now = true;
        }
        Some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use proptest::prelude::*;

    fn receiver<D: Payload>() -> Receiver<D> {
        Receiver::new(2, AckDelay::Fixed(Time::from_millis(200)), 1 << 20, true)
    }

    fn blocks<D: Payload>(receiver: &Receiver<D>) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        receiver.sack_blocks(4, |left, right| all.push((left, right)));
        all
    }

    #[test]
    fn acknowledges_every_second_segment_or_late() {
        let mut rx = receiver();
        rx.on_data(Time::ZERO, 0, &Virtual(100));
        assert!(!rx.ack_now && rx.ack_deadline == Time::from_millis(200));
        rx.on_data(Time::ZERO, 100, &Virtual(100));
        assert!(rx.ack_now);
        rx.on_ack_sent();
        rx.on_data(Time::from_secs(1), 200, &Virtual(100));
        rx.on_timeout(Time::from_millis(1200));
        assert!(rx.ack_now);
    }

    #[test]
    fn many_segments_may_arrive_before_an_acknowledgement_goes_out() {
        let mut rx = receiver();
        for i in 0..1000 {
            rx.on_data(Time::ZERO, i * 100, &Virtual(100));
        }
        assert!(rx.ack_now);
        assert_eq!(rx.stream.next, 100_000);
    }

    #[test]
    fn reports_the_latest_block_first() {
        let mut rx = receiver();
        for start in [100, 300, 500, 400, 700] {
            rx.on_data(Time::ZERO, start, &Virtual(100));
        }
        assert_eq!(blocks(&rx), [(700, 800), (300, 600), (100, 200)]);
        rx.on_data(Time::ZERO, 0, &Virtual(100));
        assert_eq!((rx.stream.next, blocks(&rx)), (200, vec![(700, 800), (300, 600)]));
    }

    #[test]
    fn unread_data_closes_the_window() {
        let mut rx: Receiver<Virtual> = Receiver::new(1, AckDelay::Fixed(Time::ZERO), 1000, true);
        rx.on_data(Time::ZERO, 0, &Virtual(1000));
        assert_eq!(rx.window(), 0);
        rx.on_ack_sent();
        rx.on_data(Time::ZERO, 1000, &Virtual(1));
        assert_eq!(rx.stream.next, 1000, "data beyond the window is dropped");
        assert_eq!(rx.read(), Some(Virtual(1000)));
        assert!(rx.ack_now, "a window update is due");
    }

    proptest! {
        /// Any segmentation, in any order, with overlaps and repetitions, gives the original stream.
        #[test]
        fn puts_any_shuffle_in_order(pieces in proptest::collection::vec((0u64..200, 1u64..40), 1..80)) {
            let stream: Vec<u8> = (0..240u32).map(|i| i as u8).collect();
            let mut real: Receiver<Vec<u8>> = receiver();
            let mut lengths: Receiver<Virtual> = receiver();
            let (mut got, mut got_len) = (Vec::new(), 0);
            let everything = (0..240).step_by(20).map(|s| (s, 20));
            for (start, len) in pieces.into_iter().chain(everything) {
                let bytes = stream[start as usize..(start + len) as usize].to_vec();
                real.on_data(Time::ZERO, start, &bytes);
                lengths.on_data(Time::ZERO, start, &Virtual(len as u32));
                prop_assert_eq!(real.stream.next, lengths.stream.next);
                prop_assert_eq!(blocks(&real), blocks(&lengths));
                while let Some(chunk) = real.read() { got.extend(chunk) }
                while let Some(chunk) = lengths.read() { got_len += chunk.len() }
            }
            prop_assert_eq!(&got, &stream);
            prop_assert_eq!(got_len, 240);
            prop_assert!(!real.stream.has_gaps());
        }
    }
}
