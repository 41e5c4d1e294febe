//! Classes of service: which of several queues of messages is served next.

use std::collections::VecDeque;

use crate::origin::instants;
use crate::payload::Payload;
use crate::time::Time;
use crate::turns::{CLASSES, Turns};

/// How a class is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its share of the capacity that classes with higher priority leave, relative to the weights of others. Without a weight, it
    /// goes before all classes with weights and all classes of higher numbers.
    pub weight: Option<u16>,
    /// Messages written longer ago than this are not sent.
    pub deadline: Option<Time>,
}

/// Messages of several classes, each in the order in which they were written.
///
/// Classes without a weight have strict priority by number: a class is served only while no lower one has a message. Classes with
/// weights share the remaining capacity by deficit round robin, in bytes: see [`Turns`]. `[V4]`
#[derive(Clone, Debug)]
pub(super) struct Classes<D> {
    queues: [Queue<D>; CLASSES],
    turns: Turns,
    waiting: usize,
    /// Bytes dropped because of their age that the application was not told of yet.
    expired: u64,
}

instants! { Classes<D>: queues; fixed: turns, waiting, expired }

#[derive(Clone, Debug)]
struct Queue<D> {
    service: Service,
    /// The messages with the time at which each was written.
    messages: VecDeque<(D, Time)>,
}

instants! { Queue<D>: messages; fixed: service }

/// Bytes per turn for a weight of one.
const QUANTUM: u64 = 64;

impl<D: Payload> Classes<D> {
    pub(super) fn new(deadline: Option<Time>) -> Self {
        let queue = || Queue { service: Service { weight: None, deadline }, messages: VecDeque::new() };
        let queues = std::array::from_fn(|_| queue());
        Classes { queues, turns: Turns::new([None; CLASSES]), waiting: 0, expired: 0 }
    }

    /// Sets the service of a class from now on, also for waiting messages.
    pub(super) fn set_service(&mut self, class: usize, service: Service) {
        self.queues[class].service = service;
        self.turns.set_share(class, service.weight.map(|weight| u64::from(weight.max(1)) * QUANTUM));
    }

    pub(super) fn push(&mut self, now: Time, class: usize, message: D) {
        self.queues[class].messages.push_back((message, now));
        self.waiting += 1;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The next message, or as much of it as `most_bytes` allows for its class, and the class.
    pub(super) fn pop(&mut self, now: Time, most_bytes: impl Fn(usize) -> u32) -> Option<(usize, D)> {
        self.expire(now);
        if self.waiting == 0 {
            return None;
        }
        let piece_bytes = |class: usize, message: &D| message.len().min(most_bytes(class) as usize);
        let Classes { queues, turns, .. } = self;
        let class = turns
            .next(|class| queues[class].messages.front().map(|(message, _)| piece_bytes(class, message) as u64))?;
        let queue = &mut queues[class];
        let (message, _) = queue.messages.front_mut()?;
        let piece = message.split_to(piece_bytes(class, message));
        turns.sent(class, piece.len() as u64);
        if message.is_empty() {
            queue.messages.pop_front();
            self.waiting -= 1;
        }
        Some((class, piece))
    }

    /// Drops messages that are too old. `[V1]`
    pub(super) fn expire(&mut self, now: Time) {
        for queue in &mut self.queues {
            while queue.due() <= now
                && let Some((message, _)) = queue.messages.pop_front()
            {
                self.expired += message.len() as u64;
                self.waiting -= 1;
            }
        }
    }

    /// When the next message becomes too old.
    #[inline]
    pub(super) fn next_due(&self) -> Time {
        if self.waiting == 0 {
            return Time::NEVER;
        }
        self.queues.iter().map(Queue::due).min().unwrap_or(Time::NEVER)
    }

    pub(super) fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
    }
}

impl<D> Queue<D> {
    fn due(&self) -> Time {
        match (self.service.deadline, self.messages.front()) {
            (Some(deadline), Some((_, written))) => *written + deadline,
            _ => Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;
    use proptest::prelude::*;

    fn weighted(weight: u16) -> Service {
        Service { weight: Some(weight), deadline: None }
    }

    #[test]
    fn a_class_has_its_own_deadline() {
        let mut classes = Classes::new(None);
        classes.set_service(1, Service { weight: None, deadline: Some(Time::from_secs(2)) });
        classes.push(Time::ZERO, 0, Virtual(10));
        classes.push(Time::ZERO, 1, Virtual(20));
        classes.push(Time::from_secs(1), 1, Virtual(30));
        assert_eq!(classes.next_due(), Time::from_secs(2));
        classes.expire(Time::from_secs(2));
        assert_eq!((classes.take_expired(), classes.take_expired()), (20, 0));
        let order: Vec<_> = std::iter::from_fn(|| classes.pop(Time::from_secs(2), |_| 1000)).collect();
        assert_eq!(order, [(0, Virtual(10)), (1, Virtual(30))]);
        assert!(classes.is_empty() && classes.next_due() == Time::NEVER);
    }

    proptest! {
        /// No class is served while a lower one has data, for any sequence of writes.
        #[test]
        fn strict_classes_go_by_number(steps in proptest::collection::vec((0_usize..CLASSES, 1_u32..3000, any::<bool>()), 1..200)) {
            let mut classes = Classes::new(None);
            let mut waiting = [0_u64; CLASSES];
            for (class, bytes, is_served) in steps {
                classes.push(Time::ZERO, class, Virtual(bytes));
                waiting[class] += u64::from(bytes);
                if is_served {
                    let (served, piece) = classes.pop(Time::ZERO, |_| 1000).unwrap();
                    prop_assert_eq!(waiting.iter().position(|&bytes| bytes > 0), Some(served));
                    waiting[served] -= u64::from(piece.0);
                }
            }
            while let Some((served, piece)) = classes.pop(Time::ZERO, |_| 1000) {
                prop_assert_eq!(waiting.iter().position(|&bytes| bytes > 0), Some(served));
                waiting[served] -= u64::from(piece.0);
            }
            prop_assert_eq!(waiting, [0; CLASSES]);
        }

        /// Two classes with a permanent backlog share by their weights, except for a turn and a packet of each.
        #[test]
        fn weighted_classes_share_by_weight(
            weights in (1_u16..20, 1_u16..20), lengths in (1_u32..1400, 1_u32..1400), rounds in 100_u32..2000,
        ) {
            let mut classes = Classes::new(None);
            classes.set_service(2, weighted(weights.0));
            classes.set_service(5, weighted(weights.1));
            let mut served = [0_u64; CLASSES];
            for _ in 0..rounds {
                for (class, bytes) in [(2, lengths.0), (5, lengths.1)] {
                    if classes.queues[class].messages.len() < 2 {
                        classes.push(Time::ZERO, class, Virtual(bytes));
                    }
                }
                let (class, piece) = classes.pop(Time::ZERO, |_| 1400).unwrap();
                served[class] += u64::from(piece.0);
            }
            // Turns of each class, by its served bytes: they differ by one and by the length of a packet.
            let turns = |class: usize, weight: u16| served[class] as f64 / (f64::from(weight) * QUANTUM as f64);
            let packet = |bytes: u32, weight: u16| f64::from(bytes) / (f64::from(weight) * QUANTUM as f64);
            let apart = (turns(2, weights.0) - turns(5, weights.1)).abs();
            prop_assert!(apart <= 1.0 + packet(lengths.0, weights.0) + packet(lengths.1, weights.1), "{} turns apart", apart);
        }

        /// A strict class starves weighted ones, which get all of the rest.
        #[test]
        fn weighted_classes_share_the_rest_of_the_rate(messages in 1_u32..50) {
            let mut classes = Classes::new(None);
            classes.set_service(0, weighted(1));
            for _ in 0..messages {
                classes.push(Time::ZERO, 0, Virtual(500));
                classes.push(Time::ZERO, 3, Virtual(500));
            }
            let order: Vec<usize> = std::iter::from_fn(|| classes.pop(Time::ZERO, |_| 1000)).map(|popped| popped.0).collect();
            prop_assert!(order[..messages as usize].iter().all(|&class| class == 3));
            prop_assert!(order[messages as usize..].iter().all(|&class| class == 0));
            prop_assert_eq!(order.len() as u32, 2 * messages);
        }
    }
}
