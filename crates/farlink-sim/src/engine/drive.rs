//! Brings packets from links to endpoints and from endpoints to links.
//!
//! The two sides of a flow interact through links only, and a link delivers in the order of sending. So a train, packets at equal
//! distances, may be handled in one step: nothing that the other side does meanwhile can arrive before the train's last packet.
//! Alarms and the ends of the warm-up and of the run can come between its packets, and a train is handled only up to the next of these.

use farlink_core::protocol::tcp::trains::{Plain, Train};
use farlink_core::{Integrity, LinkHint, Rx, Time, Transmit};

use super::STEPS_BETWEEN_CHECKS;
use super::flow::Flow;
use super::path::{Arrived, OnLink, Path};
use super::runs::Runs;
use super::timers::Timers;
use super::tracing::Tracer;

/// The state that all flows share.
pub(super) struct World<'a, T> {
    pub(super) path: Path,
    pub(super) timers: Timers,
    pub(super) tracer: &'a mut T,
    /// Flows that have not ended.
    pub(super) open_flows: u64,
    /// Number of events and of packets in trains so far.
    pub(super) steps: u64,
    /// Returns whether the run is to stop.
    pub(super) is_stopped: &'a dyn Fn() -> bool,
    /// Whether `is_stopped` was true while a flow was sending.
    pub(super) has_stopped: bool,
}

impl<T: Tracer> World<'_, T> {
    /// Passes the packet at the end of a link to the next link or to its endpoint. The packets of its train that arrive by `until` are
    /// handled with it if the result is the same. Returns the arrival time of the last packet handled.
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

    /// Passes a packet, or a train, to the endpoint of one side.
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
        if let Some((packet, rx, sent)) = self.path.open_whole::<P>(link) {
            if SIDE == 1
                && !T::LOOKS
                && flow.relay.is_none()
                && let Some(absorbed) = flow.ends[1].absorb(now, packet, rx)
            {
                flow.on_arrival::<P>(now, packet, sent);
                if absorbed.bytes > 0 {
                    flow.on_read(now, absorbed.bytes);
                }
                if absorbed.has_set_timer {
                    flow.arm(1, now, index, P::KIND, &mut self.timers);
                }
                self.path.skip::<P>(link, 1);
                return now;
            }
            Self::hand_over::<SIDE, P, E>(self.tracer, flow, now, packet, rx, sent);
            self.path.skip::<P>(link, 1);
        } else {
            let Arrived { packet, rx, sent } = self.path.take::<P>(link);
            Self::hand_over::<SIDE, P, E>(self.tracer, flow, now, &packet, rx, sent);
        }
        self.pump_seldom::<SIDE, P, E>(flow, index, now);
        now
    }

    /// An endpoint handles a packet, and the flow accounts for it.
    #[inline(always)]
    fn hand_over<const SIDE: usize, P: OnLink, E: Runs<P>>(
        tracer: &mut T,
        flow: &mut Flow<E>,
        now: Time,
        packet: &P,
        rx: Rx,
        sent: Time,
    ) {
        if SIDE == 0 {
            tracer.packet(now, 0, flow.id, packet, rx.ecn);
        }
        flow.ends[SIDE].handle_packet(now, packet, rx);
        if SIDE == 1 && matches!(rx.integrity, Integrity::Intact | Integrity::Mended { .. }) {
            flow.on_arrival::<P>(now, packet, sent);
        }
    }

    /// Handles as many packets of a train as the endpoint takes in one step; returns the arrival time of the last one.
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
        // All that can be read has been read.
        self.send_plain::<SIDE, P, E>(flow, index, last);
        Some(last)
    }

    /// As [`pump_seldom`](Self::pump_seldom), while all packets to send are plain.
    #[inline(always)]
    fn pump_plain<const SIDE: usize, P: OnLink, E: Runs<P>>(&mut self, flow: &mut Flow<E>, index: u32, now: Time) {
        if SIDE == 1 {
            flow.read(now);
        }
        self.send_plain::<SIDE, P, E>(flow, index, now);
    }

    /// Sends while all packets to send are plain, and sets the endpoint's timer.
    #[inline(always)]
    fn send_plain<const SIDE: usize, P: OnLink, E: Runs<P>>(&mut self, flow: &mut Flow<E>, index: u32, now: Time) {
        let link = flow.route.first[SIDE];
        loop {
            match flow.ends[SIDE].poll_plain(now) {
                Plain::Send(mut plain) => {
                    if SIDE == 0 {
                        flow.on_transmit(now, &plain);
                    }
                    let ecn = P::ecn(&plain);
                    self.path.send::<P>(link, now, index, &mut plain, ecn, &mut flow.counts, &mut self.timers);
                }
                Plain::Nothing => return flow.arm(SIDE, now, index, P::KIND, &mut self.timers),
                Plain::Ask => return self.pump_seldom::<SIDE, P, E>(flow, index, now),
            }
        }
    }

    /// Lets one side's endpoint read, send, report events and set its timer. Usual packets take the shortcut, so that one copy of this
    /// code serves all callers.
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
            while let Some(mut transmit) = flow.ends[SIDE].poll_transmit(now) {
                if SIDE == 0 {
                    flow.on_transmit(now, &transmit.packet);
                    self.tracer.packet(now, 1, flow.id, &transmit.packet, transmit.ecn);
                }
                let Transmit { packet, ecn, .. } = &mut transmit;
                let is_queued = self.path.send::<P>(link, now, index, packet, *ecn, &mut flow.counts, &mut self.timers);
                if !is_queued && flow.ends[SIDE].wants_hints() && transmit.token != 0 {
                    let hint = LinkHint::Dropped { token: transmit.token };
                    flow.ends[SIDE].handle_link(now, hint);
                }
                // A whole file may be sent at one instant.
                sent += 1;
                if sent.is_multiple_of(STEPS_BETWEEN_CHECKS) && (self.is_stopped)() {
                    self.has_stopped = true;
                    self.steps += STEPS_BETWEEN_CHECKS; // the next look is now
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
            self.tracer.packets(now, flow.id, flow.counts.sent_packets, flow.counts.dropped_packets);
        }
        flow.arm(SIDE, now, index, P::KIND, &mut self.timers);
    }
}
