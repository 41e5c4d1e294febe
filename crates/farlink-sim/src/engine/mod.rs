//! The packet engine: drives the real state machines in virtual time.
//!
//! A link computes each departure when the packet is queued, so its packets arrive in the order in which they were
//! sent. Each link keeps one ring of packets in flight, and the engine takes the earliest head. Only hops with classes
//! or bundles choose the next packet later. Timers are lazy: each endpoint has one armed entry in a heap, moved only
//! when it fires or must fire sooner.

mod account;
mod carried;
mod chain;
mod counts;
mod delays;
mod drive;
mod fifo;
mod flow;
#[cfg(test)]
mod hint_recorder;
mod hints;
mod lengths;
mod path;
mod population;
mod relay;
mod restart;
mod route;
mod runs;
mod setup;
mod source;
mod split;
mod timers;
mod tracing;

/// The endpoint itself. In the engine's own tests, this module wraps it in a recorder of hints.
#[cfg(not(test))]
mod hint_recorder {
    pub(super) type End<E> = E;

    pub(super) fn attach<E>(ends: (E, E)) -> (End<E>, End<E>) {
        ends
    }
}

pub use delays::{DelaySum, Histogram};
pub use flow::FlowResult;
pub use path::BundleResult;
pub use setup::{FlowSetup, GatewaySetup, RestartSetup, Setup, TrafficSetup};
pub(crate) use split::UNTRACED;
pub use tracing::{NoTrace, Tracer};

use farlink_core::hop::PathCounts;
use farlink_core::link::Capacity;
use farlink_core::protocol::aerotp;
use farlink_core::protocol::arq::{Frame, Station};
use farlink_core::protocol::stp;
use farlink_core::protocol::tcp::{Segment, TcpConnection};
use farlink_core::protocol::udp::{Datagram, Socket};
use farlink_core::protocol::{Pairs, TransportConfig};
use farlink_core::{Event, LinkHint, Rng, Rx, Time, Virtual};

use chain::FlowKey;
use delays::Shared;
use drive::World;
use flow::NewFlow;
use hint_recorder::End;
use hints::{Hints, Listener};
use path::{OnLink, Path};
use population::{Flows, FromTransport, Place, Population};
use relay::{Progress, RelayedFlow};
use route::Route;
use source::Source;
use split::Chains;
use timers::{CHAINS, Timers};

use crate::layout::Layout;

/// Result of a run.
pub struct RunResult {
    /// One entry per flow, in the order of [`Setup::flows`] and of the flow's number.
    pub flows: Vec<FlowResult>,
    /// When the run ended.
    pub end: Time,
    /// Whether it ended because nothing was delivered for too long; see [`Setup::give_up_after`].
    pub was_given_up: bool,
    /// Whether no packet was in flight and no timer set any more, although flows had not ended.
    pub ran_dry: bool,
    /// Forward and return wire bytes that entered the path.
    pub return_bytes: u64,
    /// Capacity of each forward hop.
    pub forward: Vec<Capacity>,
    /// Capacity of the measured hop back: the slowest, or the one between gateways.
    pub back: Capacity,
    /// When the measured hop back has sent everything that it holds at the end of the run, limited to the duration.
    pub back_end: Time,
    /// Largest queue on the forward path, bytes; `None` if it is not known.
    pub peak_queue_bytes: Option<f64>,
    /// Result of the bundles of the path, if there are any.
    pub bundles: Option<BundleResult>,
    /// Counts of each path of the bundles of paths, forward and back.
    pub over_paths: Vec<[PathCounts; 2]>,
}

struct Engine<'a, T> {
    setup: &'a Setup,
    world: World<'a, T>,
    populations: Populations,
    hints: Hints,
    /// Time of the latest event so far.
    now: Time,
    /// Nothing was delivered for too long.
    has_given_up: bool,
    /// No event was left.
    has_run_dry: bool,
    seed: u64,
    run: u64,
    chains: Chains,
    /// Scratch buffers for the data and the events of a connection.
    moved: Vec<Progress>,
    relay_events: Vec<(usize, Event)>,
    /// Whether any flow restarts.
    has_restarts: bool,
    restart_seeds: Rng,
}

/// Declares the protocols that the engine runs: the endpoint, its packet and how links keep that (macros of `carried.rs`), and the
/// transports of a scenario that it runs.
macro_rules! engine_protocols {
    ($($index:literal $population:ident: $endpoint:ty, $packet:ty => $kept:ident, [$($transport:ident),+],)+) => {
        /// How many protocols there are.
        const KINDS: usize = [$($index),+].len();

        /// The flows of each protocol.
        #[derive(Default)]
        struct Populations {
            $($population: Population<$packet, End<$endpoint>>,)+
        }

        /// The packets on one link, one ring per protocol.
        #[derive(Debug, Default)]
        struct Rings {
            $($population: path::Ring<$packet>,)+
        }

        $(
            carried::$kept!($packet, $endpoint);

            impl OnLink for $packet {
                const KIND: u8 = $index;
                #[inline(always)]
                fn ring(rings: &mut Rings) -> &mut path::Ring<Self> {
                    &mut rings.$population
                }
            }

            impl FromTransport for End<$endpoint> {
                fn pair(transport: &TransportConfig, seed: u64) -> (Self, Self) {
                    match transport {
                        $(TransportConfig::$transport(config) => hint_recorder::attach(Pairs::<Virtual>::pair(config, seed)),)+
                        _ => unreachable!("a transport of another protocol"),
                    }
                }
            }
        )+

        /// The protocol by which the engine runs a transport.
        fn kind_of(transport: &TransportConfig) -> u8 {
            match transport {
                $($(TransportConfig::$transport(_) => $index,)+)+
            }
        }

        impl Populations {
            /// The flows of a protocol.
            fn of<T: Tracer>(&mut self, kind: u8) -> &mut dyn Flows<T> {
                match kind {
                    $($index => &mut self.$population,)+
                    _ => unreachable!("an undeclared protocol"),
                }
            }

            /// The packet at the head of a link's ring has arrived, and what follows it closely by `until`; returns
            /// when the last of them did.
            #[inline]
            fn arrive<T: Tracer>(&mut self, world: &mut World<'_, T>, link: usize, now: Time, until: Time) -> Time {
                let (flow, kind) = world.path.head(link);
                match kind {
                    $($index => {
                        let Population { flows, trains } = &mut self.$population;
                        world.arrive::<$packet, End<$endpoint>>(&mut flows[flow as usize], flow, trains, link, now, until)
                    })+
                    _ => unreachable!("a packet of an undeclared protocol"),
                }
            }
        }
    };
}

engine_protocols! {
    0 tcp: TcpConnection<Virtual>, Segment<Virtual> => in_trains, [Tcp, ScpsTp],
    1 udp: Socket<Virtual>, Datagram<Virtual> => whole, [Udp],
    2 arq: Station<Virtual>, Frame<Virtual> => whole, [Arq],
    3 stp: stp::StpConnection<Virtual>, stp::Pdu<Virtual> => whole, [Stp],
    4 aerotp: aerotp::Side<Virtual>, aerotp::Segment<Virtual> => absorbed, [Aerotp],
}

/// Runs a scenario once; `None` if `is_stopped`, which is called from time to time, returned true before the end.
pub fn simulate<T: Tracer>(
    setup: &Setup,
    seed: u64,
    run: u64,
    tracer: &mut T,
    is_stopped: &dyn Fn() -> bool,
) -> Option<RunResult> {
    let world = World {
        path: Path::new(setup, seed, run),
        timers: Timers::default(),
        tracer,
        open_flows: 0,
        steps: 0,
        is_stopped,
        has_stopped: false,
    };
    let mut engine = Engine {
        setup,
        hints: Hints::new(world.path.hops()),
        world,
        populations: Populations::default(),
        now: Time::ZERO,
        has_given_up: false,
        has_run_dry: false,
        seed,
        run,
        chains: Chains::new(),
        moved: Vec::new(),
        relay_events: Vec::new(),
        has_restarts: setup.flows.iter().any(|flow| flow.restart.is_some()),
        restart_seeds: Rng::for_component(seed, run, "restarts"),
    };
    engine.add_flows();
    for station in 0..engine.hints.stations() {
        engine.start_listening(station, Time::ZERO);
    }
    if !engine.execute() {
        return None;
    }
    let (end, was_given_up, ran_dry) = (engine.now, engine.has_given_up, engine.has_run_dry);
    let return_bytes = engine.world.path.return_bytes();
    let peak_queue_bytes = engine.world.path.peak_queue_bytes();
    let bundles = engine.world.path.bundles(end);
    let over_paths = engine.world.path.over_paths(end);
    let (forward, back) = engine.world.path.capacities();
    let back_end = engine.world.path.back_end(end);
    engine.settle_chains(end);
    Some(RunResult {
        flows: engine.results(),
        end,
        was_given_up,
        ran_dry,
        return_bytes,
        forward,
        back,
        back_end,
        peak_queue_bytes,
        bundles,
        over_paths,
    })
}

impl<T: Tracer> Engine<'_, T> {
    /// Adds a flow to the population of its protocol.
    fn add_flow(&mut self, transport: &TransportConfig, endpoint_seed: u64, new_flow: NewFlow) -> FlowKey {
        let (kind, class) = (kind_of(transport), self.setup.flows[new_flow.spec].class);
        let mut place = Place { hints: &mut self.hints, world: &mut self.world };
        let flow = self.populations.of(kind).add(transport, endpoint_seed, new_flow, class, &mut place);
        FlowKey { kind, flow }
    }

    /// Replaces the endpoint at one side of a flow.
    fn replace(&mut self, key: FlowKey, side: usize, transport: &TransportConfig, endpoint_seed: u64, now: Time) {
        let flows: &mut dyn Flows<T> = self.populations.of(key.kind);
        flows.replace(key.flow, side, transport, endpoint_seed, now, &mut self.hints);
    }

    /// The relay's interface of a flow.
    fn relayed_flow(&mut self, key: FlowKey) -> &mut dyn RelayedFlow {
        let flows: &mut dyn Flows<T> = self.populations.of(key.kind);
        flows.relayed_flow(key.flow)
    }

    /// Lets one side of a flow act, if it is up.
    fn pump(&mut self, key: FlowKey, side: usize, now: Time) {
        self.populations.of(key.kind).pump(key.flow, side, now, &mut self.world);
    }

    /// The application at side 0 starts again.
    fn begin_source(&mut self, key: FlowKey, source: Source, now: Time) {
        let flows: &mut dyn Flows<T> = self.populations.of(key.kind);
        flows.begin_source(key.flow, source, now, &mut self.world.timers);
    }

    /// Handles the packets that leave a hop or are lost in it.
    #[cold]
    fn serve(&mut self, link: usize, now: Time) {
        self.world.path.wake(link, now);
        while let Some((flow, kind, departed)) = self.world.path.next_departed(link, now, &mut self.world.timers) {
            self.populations.of(kind).leave(flow, link, now, departed, &mut self.world);
        }
    }

    /// Gives all flows of one row the same histogram.
    fn keep_histograms(&mut self) {
        let layout = Layout::of(self.setup);
        let of_rows: Vec<Shared> = layout.rows[..layout.all()].iter().map(|_| Shared::default()).collect();
        let shared = |spec, number| Shared::clone(&of_rows[layout.row_of(spec, number)]);
        self.each_population(|flows| flows.keep_histograms(&shared));
        for chain in self.chains.iter_mut().flatten() {
            let histogram = shared(chain.spec, chain.number);
            chain.account.keep_histogram(histogram);
        }
    }

    fn each_population(&mut self, mut act: impl FnMut(&mut dyn Flows<T>)) {
        for kind in 0..KINDS as u8 {
            act(self.populations.of(kind));
        }
    }

    /// Gives an endpoint a hint and lets it act.
    fn give_hint(&mut self, listener: Listener, at: Time, hint: LinkHint) {
        let Listener { kind, flow, .. } = listener;
        self.populations.of(kind).give_hint(listener, at, hint, &mut self.world);
        self.after_event(FlowKey { kind, flow }, at);
    }

    /// When data was last written or delivered.
    fn last_sign_of_life(&mut self) -> Time {
        let mut last = Time::ZERO;
        self.each_population(|flows| last = last.max(flows.last_sign_of_life()));
        let of_chains = self.chains.iter().flatten().map(|chain| chain.account.last_sign_of_life());
        of_chains.fold(last, Time::max)
    }

    fn begin_measurement(&mut self) {
        let since = self.setup.warmup;
        self.each_population(|flows| flows.begin_measurement(since));
        self.chains.iter_mut().flatten().for_each(|chain| chain.begin_measurement());
        self.world.path.begin_measurement(since);
    }

    fn results(mut self) -> Vec<FlowResult> {
        let (end, warmup) = (self.now, self.setup.warmup);
        let mut all = Vec::new();
        let mut parts: Vec<Vec<FlowResult>> = self.chains.iter().map(|_| Vec::new()).collect();
        self.each_population(|flows| flows.take_results(end, warmup, &mut all, &mut parts));
        let chains = self.chains.into_iter().flatten().zip(parts);
        all.extend(chains.map(|(chain, parts)| chain.result(&parts, end, warmup)));
        all.sort_by_key(|result: &FlowResult| (result.spec, result.number));
        all
    }

    fn add_flows(&mut self) {
        let setup = self.setup;
        let mut id = 0;
        let hops = self.world.path.hops();
        let mut restarting = Vec::new();
        for (spec_index, spec) in setup.flows.iter().enumerate() {
            let mut rng = Rng::for_component(self.seed, self.run, &format!("flow.{}", spec.name));
            for (number, start, source) in spec.instances(setup.duration, &mut rng) {
                let endpoint_seed = rng.below(u64::MAX);
                if let Some(gateway) = setup.gateway.as_ref().filter(|_| spec.is_split) {
                    self.add_chain(gateway, (id, spec_index, number), start, source, endpoint_seed);
                } else {
                    let (route, restarts) = (Route::over(hops, 0, hops - 1, None), spec.restart.is_some());
                    let new_flow =
                        NewFlow { id, spec: spec_index, number, start, source, route, relay: None, restarts };
                    let key = self.add_flow(&spec.transport, endpoint_seed, new_flow);
                    self.world.open_flows += 1;
                    if restarts {
                        restarting.push((key, spec_index));
                    }
                }
                id += 1;
            }
        }
        self.plan_restarts(&restarting);
        self.keep_histograms();
    }

    /// Updates a flow's chain and its restarts after an event.
    #[inline]
    fn after_event(&mut self, key: FlowKey, now: Time) {
        if !self.chains.is_empty() {
            self.update_chain(key, now);
        }
        if self.has_restarts {
            self.handle_resets(key, now);
        }
    }

    /// Sends the current hints to the ends of a flow that was added during the run.
    fn send_current_hints(&mut self, key: FlowKey, now: Time) {
        let flows: &mut dyn Flows<T> = self.populations.of(key.kind);
        let (route, wants_hints) = flows.listeners(key.flow);
        for side in (0..2).filter(|&side| wants_hints[side]) {
            let station = self.hints.station(route.first[side], route.incoming(side));
            if self.hints.listeners(station).len() == 1 {
                self.start_listening(station, now);
            } else {
                let listener = Listener { kind: key.kind, flow: key.flow, side: side as u8 };
                for hint in self.hints.current_hints(station).into_iter().flatten() {
                    self.give_hint(listener, now, hint);
                }
            }
        }
    }

    /// Starts the delivery of hints to the listeners at a station.
    fn start_listening(&mut self, station: usize, now: Time) {
        if !self.hints.listeners(station).is_empty() {
            self.world.path.register_listener(self.hints.incoming(station), station as u8);
        }
        self.send_pending_hints(station, now);
    }

    /// The link at a station may have changed; returns the time of the latest event.
    #[cold]
    fn on_link(&mut self, station: usize, at: Time, arrival: Time) -> Time {
        // Links may change for ever, but nothing may depend on a hint. If only links will change, a run without
        // duration is over.
        let is_at_rest = arrival == Time::NEVER && self.world.timers.has_only_links();
        if self.setup.duration == Time::NEVER && is_at_rest {
            return self.now;
        }
        self.send_pending_hints(station, at);
        at
    }

    /// A frame damaged beyond use has arrived at a station; all its listeners get the hint.
    #[cold]
    fn on_corrupted(&mut self, station: usize, at: Time) {
        for index in 0..self.hints.listeners(station).len() {
            self.give_hint(self.hints.listeners(station)[index], at, LinkHint::Corrupted);
        }
    }

    /// Sends the hints about changes to the listeners at a station.
    fn send_pending_hints(&mut self, station: usize, at: Time) {
        let pending = self.hints.pending_hints(station, at, &mut self.world.path, &mut self.world.timers);
        for hint in pending.into_iter().flatten() {
            for index in 0..self.hints.listeners(station).len() {
                self.give_hint(self.hints.listeners(station)[index], at, hint);
            }
        }
    }

    /// When the run is given up unless data is delivered before.
    #[cold]
    fn patience(&mut self) -> Time {
        let last_write = self.world.timers.last_of_sources().unwrap_or(Time::ZERO);
        self.last_sign_of_life().max(last_write) + self.setup.give_up_after
    }

    /// Handles only the packet at the head of a link's ring, because its effects may involve other flows. Returns its
    /// arrival time.
    fn arrive_one(&mut self, link: usize, now: Time) -> Time {
        while let Some(link) = self.world.path.next_due(now) {
            self.serve(link, now);
        }
        let (flow, kind) = self.world.path.head(link);
        self.populations.arrive(&mut self.world, link, now, now);
        self.after_event(FlowKey { kind, flow }, now);
        now
    }

    /// Runs to the end; `false` if it was stopped before.
    fn execute(&mut self) -> bool {
        let mut warmup = if self.setup.warmup > Time::ZERO { self.setup.warmup } else { Time::NEVER };
        let end = self.setup.duration;
        // Events after this time are handled only if the run makes progress.
        let mut limit = end.min(self.setup.give_up_after);
        let mut next_check = STEPS_BETWEEN_CHECKS;
        let has_others = self.has_restarts || !self.chains.is_empty() || self.world.path.has_departures();
        loop {
            self.world.steps += 1;
            if self.world.steps >= next_check {
                next_check = self.world.steps + STEPS_BETWEEN_CHECKS;
                if self.world.has_stopped || (self.world.is_stopped)() {
                    return false;
                }
            }
            let (link, arrival) = self.world.path.earliest();
            let alarm = self.world.timers.next();
            let next = arrival.min(alarm);
            let is_done = self.world.open_flows == 0 && arrival == Time::NEVER && !self.world.path.has_waiting();
            if warmup != Time::NEVER && (next >= warmup || is_done) {
                self.begin_measurement();
                warmup = Time::NEVER;
            }
            if is_done {
                self.has_run_dry = true;
                return true; // alarms that are left have no effect
            }
            if next > limit || next == Time::NEVER {
                limit = end.min(self.patience());
                if next == Time::NEVER || next > end {
                    self.has_run_dry = next == Time::NEVER;
                    break;
                }
                if next > limit {
                    (self.has_given_up, self.now) = (true, limit);
                    break;
                }
            }
            // Packets first: an acknowledgement that arrives as the timer expires still counts.
            let last = if arrival <= alarm {
                if has_others {
                    self.arrive_one(link, next)
                } else {
                    self.populations.arrive(&mut self.world, link, next, alarm.min(limit).min(before(warmup)))
                }
            } else {
                let alarm = self.world.timers.pop();
                match alarm.event {
                    timers::Kind::Departure => {
                        if self.world.path.is_alarm(alarm.flow as usize, next) {
                            self.serve(alarm.flow as usize, next);
                        }
                        self.now // a departure counts when the packet arrives
                    }
                    timers::Kind::Link => self.on_link(usize::from(alarm.side), next, arrival),
                    timers::Kind::Corrupted => {
                        self.on_corrupted(usize::from(alarm.side), next);
                        self.now // hints do not extend a run
                    }
                    timers::Kind::Source if alarm.kind == CHAINS => {
                        self.on_chain_source(alarm.flow, next);
                        next
                    }
                    timers::Kind::Endpoint | timers::Kind::Source => {
                        self.populations.of(alarm.kind).fire(alarm, next, &mut self.world);
                        if has_others {
                            self.after_event(FlowKey { kind: alarm.kind, flow: alarm.flow }, next);
                        }
                        next
                    }
                    timers::Kind::Down | timers::Kind::Up => {
                        self.on_restart(alarm, next);
                        next
                    }
                }
            };
            // A train may be ahead of events at the other side.
            self.now = self.now.max(last);
        }
        if end != Time::NEVER {
            self.now = end;
        }
        true
    }
}

/// The last instant before `time`.
fn before(time: Time) -> Time {
    Time::from_ps(time.as_ps() - 1)
}

/// Number of steps, some milliseconds, between two checks whether to stop.
const STEPS_BETWEEN_CHECKS: u64 = 1 << 16;
