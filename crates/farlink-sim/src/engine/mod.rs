//! The packet engine: drives the real state machines in virtual time.
//!
//! A link computes each departure when the packet is queued, so a link's packets arrive in the order they were sent: each
//! keeps one ring of what is under way, and the engine takes the earliest head. Timers are lazy: one armed entry per
//! endpoint in a heap, moved only when it fires or must fire sooner.

mod carried;
mod delays;
mod drive;
#[cfg(test)]
mod ear;
mod fifo;
mod flow;
mod hints;
mod path;
mod setup;
mod timers;
mod tracing;

/// An endpoint as it is; in the engine's own tests, with an ear.
#[cfg(not(test))]
mod ear {
    pub(super) type End<E> = E;

    pub(super) fn attach<E>(ends: (E, E)) -> (End<E>, End<E>) {
        ends
    }
}

pub use delays::{DelaySum, Histogram};
pub use flow::FlowResult;
pub use setup::{FlowSetup, HopSetup, Setup, TrafficSetup};
pub use tracing::{NoTrace, Tracer};

use farlink_core::protocol::aerotp;
use farlink_core::protocol::arq::{Frame, Station};
use farlink_core::protocol::stp;
use farlink_core::protocol::tcp::{Connection, Segment};
use farlink_core::protocol::udp::{Datagram, Socket};
use farlink_core::protocol::{Pairs, TransportConfig};
use farlink_core::{Endpoint, LinkHint, PathId, Rng, Time, Virtual};

use delays::Shared;
use drive::World;
use ear::End;
use flow::{Birth, Flow, Population};
use hints::{Hints, Listener};
use path::{OnLink, Path};
use timers::{Alarm, Timers};

/// What a run gives.
pub struct RunResult {
    /// One entry per flow, in the order of [`Setup::flows`] and of the flow's number.
    pub flows: Vec<FlowResult>,
    /// When the run ended.
    pub end: Time,
    /// It ended because nothing was delivered for too long; see [`Setup::give_up_after`].
    pub was_given_up: bool,
    /// Forward and return wire bytes that entered the path.
    pub return_bytes: u64,
    /// Largest queue on the forward path, bytes; `None` if it is not known.
    pub peak_queue_bytes: Option<f64>,
}

/// Declares the protocols that the engine runs: a population of endpoints and a packet ring per link for each, and the
/// transports of a scenario that are run by it.
macro_rules! engine_protocols {
    ($($index:literal $population:ident: $endpoint:ty, $packet:ty, [$($transport:ident),+],)+) => {
        /// How many protocols there are.
        const KINDS: usize = [$($index),+].len();

        struct Engine<'a, T> {
            setup: &'a Setup,
            world: World<'a, T>,
            hints: Hints,
            /// When the latest event so far was.
            now: Time,
            /// Nothing was delivered for too long.
            has_given_up: bool,
            seed: u64,
            run: u64,
            $($population: Population<$endpoint>,)+
        }

        /// The packets on one link, one ring per protocol.
        #[derive(Debug, Default)]
        struct Rings {
            $($population: path::Ring<$packet>,)+
        }

        $(
            impl OnLink for $packet {
                const KIND: u8 = $index;
                #[inline(always)]
                fn ring(rings: &mut Rings) -> &mut path::Ring<Self> {
                    &mut rings.$population
                }
            }
        )+

        impl<'a, T: Tracer> Engine<'a, T> {
            fn new(setup: &'a Setup, world: World<'a, T>, seed: u64, run: u64) -> Self {
                let (hints, now) = (Hints::default(), Time::ZERO);
                let has_given_up = false;
                Engine { setup, world, hints, now, has_given_up, seed, run, $($population: Population::default(),)+ }
            }

            fn add_flow(&mut self, transport: &TransportConfig, endpoint_seed: u64, birth: Birth) {
                match transport {
                    $($(TransportConfig::$transport(config) => {
                        let ends = ear::attach(Pairs::<Virtual>::pair(config, endpoint_seed));
                        let index = self.$population.flows.len();
                        self.hints.add($index, &ends, index, birth.start);
                        self.world.path.protect($index, index, transport.as_dyn().correction());
                        self.$population.add($index, ends, birth, &mut self.world.timers);
                    })+)+
                }
                self.world.open_flows += 1;
            }

            /// The packet at the head of a link's ring has arrived, and what follows it closely by `until`; returns when
            /// the last of them did.
            #[inline]
            fn arrive(&mut self, link: usize, now: Time, until: Time) -> Time {
                let (flow, kind) = self.world.path.head(link);
                match kind {
                    $($index => {
                        let Population { flows, trains } = &mut self.$population;
                        self.world.arrive::<$packet, $endpoint>(&mut flows[flow as usize], flow, trains, link, now, until)
                    })+
                    _ => unreachable!("a packet of an undeclared protocol"),
                }
            }

            fn fire(&mut self, alarm: Alarm, at: Time) {
                match (alarm.event, alarm.kind) {
                    $(
                        (timers::Kind::Endpoint, $index) => {
                            let flow = &mut self.$population.flows[alarm.flow as usize];
                            let side = usize::from(alarm.side);
                            if flow.armed[side] != at {
                                return; // an entry that was replaced by a sooner one
                            }
                            flow.armed[side] = Time::NEVER;
                            flow.ends[side].handle_timeout(at);
                            if side == 0 {
                                self.world.pump_seldom::<0, _, _>(flow, alarm.flow, at);
                            } else {
                                self.world.pump_seldom::<1, _, _>(flow, alarm.flow, at);
                            }
                        }
                        (timers::Kind::Source, $index) => {
                            let flow = &mut self.$population.flows[alarm.flow as usize];
                            flow.on_source(at, alarm.flow, $index, &mut self.world.timers);
                            self.world.pump_seldom::<0, _, _>(flow, alarm.flow, at);
                        }
                    )+
                    _ => unreachable!("an alarm of an undeclared protocol"),
                }
            }

            fn keep_histograms(&mut self) {
                let flows = 0 $(+ self.$population.flows.len())+;
                let of_spec: Vec<Shared> = self.setup.flows.iter().map(|_| Shared::default()).collect();
                $(for flow in &mut self.$population.flows {
                    let is_shared = flows > delays::MOST_HISTOGRAMS;
                    flow.keep_histogram(if is_shared { Shared::clone(&of_spec[flow.spec]) } else { Shared::default() });
                })+
            }

            /// Gives an endpoint a hint and lets it act.
            fn tell(&mut self, side: usize, listener: Listener, at: Time, hint: LinkHint) {
                let Listener { kind, flow: index, start } = listener;
                match kind {
                    $($index => {
                        let flow = &mut self.$population.flows[index as usize];
                        flow.ends[side].handle_link(at, hint);
                        if start >= at {
                            // It will act when its source starts.
                        } else if side == 0 {
                            self.world.pump_seldom::<0, _, _>(flow, index, at);
                        } else {
                            self.world.pump_seldom::<1, _, _>(flow, index, at);
                        }
                    })+
                    _ => unreachable!("a listener of an undeclared protocol"),
                }
            }

            /// When something was written or delivered last.
            fn last_sign_of_life(&self) -> Time {
                let mut last = Time::ZERO;
                $(last = self.$population.flows.iter().map(Flow::last_sign_of_life).fold(last, Time::max);)+
                last
            }

            fn begin_measurement(&mut self) {
                $(self.$population.flows.iter_mut().for_each(Flow::begin_measurement);)+
                self.world.path.begin_measurement();
            }

            fn results(self) -> Vec<FlowResult> {
                let end = self.now;
                let mut all = Vec::new();
                $(all.extend(self.$population.flows.into_iter().map(|flow| flow.result(end, self.setup.warmup)));)+
                all.sort_by_key(|result: &FlowResult| (result.spec, result.number));
                all
            }
        }
    };
}

engine_protocols! {
    0 tcp: End<Connection<Virtual>>, Segment<Virtual>, [Tcp, ScpsTp],
    1 udp: End<Socket<Virtual>>, Datagram<Virtual>, [Udp],
    2 arq: End<Station<Virtual>>, Frame<Virtual>, [Arq],
    3 stp: End<stp::Connection<Virtual>>, stp::Pdu<Virtual>, [Stp],
    4 aerotp: End<aerotp::Connection<Virtual>>, aerotp::Segment<Virtual>, [Aerotp],
}

/// Runs a scenario once; `None` if `is_stopped` said so before the end (it is asked from time to time).
pub fn simulate<T: Tracer>(
    setup: &Setup,
    seed: u64,
    run: u64,
    tracer: &mut T,
    is_stopped: &dyn Fn() -> bool,
) -> Option<RunResult> {
    let world = World { path: Path::new(setup, seed, run), timers: Timers::default(), tracer, open_flows: 0, steps: 0 };
    let mut engine = Engine::new(setup, world, seed, run);
    engine.add_flows();
    for side in [0, 1] {
        if !engine.hints.listeners(side).is_empty() {
            engine.world.path.listen(side);
        }
    }
    engine.spread_news(0, Time::ZERO);
    engine.spread_news(1, Time::ZERO);
    if !engine.execute(is_stopped) {
        return None;
    }
    let (end, was_given_up) = (engine.now, engine.has_given_up);
    let return_bytes = engine.world.path.return_bytes();
    let peak_queue_bytes = engine.world.path.peak_queue_bytes();
    Some(RunResult { flows: engine.results(), end, was_given_up, return_bytes, peak_queue_bytes })
}

impl<T: Tracer> Engine<'_, T> {
    fn add_flows(&mut self) {
        let setup = self.setup;
        let mut id = 0;
        for (spec_index, spec) in setup.flows.iter().enumerate() {
            let mut rng = Rng::for_component(self.seed, self.run, &format!("flow.{}", spec.name));
            for (number, start, source) in spec.instances(setup.duration, &mut rng) {
                let endpoint_seed = rng.below(u64::MAX);
                self.add_flow(&spec.transport, endpoint_seed, Birth { id, spec: spec_index, number, start, source });
                id += 1;
            }
        }
        self.keep_histograms();
    }

    /// The link on one side may have changed; returns when the latest event was.
    #[cold]
    fn on_link(&mut self, side: usize, at: Time, arrival: Time) -> Time {
        // Links may change for ever. Nothing depends on a hint: without end or anything else to come, the run is over.
        let is_at_rest = arrival == Time::NEVER && self.world.timers.has_only_links();
        if self.setup.duration == Time::NEVER && is_at_rest {
            return self.now;
        }
        self.spread_news(side, at);
        at
    }

    /// A frame that is of no use has come in at one side: all who listen there are told.
    #[cold]
    fn on_corrupted(&mut self, side: usize, at: Time) {
        for index in 0..self.hints.listeners(side).len() {
            self.tell(side, self.hints.listeners(side)[index], at, LinkHint::Corrupted(PathId::ONLY));
        }
    }

    /// Tells those who listen on one side what has changed.
    fn spread_news(&mut self, side: usize, at: Time) {
        let news = self.hints.news(side, at, &mut self.world.path, &mut self.world.timers);
        for hint in news.into_iter().flatten() {
            for index in 0..self.hints.listeners(side).len() {
                self.tell(side, self.hints.listeners(side)[index], at, hint);
            }
        }
    }

    /// Until when to wait for something to be delivered.
    #[cold]
    fn patience(&self) -> Time {
        let last_write = self.world.timers.last_of_sources().unwrap_or(Time::ZERO);
        self.last_sign_of_life().max(last_write) + self.setup.give_up_after
    }

    /// Runs to the end; `false` if it was stopped before.
    fn execute(&mut self, is_stopped: &dyn Fn() -> bool) -> bool {
        let mut warmup = if self.setup.warmup > Time::ZERO { self.setup.warmup } else { Time::NEVER };
        let end = self.setup.duration;
        // Beyond this nothing happens without a look at whether anything still comes of it.
        let mut limit = end.min(self.setup.give_up_after);
        let mut next_look = STEPS_BETWEEN_LOOKS;
        loop {
            self.world.steps += 1;
            if self.world.steps >= next_look {
                next_look = self.world.steps + STEPS_BETWEEN_LOOKS;
                if is_stopped() {
                    return false;
                }
            }
            let (link, arrival) = self.world.path.earliest();
            let alarm = self.world.timers.next();
            let next = arrival.min(alarm);
            let is_done = self.world.open_flows == 0 && arrival == Time::NEVER;
            if warmup != Time::NEVER && (next >= warmup || is_done) {
                self.begin_measurement();
                warmup = Time::NEVER;
            }
            if is_done {
                return true; // whatever alarms are left
            }
            if next > limit || next == Time::NEVER {
                limit = end.min(self.patience());
                if next == Time::NEVER || next > end {
                    break;
                }
                if next > limit {
                    (self.has_given_up, self.now) = (true, limit);
                    break;
                }
            }
            // Packets first: an acknowledgement that arrives as the timer expires still counts.
            let last = if arrival <= alarm {
                self.arrive(link, next, alarm.min(limit).min(before(warmup)))
            } else {
                let alarm = self.world.timers.pop();
                match alarm.event {
                    timers::Kind::Link => self.on_link(usize::from(alarm.side), next, arrival),
                    timers::Kind::Corrupted => {
                        self.on_corrupted(usize::from(alarm.side), next);
                        self.now // nothing depends on a hint: the run lasts no longer for it
                    }
                    timers::Kind::Endpoint | timers::Kind::Source => {
                        self.fire(alarm, next);
                        next
                    }
                }
            };
            // A train may be ahead of what happens at the other side.
            self.now = self.now.max(last);
        }
        if end != Time::NEVER {
            self.now = end;
        }
        true
    }
}

/// The last instant before another.
fn before(time: Time) -> Time {
    Time::from_ps(time.as_ps() - 1)
}

/// So many steps, some milliseconds, pass between two looks at whether to stop.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 16;
