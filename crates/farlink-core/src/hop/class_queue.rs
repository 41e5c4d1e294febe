//! A queue that serves classes of service: admits packets and chooses the next one.

use std::collections::VecDeque;

use super::{QueueLimit, Ticket};
use crate::turns::{CLASSES, Turns};

/// The queues of the classes in front of a link. The driver keeps the packets themselves, by ticket.
///
/// The limit and the marking threshold apply to each class separately, so a class that fills its queue takes no room
/// from the others, as in priority queues with a queue per band (Linux's `prio`).
#[derive(Clone, Debug)]
pub(super) struct ClassQueue {
    turns: Turns,
    limit: QueueLimit,
    /// Backlog of a class from which on its packets are marked; never if unlimited.
    mark_from: QueueLimit,
    classes: [Waiting; CLASSES],
    bytes: u64,
    peak_bytes: u64,
    /// Tickets that may be reused, and the number of all tickets.
    free: Vec<Ticket>,
    tickets: u32,
}

/// The queue of one class.
#[derive(Clone, Debug, Default)]
struct Waiting {
    packets: VecDeque<Packet>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    ticket: Ticket,
    bytes: u32,
    /// The backlog had reached the marking threshold when it arrived.
    is_marked: bool,
}

/// Bytes that all weighted classes together send in a round: about a packet, so that none waits long for its turn.
const ROUND_BYTES: f64 = 1500.0;

/// A byte in the unit of shares and deficits, which is fine enough for shares below a byte.
const BYTE: u64 = 1 << 20;

impl ClassQueue {
    /// A queue with the weight of each class. Classes without a weight are strict: they go first, by number.
    pub(super) fn new(weights: [Option<f64>; CLASSES], limit: QueueLimit, mark_from: QueueLimit) -> Self {
        let all: f64 = weights.iter().flatten().sum();
        let share = |weight: f64| ((weight / all * ROUND_BYTES * BYTE as f64).round() as u64).max(1);
        let turns = Turns::new(weights.map(|weight| weight.map(share)));
        ClassQueue {
            turns,
            limit,
            mark_from,
            classes: Default::default(),
            bytes: 0,
            peak_bytes: 0,
            free: Vec::new(),
            tickets: 0,
        }
    }

    /// Whether no packet waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends a packet to the queue of its class; `None` if there is no room. There is always room if the transmitter
    /// is idle and no packet waits.
    pub(super) fn put(&mut self, class: usize, bytes: u32, is_idle: bool) -> Option<Ticket> {
        let waiting = &mut self.classes[class];
        let packets = waiting.packets.len() as u64;
        let has_room = match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(most) => waiting.bytes + u64::from(bytes) <= most,
            QueueLimit::Packets(most) => packets < most,
        };
        if !(has_room || is_idle && self.bytes == 0) {
            return None;
        }
        let is_marked = match self.mark_from {
            QueueLimit::Unlimited => false,
            QueueLimit::Bytes(least) => waiting.bytes >= least,
            QueueLimit::Packets(least) => packets >= least,
        };
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.tickets += 1;
            Ticket(self.tickets - 1)
        });
        waiting.packets.push_back(Packet { ticket, bytes, is_marked });
        waiting.bytes += u64::from(bytes);
        self.bytes += u64::from(bytes);
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        Some(ticket)
    }

    /// The class whose first packet is sent next.
    pub(super) fn next_class(&mut self) -> Option<usize> {
        let ClassQueue { turns, classes, .. } = self;
        turns.next(|class| classes[class].packets.front().map(|packet| u64::from(packet.bytes) * BYTE))
    }

    /// Removes the first packet of the class that [`next_class`](ClassQueue::next_class) returned. Returns its ticket, which is kept until it
    /// is [released](ClassQueue::release), its size and whether it is marked.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn take(&mut self, class: usize) -> (Ticket, u32, bool) {
        let waiting = &mut self.classes[class];
        let Packet { ticket, bytes, is_marked } = waiting.packets.pop_front().expect("a packet of that class waits");
        waiting.bytes -= u64::from(bytes);
        self.bytes -= u64::from(bytes);
        self.turns.sent(class, u64::from(bytes) * BYTE);
        (ticket, bytes, is_marked)
    }

    /// The driver has taken the packet of a ticket.
    pub(super) fn release(&mut self, ticket: Ticket) {
        self.free.push(ticket);
    }

    /// Largest total backlog of all classes, bytes.
    pub(super) fn peak_waiting_bytes(&self) -> u64 {
        self.peak_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STRICT: [Option<f64>; CLASSES] = [None; CLASSES];

    fn order(queue: &mut ClassQueue) -> Vec<usize> {
        std::iter::from_fn(|| queue.next_class().inspect(|&class| assert!(!queue.take(class).2))).collect()
    }

    #[test]
    fn strict_classes_go_by_number_and_the_limit_applies_to_each() {
        let mut queue = ClassQueue::new(STRICT, QueueLimit::Packets(2), QueueLimit::Unlimited);
        let taken: Vec<_> = [5, 5, 5, 1, 1, 1, 5, 0].map(|class| queue.put(class, 1000, false).is_some()).into();
        assert_eq!(taken, [true, true, false, true, true, false, false, true]);
        assert_eq!(queue.peak_waiting_bytes(), 5000);
        assert_eq!(order(&mut queue), [0, 1, 1, 5, 5]);
        assert!(queue.is_empty());
    }

    /// A queue without classes behaves the same way.
    #[test]
    fn an_idle_link_accepts_a_packet_longer_than_the_queue() {
        let mut queue = ClassQueue::new(STRICT, QueueLimit::Bytes(100), QueueLimit::Unlimited);
        assert!(queue.put(0, 101, false).is_none() && queue.put(0, 101, true).is_some());
        assert!(queue.put(1, 101, true).is_none(), "something waits");
        assert!(queue.put(1, 100, false).is_some());
    }

    #[test]
    fn tickets_are_unique_among_waiting_packets_and_reused() {
        let mut queue = ClassQueue::new(STRICT, QueueLimit::Unlimited, QueueLimit::Unlimited);
        let mut put = |class, bytes| queue.put(class, bytes, false).map(Ticket::index);
        assert_eq!([put(3, 40), put(1, 50), put(3, 60)], [Some(0), Some(1), Some(2)]);
        assert_eq!(queue.take(3), (Ticket(0), 40, false));
        queue.release(Ticket(0));
        assert_eq!(queue.take(3), (Ticket(2), 60, false));
        queue.release(Ticket(2));
        assert_eq!([7, 7].map(|class| queue.put(class, 70, false).map(Ticket::index)), [Some(2), Some(0)]);
        assert_eq!(queue.take(1).0.index(), 1);
    }

    #[test]
    fn a_class_marks_by_its_own_backlog() {
        let mut queue = ClassQueue::new(STRICT, QueueLimit::Unlimited, QueueLimit::Bytes(1001));
        for class in [3, 3, 3, 4] {
            assert!(queue.put(class, 1000, false).is_some());
        }
        let marks: Vec<_> =
            std::iter::from_fn(|| queue.next_class().map(|class| (class, queue.take(class).2))).collect();
        assert_eq!(marks, [(3, false), (3, false), (3, true), (4, false)]);
    }

    proptest! {
        /// Whatever the weights, the bytes of each class are within a packet or two of its share.
        #[test]
        fn weights_share_the_bytes(
            weights in proptest::array::uniform3(0.001..1000.0_f64),
            sizes in proptest::array::uniform3(40_u32..9000),
        ) {
            let mut all = STRICT;
            [1, 2, 6].into_iter().zip(weights).for_each(|(class, weight)| all[class] = Some(weight));
            let mut queue = ClassQueue::new(all, QueueLimit::Unlimited, QueueLimit::Unlimited);
            let mut served = [0_u64; CLASSES];
            let size = |class: usize| sizes[[0, 0, 1, 0, 0, 0, 2, 0][class]];
            for class in [1, 2, 6] {
                queue.put(class, size(class), false);
            }
            for _ in 0..2000 {
                let class = queue.next_class().unwrap();
                queue.take(class);
                served[class] += u64::from(size(class));
                queue.put(class, size(class), false);
            }
            let (total, all_weights) = (served.iter().sum::<u64>() as f64, weights.iter().sum::<f64>());
            for (class, weight) in [1, 2, 6].into_iter().zip(weights) {
                let due = weight / all_weights * total;
                let off = (served[class] as f64 - due).abs();
                // A packet of each class, a round, and the rounding error of the smallest share.
                let most = sizes.iter().map(|&bytes| f64::from(bytes)).sum::<f64>() + ROUND_BYTES + 0.003 * due;
                prop_assert!(off <= most, "class {} is {} bytes off {}", class, off, due);
            }
        }
    }
}
