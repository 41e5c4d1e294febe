//! Alarms in order of time: a heap of lazy entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use farlink_core::Time;

/// What an alarm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A hop in which packets wait may send the next one. It comes first, so that this packet has left at the instant's
    /// other events.
    Departure,
    /// A link with listeners may change. It precedes the instant's other events, so that they see the new state.
    Link,
    /// A frame that is damaged beyond use arrives at a station with listeners.
    Corrupted,
    /// An endpoint's timeout.
    Endpoint,
    /// A traffic source: its start or its next write.
    Source,
    /// An endpoint or a gateway goes down.
    Down,
    /// It comes back up.
    Up,
}

/// Denotes the chains of split flows in place of a protocol's number.
pub(super) const CHAINS: u8 = u8::MAX;

/// The target of an alarm. The order of the fields breaks ties, so that runs are reproducible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alarm {
    pub(super) event: Kind,
    pub(super) kind: u8,
    pub(super) side: u8,
    pub(super) flow: u32,
}

/// All armed alarms.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Time, Alarm)>>,
    /// When the first alarm is due, cached because it is read at every event.
    next: Time,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new(), next: Time::NEVER }
    }
}

impl Timers {
    /// When the next alarm is due.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    pub(super) fn push(&mut self, at: Time, alarm: Alarm) {
        self.next = self.next.min(at);
        self.heap.push(Reverse((at, alarm)));
    }

    /// Whether no endpoint and no source has an alarm, so that only links will change.
    pub(super) fn has_only_links(&self) -> bool {
        // Few alarms are of links, so the search ends soon.
        self.heap.iter().all(|entry| entry.0.1.event == Kind::Link)
    }

    /// When the last of the sources' alarms is due.
    pub(super) fn last_of_sources(&self) -> Option<Time> {
        let of_sources = self.heap.iter().filter(|entry| entry.0.1.event == Kind::Source);
        of_sources.map(|entry| entry.0.0).max()
    }

    /// Removes the next alarm.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn pop(&mut self) -> Alarm {
        let alarm = self.heap.pop().expect("an alarm was due").0.1;
        self.next = self.heap.peek().map_or(Time::NEVER, |entry| entry.0.0);
        alarm
    }
}
