//! The sent data that is not acknowledged.

use std::collections::{BTreeMap, VecDeque};

use crate::origin::instants;
use crate::payload::Payload;

use super::super::rate::Outcomes;

/// A piece of the stream that is sent as one segment.
#[derive(Clone, Debug)]
pub(super) struct Piece<D> {
    pub(super) start: u64,
    pub(super) payload: D,
    /// Whether the stream ends after it.
    pub(super) is_end: bool,
    state: State,
    /// When it was last sent, in ticks.
    sent: u64,
    /// If this is after its end, all data from this piece up to here has arrived, so that repeated acknowledgements can skip it.
    arrived_to: u64,
    /// Unanswered transmissions since it was last declared lost, where they are counted.
    copies: u8,
}

instants! { Piece<D>: ; ticks: sent; fixed: start, payload, is_end, state, arrived_to, copies }

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Lost,
    Acknowledged,
}

impl<D: Payload> Piece<D> {
    /// Position after its last byte; the end of the stream takes one.
    pub(super) fn end(&self) -> u64 {
        self.start + self.payload.len() as u64 + u64::from(self.is_end)
    }
}

/// The progress that an acknowledgement made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewlyAcknowledged {
    /// Whether a piece arrived that was declared lost and not sent again: later ones had overtaken it.
    pub(super) was_overtaken: bool,
    /// When the newly acknowledged piece that had waited longest was sent, in ticks.
    pub(super) oldest: Option<u64>,
    /// Number of newly acknowledged pieces; `bytes` is their length.
    pub(super) pieces: u64,
    pub(super) bytes: u64,
    /// Pieces among them that were sent once since they were last declared lost.
    pub(super) once: u64,
}

impl NewlyAcknowledged {
    /// A piece has arrived.
    fn add<D: Payload>(&mut self, piece: &mut Piece<D>, in_flight: &mut u64, outcomes: &mut Outcomes) {
        if piece.state == State::Acknowledged {
            return;
        }
        let bytes = piece.payload.len() as u64;
        *in_flight -= bytes;
        self.pieces += 1;
        self.bytes += bytes;
        self.once += u64::from(piece.copies == 1);
        self.was_overtaken |= piece.state == State::Lost;
        self.oldest = Some(self.oldest.map_or(piece.sent, |oldest| oldest.min(piece.sent)));
        piece.state = State::Acknowledged;
        outcomes.add(piece.sent, 1.0);
    }

    /// The sum of two of them.
    pub(super) fn and(self, other: NewlyAcknowledged) -> NewlyAcknowledged {
        NewlyAcknowledged {
            was_overtaken: self.was_overtaken || other.was_overtaken,
            oldest: self.oldest.into_iter().chain(other.oldest).min(),
            pieces: self.pieces + other.pieces,
            bytes: self.bytes + other.bytes,
            once: self.once + other.once,
        }
    }
}

/// A transmission of a piece; valid only if the piece was not sent again since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Transmission {
    pub(super) sent: u64,
    pub(super) start: u64,
}

instants! { Transmission: ; ticks: sent; fixed: start }

/// A number of pieces and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) pieces: u64,
    pub(super) bytes: u64,
    /// Pieces among them that were sent once since they were last declared lost.
    pub(super) once: u64,
}

impl Amount {
    fn add(&mut self, (bytes, copies): (usize, u8)) {
        self.pieces += 1;
        self.bytes += bytes as u64;
        self.once += u64::from(copies == 1);
    }
}

/// Pieces by position, and by when they were sent last.
#[derive(Clone, Debug)]
pub(super) struct Flight<D> {
    /// Contiguous pieces from the first unacknowledged one on.
    pieces: VecDeque<Piece<D>>,
    /// Transmissions in the order of time; the first one is always valid.
    by_time: VecDeque<Transmission>,
    /// Number of them that are older than the timestamp that the peer has echoed; only a timeout can still declare them lost.
    judged: usize,
    /// Lost pieces in the order of detection, or of the stream after silence; the first one is always valid.
    lost: VecDeque<u64>,
    pub(super) bytes: u64,
    pub(super) outcomes: Outcomes,
}

instants! { Flight<D>: pieces, by_time, outcomes; fixed: judged, lost, bytes }

impl<D> Default for Flight<D> {
    fn default() -> Self {
        let (pieces, by_time, lost) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Flight { pieces, by_time, judged: 0, lost, bytes: 0, outcomes: Outcomes::default() }
    }
}

impl<D: Payload> Flight<D> {
    /// Adds a new piece that is sent, after all others.
    pub(super) fn push(&mut self, start: u64, payload: D, is_end: bool, now: u64) {
        self.bytes += payload.len() as u64;
        self.pieces.push_back(Piece {
            start,
            payload,
            is_end,
            state: State::Waiting,
            sent: now,
            arrived_to: 0,
            copies: 1,
        });
        self.by_time.push_back(Transmission { sent: now, start });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether something is missing, lost or not yet answered.
    pub(super) fn has_missing(&self) -> bool {
        !self.lost.is_empty() || !self.by_time.is_empty()
    }

    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The first piece, acknowledged or not.
    pub(super) fn front(&self) -> Option<&Piece<D>> {
        self.pieces.front()
    }

    /// When the piece was sent that has waited longest, in ticks.
    #[inline]
    pub(super) fn oldest(&self) -> Option<u64> {
        self.by_time.front().map(|transmission| transmission.sent)
    }

    /// Retransmits the lost piece that was detected first.
    pub(super) fn resend(&mut self, now: u64) -> Option<(u64, D, bool)> {
        let start = self.lost.pop_front()?;
        let again = self.send_again(start, now);
        self.tidy();
        again
    }

    /// Sends a copy of a piece, if it is still useful.
    pub(super) fn copy(&mut self, start: u64, now: u64) -> Option<(u64, D, bool)> {
        self.get(start).filter(|piece| piece.state == State::Waiting)?;
        let copy = self.send_again(start, now);
        self.tidy();
        copy
    }

    /// The first missing piece is retransmitted next, although it was sent a moment ago: in silence whichever probe arrives first brings
    /// what the receiver waits for. It does not count as another loss. `[C20]`
    pub(super) fn probe_with_first(&mut self) {
        let Some(index) = self.pieces.iter().position(|piece| piece.state != State::Acknowledged) else { return };
        let piece = &mut self.pieces[index];
        let start = piece.start;
        if piece.state == State::Waiting {
            piece.state = State::Lost;
        } else if self.lost.front() != Some(&start) {
            self.lost.retain(|&lost| lost != start);
        }
        if self.lost.front() != Some(&start) {
            self.lost.push_front(start);
        }
        self.tidy();
    }

    /// After silence, lost pieces are retransmitted in the order of the stream, which the receiver can deliver at once. In the order of
    /// detection, what was sent again during the silence would come last, and that is the first that the receiver lacks. `[C20]`
    pub(super) fn resend_in_order(&mut self) {
        self.lost.make_contiguous().sort_unstable();
        self.tidy();
    }

    /// Cuts the next piece to be retransmitted, so that its first part has at most `most_bytes` bytes.
    pub(super) fn cut_lost(&mut self, most_bytes: usize) {
        let Some(index) = self.lost.front().and_then(|&start| self.index(start)) else { return };
        let piece = &mut self.pieces[index];
        if piece.payload.len() <= most_bytes {
            return;
        }
        let first = piece.payload.split_to(most_bytes);
        let mut rest = piece.clone();
        rest.start += most_bytes as u64;
        piece.payload = first;
        piece.is_end = false;
        self.lost.insert(1, rest.start);
        self.pieces.insert(index + 1, rest);
    }

    /// Cuts pieces in flight that are longer than `most_bytes`. Each part counts as sent when the original was. Returns
    /// where new parts begin, by the start of the original.
    pub(super) fn cut_waiting(&mut self, most_bytes: usize) -> BTreeMap<u64, Vec<u64>> {
        let is_long = |piece: &Piece<D>| piece.state == State::Waiting && piece.payload.len() > most_bytes;
        if !self.pieces.iter().any(is_long) {
            return BTreeMap::new();
        }
        let mut parts = BTreeMap::<Transmission, Vec<u64>>::new();
        let mut pieces = VecDeque::with_capacity(self.pieces.len());
        for mut piece in std::mem::take(&mut self.pieces) {
            let (sent, start) = (piece.sent, piece.start);
            while is_long(&piece) {
                let first = piece.payload.split_to(most_bytes);
                pieces.push_back(Piece { payload: first, is_end: false, ..piece.clone() });
                piece.start += most_bytes as u64;
                parts.entry(Transmission { sent, start }).or_default().push(piece.start);
            }
            pieces.push_back(piece);
        }
        self.pieces = pieces;
        let by_start = parts.iter().map(|(whole, parts)| (whole.start, parts.clone())).collect();
        let judged = self.judged;
        for (index, whole) in std::mem::take(&mut self.by_time).into_iter().enumerate() {
            self.by_time.push_back(whole);
            for start in parts.remove(&whole).unwrap_or_default() {
                self.by_time.push_back(Transmission { start, ..whole });
                self.judged += usize::from(index < judged);
            }
        }
        by_start
    }

    fn send_again(&mut self, start: u64, now: u64) -> Option<(u64, D, bool)> {
        let index = self.index(start)?;
        let piece = &mut self.pieces[index];
        piece.copies = if piece.state == State::Waiting { piece.copies.saturating_add(1) } else { 1 };
        (piece.state, piece.sent) = (State::Waiting, now);
        self.by_time.push_back(Transmission { sent: now, start });
        Some((piece.start, piece.payload.clone(), piece.is_end))
    }

    /// Gives up all data before a position. Returns how many bytes of it are not known to have arrived and, if a piece extends
    /// past the position and begins there now, its old start.
    pub(super) fn abandon(&mut self, to: u64) -> (u64, Option<u64>) {
        let before = self.bytes;
        while let Some(piece) = self.pieces.front()
            && piece.end() <= to
        {
            self.bytes -= if piece.state == State::Acknowledged { 0 } else { piece.payload.len() as u64 };
            self.pieces.pop_front();
        }
        let cut = self.cut_front(to);
        self.tidy();
        (before - self.bytes, cut)
    }

    /// Makes the first piece begin at a position within it.
    fn cut_front(&mut self, to: u64) -> Option<u64> {
        let piece = self.pieces.front_mut().filter(|piece| piece.start < to)?;
        let (start, sent) = (piece.start, piece.sent);
        let old = (to - start).min(piece.payload.len() as u64);
        piece.payload.split_to(old as usize);
        piece.start = to;
        match piece.state {
            State::Acknowledged => return Some(start),
            State::Waiting => {
                let first = self.by_time.partition_point(|transmission| transmission.sent < sent);
                let mut same = self.by_time.range_mut(first..).take_while(|transmission| transmission.sent == sent);
                if let Some(transmission) = same.find(|transmission| transmission.start == start) {
                    transmission.start = to;
                }
            }
            State::Lost => {
                if let Some(lost) = self.lost.iter_mut().find(|lost| **lost == start) {
                    *lost = to;
                }
            }
        }
        self.bytes -= old;
        Some(start)
    }

    /// Acknowledges all data before `ack`.
    pub(super) fn acknowledge_up_to(&mut self, ack: u64) -> NewlyAcknowledged {
        let mut newly = NewlyAcknowledged::default();
        while let Some(piece) = self.pieces.front_mut()
            && piece.end() <= ack
        {
            newly.add(piece, &mut self.bytes, &mut self.outcomes);
            self.pieces.pop_front();
        }
        newly
    }

    /// Acknowledges a block.
    pub(super) fn acknowledge(&mut self, start: u64, end: u64) -> NewlyAcknowledged {
        let from = self.index(start).unwrap_or_else(|| self.pieces.partition_point(|piece| piece.start < start));
        let mut newly = NewlyAcknowledged::default();
        let mut index = from;
        let mut arrived_to = 0;
        while let Some(piece) = self.pieces.get_mut(index)
            && piece.end() <= end
        {
            newly.add(piece, &mut self.bytes, &mut self.outcomes);
            arrived_to = piece.end().max(piece.arrived_to);
            index = if piece.arrived_to > piece.end() {
                self.pieces.partition_point(|piece| piece.start < arrived_to)
            } else {
                index + 1
            };
        }
        if let Some(first) = self.pieces.get_mut(from).filter(|first| first.state == State::Acknowledged) {
            first.arrived_to = first.arrived_to.max(arrived_to);
        }
        newly
    }

    /// Drops acknowledged pieces up to the first unacknowledged one.
    pub(super) fn drop_acknowledged(&mut self) {
        while self.pieces.front().is_some_and(|piece| piece.state == State::Acknowledged) {
            self.pieces.pop_front();
        }
    }

    /// `[R3]` Declares pieces sent before an instant lost if they have not arrived, as far as the acknowledgement describes their
    /// positions. Returns the lost amount.
    pub(super) fn judge(&mut self, before: u64, is_described: impl Fn(u64) -> bool) -> Amount {
        let mut found = Amount::default();
        while let Some(&Transmission { sent, start }) = self.by_time.get(self.judged)
            && sent < before
        {
            self.judged += 1;
            if is_described(start)
                && let Some(lost) = self.lose(start, sent)
            {
                found.add(lost);
                self.outcomes.add(sent, 0.0);
            }
        }
        found
    }

    /// Declares unanswered pieces sent before an instant lost. Returns their number, and the amount that was sent no later than a
    /// segment that the peer has `echoed`: these were lost by the link and not in an outage.
    pub(super) fn expire(&mut self, before: u64, echoed: u64) -> (u64, Amount) {
        let (mut found, mut overtaken) = (0, Amount::default());
        while let Some(&Transmission { sent, start }) = self.by_time.front()
            && sent < before
        {
            self.pop_oldest();
            let Some(lost) = self.lose(start, sent) else { continue };
            found += 1;
            if sent <= echoed {
                overtaken.add(lost);
                self.outcomes.add(sent, 0.0);
            }
        }
        self.tidy();
        (found, overtaken)
    }

    /// Declares the oldest transmission lost; returns whether there was one.
    pub(super) fn expire_oldest(&mut self) -> bool {
        let Some(&Transmission { sent, start }) = self.by_time.front() else { return false };
        self.pop_oldest();
        let is_lost = self.lose(start, sent).is_some();
        self.tidy();
        is_lost
    }

    /// Drops invalid entries at the front of both queues.
    pub(super) fn tidy(&mut self) {
        while let Some(&Transmission { sent, start }) = self.by_time.front()
            && !self.get(start).is_some_and(|piece| piece.state == State::Waiting && piece.sent == sent)
        {
            self.pop_oldest();
        }
        while let Some(&start) = self.lost.front()
            && !self.get(start).is_some_and(|piece| piece.state == State::Lost)
        {
            self.lost.pop_front();
        }
    }

    fn pop_oldest(&mut self) {
        self.by_time.pop_front();
        self.judged = self.judged.saturating_sub(1);
    }

    /// Declares a transmission lost, unless the piece was sent again since or has arrived. Returns the piece's bytes and how many
    /// times it had been sent, if it is lost.
    fn lose(&mut self, start: u64, sent: u64) -> Option<(usize, u8)> {
        let index = self.index(start)?;
        let piece = &mut self.pieces[index];
        let is_lost = piece.state == State::Waiting && piece.sent == sent;
        if !is_lost {
            return None;
        }
        piece.state = State::Lost;
        self.lost.push_back(start);
        Some((piece.payload.len(), piece.copies))
    }

    /// Unanswered transmissions, in the order of time.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Transmission> + '_ {
        self.by_time.iter().copied().filter(|&transmission| self.copies(transmission).is_some())
    }

    /// How many transmissions of a piece are in flight, if this is the last of them.
    pub(super) fn copies(&self, transmission: Transmission) -> Option<usize> {
        let is_last = |piece: &&Piece<D>| piece.state == State::Waiting && piece.sent == transmission.sent;
        self.get(transmission.start).filter(is_last).map(|piece| usize::from(piece.copies))
    }

    /// Notes the loss of a transmission, if its piece is still missing. Returns the piece's last transmission and the number in
    /// flight without the lost one.
    pub(super) fn is_missing(&mut self, start: u64) -> Option<(Transmission, usize)> {
        let index = self.index(start)?;
        let piece = self.pieces.get_mut(index).filter(|piece| piece.state == State::Waiting && piece.copies > 1)?;
        piece.copies -= 1;
        Some((Transmission { sent: piece.sent, start }, usize::from(piece.copies)))
    }

    /// The unanswered data, in pieces of the length of this one.
    pub(super) fn pieces_like(&self, start: u64) -> f64 {
        let bytes = self.get(start).map_or(1, |piece| piece.payload.len().max(1));
        (self.bytes as f64 / bytes as f64).max(1.0)
    }

    fn get(&self, start: u64) -> Option<&Piece<D>> {
        self.index(start).map(|index| &self.pieces[index])
    }

    /// Most positions that are asked for are before the first piece, because they were acknowledged, or its own; and most pieces are of
    /// one length.
    fn index(&self, start: u64) -> Option<usize> {
        let first = self.pieces.front()?;
        if start <= first.start {
            return (start == first.start).then_some(0);
        }
        let likely = ((start - first.start) / (first.payload.len() as u64).max(1)) as usize;
        if self.pieces.get(likely).is_some_and(|piece| piece.start == start) {
            return Some(likely);
        }
        self.pieces.binary_search_by_key(&start, |piece| piece.start).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    fn three() -> Flight<Virtual> {
        let mut flight = Flight::default();
        for n in 0..3 {
            flight.push(100 * n, Virtual(100), n == 2, n);
        }
        flight
    }

    #[test]
    fn a_piece_overtaken_by_later_ones_is_lost() {
        let mut flight = three();
        assert!(!flight.acknowledge(200, 301).was_overtaken);
        assert_eq!(flight.judge(2, |_| true), Amount { pieces: 2, bytes: 200, once: 2 });
        assert_eq!(flight.resend(9), Some((0, Virtual(100), false)));
        assert_eq!(flight.resend(9), Some((100, Virtual(100), false)));
        assert_eq!((flight.resend(9), flight.bytes), (None, 200));
        flight.acknowledge_up_to(200);
        flight.drop_acknowledged();
        assert!(flight.is_empty(), "with what was acknowledged before");
        assert_eq!(flight.bytes, 0);
    }

    #[test]
    fn pieces_that_the_mack_does_not_mention_stay_in_flight() {
        let mut flight = three();
        assert_eq!(flight.judge(2, |start| start == 100).pieces, 1);
        assert_eq!(flight.judge(2, |_| true).pieces, 0, "the verdict is final");
        assert_eq!(flight.oldest(), Some(0));
        assert_eq!(flight.expire(2, 0), (1, Amount { pieces: 1, bytes: 100, once: 1 }), "a timeout finds the other");
        assert_eq!(flight.expire(3, 1), (1, Amount::default()), "perhaps by an outage");
        assert_eq!(flight.expire(100, 100).0, 0);
    }

    #[test]
    fn a_piece_that_was_lost_can_be_cut() {
        let mut flight = three();
        assert_eq!(flight.expire(100, 100).0, 3);
        flight.cut_lost(60);
        assert_eq!(flight.resend(9), Some((0, Virtual(60), false)));
        flight.cut_lost(60);
        assert_eq!(flight.resend(9), Some((60, Virtual(40), false)));
        flight.acknowledge(100, 200);
        flight.tidy();
        flight.cut_lost(30);
        assert_eq!(flight.resend(9), Some((200, Virtual(30), false)));
        assert_eq!(flight.resend(9), Some((230, Virtual(70), true)), "the end stays at the end");
    }

    #[test]
    fn pieces_under_way_can_be_cut() {
        let mut flight = three();
        assert_eq!(flight.judge(2, |start| start == 100).pieces, 1);
        flight.resend(7);
        let parts = BTreeMap::from([(0, vec![40, 80]), (100, vec![140, 180]), (200, vec![240, 280])]);
        assert_eq!(flight.cut_waiting(40), parts);
        assert!(flight.cut_waiting(40).is_empty(), "once is enough");
        assert_eq!(flight.bytes, 300);
        assert_eq!(flight.judge(2, |_| true).pieces, 0, "the verdict is final, for parts as well");
        assert_eq!(flight.expire(1, 9), (3, Amount { pieces: 3, bytes: 100, once: 3 }));
        flight.acknowledge(140, 301);
        assert_eq!(flight.copy(100, 8), Some((100, Virtual(40), false)));
        flight.tidy();
        assert_eq!(flight.expire(100, 0).0, 1);
        for (start, bytes) in [(0, 40), (40, 40), (80, 20), (100, 40)] {
            assert_eq!(flight.resend(9), Some((start, Virtual(bytes), false)));
        }
        flight.acknowledge_up_to(140);
        flight.drop_acknowledged();
        assert!(flight.is_empty());
    }

    #[test]
    fn abandoned_data_is_not_retransmitted() {
        let mut flight = three();
        flight.acknowledge(100, 200);
        assert_eq!(flight.judge(1, |_| true).pieces, 1);
        assert_eq!(flight.abandon(230), (130, Some(200)), "delivered data does not count");
        assert_eq!((flight.bytes, flight.has_lost(), flight.oldest()), (70, false, Some(2)));
        assert_eq!(flight.expire(3, 9), (1, Amount { pieces: 1, bytes: 70, once: 1 }));
        assert_eq!(flight.abandon(250), (20, Some(230)));
        assert_eq!(flight.resend(5), Some((250, Virtual(50), true)));
        assert_eq!(flight.abandon(300), (50, Some(250)), "the end remains");
        assert_eq!((flight.bytes, flight.expire(9, 0).0), (0, 1));
        assert_eq!(flight.resend(10), Some((300, Virtual(0), true)));
        flight.acknowledge_up_to(301);
        assert!(flight.is_empty());
    }

    #[test]
    fn blocks_that_grow_at_both_ends_are_acknowledged_once() {
        let mut flight = Flight::default();
        for n in 0..20 {
            flight.push(100 * n, Virtual(100), false, n);
        }
        for (start, end) in [(800, 1000), (800, 1200), (600, 1300), (800, 1400), (600, 1500), (1600, 1700), (600, 1800)]
        {
            flight.acknowledge(start, end);
            let arrived = |piece: &&Piece<Virtual>| piece.state == State::Acknowledged;
            let bytes = 100 * flight.pieces.iter().filter(arrived).count() as u64;
            assert_eq!(flight.bytes, 2000 - bytes);
            let is_all =
                flight.pieces.iter().filter(|piece| piece.start >= start && piece.end() <= end).all(|p| arrived(&p));
            assert!(is_all, "{start} to {end}");
        }
        assert_eq!(flight.bytes, 2000 - 1200);
        flight.acknowledge_up_to(600);
        flight.drop_acknowledged();
        assert_eq!((flight.bytes, flight.front().map(|piece| piece.start)), (200, Some(1800)));
    }

    #[test]
    fn a_piece_declared_lost_that_arrives_was_reordered() {
        let mut flight = three();
        assert_eq!(flight.judge(1, |_| true).pieces, 1);
        assert!(flight.acknowledge(0, 100).was_overtaken);
        flight.tidy();
        assert_eq!(flight.resend(5), None);
    }
}
