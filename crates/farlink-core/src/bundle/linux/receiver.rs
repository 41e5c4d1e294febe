//! Reassembly of packets as Linux does it (`ppp_receive_mp_frame`, `ppp_mp_reconstruct`).

use std::collections::VecDeque;

use super::super::fragment::{Fragment, Numbering};
use super::super::reassembly::Counts;
use crate::payload::Payload;

/// The receiver of one end.
///
/// A missing fragment is declared lost once M has reached its number. M is the least of the numbers that arrived last over
/// *every* attached channel. A channel that was just attached has delivered none, so M does not move until its first fragment
/// arrives. There is no timer. Once 128 fragments wait, M moves to the first of them and no further: a full buffer never makes
/// the receiver give up fragments that are missing behind the first. M is updated when a fragment arrives, not when a channel is
/// detached.
#[derive(Clone, Debug)]
pub struct Receiver<D> {
    numbering: Numbering,
    /// Number that each line has delivered last; `None` if the line is not attached.
    attached: Vec<Option<i64>>,
    /// Number that the next packet begins with (`nextseq`).
    next: i64,
    /// M (`minseq`).
    passed: i64,
    /// Fragments that wait, in the order of their numbers. Two may have the same one, after short numbers came round.
    held: VecDeque<Held<D>>,
    /// Packets that came without a multilink header.
    outside: VecDeque<D>,
    most_held: usize,
    most_bytes: usize,
    /// One more than the highest number that arrived.
    highest: i64,
    counts: Counts,
}

#[derive(Clone, Debug)]
struct Held<D> {
    count: i64,
    is_beginning: bool,
    is_end: bool,
    payload: D,
}

/// The last number of a channel that has delivered nothing.
const NOTHING: i64 = -1;

impl<D: Payload> Receiver<D> {
    /// A receiver with `lines` lines, all attached, of packets of up to `most_bytes` (the MRRU). Once `most_held` fragments wait,
    /// M moves to the first of them (Linux: 128).
    pub fn new(numbering: Numbering, lines: usize, most_bytes: usize, most_held: usize) -> Self {
        Receiver {
            numbering,
            attached: vec![Some(NOTHING); lines],
            next: 0,
            passed: NOTHING,
            held: VecDeque::new(),
            outside: VecDeque::new(),
            most_held,
            most_bytes,
            highest: 0,
            counts: Counts::default(),
        }
    }

    /// Counts of packets and fragments so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of fragments that wait.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Number of fragments from the first on that were delivered or given up.
    pub fn settled(&self) -> u64 {
        self.next as u64
    }

    /// A line was attached or detached. No fragment is given up at once, because M is updated only with the next fragment.
    pub fn set_up(&mut self, line: usize, is_up: bool) {
        if self.attached.len() <= line {
            self.attached.resize(line + 1, None);
        }
        self.attached[line] = is_up.then_some(NOTHING);
    }

    /// The bundle begins anew, with the number 0, since all lines were detached. What was held is dropped.
    pub fn restart(&mut self) {
        self.counts.useless += self.held.len() as u64;
        let expected = (self.highest - self.next).max(0) as u64;
        self.counts.missing += expected.saturating_sub(self.held.len() as u64);
        self.held.clear();
        (self.next, self.passed, self.highest) = (0, NOTHING, 0);
        self.attached.iter_mut().flatten().for_each(|last| *last = NOTHING);
    }

    /// A fragment arrived over a line. One without content is thrown away before its number is read.
    pub fn on_fragment(&mut self, line: usize, fragment: Fragment<D>) {
        if fragment.payload.is_empty() {
            self.counts.useless += 1;
            return;
        }
        let expected = (self.passed + 1) as u64;
        let Some(count) = self.numbering.count_near(expected, fragment.number).map(|count| count as i64) else {
            self.counts.late += 1;
            return;
        };
        let Some(last) = self.attached.get_mut(line).and_then(Option::as_mut) else {
            self.counts.late += 1;
            return;
        };
        *last = count;
        self.counts.out_of_order += u64::from(count < self.highest);
        self.highest = self.highest.max(count + 1);
        if count < self.next {
            self.counts.late += 1;
            return;
        }
        let least = self.attached.iter().flatten().copied().fold(count, i64::min);
        self.passed = self.passed.max(least);
        let at = self.held.partition_point(|held| held.count < count);
        let Fragment { is_beginning, is_end, payload, .. } = fragment;
        self.held.insert(at, Held { count, is_beginning, is_end, payload });
        if self.held.len() >= self.most_held {
            let first = self.held[0].count;
            self.counts.given_up += u64::from(first > self.passed);
            self.passed = self.passed.max(first);
        }
        self.counts.most_held = self.counts.most_held.max(self.held.len());
    }

    /// A whole packet arrived over a line without a multilink header (`ppp_receive_nonmp_frame`). It is delivered at once.
    pub fn on_packet(&mut self, packet: D) {
        self.outside.push_back(packet);
    }

    /// Appends the pieces of the next packet to `pieces`, in order, and returns whether there was one. Call it after every
    /// fragment until it returns `false`.
    pub fn next_packet(&mut self, pieces: &mut Vec<D>) -> bool {
        if let Some(packet) = self.outside.pop_front() {
            self.counts.packets += 1;
            self.counts.outside += 1;
            pieces.push(packet);
            return true;
        }
        let mut number = self.next;
        let (mut head, mut at, mut bytes, mut is_lost) = (0, 0, 0, false);
        while let Some(fragment) = self.held.get(at) {
            if fragment.count < number {
                // A second fragment with the same number: short numbers came round. Linux drops it as one that "can't happen".
                self.held.remove(at);
                self.counts.late += 1;
                continue;
            }
            if fragment.count != number {
                if number > self.passed {
                    return false; // it may yet arrive
                }
                is_lost = true;
                number = fragment.count.min(self.passed + 1);
                continue;
            }
            if fragment.is_beginning {
                (head, bytes, is_lost) = (at, 0, false);
            }
            bytes += fragment.payload.len();
            if fragment.is_end {
                if !is_lost && self.held[head].is_beginning {
                    // Linux counts a byte of the protocol field, and drops packets longer than the MRRU and two bytes.
                    if bytes < self.most_bytes + 2 {
                        self.take(head, at, pieces);
                        return true;
                    }
                    self.counts.too_long += 1;
                    self.next = number + 1;
                }
                self.counts.useless += at as u64 + 1;
                self.held.drain(..=at);
                (head, at, number) = (0, 0, number + 1);
                continue;
            }
            number += 1;
            at += 1;
        }
        false
    }

    /// Takes the packet of the fragments from `head` to `tail`; earlier fragments belong to lost packets and are dropped.
    fn take(&mut self, head: usize, tail: usize, pieces: &mut Vec<D>) {
        self.counts.useless += head as u64;
        self.counts.packets += 1;
        self.counts.missing += (self.held[head].count - self.next) as u64 - head as u64;
        self.next = self.held[tail].count + 1;
        self.held.drain(..head);
        pieces.extend(self.held.drain(..=tail - head).map(|held| held.payload));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Fragment `number` of packets of `pieces` fragments each.
    fn fragment(number: u32, pieces: u32) -> Fragment<Virtual> {
        let (is_beginning, is_end) = (number.is_multiple_of(pieces), number % pieces == pieces - 1);
        Fragment { number, is_beginning, is_end, payload: Virtual(100) }
    }

    fn receiver(lines: usize) -> Receiver<Virtual> {
        Receiver::new(Numbering::Long, lines, 1500, 128)
    }

    fn packets(receiver: &mut Receiver<Virtual>) -> usize {
        let mut pieces = Vec::new();
        std::iter::from_fn(|| receiver.next_packet(&mut pieces).then_some(())).count()
    }

    #[test]
    fn a_new_channel_freezes_m_until_its_first_fragment() {
        let mut receiver = receiver(2);
        receiver.set_up(1, false);
        receiver.on_fragment(0, fragment(0, 1));
        assert_eq!(packets(&mut receiver), 1);
        receiver.set_up(1, true);
        receiver.on_fragment(0, fragment(2, 1)); // 1 is lost
        receiver.on_fragment(0, fragment(3, 1));
        assert_eq!((packets(&mut receiver), receiver.held()), (0, 2));
        receiver.on_fragment(1, fragment(4, 1));
        assert_eq!((packets(&mut receiver), receiver.held()), (3, 0));
    }

    /// A dead line that is still attached carried the first fragments of three packets, each cut in eight for eight lines. No
    /// packet is delivered until 128 + 7 x 2 fragments have arrived.
    #[test]
    fn missing_first_fragments_are_given_up_one_packet_at_a_time() {
        let mut receiver = receiver(8);
        let mut arrived = 0;
        for number in 0..24 {
            if number % 8 != 0 {
                receiver.on_fragment(number as usize % 8, fragment(number, 8));
                arrived += 1;
            }
        }
        for number in 0_u32.. {
            assert_eq!(packets(&mut receiver), 0, "{number}");
            let (packet, piece) = (number / 7, number % 7);
            let number = 24 + packet * 7 + piece;
            let (is_beginning, is_end) = (piece == 0, piece == 6);
            receiver.on_fragment(piece as usize + 1, Fragment { number, is_beginning, is_end, payload: Virtual(100) });
            arrived += 1;
            if arrived == 128 + 7 * 2 {
                break;
            }
        }
        assert!(packets(&mut receiver) > 10);
    }

    /// With 128 fragments M moves only to the first that waits: a gap after it blocks all later packets for ever.
    #[test]
    fn a_full_buffer_never_gives_up_a_gap_inside_a_packet() {
        let mut receiver = receiver(2);
        for number in 0..2000 {
            if number != 1 {
                receiver.on_fragment(0, fragment(number, 3));
            }
        }
        assert_eq!((packets(&mut receiver), receiver.held()), (0, 1999));
        receiver.set_up(1, false);
        assert_eq!(packets(&mut receiver), 0, "M is updated when a fragment arrives");
        receiver.on_fragment(0, fragment(2000, 3));
        assert_eq!(packets(&mut receiver), 666);
    }

    #[test]
    fn packets_longer_than_the_mrru_plus_two_are_dropped() {
        let mut receiver = receiver(1);
        for (number, bytes) in [1501, 1502, 1500].into_iter().enumerate() {
            let payload = Virtual(bytes);
            receiver.on_fragment(0, Fragment { number: number as u32, is_beginning: true, is_end: true, payload });
        }
        assert_eq!((packets(&mut receiver), receiver.counts().too_long), (2, 1));
    }

    proptest! {
        /// Lost detection of drops on both sides lets short numbers come round, so that any fragment may follow any other.
        #[test]
        fn any_sequence_of_fragments_is_counted_once(
            arrivals in vec((0_usize..3, 0_u32..4096, 0_u32..12, any::<[bool; 3]>()), 0..600),
            most_held in 2_usize..200,
        ) {
            let mut receiver: Receiver<Virtual> = Receiver::new(Numbering::Short, 3, 1500, most_held);
            let (mut number, mut fragments) = (0, 0);
            let mut pieces = Vec::new();
            for &(line, jump, step, [is_beginning, is_end, is_far]) in &arrivals {
                number = if is_far && step == 0 { jump } else { (number + step) % 4096 };
                receiver.on_fragment(line, Fragment { number, is_beginning, is_end, payload: Virtual(100) });
                fragments += 1;
                while receiver.next_packet(&mut pieces) {}
            }
            let counts = receiver.counts();
            let seen = pieces.len() as u64 + counts.useless + counts.late + receiver.held() as u64;
            prop_assert_eq!(seen, fragments);
        }
    }

    #[test]
    fn numbers_wrap() {
        let mut receiver: Receiver<Virtual> = Receiver::new(Numbering::Short, 2, 1500, 128);
        for number in 0..20_000_u32 {
            if number % 7 != 3 {
                receiver.on_fragment(number as usize % 2, Fragment { number: number % 4096, ..fragment(number, 1) });
            }
        }
        assert!(packets(&mut receiver) > 20_000 / 7 * 6 - 3);
        assert_eq!(receiver.counts().missing, 20_000 / 7);
    }
}
