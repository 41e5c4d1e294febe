//! Which connection a segment belongs to, which segments open one, and which connections are forgotten.

use std::collections::btree_map::Entry;

use crate::endpoint::{Endpoint, Rx};
use crate::event::Abort;
use crate::payload::Payload;
use crate::rng::RandomSource;
use crate::time::Time;

use super::super::admission::{Reset, Screened, Verdict, judge, screen};
use super::super::config::AerotpConfig;
use super::super::connection::{Arrival, Connection};
use super::super::peer::Peer;
use super::super::rate::CommonRate;
use super::super::segment::{Flags, Segment};
use super::{Accepted, Acceptor, Handle, Last};

/// A half-open connection whose peer has been silent for so many of the longest intervals of repetitions gives way to another one.
/// `[H3]`
const SILENT_OPENINGS: u64 = 2;

impl<A: Copy + Ord, D: Payload> Acceptor<A, D> {
    /// Passes a segment to the connection of its sender, or opens one. `[H1]`
    pub(super) fn route(
        &mut self,
        now: Time,
        from: A,
        segment: &Segment<D>,
        rx: Rx,
        random: &mut dyn RandomSource,
        rate: Option<&mut CommonRate>,
    ) -> Option<Handle> {
        let present = match self.addresses.get(&from) {
            Some(&Last::Kept(handle)) => Some(handle),
            _ => None,
        };
        if let Some((handle, it)) = present.and_then(|handle| Some((handle, self.connections.get_mut(&handle)?))) {
            self.agenda.touch(handle);
            let arrival = match rate {
                Some(rate) => rate.lend(&mut it.connection, |it| it.handle(now, segment, rx)),
                None => it.connection.handle(now, segment, rx),
            };
            if arrival == Arrival::Done {
                return match it.connection.take_successor() {
                    Some((opening, rx)) => self.open(now, from, &opening, rx, random),
                    None => Some(handle),
                };
            }
        } else {
            let screened = screen(&self.config, segment, rx);
            if screened != Screened::Passed {
                self.refused.dropped.count(screened);
                return None;
            }
            if segment.flags.has(Flags::RESET) {
                self.refused.dropped.stray += 1; // it resets nothing
                return None;
            }
        }
        match judge(self.past(from).as_ref(), now, segment) {
            Verdict::Opens => self.open(now, from, segment, rx, random),
            Verdict::Late => {
                self.refused.dropped.stray += 1;
                // The clock of a peer that restarted may be behind.
                if let Some(kept) = present.and_then(|handle| self.get_mut(handle)) {
                    kept.on_late(now, segment, rx);
                }
                None
            }
            Verdict::Refused => {
                self.refused.dropped.stray += 1;
                self.answer(from, segment);
                None
            }
        }
    }

    /// The last peer at an address.
    fn past(&self, address: A) -> Option<Peer> {
        match self.addresses.get(&address)? {
            Last::Kept(handle) => self.connections.get(handle)?.connection.peer().copied(),
            Last::Removed { peer, .. } => Some(*peer),
        }
    }

    /// Answers a segment of no connection with a reset. At most one waits for each address, and at most as many as connections may
    /// be half open. `[H6]`
    fn answer(&mut self, to: A, segment: &Segment<D>) {
        let is_waiting = self.resets.iter().any(|(waiting, _)| *waiting == to);
        if let Some(reset) = Reset::to(segment, None)
            && !is_waiting
            && self.resets.len() < self.limits.half_open
        {
            self.resets.push_back((to, reset));
        }
    }

    /// Opens a connection, if there is room for it. The present one of the same peer, if it has not ended, ends first. `[C12]`
    fn open(
        &mut self,
        now: Time,
        from: A,
        segment: &Segment<D>,
        rx: Rx,
        random: &mut dyn RandomSource,
    ) -> Option<Handle> {
        // First, because a half-open one leaves its place in the backlog.
        if let Some(&Last::Kept(handle)) = self.addresses.get(&from) {
            match self.get_mut(handle) {
                Some(present) if present.is_unfinished() => present.abort(Abort::PeerRestarted),
                _ => self.remove(handle),
            }
        }
        if !self.make_room(now) {
            self.refused.full += 1;
            return None;
        }
        let mut connection = Connection::listen(&self.config, random);
        connection.move_origin(self.moved);
        connection.set_timer_lateness(self.timer_lateness);
        if self.is_link_down {
            connection.set_link_down();
        }
        if self.shares_rate {
            connection.share_rate();
        }
        connection.open(now, segment, rx);
        let handle = Handle(self.next);
        self.next += 1;
        self.connections.insert(handle, Accepted { address: from, connection });
        self.agenda.touch(handle);
        self.forget_past(from);
        self.addresses.insert(from, Last::Kept(handle));
        Some(handle)
    }

    /// Makes room for a connection, half open at first; whether there is some.
    fn make_room(&mut self, now: Time) -> bool {
        let half_open = self.connections.iter().filter(|(_, it)| it.connection.is_half_open());
        let (mut count, mut quietest) = (0, None);
        for (&handle, it) in half_open {
            count += 1;
            let heard = it.connection.last_received();
            if quietest.is_none_or(|(least, _)| heard < least) {
                quietest = Some((heard, handle));
            }
        }
        if count >= self.limits.half_open {
            // `[H3]`
            let patience = self.config.longest_repetition().times(SILENT_OPENINGS);
            let quiet = quietest.filter(|(heard, _)| now >= *heard + patience);
            let Some(quiet) = quiet.and_then(|(_, handle)| self.get_mut(handle)) else { return false };
            quiet.abort(Abort::NoAnswer);
        }
        if self.connections.len() >= self.limits.connections {
            // `[H4]`
            let ended = self.connections.iter().filter(|(_, it)| it.connection.has_ended());
            let Some((&oldest, _)) = ended.min_by_key(|(_, it)| it.connection.last_received()) else { return false };
            self.remove(oldest);
        }
        true
    }

    /// Discards a connection at once, whatever its state. Its peer gets resets from now on, and its segments in flight
    /// open no connection. `[H5]`
    pub fn remove(&mut self, handle: Handle) {
        let Some(Accepted { address, connection }) = self.connections.remove(&handle) else { return };
        self.agenda.remove(handle);
        let until = connection.last_received() + self.config.listen_timeout();
        if let Entry::Occupied(mut last) = self.addresses.entry(address)
            && matches!(last.get(), Last::Kept(kept) if *kept == handle)
        {
            match connection.peer() {
                Some(&peer) => {
                    *last.get_mut() = Last::Removed { peer, until };
                    self.past.insert((until, address));
                }
                None => drop(last.remove()),
            }
        }
        self.bound_past();
    }

    /// As many past peers are remembered as there may be connections; of more, the one goes that would be forgotten first.
    fn bound_past(&mut self) {
        if self.past.len() > self.limits.connections
            && let Some(&(_, first)) = self.past.first()
        {
            self.forget_past(first);
        }
    }

    /// Forgets the removed peer of an address, if there is one.
    pub(super) fn forget_past(&mut self, address: A) {
        if let Some(&Last::Removed { until, .. }) = self.addresses.get(&address) {
            self.addresses.remove(&address);
            self.past.remove(&(until, address));
        }
    }

    /// Discards a connection that has been quiet for long enough. `[H5]`
    pub(super) fn forget(&mut self, now: Time, handle: Handle) {
        let is_over = self.connections.get(&handle).is_some_and(|Accepted { connection, .. }| {
            connection.is_closed() && connection.has_told_end() && now >= connection.remembered_until()
        });
        if is_over && let Some(Accepted { address, .. }) = self.connections.remove(&handle) {
            self.agenda.remove(handle);
            if matches!(self.addresses.get(&address), Some(Last::Kept(kept)) if *kept == handle) {
                self.addresses.remove(&address);
            }
        }
    }

    /// When a connection has something to do.
    pub(super) fn timeout_of(config: &AerotpConfig, connection: &Connection<D>) -> Time {
        if connection.is_closed() {
            return connection.remembered_until();
        }
        let own = connection.poll_timeout().unwrap_or(Time::NEVER);
        if connection.is_half_open() {
            own.min(connection.last_received() + config.give_up_after_s.time())
        } else {
            own
        }
    }
}
