//! Packets from all paths, put together and in order: each comes once, and none waits for ever for one that is missing.

use std::collections::{BTreeMap, VecDeque};

use super::config::{CLASSES, ClassRules};
use super::packet::{Data, LANES, SEQUENCE_BITS, expand};
use crate::endpoint::Ecn;
use crate::payload::Payload;
use crate::time::Time;

/// Room that a packet or piece takes in memory besides its bytes, for the bound.
const ENTRY_BYTES: usize = 160;

/// Most ranges of numbers that an unordered lane remembers as delivered.
const MOST_DONE: usize = 1024;

/// Longest packet of the user: positions have 16 bits.
const MOST_BYTES: usize = u16::MAX as usize;

/// A packet of which something arrived.
#[derive(Clone, Debug)]
struct Arriving<D> {
    /// Pieces without overlap, by position.
    pieces: Vec<(u16, D)>,
    /// Length, once the last piece is here.
    length: Option<usize>,
    /// Bytes in `pieces`.
    bytes: usize,
    /// When its first piece arrived, and the last one.
    since: Time,
    last: Time,
    /// It was delivered out of order.
    is_done: bool,
    /// The severest mark of a datagram that brought a piece.
    ecn: Ecn,
}

impl<D: Payload> Arriving<D> {
    fn new(now: Time) -> Self {
        Arriving {
            pieces: Vec::new(),
            length: None,
            bytes: 0,
            since: now,
            last: now,
            is_done: false,
            ecn: Ecn::NotCapable,
        }
    }

    fn is_complete(&self) -> bool {
        self.length == Some(self.bytes)
    }

    /// Adds what is new of a piece; returns the number of new bytes.
    fn add(&mut self, offset: usize, is_last: bool, mut payload: D) -> usize {
        let mut start = offset;
        let end = offset + payload.len();
        if is_last && self.length.is_none() {
            self.length = Some(end);
        }
        let (before, mut added) = (self.bytes, Vec::new());
        for &(at, ref piece) in &self.pieces {
            let (left, right) = (usize::from(at), usize::from(at) + piece.len());
            if right <= start {
                continue;
            }
            if left >= end {
                break;
            }
            if left > start {
                added.push((start as u16, payload.split_to(left - start)));
            }
            payload.split_to((right.min(end)).saturating_sub(left.max(start)));
            start = right;
            if start >= end {
                break;
            }
        }
        if start < end {
            added.push((start as u16, payload));
        }
        self.bytes += added.iter().map(|(_, piece)| piece.len()).sum::<usize>();
        self.pieces.extend(added);
        self.pieces.sort_by_key(|&(at, _)| at);
        self.bytes - before
    }

    fn join(self) -> D {
        let mut pieces = self.pieces.into_iter();
        let Some((_, mut whole)) = pieces.next() else { return D::default() };
        let rest: Vec<D> = pieces.filter_map(|(_, piece)| whole.try_join(piece).err()).collect();
        if rest.is_empty() {
            return whole;
        }
        let length = whole.len() + rest.iter().map(D::len).sum::<usize>();
        D::with_content(length, || {
            let mut bytes = whole.as_bytes().to_vec();
            rest.iter().for_each(|piece| bytes.extend_from_slice(piece.as_bytes()));
            bytes
        })
    }
}

#[derive(Clone, Debug)]
struct Lane<D> {
    /// The first number that was not delivered and not given up.
    next: u64,
    /// Packets from `next` on.
    arriving: BTreeMap<u64, Arriving<D>>,
}

/// Counts of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Packets that were delivered.
    pub delivered: u64,
    /// Pieces that had been here before, or came after their packet was given up.
    pub duplicates: u64,
    /// Numbers that were given up.
    pub missing: u64,
    /// Packets that were dropped because memory was short.
    pub overflows: u64,
}

/// The receiver of all lanes.
#[derive(Clone, Debug)]
pub(super) struct Lanes<D> {
    lanes: Vec<Lane<D>>,
    rules: [ClassRules; CLASSES],
    most_bytes: usize,
    longest_wait: Time,
    hold: Time,
    /// Bytes in all `arriving`, with a share for each packet and piece.
    bytes: usize,
    ready: VecDeque<(D, Ecn)>,
    ready_bytes: usize,
    /// Not later than the first packet that is given up.
    due: Time,
    pub(super) counts: Delivery,
    #[cfg(test)]
    pub(super) filters_duplicates: bool,
}

impl<D: Payload> Lanes<D> {
    pub(super) fn new(rules: [ClassRules; CLASSES], most_bytes: usize, longest_wait: Time) -> Self {
        let lane = Lane { next: 0, arriving: BTreeMap::new() };
        Lanes {
            lanes: vec![lane; CLASSES * usize::from(LANES)],
            rules,
            most_bytes,
            longest_wait,
            hold: longest_wait.min(Time::from_secs(1)),
            bytes: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            due: Time::NEVER,
            counts: Delivery::default(),
            #[cfg(test)]
            filters_duplicates: true,
        }
    }

    /// Other rules and bounds.
    pub(super) fn set_rules(&mut self, rules: [ClassRules; CLASSES], most_bytes: usize, longest_wait: Time) {
        (self.rules, self.most_bytes, self.longest_wait) = (rules, most_bytes, longest_wait);
        self.set_hold(self.hold);
    }

    /// The sender has restarted: what is incomplete is lost, and numbers begin anew.
    pub(super) fn restart(&mut self) {
        for index in 0..self.lanes.len() {
            while self.skip_first_gap(index) {}
            self.lanes[index].next = 0;
        }
        self.due = Time::NEVER;
    }

    /// How long the sender advises to wait for what is missing.
    pub(super) fn set_hold(&mut self, hold: Time) {
        self.hold = hold.min(self.longest_wait);
        self.due = Time::ZERO;
    }

    /// The next packet to deliver, and the severest mark of what brought it.
    pub(super) fn pop(&mut self) -> Option<(D, Ecn)> {
        let (data, ecn) = self.ready.pop_front()?;
        self.ready_bytes -= data.len() + ENTRY_BYTES;
        Some((data, ecn))
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.ready_bytes
    }

    /// Takes a packet or piece of a datagram with this mark.
    pub(super) fn insert_marked(&mut self, now: Time, data: &Data<D>, ecn: Ecn) {
        let class = usize::from(data.class) % CLASSES;
        let index = class * usize::from(LANES) + usize::from(data.lane % LANES);
        let is_ordered = self.rules[class].is_ordered;
        let end = usize::from(data.offset) + data.payload.len();
        if end > MOST_BYTES || data.payload.is_empty() {
            return;
        }
        let lane = &mut self.lanes[index];
        let sequence = expand(data.sequence, SEQUENCE_BITS, lane.next);
        #[cfg(test)]
        if !self.filters_duplicates && (sequence < lane.next || lane.arriving.get(&sequence).is_some_and(|a| a.is_done))
        {
            self.deliver(data.payload.clone(), ecn);
            return;
        }
        if sequence < lane.next {
            self.counts.duplicates += 1;
            return;
        }
        if sequence == lane.next && data.is_whole() && !lane.arriving.contains_key(&sequence) {
            lane.next += 1;
            self.deliver(data.payload.clone(), ecn);
        } else {
            let entry = lane.arriving.entry(sequence);
            let is_new = matches!(entry, std::collections::btree_map::Entry::Vacant(_));
            let arriving = entry.or_insert_with(|| Arriving::new(now));
            let (pieces, has_length) = (arriving.pieces.len(), arriving.length.is_some());
            let is_too_long = arriving.length.is_some_and(|length| end > length)
                || (data.is_last
                    && arriving.pieces.last().is_some_and(|(at, piece)| usize::from(*at) + piece.len() > end));
            if arriving.is_done || is_too_long || (has_length && arriving.is_complete()) {
                self.counts.duplicates += 1;
                return;
            }
            let added = arriving.add(usize::from(data.offset), data.is_last, data.payload.clone());
            self.bytes += added + (arriving.pieces.len() - pieces) * ENTRY_BYTES;
            if added > 0 {
                arriving.last = now;
                arriving.ecn = severer(arriving.ecn, ecn);
            }
            if is_new {
                self.bytes += ENTRY_BYTES;
                self.due = self.due.min(now + self.hold);
            } else if added == 0 {
                self.counts.duplicates += 1;
            }
            if !is_ordered && arriving.is_complete() {
                let whole = std::mem::replace(arriving, Arriving { is_done: true, ..Arriving::new(arriving.since) });
                self.bytes -= whole.bytes + whole.pieces.len() * ENTRY_BYTES;
                let ecn = whole.ecn;
                self.deliver(whole.join(), ecn);
            }
        }
        self.advance(index);
        let limits_done = !is_ordered && self.lanes[index].arriving.len() > MOST_DONE;
        if limits_done {
            self.skip_first_gap(index);
        }
        self.shrink();
    }

    /// Delivers what follows the last delivered packet.
    fn advance(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        let mut whole = Vec::new();
        while let Some(entry) = lane.arriving.first_entry()
            && *entry.key() == lane.next
            && (entry.get().is_done || entry.get().is_complete())
        {
            lane.next += 1;
            let arriving = entry.remove();
            self.bytes -= arriving.bytes + (1 + arriving.pieces.len()) * ENTRY_BYTES;
            if !arriving.is_done {
                let ecn = arriving.ecn;
                whole.push((arriving.join(), ecn));
            }
        }
        whole.into_iter().for_each(|(data, ecn)| self.deliver(data, ecn));
    }

    fn deliver(&mut self, data: D, ecn: Ecn) {
        if self.ready_bytes + data.len() + ENTRY_BYTES > self.most_bytes.max(2 * MOST_BYTES) {
            self.counts.overflows += 1;
            return;
        }
        self.counts.delivered += 1;
        self.ready_bytes += data.len() + ENTRY_BYTES;
        self.ready.push_back((data, ecn));
    }

    /// Gives up the first missing packet of a lane, and those that miss with it; `false` if nothing waits for any.
    fn skip_first_gap(&mut self, index: usize) -> bool {
        let lane = &mut self.lanes[index];
        let Some((&first, arriving)) = lane.arriving.first_key_value() else { return false };
        let is_gap = first > lane.next;
        self.counts.missing += first - lane.next;
        lane.next = first;
        if !is_gap && !arriving.is_done && !arriving.is_complete() {
            let lost = lane.arriving.remove(&first).expect("it was found");
            self.bytes -= lost.bytes + (1 + lost.pieces.len()) * ENTRY_BYTES;
            self.counts.missing += 1;
            lane.next += 1;
        }
        self.advance(index);
        true
    }

    /// Gives up gaps while the memory is exceeded.
    fn shrink(&mut self) {
        while self.bytes > self.most_bytes {
            let fullest = (0..self.lanes.len()).max_by_key(|&index| self.lanes[index].arriving.len());
            if !fullest.is_some_and(|index| self.skip_first_gap(index)) {
                break;
            }
        }
    }

    /// When [`expire`](Self::expire) has something to do, or earlier.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Gives up what has been missing for too long.
    pub(super) fn expire(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        let mut due = Time::NEVER;
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            let (mut next, mut first) = (lane.next, lane.arriving.first_key_value());
            while let Some((&sequence, arriving)) = first {
                // Earlier packets are missing, or it is itself incomplete although nothing more comes.
                let since = if sequence > next { arriving.since } else { arriving.last };
                if since + self.hold > now {
                    due = due.min(since + self.hold);
                    break;
                }
                self.skip_first_gap(index);
                let lane = &self.lanes[index];
                (next, first) = (lane.next, lane.arriving.first_key_value());
            }
        }
        self.due = due;
    }
}

/// The mark of what was put together of two pieces: congestion that one has met counts (RFC 3168, section 5.3).
fn severer(one: Ecn, other: Ecn) -> Ecn {
    let rank = |ecn| match ecn {
        Ecn::NotCapable => 0,
        Ecn::Capable0 => 1,
        Ecn::Capable1 => 2,
        Ecn::Congestion => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn content(sequence: u64, length: usize) -> Vec<u8> {
        (0..length).map(|at| (sequence as usize * 31 + at) as u8).collect()
    }

    fn piece(sequence: u64, length: usize, start: usize, end: usize) -> Data<Bytes> {
        let payload = Bytes::from(content(sequence, length)[start..end].to_vec());
        let (sequence, offset, is_last) = (sequence as u32, start as u16, end == length);
        Data { class: 0, lane: 0, sequence, offset, is_last, payload }
    }

    impl<D: Payload> Lanes<D> {
        fn insert(&mut self, now: Time, data: &Data<D>) {
            self.insert_marked(now, data, Ecn::NotCapable);
        }
    }

    #[test]
    fn a_packet_has_the_severest_mark_of_its_pieces() {
        let mut lanes = Lanes::new([ClassRules::default(); CLASSES], 1 << 20, Time::from_secs(1));
        lanes.insert_marked(Time::ZERO, &piece(0, 8, 0, 8), Ecn::Capable1);
        lanes.insert_marked(Time::ZERO, &piece(1, 8, 0, 4), Ecn::Congestion);
        lanes.insert_marked(Time::ZERO, &piece(1, 8, 4, 8), Ecn::Capable0);
        lanes.insert_marked(Time::ZERO, &piece(2, 8, 4, 8), Ecn::Capable0);
        // A copy that came to nothing says nothing.
        lanes.insert_marked(Time::ZERO, &piece(2, 8, 4, 8), Ecn::Congestion);
        lanes.insert_marked(Time::ZERO, &piece(2, 8, 0, 4), Ecn::NotCapable);
        let marks: Vec<Ecn> = std::iter::from_fn(|| lanes.pop()).map(|(_, ecn)| ecn).collect();
        assert_eq!(marks, [Ecn::Capable1, Ecn::Congestion, Ecn::Capable0]);
    }

    proptest! {
        /// Packets are cut twice at different places, shuffled and repeated: each arrives once, intact, in order.
        #[test]
        fn pieces_in_any_order_make_each_packet_once(
            lengths in prop::collection::vec(1usize..60, 1..12), cuts in prop::collection::vec((0usize..60, 0usize..60), 24),
            is_ordered: bool, order in Just(()).prop_perturb(|(), mut random| (0..96).map(|_| random.random::<u32>()).collect::<Vec<u32>>()),
        ) {
            let rules = [ClassRules { is_ordered, ..ClassRules::default() }; CLASSES];
            let mut lanes = Lanes::new(rules, 1 << 20, Time::from_secs(1));
            let mut pieces = Vec::new();
            for (sequence, &length) in lengths.iter().enumerate() {
                for round in 0..2 {
                    let (a, b) = cuts[(2 * sequence + round) % cuts.len()];
                    let mut ends: Vec<usize> = vec![0, a % length, b % length, length];
                    ends.sort_unstable();
                    ends.dedup();
                    pieces.extend(ends.windows(2).map(|pair| piece(sequence as u64, length, pair[0], pair[1])));
                }
            }
            let mut keyed: Vec<_> = pieces.into_iter().enumerate().map(|(at, piece)| (order[at % order.len()], piece)).collect();
            keyed.sort_by_key(|(key, _)| *key);
            keyed.iter().for_each(|(_, piece)| lanes.insert(Time::ZERO, piece));

            let mut got: Vec<Vec<u8>> = std::iter::from_fn(|| lanes.pop()).map(|(data, _)| data.to_vec()).collect();
            let mut expected: Vec<Vec<u8>> =
                lengths.iter().enumerate().map(|(at, &length)| content(at as u64, length)).collect();
            if !is_ordered {
                got.sort();
                expected.sort();
            }
            prop_assert_eq!(got, expected);
            prop_assert_eq!(lanes.bytes(), 0);
            prop_assert_eq!(lanes.counts.missing, 0);
        }

        /// Whatever arrives, memory is bounded, and delivered plus given up is what the numbers say.
        #[test]
        fn memory_is_bounded(
            arrivals in prop::collection::vec((0u32..1 << 20, 0..3000u16, any::<bool>(), 1u32..1400, 0..50u64), 1..400),
            is_ordered: bool,
        ) {
            let rules = [ClassRules { is_ordered, ..ClassRules::default() }; CLASSES];
            let mut lanes = Lanes::new(rules, 20_000, Time::from_secs(1));
            let mut now = Time::ZERO;
            for (sequence, offset, is_last, length, wait) in arrivals {
                now += Time::from_millis(wait);
                lanes.expire(now);
                let payload = crate::payload::Virtual(length);
                lanes.insert(now, &Data { class: 0, lane: 3, sequence, offset, is_last, payload });
                prop_assert!(lanes.bytes <= 20_000);
                while lanes.pop().is_some() {}
            }
            lanes.expire(now + Time::from_secs(2));
            prop_assert_eq!(lanes.bytes, 0);
            prop_assert_eq!(lanes.due(), Time::NEVER);
        }
    }

    #[test]
    fn a_missing_packet_holds_others_back_for_a_bounded_time() {
        let mut lanes = Lanes::new([ClassRules::default(); CLASSES], 1 << 20, Time::from_secs(3));
        lanes.set_hold(Time::from_millis(200));
        lanes.expire(Time::ZERO);
        for (at, sequence) in [(0, 0), (10, 2), (20, 4), (30, 5)] {
            lanes.insert(Time::from_millis(at), &piece(sequence, 8, 0, 8));
        }
        let count = |lanes: &mut Lanes<Bytes>| std::iter::from_fn(|| lanes.pop()).count();
        assert_eq!(count(&mut lanes), 1);
        assert_eq!(lanes.due(), Time::from_millis(210));
        lanes.expire(lanes.due());
        assert_eq!((count(&mut lanes), lanes.counts.missing), (1, 1));
        lanes.expire(lanes.due());
        assert_eq!((count(&mut lanes), lanes.counts.missing), (2, 2));
        // A packet that comes too late is not delivered out of order.
        lanes.insert(Time::from_secs(1), &piece(1, 8, 0, 8));
        assert_eq!((count(&mut lanes), lanes.counts.duplicates), (0, 1));
    }

    #[test]
    fn numbers_may_wrap() {
        let mut lanes = Lanes::new([ClassRules::default(); CLASSES], 1 << 20, Time::from_secs(3));
        let mut seen = BTreeSet::new();
        for sequence in 0..(1u64 << 20) + 50 {
            let data = Data {
                class: 0,
                lane: 0,
                sequence: (sequence & 0xf_ffff) as u32,
                offset: 0,
                is_last: true,
                payload: crate::payload::Virtual(1),
            };
            lanes.insert(Time::ZERO, &data);
            seen.extend(lanes.pop().map(|_| sequence));
        }
        assert_eq!(seen.len(), (1 << 20) + 50);
    }
}
