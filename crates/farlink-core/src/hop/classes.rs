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
}

impl Classes {
    pub(super) fn new(weights: [Option<f64>; CLASSES], limit: QueueLimit, mark_from: QueueLimit) -> Self {
        Classes { queue: ClassQueue::new(weights, limit, mark_from), next_start: Time::NEVER }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.next_start
    }

    pub(super) fn peak_waiting_bytes(&self) -> u64 {
        self.queue.peak_waiting_bytes()
    }

    /// A packet arrives: it is sent at once, queued or dropped.
    pub(super) fn send(&mut self, link: &mut Link, now: Time, bytes: u32, class: usize) -> Entry {
        let start = link.next_start(now);
        if self.queue.is_empty() && start <= now {
            link.set_marking(false); // the queue was empty
            return Entry::Sent(link.send(now, bytes));
        }
        let Some(ticket) = self.queue.put(class, bytes, link.is_idle(now)) else {
            return Entry::Sent(Verdict::Dropped);
        };
        self.next_start = self.next_start.min(start);
        Entry::Waits(ticket)
    }

    /// Sends the next packet, if the link can start now.
    pub(super) fn poll(&mut self, link: &mut Link, now: Time) -> Option<(Ticket, Outcome)> {
        self.next_start = Time::NEVER;
        if self.queue.is_empty() {
            return None;
        }
        let start = link.next_start(now);
        if start > now {
            self.next_start = start;
            return None;
        }
        let class = self.queue.next_class()?;
        let (ticket, bytes, is_marking) = self.queue.take(class);
        link.set_marking(is_marking);
        Some((ticket, Outcome::Sent(link.send(now, bytes))))
    }
}
