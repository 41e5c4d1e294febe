//! The events that a connection has for its application.

use crate::event::{Abort, Event};

/// Events that wait for the application. Each is pending at most once, so a set of bits holds them in order of importance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::protocol) struct EventSet(u8);

impl EventSet {
    pub(in crate::protocol) const CONNECTED: EventSet = EventSet(1);
    pub(in crate::protocol) const WRITABLE: EventSet = EventSet(2);
    pub(in crate::protocol) const FINISHED: EventSet = EventSet(4);
    pub(in crate::protocol) const CLOSED: EventSet = EventSet(8);
    pub(in crate::protocol) const ABORTED: EventSet = EventSet(16);
    pub(in crate::protocol) const GIVEN_UP: EventSet = EventSet(32);

    #[inline]
    pub(in crate::protocol) fn insert(&mut self, event: EventSet) {
        self.0 |= event.0;
    }

    #[inline]
    pub(in crate::protocol) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(in crate::protocol) fn pop(&mut self) -> Option<Event> {
        let lowest = self.0 & self.0.wrapping_neg();
        self.0 ^= lowest;
        match EventSet(lowest) {
            EventSet::CONNECTED => Some(Event::Connected),
            EventSet::WRITABLE => Some(Event::Writable),
            EventSet::FINISHED => Some(Event::Finished),
            EventSet::CLOSED => Some(Event::Closed),
            EventSet::ABORTED => Some(Event::Aborted(Abort::Reset)),
            EventSet::GIVEN_UP => Some(Event::Aborted(Abort::TooManyRetries)),
            _ => None,
        }
    }
}
