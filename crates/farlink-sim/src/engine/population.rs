//! The flows of one protocol, behind a trait that is the same for all protocols.
//!
//! The handling of packets is compiled for each protocol ([`World::arrive`]). Everything else, which happens once per flow, timer or hint,
//! goes through [`Flows`].

use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::trains::Train;
use farlink_core::{LinkHint, Time};

use super::delays::Shared;
use super::drive::World;
use super::flow::{Flow, FlowResult, NewFlow};
use super::hints::{Hints, Listener};
use super::path::{Departed, OnLink};
use super::relay::RelayedFlow;
use super::route::Route;
use super::runs::Runs;
use super::source::Source;
use super::split::UNTRACED;
use super::timers::{Alarm, Kind, Timers};
use super::tracing::Tracer;

/// All flows of one protocol.
pub(super) struct Population<P: OnLink, E> {
    pub(super) flows: Vec<Flow<E>>,
    /// An endpoint's answer to a train; a buffer, empty between calls.
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
        new_flow: NewFlow,
        class: u8,
        at: &mut Place<'_, '_, T>,
    ) -> u32;

    /// Replaces an endpoint that is gone.
    fn replace(&mut self, flow: u32, side: usize, transport: &TransportConfig, seed: u64, now: Time, hints: &mut Hints);

    /// The view that relays have of a flow.
    fn relayed_flow(&mut self, flow: u32) -> &mut dyn RelayedFlow;

    /// Lets one side of a flow act, if it is up.
    fn pump(&mut self, flow: u32, side: usize, now: Time, world: &mut World<'_, T>);

    /// Restarts the application at side 0.
    fn begin_source(&mut self, flow: u32, source: Source, now: Time, timers: &mut Timers);

    /// The links between a flow's ends, and which of the ends want hints.
    fn listeners(&self, flow: u32) -> (Route, [bool; 2]);

    /// Gives an endpoint a hint and lets it act, unless it is down.
    fn give_hint(&mut self, listener: Listener, at: Time, hint: LinkHint, world: &mut World<'_, T>);

    /// Handles a packet that leaves a hop.
    fn leave(&mut self, flow: u32, link: usize, now: Time, departed: Departed, world: &mut World<'_, T>);

    /// Handles the alarm of an endpoint or a source.
    fn fire(&mut self, alarm: Alarm, at: Time, world: &mut World<'_, T>);

    /// Gives each flow the histogram of its row, found by the scenario's flow and the number in it.
    fn keep_histograms(&mut self, of_row: &dyn Fn(usize, u64) -> Shared);

    /// Time of the last write or delivery.
    fn last_sign_of_life(&self) -> Time;

    /// Starts the measurement at the end of the warm-up.
    fn begin_measurement(&mut self, since: Time);

    /// Moves the results of end-to-end flows to `all`, and those of connections over the gateways' hop to the parts of their chain.
    fn take_results(&mut self, end: Time, warmup: Time, all: &mut Vec<FlowResult>, parts: &mut [Vec<FlowResult>]);
}

/// The engine's state that a new flow is registered with.
pub(super) struct Place<'a, 'w, T> {
    pub(super) hints: &'a mut Hints,
    pub(super) world: &'a mut World<'w, T>,
}

impl<T: Tracer, P: OnLink, E: FromTransport + Runs<P>> Flows<T> for Population<P, E> {
    fn add(
        &mut self,
        transport: &TransportConfig,
        seed: u64,
        new_flow: NewFlow,
        class: u8,
        at: &mut Place<'_, '_, T>,
    ) -> u32 {
        let (kind, ends) = (P::KIND, E::pair(transport, seed));
        let index = self.flows.len();
        at.hints.add(kind, &ends, index, &new_flow.route);
        at.world.path.protect(kind, index, transport.as_dyn().correction());
        at.world.path.classify(kind, index, class);
        if new_flow.relay.is_none() {
            let alarm = Alarm { event: Kind::Source, kind, side: 0, flow: index as u32 };
            at.world.timers.push(new_flow.start, alarm);
        }
        self.flows.push(Flow::new(ends, new_flow));
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
            let station = hints.station(flow.route.first[side], flow.route.incoming(side));
            for hint in hints.current_hints(station).into_iter().flatten() {
                flow.ends[side].handle_link(now, hint);
            }
        }
    }

    fn relayed_flow(&mut self, flow: u32) -> &mut dyn RelayedFlow {
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

    fn give_hint(&mut self, listener: Listener, at: Time, hint: LinkHint, world: &mut World<'_, T>) {
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

    fn leave(&mut self, index: u32, link: usize, now: Time, departed: Departed, world: &mut World<'_, T>) {
        let counts = &mut self.flows[index as usize].counts;
        world.path.leave::<P>(link, now, index, departed, counts, &mut world.timers);
    }

    fn fire(&mut self, alarm: Alarm, at: Time, world: &mut World<'_, T>) {
        let (index, side) = (alarm.flow, usize::from(alarm.side));
        let flow = &mut self.flows[index as usize];
        if alarm.event == Kind::Endpoint {
            if flow.armed[side] != at {
                return; // a stale entry, replaced by an earlier one
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
                // Only a chain's connections over the gateways' hop count.
                Some(chain) if flow.id != UNTRACED => parts[chain].push(flow.result(end, warmup)),
                Some(_) => {}
            }
        }
    }
}
