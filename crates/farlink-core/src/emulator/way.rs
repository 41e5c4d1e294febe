//! One way through a path: the hops one behind the other, and the packets in them.

use std::collections::VecDeque;

use super::{Counts, Departure, Parcel};
use crate::hop::{Entry, Hop, Outcome, Place, Ticket};
use crate::link::{LinkState, Verdict};
use crate::time::Time;

pub(super) struct Way<P> {
    /// Never empty.
    legs: Vec<Leg<P>>,
    counts: Counts,
    held_bytes: u64,
    most_bytes: u64,
}

/// A hop and its packets.
struct Leg<P> {
    hop: Hop,
    /// Packets that wait in the hop, by ticket.
    waiting: Vec<Option<Kept<P>>>,
    /// Packets whose arrival at the end of the hop is known, in the order of arrival.
    under_way: VecDeque<(Time, Kept<P>)>,
}

/// A packet and what is known of it.
struct Kept<P> {
    packet: P,
    came: Time,
    is_damaged: bool,
    is_marked: bool,
}

impl<P> Leg<P> {
    fn next_arrival(&self) -> Time {
        self.under_way.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn keep(&mut self, ticket: Ticket, kept: Kept<P>) {
        if self.waiting.len() <= ticket.index() {
            self.waiting.resize_with(ticket.index() + 1, || None);
        }
        self.waiting[ticket.index()] = Some(kept);
    }
}

impl<P: Parcel> Way<P> {
    pub(super) fn new(hops: Vec<Hop>, most_bytes: u64) -> Self {
        let leg = |hop| Leg { hop, waiting: Vec::new(), under_way: VecDeque::new() };
        Way { legs: hops.into_iter().map(leg).collect(), counts: Counts::default(), held_bytes: 0, most_bytes }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(super) fn is_up(&mut self, now: Time) -> bool {
        self.legs.iter_mut().all(|leg| leg.hop.state(now).0.up)
    }

    pub(super) fn first_link(&mut self, now: Time) -> (LinkState, Time) {
        self.legs.first_mut().expect("a path has a hop").hop.state(now)
    }

    pub(super) fn handle_packet(&mut self, now: Time, packet: P) {
        self.advance(now);
        let bytes = u64::from(packet.wire_bytes());
        self.counts.in_packets += 1;
        self.counts.in_bytes += bytes;
        if self.held_bytes + bytes > self.most_bytes {
            self.counts.refused += 1;
            return;
        }
        self.held_bytes += bytes;
        self.put(0, now, Kept { packet, came: now, is_damaged: false, is_marked: false });
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.next_decision().min(self.last().next_arrival())
    }

    pub(super) fn poll(&mut self, now: Time) -> Option<Departure<P>> {
        self.advance(now);
        if self.last().next_arrival() > now {
            return None;
        }
        let last = self.legs.len() - 1;
        let (due, Kept { packet, came, is_damaged, is_marked }) = self.legs[last].under_way.pop_front()?;
        self.held_bytes -= u64::from(packet.wire_bytes());
        self.counts.leave(packet.wire_bytes(), due.since(came));
        self.counts.damaged += u64::from(is_damaged);
        self.counts.marked += u64::from(is_marked);
        Some(Departure { due, came, packet })
    }

    fn last(&self) -> &Leg<P> {
        self.legs.last().expect("a path has a hop")
    }

    /// When a hop decides about packets that wait in it, or a packet goes on to the next hop.
    fn next_decision(&self) -> Time {
        let (last, others) = self.legs.split_last().expect("a path has a hop");
        others.iter().map(|leg| leg.next_arrival().min(leg.hop.poll_timeout())).fold(last.hop.poll_timeout(), Time::min)
    }

    /// Does what hops do by `now`, in the order of the engine: at one instant what leaves a queue first, then what arrives, both from the
    /// first hop on.
    fn advance(&mut self, now: Time) {
        loop {
            let at = self.next_decision();
            if at > now || at == Time::NEVER {
                return;
            }
            if let Some(index) = self.legs.iter().position(|leg| leg.hop.poll_timeout() <= at) {
                self.serve(index, at);
            } else if let Some(index) = self.legs.iter().position(|leg| leg.next_arrival() <= at)
                && let Some((_, kept)) = self.legs[index].under_way.pop_front()
            {
                self.put(index + 1, at, kept);
            }
        }
    }

    /// Lets a hop decide about the packets that wait in it.
    fn serve(&mut self, index: usize, at: Time) {
        self.legs[index].hop.handle_timeout(at);
        while let Some((ticket, outcome)) = self.legs[index].hop.poll(at) {
            let leg = &mut self.legs[index];
            let Some(kept) = leg.waiting.get_mut(ticket.index()).and_then(Option::take) else { continue };
            match outcome {
                Outcome::Sent(verdict) => self.carry(index, verdict, kept),
                Outcome::ComesOut => leg.under_way.push_back((at, kept)),
                Outcome::Lost | Outcome::CutOff => {
                    self.counts.lost += 1;
                    self.forget(&kept);
                }
            }
        }
    }

    /// Puts a packet into a hop.
    fn put(&mut self, index: usize, now: Time, kept: Kept<P>) {
        let leg = &mut self.legs[index];
        match leg.hop.send(now, kept.packet.wire_bytes(), kept.packet.class()) {
            Entry::Sent(verdict) => self.carry(index, verdict, kept),
            Entry::Waits(ticket) => leg.keep(ticket, kept),
        }
    }

    /// Does to a packet what a link decided.
    fn carry(&mut self, index: usize, verdict: Verdict, mut kept: Kept<P>) {
        let leg = &mut self.legs[index];
        let at = match verdict {
            Verdict::Arrives(at) => at,
            Verdict::Damaged(at) => {
                if !kept.packet.damage(leg.hop.wrong_bits()) {
                    self.counts.ruined += 1;
                    return self.forget(&kept);
                }
                kept.is_damaged = true;
                at
            }
            Verdict::Lost => {
                self.counts.lost += 1;
                return self.forget(&kept);
            }
            Verdict::Dropped => {
                self.counts.dropped += 1;
                return self.forget(&kept);
            }
        };
        kept.is_marked |= leg.hop.is_marking() && kept.packet.mark();
        match leg.hop.place(at) {
            Place::Behind(at) => leg.under_way.push_back((at, kept)),
            Place::InFront(at) => {
                let index = leg.under_way.partition_point(|(other, _)| *other <= at);
                leg.under_way.insert(index, (at, kept));
            }
        }
    }

    fn forget(&mut self, kept: &Kept<P>) {
        self.held_bytes -= u64::from(kept.packet.wire_bytes());
    }
}
