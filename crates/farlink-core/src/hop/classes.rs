//! A link that serves classes of service: the next packet is chosen when the link can start sending it.

use super::class_queue::ClassQueue;
use super::{Entry, Outcome, QueueLimit, Ticket};
use crate::link::{Link, Verdict};
use crate::time::Time;
use crate::turns::CLASSES;

/// The queues of the classes in front of a link.
#[derive(Debug)]
pub(super) struct Classes {
    queue: ClassQueue,
    /// When the link can start sending the next packet; never if none waits.
    next_start: Time,
    /// A packet that has left its queue because another one arrived at the instant at which the link was free.
    left: Option<(Ticket, Verdict)>,
}

impl Classes {
    pub(super) fn new(weights: [Option<f64>; CLASSES], limit: QueueLimit, mark_from: QueueLimit) -> Self {
        Classes { queue: ClassQueue::new(weights, limit, mark_from), next_start: Time::NEVER, left: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.left.is_none()
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.next_start
    }

    pub(super) fn peak_waiting_bytes(&self) -> u64 {
        self.queue.peak_waiting_bytes()
    }

    /// A packet arrives: it is sent at once, queued or dropped. One that can start at this instant leaves its queue before, as in a link
    /// without classes.
    pub(super) fn send(&mut self, link: &mut Link, now: Time, bytes: u32, class: usize) -> Entry {
        let start = link.next_start(now);
        if self.is_empty() && start <= now {
            link.set_marking(false); // the queue was empty
            return Entry::Sent(link.send(now, bytes));
        }
        if start <= now && self.left.is_none() {
            self.left = self.take_next(link, now);
        }
        let Some(ticket) = self.queue.put(class, bytes, link.is_idle(now)) else {
            return Entry::Sent(Verdict::Dropped);
        };
        self.next_start = self.next_start.min(start);
        Entry::Waits(ticket)
    }

    /// Sends the next packet, if the link can start now.
    pub(super) fn poll(&mut self, link: &mut Link, now: Time) -> Option<(Ticket, Outcome)> {
        let sent = self.left.take().or_else(|| {
            self.next_start = if self.queue.is_empty() { Time::NEVER } else { link.next_start(now) };
            if self.next_start <= now { self.take_next(link, now) } else { None }
        });
        let (ticket, verdict) = sent?;
        self.queue.release(ticket);
        Some((ticket, Outcome::Sent(verdict)))
    }

    /// The link takes the next packet.
    fn take_next(&mut self, link: &mut Link, now: Time) -> Option<(Ticket, Verdict)> {
        let class = self.queue.next_class()?;
        let (ticket, bytes, is_marking) = self.queue.take(class);
        link.set_marking(is_marking);
        Some((ticket, link.send(now, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::none::Clear;
    use crate::rng::Rng;
    use crate::units::BitRate;
    use proptest::prelude::*;

    fn link(limit: QueueLimit) -> Link {
        let rate = BitRate::new(8e6).unwrap().into(); // one byte per microsecond
        let rng = Rng::for_component(1, 0, "test");
        Link::new(&rate, &Time::from_millis(250).into(), limit, &Clear {}, rng.clone(), &rng)
    }

    /// A link that serves one class, and what became of its packets.
    struct Served {
        link: Link,
        classes: Classes,
        waiting: Vec<(Ticket, usize)>,
        sent: Vec<(usize, Verdict)>,
    }

    impl Served {
        /// The timer rings as often as it is due before `end`.
        fn run_until(&mut self, end: Time) {
            while self.classes.poll_timeout() < end {
                let now = self.classes.poll_timeout();
                while let Some((ticket, Outcome::Sent(verdict))) = self.classes.poll(&mut self.link, now) {
                    let at = self.waiting.iter().position(|&(kept, _)| kept == ticket).unwrap();
                    self.sent.push((self.waiting.remove(at).1, verdict));
                }
            }
        }

        fn send(&mut self, now: Time, packet: usize, bytes: u32) {
            match self.classes.send(&mut self.link, now, bytes, 0) {
                Entry::Sent(Verdict::Dropped) => {}
                Entry::Sent(verdict) => self.sent.push((packet, verdict)),
                Entry::Waits(ticket) => {
                    assert!(self.waiting.iter().all(|&(kept, _)| kept != ticket), "a ticket is given twice");
                    self.waiting.push((ticket, packet));
                }
            }
        }
    }

    proptest! {
        /// Packets that arrive at the very instants at which the link becomes free find the room that they find without classes,
        /// whether they come before the timer or after it.
        #[test]
        fn one_class_drops_what_a_link_without_classes_drops(
            arrivals in proptest::collection::vec((0_u64..4, 1_u32..4, any::<bool>()), 1..200),
            most in 1_u64..5, is_in_bytes: bool,
        ) {
            let limit = if is_in_bytes { QueueLimit::Bytes(most * 1000) } else { QueueLimit::Packets(most) };
            let classes = Classes::new([None; CLASSES], limit, QueueLimit::Unlimited);
            let mut served = Served { link: link(QueueLimit::Unlimited), classes, waiting: vec![], sent: vec![] };
            let (mut plain, mut due, mut now) = (link(limit), vec![], Time::ZERO);
            for (packet, (gap, thousands, is_timer_first)) in arrivals.into_iter().enumerate() {
                now += Time::from_millis(gap);
                served.run_until(now + Time::from_ps(u64::from(is_timer_first)));
                served.send(now, packet, thousands * 1000);
                let verdict = plain.send(now, thousands * 1000);
                if verdict != Verdict::Dropped {
                    due.push((packet, verdict));
                }
            }
            served.run_until(Time::NEVER);
            prop_assert_eq!(served.sent, due);
        }
    }
}
