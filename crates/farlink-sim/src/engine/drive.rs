//! Brings packets from links to endpoints and from endpoints to links.
//!
//! The two sides of a flow touch each other through links only, and what a link carries arrives in the order it was sent.
//! So packets that follow each other at equal distances, a train, may be handled in one step although other things happen
//! at the other side meanwhile: nothing that happens there can arrive before them. Alarms may come between them, and
//! the ends of the warm-up and of the run: a train is taken only up to the next of these.

use farlink_core::protocol::tcp::trains::{Plain, Train};
use farlink_core::{Integrity, LinkHint, Time, Transmit};

use super::STEPS_BETWEEN_LOOKS;
use super::flow::Flow;
use super::path::{OnLink, Path};
use super::runs::Runs;
use super::timers::Timers;
use super::tracing::Tracer;

/// What all flows share.
pub(super) struct World<'a, T> {
    pub(super) path: Path,
    pub(super) timers: Timers,
    pub(super) tracer: &'a mut T,
    /// Flows that have not ended.
    pub(super) open_flows: u64,
    /// Events, and packets of trains.
    pub(super) steps: u64,
    /// Whether to stop.
    pub(super) is_stopped: &'a dyn Fn() -> bool,
    /// It was said so while a flow was sending.
    pub(super) has_stopped: bool,
}

impl<T: Tracer> World<'_, T> {
    /// A packet reaches the end of a link: it enters the next, or its endpoint. With it goes the rest of its train that
    /// arrives by `until`, if that makes no difference. Returns when the last of them arrived.
    #[inline(always)]
    pub(super) fn arrive<P: OnLink, E: Runs<P>>(
        &mut self,
        flow: &mut Flow<E>,
        index: u32,
        trains: &mut Vec<Train<P::Common>>,
        link: usize,
        now: Time,
        until: Time,
    ) -> Time {
        if link == flow.route.last[1] {
            return self.enter::<1, P, E>(flow, index, trains, link, now, until);
        }
        if link == flow.route.last[0] {
            return self.enter::<0, P, E>(flow, index, trains, link, now, until);
        }
        match flow.route.next(link) {
            Some(next) => self.path.forward::<P>(link, next, now, index, &mut flow.counts, &mut self.timers),
            None => self.path.discard::<P>(link),
        }
        now
    }

    /// A packet, or a train of them, reaches one side's endpoint.
    #[inline(always)]
    fn enter<const SIDE: usize, P: OnLink, E: Runs<P>>(
        &mut self,
        flow: &mut Flow<E>,
        index: u32,
        trains: &mut Vec<Train<P::Common>>,
        link: usize,
        now: Time,
        until: Time,
    ) -> Time {
        if P::FORMS_TRAINS && !T::LOOKS {
            if let Some(train) = self.path.peek_train::<P>(link, until)
                && let Some(last) = self.ride::<SIDE, P, E>(flow, index, trains, link, &train)
            {
                return last;
            }
            if let Some((plain, sent)) = self.path.peek_plain::<P>(link)
                && flow.ends[SIDE].handle_plain(now, &plain)
            {
                self.path.skip::<P>(link, 1);
                if SIDE == 1 {
                    flow.on_arrival::<P>(now, &plain, sent);
                }
                self.pump_plain::<SIDE, P, E>(flow, index, now);
                return now;
            }
        }
        let arrived = self.path.take::<P>(link);
        if SIDE == 0 {
            self.tracer.packet(now, 0, flow.id, &arrived.packet, arrived.rx.ecn);
        }
        flow.ends[SIDE].handle_packet(now, &arrived.packet, arrived.rx);
        if SIDE == 1 && matches!(arrived.rx.integrity, Integrity::Intact | Integrity::Mended { .. }) {
            flow.on_arrival::<P>(now, &arrived.packet, arrived.sent);
        }
        self.pump_seldom::<SIDE, P, E>(flow, index, now);
        now
    }

    /// Handles as many packets of a train as the endpoint takes in one step; returns when the last of them arrived.
    #[inline(never)]
    fn ride<const SIDE: usize, P: OnLink, E: Runs<P>>(
        &mut self,
        flow: &mut Flow<E>,
        index: u32,
        trains: &mut Vec<Train<P::Common>>,
        link: usize,
        train: &Train<P::Common>,
    ) -> Option<Time> {
        trains.clear();
        let count = flow.ends[SIDE].handle_train(train, trains);
        if count == 0 {
            return None;
        }
        self.steps += u64::from(count);
        self.path.skip::<P>(link, count);
        if SIDE == 1 {
            flow.on_train::<P>(train, count);
        }
        let link = flow.route.first[SIDE];
        for sent in trains.iter() {
            if SIDE == 0 {
                flow.on_transmit_train::<P>(sent);
            }
            self.path.send_train::<P>(link, index, sent, &mut flow.counts, &mut self.timers);
        }
        let last = train.time(count - 1);
        self.pump_plain::<SIDE, P, E>(flow, index, last);
        Some(last)
    }

    /// As [`pump_seldom`](Self::pump_seldom), as long as what is sent is plain.
    #[inline(always)]
    fn pump_plain<const SIDE: usize, P: OnLink, E: Runs<P>>(&mut self, flow: &mut Flow<E>, index: u32, now: Time) {
        if SIDE == 1 {
            flow.read(now);
        }
        let link = flow.route.first[SIDE];
        loop {
            match flow.ends[SIDE].poll_plain(now) {
                Plain::Send(plain) => {
                    if SIDE == 0 {
                        flow.on_transmit(now, &plain);
                    }
                    self.path.send::<P>(link, now, index, &plain, P::ecn(&plain), &mut flow.counts, &mut self.timers);
                }
                Plain::Nothing => return flow.arm(SIDE, now, index, P::KIND, &mut self.timers),
                Plain::Ask => return self.pump_seldom::<SIDE, P, E>(flow, index, now),
            }
        }
    }

    /// Lets one side's endpoint read, send, tell, and set its timer. Usual packets go another way: one copy of this code
    /// serves all others.
    #[inline(never)]
    pub(super) fn pump_seldom<const SIDE: usize, P: OnLink, E: Runs<P>>(
        &mut self,
        flow: &mut Flow<E>,
        index: u32,
        now: Time,
    ) {
        if SIDE == 1 {
            flow.read(now);
        }
        let link = flow.route.first[SIDE];
        let mut sent = 0_u64;
        loop {
            while let Some(transmit) = flow.ends[SIDE].poll_transmit(now) {
                if SIDE == 0 {
                    flow.on_transmit(now, &transmit.packet);
                    self.tracer.packet(now, 1, flow.id, &transmit.packet, transmit.ecn);
                }
                let Transmit { packet, ecn, .. } = &transmit;
                let is_queued = self.path.send::<P>(link, now, index, packet, *ecn, &mut flow.counts, &mut self.timers);
                if !is_queued && flow.ends[SIDE].wants_hints() && transmit.token != 0 {
                    let hint = LinkHint::Dropped { token: transmit.token };
                    flow.ends[SIDE].handle_link(now, hint);
                }
                // All of a file may go out at one instant.
                sent += 1;
                if sent.is_multiple_of(STEPS_BETWEEN_LOOKS) && (self.is_stopped)() {
                    self.has_stopped = true;
                    self.steps += STEPS_BETWEEN_LOOKS; // the next look is now
                    return;
                }
            }
            let mut has_acted = false;
            while let Some(event) = flow.ends[SIDE].poll_event() {
                has_acted |= flow.on_event(SIDE, event, now, &mut self.open_flows);
            }
            if !has_acted {
                break;
            }
        }
        if SIDE == 0 {
            self.tracer.probe(now, flow.id, || flow.ends[0].probe());
        }
        flow.arm(SIDE, now, index, P::KIND, &mut self.timers);
    }
}
