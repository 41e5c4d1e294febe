//! Alarms in order of time: a heap of lazy entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use farlink_core::Time;

/// Purpose of an alarm.
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

impl Kind {
    /// All of them, in order.
    const ALL: [Kind; 7] =
        [Kind::Departure, Kind::Link, Kind::Corrupted, Kind::Endpoint, Kind::Source, Kind::Down, Kind::Up];
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

/// An alarm and when it is due, in one number that orders like the two: the heap compares at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Time, alarm: Alarm) -> Self {
        let Alarm { event, kind, side, flow } = alarm;
        let alarm = u64::from(event as u8) << 48 | u64::from(kind) << 40 | u64::from(side) << 32 | u64::from(flow);
        Entry(u128::from(at.as_ps()) << 64 | u128::from(alarm))
    }

    fn at(self) -> Time {
        Time::from_ps((self.0 >> 64) as u64)
    }

    fn alarm(self) -> Alarm {
        let Entry(bits) = self;
        Alarm { event: self.event(), kind: (bits >> 40) as u8, side: (bits >> 32) as u8, flow: bits as u32 }
    }

    fn event(self) -> Kind {
        Kind::ALL[usize::from((self.0 >> 48) as u8)]
    }
}

/// All armed alarms.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
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
        self.heap.push(Reverse(Entry::new(at, alarm)));
    }

    /// Whether no endpoint and no source has an alarm, so that only links will change.
    pub(super) fn has_only_links(&self) -> bool {
        // Few alarms are of links, so the search ends soon.
        self.heap.iter().all(|entry| entry.0.event() == Kind::Link)
    }

    /// When the last of the sources' alarms is due.
    pub(super) fn last_of_sources(&self) -> Option<Time> {
        let of_sources = self.heap.iter().filter(|entry| entry.0.event() == Kind::Source);
        of_sources.map(|entry| entry.0.at()).max()
    }

    /// Removes the next alarm.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn pop(&mut self) -> Alarm {
        let Reverse(entry) = self.heap.pop().expect("an alarm was due");
        self.next = self.heap.peek().map_or(Time::NEVER, |entry| entry.0.at());
        entry.alarm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_orders_like_its_parts_and_gives_them_back() {
        assert!(Kind::ALL.iter().enumerate().all(|(number, &kind)| kind as usize == number));
        let parts = [0_u8, 1, 255];
        let mut all = Vec::new();
        for at in [Time::ZERO, Time::from_ps(1), Time::NEVER] {
            for event in Kind::ALL {
                for (kind, side) in parts.into_iter().flat_map(|kind| parts.map(|side| (kind, side))) {
                    all.extend([0, 7, u32::MAX].map(|flow| (at, Alarm { event, kind, side, flow })));
                }
            }
        }
        assert!(all.is_sorted());
        let entries: Vec<Entry> = all.iter().map(|&(at, alarm)| Entry::new(at, alarm)).collect();
        assert!(entries.is_sorted_by(|one, other| one < other));
        assert!(entries.iter().zip(&all).all(|(entry, &(at, alarm))| (entry.at(), entry.alarm()) == (at, alarm)));
    }
}
