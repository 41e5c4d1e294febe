//! Flows that gateways split: data read from one connection is written into the next.
//!
//! After each event of one of its connections, a chain forwards data from node to node until nothing moves any more,
//! all at the instant of the event.

use farlink_core::event::Abort;
use farlink_core::gateway::AfterAbort;
use farlink_core::protocol::TransportConfig;
use farlink_core::{Event, Time};

use super::chain::{Chain, FlowKey, HopConnection};
use super::flow::NewFlow;
use super::relay::{Progress, Relay};
use super::route::Route;
use super::setup::{FlowSetup, GatewaySetup, Setup};
use super::source::Source;
use super::timers::{Alarm, CHAINS, Kind};
use super::{Engine, Tracer};

/// Identifier of connections whose packets are not traced.
pub(crate) const UNTRACED: u32 = u32::MAX;

/// All chains. A slot is empty while its chain is being processed.
pub(super) type Chains = Vec<Option<Box<Chain>>>;

impl<T: Tracer> Engine<'_, T> {
    /// Adds a flow that gateways split.
    pub(super) fn add_chain(
        &mut self,
        gateway: &GatewaySetup,
        (id, spec, number): (u32, usize, u64),
        start: Time,
        source: Source,
        seed: u64,
    ) {
        let (hops, at) = (self.world.path.hops(), gateway.hop);
        let spool = |side| gateway.spool.as_ref().map(|_| 2 * hops + side);
        let routes = vec![
            (Route::over(hops, 0, at - 1, spool(0)), false),
            (Route::over(hops, at, at, spool(1)), true),
            (Route::over(hops, at + 1, hops - 1, None), false),
        ];
        let flow = self.chains.len() as u32;
        self.world.timers.push(start, Alarm { event: Kind::Source, kind: CHAINS, side: 0, flow });
        let chain = Chain::new(flow, (id, spec, number), start, source, routes, gateway.buffer_bytes, seed);
        self.chains.push(Some(Box::new(chain)));
        self.world.open_flows += 1;
    }

    /// The source of a chain starts, or writes again.
    pub(super) fn on_chain_source(&mut self, flow: u32, now: Time) {
        self.with_chain(flow, |engine, chain| {
            if chain.has_ended {
                return;
            }
            if let Some(next) = chain.on_source(now) {
                engine.world.timers.push(next, Alarm { event: Kind::Source, kind: CHAINS, side: 0, flow });
            }
            engine.forward(chain, now);
        });
    }

    /// Forwards data after an event of a connection, if it is part of a chain.
    pub(super) fn update_chain(&mut self, key: FlowKey, now: Time) {
        if let Some(chain) = self.relayed_flow(key).relay().map(|relay| relay.chain) {
            self.with_chain(chain, |engine, chain| engine.forward(chain, now));
        }
    }

    fn with_chain(&mut self, number: u32, act: impl FnOnce(&mut Self, &mut Chain)) {
        // A hint for one of its connections may arrive while the chain is being processed; `forward` sees its effect
        // later.
        if let Some(mut chain) = self.chains[number as usize].take() {
            act(self, &mut chain);
            self.chains[number as usize] = Some(chain);
        }
    }

    /// Forwards data along the chain until nothing moves.
    fn forward(&mut self, chain: &mut Chain, now: Time) {
        loop {
            let mut has_moved = false;
            for hop in 0..chain.hops.len() {
                has_moved |= self.collect(chain, hop, now);
                has_moved |= self.write_on(chain, hop, now);
                has_moved |= self.read_on(chain, hop, now);
            }
            if chain.has_ended || !has_moved {
                break;
            }
        }
        chain.note_peak();
        if !chain.has_ended && chain.is_complete() {
            chain.has_ended = true;
            self.world.open_flows -= 1;
        }
    }

    /// Collects the events and the data of a hop's connections.
    fn collect(&mut self, chain: &mut Chain, hop: usize, now: Time) -> bool {
        let mut has_moved = false;
        for connection in [chain.hops[hop].reading, chain.hops[hop].writing].into_iter().flatten() {
            has_moved |= self.take_events(chain, connection, now);
            has_moved |= self.take_data(chain, connection, now);
            if chain.hops[hop].writing == Some(connection) {
                let relayed_flow = self.relayed_flow(chain.connections[connection].key);
                let settled = relayed_flow.settled_bytes();
                relayed_flow.new_transmissions(&mut |bytes, at| chain.on_sent(connection, bytes, at));
                has_moved |= chain.on_settled(hop, settled);
            }
        }
        has_moved
    }

    /// Handles the events of a connection.
    fn take_events(&mut self, chain: &mut Chain, connection: usize, now: Time) -> bool {
        let key = chain.connections[connection].key;
        let mut events = std::mem::take(&mut self.relay_events);
        if let Some(relay) = self.relayed_flow(key).relay() {
            std::mem::swap(&mut relay.events, &mut events);
        }
        let has_events = !events.is_empty();
        let hop = chain.connections[connection].hop;
        let writing = chain.hops[hop].writing;
        for (side, event) in events.drain(..) {
            let it = &mut chain.connections[connection];
            match (side, event) {
                (0, Event::Writable) => it.is_writable = true,
                (0, Event::Closed) if writing == Some(connection) => chain.nodes[hop].gateway.on_closed(),
                (0, Event::Aborted(why)) => it.aborted = Some(why),
                (1, Event::Connected) => self.accept(chain, connection, now),
                (1, Event::Finished) => it.is_finished = true,
                _ => {}
            }
        }
        self.relay_events = events;
        has_events
    }

    /// The next node accepts a new connection. It reads all data left in the previous one, which is then closed.
    fn accept(&mut self, chain: &mut Chain, connection: usize, now: Time) {
        let hop = chain.connections[connection].hop;
        let before = chain.hops[hop].reading.replace(connection);
        if let Some(before) = before.filter(|&before| before != connection) {
            self.drain(chain, before, now);
            self.retire(chain, before);
        }
        chain.nodes[hop + 1].gateway.on_incoming(chain.connections[connection].begin);
    }

    /// The receiving node of a connection takes the data that was read from it.
    fn take_data(&mut self, chain: &mut Chain, connection: usize, now: Time) -> bool {
        let key = chain.connections[connection].key;
        let mut moved = std::mem::take(&mut self.moved);
        let mut is_drained = false;
        if let Some(relay) = self.relayed_flow(key).relay() {
            std::mem::swap(&mut relay.moved, &mut moved);
            is_drained = relay.is_drained;
        }
        let has_moved = !moved.is_empty();
        for step in moved.drain(..) {
            match step {
                Progress::Read(bytes) => chain.on_read(connection, bytes, now),
                Progress::Skipped(bytes) => chain.on_skipped(connection, bytes),
            }
        }
        self.moved = moved;
        let HopConnection { hop, is_finished, .. } = chain.connections[connection];
        let node = &chain.nodes[hop + 1];
        let is_end = is_finished && is_drained && !node.gateway.has_end() && !node.is_down;
        if is_end {
            chain.on_end(hop + 1, now);
        }
        has_moved || is_end
    }

    /// A hop's first node writes waiting data.
    fn write_on(&mut self, chain: &mut Chain, hop: usize, now: Time) -> bool {
        if chain.nodes[hop].is_down || chain.has_ended {
            return false;
        }
        if let Some(connection) = chain.hops[hop].writing
            && let Some(why) = chain.connections[connection].aborted
        {
            match chain.nodes[hop].gateway.on_aborted(why) {
                AfterAbort::Reopen => {
                    self.drain(chain, connection, now);
                    self.retire(chain, connection);
                    chain.hops[hop].writing = None;
                }
                AfterAbort::GiveUp => self.give_up(chain, now, why),
            }
            return true;
        }
        let connection = match chain.hops[hop].writing {
            Some(connection) => connection,
            None if chain.nodes[hop].gateway.wants_connection() => self.connect(chain, hop, now),
            None => return false,
        };
        if hop == 0 {
            chain.replenish(connection);
        }
        let key = chain.connections[connection].key;
        let has_acted = chain.write_to(connection, now, self.relayed_flow(key));
        if has_acted {
            self.pump(key, 0, now);
        }
        has_acted
    }

    /// A hop's last node reads as much as it has room for.
    fn read_on(&mut self, chain: &mut Chain, hop: usize, now: Time) -> bool {
        let (Some(connection), false) = (chain.hops[hop].reading, chain.nodes[hop + 1].is_down) else { return false };
        let room = chain.nodes[hop + 1].gateway.room();
        let key = chain.connections[connection].key;
        let Some(relay) = self.relayed_flow(key).relay() else { return false };
        relay.room = room;
        if room == 0 || relay.is_drained {
            return false;
        }
        self.pump(key, 1, now);
        true
    }

    /// Opens a connection over a hop.
    fn connect(&mut self, chain: &mut Chain, hop: usize, now: Time) -> usize {
        let spec = &self.setup.flows[chain.spec];
        let transport = transport(self.setup, spec, chain.hops[hop].is_own);
        let is_first = chain.hops[hop].is_own && chain.connections.iter().all(|other| other.hop != hop);
        let seed = if is_first { chain.first_seed } else { chain.seeds.below(u64::MAX) };
        let number = chain.connections.len();
        let relay = Relay { chain: chain.number_in_run, ..Relay::default() };
        let new_flow = NewFlow {
            id: if chain.hops[hop].is_own { chain.id } else { UNTRACED },
            spec: chain.spec,
            number: chain.number,
            start: now,
            source: Source::Relay,
            route: chain.hops[hop].route,
            relay: Some(Box::new(relay)),
            restarts: false,
        };
        let key = self.add_flow(transport, seed, new_flow);
        if chain.nodes[hop + 1].is_down {
            self.relayed_flow(key).take_down(1);
        }
        self.send_current_hints(key, now);
        let begin = chain.nodes[hop].gateway.on_opened();
        chain.connections.push(HopConnection::new(hop, key, begin));
        chain.hops[hop].writing = Some(number);
        self.pump(key, 0, now);
        number
    }

    /// The receiving node of a connection reads all available data, even without room.
    fn drain(&mut self, chain: &mut Chain, connection: usize, now: Time) {
        let relayed_flow = self.relayed_flow(chain.connections[connection].key);
        if !relayed_flow.is_up(1) {
            return;
        }
        if let Some(relay) = relayed_flow.relay() {
            relay.room = u64::MAX;
        }
        relayed_flow.read(now);
        self.take_data(chain, connection, now);
    }

    /// Closes a connection at both ends.
    fn retire(&mut self, chain: &mut Chain, connection: usize) {
        let it = &mut chain.connections[connection];
        it.on_the_way.clear();
        let relayed_flow = self.relayed_flow(it.key);
        relayed_flow.take_down(0);
        relayed_flow.take_down(1);
        let hop = &mut chain.hops[it.hop];
        hop.reading = hop.reading.filter(|&reading| reading != connection);
    }

    /// Gives up all connections of a chain after one gave up.
    fn give_up(&mut self, chain: &mut Chain, now: Time, why: Abort) {
        chain.give_up(now, why);
        for connection in 0..chain.connections.len() {
            self.retire(chain, connection);
        }
        chain.has_ended = true;
        self.world.open_flows -= 1;
    }

    /// Reads all data left in connections at the end of the run, because it is in the gateways' custody.
    pub(super) fn settle_chains(&mut self, now: Time) {
        for number in 0..self.chains.len() as u32 {
            self.with_chain(number, |engine, chain| {
                for hop in 0..chain.hops.len() {
                    if let Some(connection) = chain.hops[hop].reading {
                        engine.drain(chain, connection, now);
                    }
                }
            });
        }
    }

    /// The gateway on one side goes down.
    pub(super) fn on_gateway_down(&mut self, side: usize, now: Time) {
        let Some(gateway) = &self.setup.gateway else { return };
        let (buffer_bytes, has_disk) = (gateway.buffer_bytes, gateway.spool.is_some());
        for number in 0..self.chains.len() as u32 {
            self.with_chain(number, |engine, chain| {
                if chain.has_ended {
                    return;
                }
                let node = node_at(chain, side);
                let (before, behind) = (&chain.hops[node - 1], &chain.hops[node]);
                let (arriving, leaving) = ([before.reading, before.writing], [behind.reading, behind.writing]);
                for connection in arriving.into_iter().flatten() {
                    // This data is acknowledged or about to be.
                    engine.drain(chain, connection, now);
                    engine.relayed_flow(chain.connections[connection].key).take_down(1);
                }
                for connection in leaving.into_iter().flatten() {
                    engine.relayed_flow(chain.connections[connection].key).take_down(0);
                }
                chain.hops[node].writing = None;
                chain.nodes[node].crash(buffer_bytes, has_disk);
            });
        }
    }

    /// The gateway on one side comes back up, with new endpoints.
    pub(super) fn on_gateway_up(&mut self, side: usize, now: Time) {
        for number in 0..self.chains.len() as u32 {
            self.with_chain(number, |engine, chain| {
                if chain.has_ended {
                    return;
                }
                let node = node_at(chain, side);
                chain.nodes[node].is_down = false;
                let before = &chain.hops[node - 1];
                let (reading, writing, is_own) = (before.reading, before.writing, before.is_own);
                if let Some(old) = reading.filter(|_| reading != writing) {
                    engine.retire(chain, old);
                }
                if let Some(connection) = writing {
                    let transport = transport(engine.setup, &engine.setup.flows[chain.spec], is_own);
                    let it = &mut chain.connections[connection];
                    it.is_finished = false;
                    let key = it.key;
                    engine.replace(key, 1, transport, chain.seeds.below(u64::MAX), now);
                    if let Some(relay) = engine.relayed_flow(key).relay() {
                        (relay.room, relay.is_drained) = (0, false);
                        relay.events.clear();
                    }
                }
                engine.forward(chain, now);
            });
        }
    }
}

/// The gateway on the sender's side is after the first hop, the other one before the last.
fn node_at(chain: &Chain, side: usize) -> usize {
    if side == 0 { 1 } else { chain.hops.len() - 1 }
}

/// The transport on a hop of a chain.
fn transport<'a>(setup: &'a Setup, spec: &'a FlowSetup, is_own: bool) -> &'a TransportConfig {
    setup.gateway.as_ref().filter(|_| !is_own).map_or(&spec.transport, |gateway| &gateway.edge)
}
