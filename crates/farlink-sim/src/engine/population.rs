//! The flows of one protocol, as the engine sees them wherever it does not matter which protocol it is.
//!
//! What happens to each packet is compiled for each protocol ([`World::arrive`]). Everything else, which happens once for a flow, a
//! timer or a hint, goes through [`Flows`].

use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::trains::Train;
use farlink_core::{LinkHint, Time};

use super::delays::Shared;
use super::drive::World;
use super::flow::{Birth, Flow, FlowResult};
use super::hints::{Hints, Listener};
use super::path::{Left, OnLink};
use super::relay::Joint;
use super::route::Route;
use super::runs::Runs;
use super::source::Source;
use super::split::UNTRACED;
use super::timers::{Alarm, Kind, Timers};
use super::tracing::Tracer;

/// All flows of one protocol.
pub(super) struct Population<P: OnLink, E> {
    pub(super) flows: Vec<Flow<E>>,
    /// What an endpoint sends in answer to a train: filled and emptied at once.
    pub(super) trains: Vec<Train<P::Common>>,
}

impl<P: OnLink, E> Default for Population<P, E> {
    fn default() -> Self {
        Population { flows: Vec::new(), trains: Vec::new() }
    }
}

/// An endpoint that is made from a scenario's transport.
pub(super) trait FromTransport: Sized {
    /// The two ends of a connection.
    ///
    /// # Panics
    /// If the transport is one of another protocol.
    fn pair(transport: &TransportConfig, seed: u64) -> (Self, Self);
}

/// Flows of any protocol, by index.
pub(super) trait Flows<T: Tracer> {
    /// Adds a flow that starts later; returns its index.
    fn add(
        &mut self,
        transport: &TransportConfig,
        seed: u64,
        birth: Birth,
        class: u8,
        at: &mut Place<'_, '_, T>,
    ) -> u32;

    /// Another endpoint takes the place of one that is gone.
    fn replace(&mut self, flow: u32, side: usize, transport: &TransportConfig, seed: u64, now: Time, hints: &mut Hints);

    /// A flow as relays see it.
    fn joint(&mut self, flow: u32) -> &mut dyn Joint;

    /// Lets one side of a flow act, if it is up.
    fn pump(&mut self, flow: u32, side: usize, now: Time, world: &mut World<'_, T>);

    /// The application at side 0 begins anew.
    fn begin_source(&mut self, flow: u32, source: Source, now: Time, timers: &mut Timers);

    /// The links between a flow's ends, and which of the ends want hints.
    fn listeners(&self, flow: u32) -> (Route, [bool; 2]);

    /// Gives an endpoint a hint and lets it act; nothing if it is down.
    fn tell(&mut self, listener: Listener, at: Time, hint: LinkHint, world: &mut World<'_, T>);

    /// A packet waits no longer in a hop.
    fn leave(&mut self, flow: u32, link: usize, now: Time, left: Left, world: &mut World<'_, T>);

    /// An endpoint's or a source's alarm rings.
    fn fire(&mut self, alarm: Alarm, at: Time, world: &mut World<'_, T>);

    /// Each flow fills the histogram of its row: that of the scenario's flow and its number.
    fn keep_histograms(&mut self, of_row: &dyn Fn(usize, u64) -> Shared);

    /// When something was written or delivered last.
    fn last_sign_of_life(&self) -> Time;

    /// The warm-up is over.
    fn begin_measurement(&mut self, since: Time);

    /// Takes the results of all flows: of those that are whole into `all`, of those over the gateways' hop into the parts of
    /// their chain.
    fn take_results(&mut self, end: Time, warmup: Time, all: &mut Vec<FlowResult>, parts: &mut [Vec<FlowResult>]);
}

/// Where a flow is added.
pub(super) struct Place<'a, 'w, T> {
    pub(super) hints: &'a mut Hints,
    pub(super) world: &'a mut World<'w, T>,
}

impl<T: Tracer, P: OnLink, E: FromTransport + Runs<P>> Flows<T> for Population<P, E> {
    fn add(
        &mut self,
        transport: &TransportConfig,
        seed: u64,
        birth: Birth,
        class: u8,
        at: &mut Place<'_, '_, T>,
    ) -> u32 {
        let (kind, ends) = (P::KIND, E::pair(transport, seed));
        let index = self.flows.len();
        at.hints.add(kind, &ends, index, &birth.route);
        at.world.path.protect(kind, index, transport.as_dyn().correction());
        at.world.path.classify(kind, index, class);
        if birth.relay.is_none() {
            let alarm = Alarm { event: Kind::Source, kind, side: 0, flow: index as u32 };
            at.world.timers.push(birth.start, alarm);
        }
        self.flows.push(Flow::new(ends, birth));
        index as u32
    }

    fn replace(
        &mut self,
        flow: u32,
        side: usize,
        transport: &TransportConfig,
        seed: u64,
        now: Time,
        hints: &mut Hints,
    ) {
        let (client, server) = E::pair(transport, seed);
        let flow = &mut self.flows[flow as usize];
        flow.replace(side, if side == 0 { client } else { server });
        if flow.ends[side].wants_hints() {
            let station = hints.station(flow.route.first[side], flow.route.heard(side));
            for hint in hints.introduction(station).into_iter().flatten() {
                flow.ends[side].handle_link(now, hint);
            }
        }
    }

    fn joint(&mut self, flow: u32) -> &mut dyn Joint {
        &mut self.flows[flow as usize]
    }

    fn pump(&mut self, index: u32, side: usize, now: Time, world: &mut World<'_, T>) {
        let flow = &mut self.flows[index as usize];
        match side {
            _ if !flow.route.is_up(side) => {}
            0 => world.pump_seldom::<0, _, _>(flow, index, now),
            _ => world.pump_seldom::<1, _, _>(flow, index, now),
        }
    }

    fn begin_source(&mut self, index: u32, source: Source, now: Time, timers: &mut Timers) {
        self.flows[index as usize].begin_source(source, now, index, P::KIND, timers);
    }

    fn listeners(&self, flow: u32) -> (Route, [bool; 2]) {
        let flow = &self.flows[flow as usize];
        (flow.route, [0, 1].map(|side: usize| flow.ends[side].wants_hints()))
    }

    fn tell(&mut self, listener: Listener, at: Time, hint: LinkHint, world: &mut World<'_, T>) {
        let (index, side) = (listener.flow, usize::from(listener.side));
        let flow = &mut self.flows[index as usize];
        if flow.route.is_up(side) {
            flow.ends[side].handle_link(at, hint);
            // Before its source starts, an endpoint does not act.
            if flow.start < at {
                self.pump(index, side, at, world);
            }
        }
    }

    fn leave(&mut self, index: u32, link: usize, now: Time, left: Left, world: &mut World<'_, T>) {
        let counts = &mut self.flows[index as usize].counts;
        world.path.leave::<P>(link, now, index, left, counts, &mut world.timers);
    }

    fn fire(&mut self, alarm: Alarm, at: Time, world: &mut World<'_, T>) {
        let (index, side) = (alarm.flow, usize::from(alarm.side));
        let flow = &mut self.flows[index as usize];
        if alarm.event == Kind::Endpoint {
            if flow.armed[side] != at {
                return; // an entry that was replaced by a sooner one
            }
            flow.armed[side] = Time::NEVER;
            flow.ends[side].handle_timeout(at);
            if side == 0 {
                world.pump_seldom::<0, _, _>(flow, index, at);
            } else {
                world.pump_seldom::<1, _, _>(flow, index, at);
            }
            return;
        }
        let begins = flow.start == at;
        if flow.on_source(at, index, alarm.kind, &mut world.timers) {
            world.pump_seldom::<0, _, _>(flow, index, at);
        }
        if begins {
            // The other side may open as well, without data.
            world.pump_seldom::<1, _, _>(flow, index, at);
        }
    }

    fn keep_histograms(&mut self, of_row: &dyn Fn(usize, u64) -> Shared) {
        for flow in &mut self.flows {
            flow.keep_histogram(of_row(flow.spec, flow.number));
        }
    }

    fn last_sign_of_life(&self) -> Time {
        self.flows.iter().map(Flow::last_sign_of_life).fold(Time::ZERO, Time::max)
    }

    fn begin_measurement(&mut self, since: Time) {
        self.flows.iter_mut().for_each(|flow| flow.begin_measurement(since));
    }

    fn take_results(&mut self, end: Time, warmup: Time, all: &mut Vec<FlowResult>, parts: &mut [Vec<FlowResult>]) {
        for flow in self.flows.drain(..) {
            match flow.relay.as_ref().map(|relay| relay.chain as usize) {
                None => all.push(flow.result(end, warmup)),
                // Of the connections of a chain, those over the gateways' hop count.
                Some(chain) if flow.id != UNTRACED => parts[chain].push(flow.result(end, warmup)),
                Some(_) => {}
            }
        }
    }
}
