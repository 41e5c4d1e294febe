//! Source, gateway and sink with TCP connections between them, over hops that lose packets, each driven as on a host.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use farlink_core::gateway::{AfterAbort, Gateway, MemoryStore, Reader, Store};
use farlink_core::protocol::tcp::{Segment, TcpConfig, TcpConnection};
use farlink_core::{Endpoint, Event, Payload, Rng, Rx, Stream, Time};

const ONE_WAY: Time = Time::from_millis(30);

/// One connection over a hop. The peer gets its first position before the data.
struct Connection {
    /// `None` for a side that has gone down.
    ends: [Option<TcpConnection<Bytes>>; 2],
    reader: Reader,
}

/// Connections of a hop in the order in which they were opened. The last one is written, and one is read.
#[derive(Default)]
struct Hop {
    connections: Vec<Connection>,
    reading: usize,
}

/// A segment in flight: its hop, its connection, the side to which it goes.
type Arrival = (usize, usize, usize, Segment<Bytes>);

/// A stream over two hops. The gateway between them has the store under test.
pub(crate) struct Chain<S: Store<Data = Bytes>> {
    config: TcpConfig,
    pub(crate) source: Gateway<MemoryStore<Bytes>>,
    /// `None` while it is down.
    pub(crate) gateway: Option<Gateway<S>>,
    pub(crate) sink: Gateway<MemoryStore<Bytes>>,
    hops: [Hop; 2],
    pub(crate) lost: f64,
    pub(crate) now: Time,
    /// Data delivered to the application at the sink, with positions.
    pub(crate) delivered: Vec<(u64, Bytes)>,
    pub(crate) largest_store: u64,
    under_way: BTreeMap<(Time, u64), Arrival>,
    count: u64,
    rng: Rng,
}

/// A store in memory does not fail, and one on the test's disk should not.
fn kept<T, E: Debug>(outcome: Result<T, E>) -> T {
    outcome.expect("the store accepts the data")
}

fn write<S: Store<Data = Bytes>>(node: &mut Gateway<S>, hop: &mut Hop, now: Time)
where
    S::Error: Debug,
{
    if let Some(connection) = hop.connections.last_mut().and_then(|last| last.ends[0].as_mut()) {
        kept(node.on_settled(connection.settled_bytes()));
        kept(node.write_to(now, connection, |_| ()));
    }
}

fn on_writer_event<S: Store<Data = Bytes>>(node: &mut Gateway<S>, hop: &mut Hop, event: Event) {
    match event {
        Event::Closed => node.on_closed(),
        Event::Aborted(why) => {
            assert_eq!(node.on_aborted(why), AfterAbort::Reopen, "nothing but crashes ends connections here");
            hop.connections.last_mut().expect("it was aborted").ends[0] = None;
        }
        _ => {}
    }
}

/// Lets the last node of a hop read.
fn read<S: Store<Data = Bytes>>(node: &mut Gateway<S>, hop: &mut Hop)
where
    S::Error: Debug,
{
    if let Some(Connection { ends: [_, Some(end)], reader }) = hop.connections.get_mut(hop.reading) {
        kept(reader.read(end, node));
    }
}

fn on_reader_event<S: Store<Data = Bytes>>(node: &mut Gateway<S>, hop: &mut Hop, index: usize, event: Event, now: Time)
where
    S::Error: Debug,
{
    if event == Event::Connected && index > hop.reading {
        // The previous connection is closed once all its data is read.
        if let Connection { ends: [_, Some(end)], reader } = &mut hop.connections[hop.reading] {
            kept(reader.drain(end, node));
        }
        hop.connections[hop.reading].ends[1] = None;
        hop.reading = index;
    }
    if index == hop.reading
        && let Connection { ends: [_, Some(end)], reader } = &mut hop.connections[index]
    {
        reader.on_event(event, node);
        if event == Event::Finished {
            end.close(now);
        }
    }
}

impl<S: Store<Data = Bytes>> Chain<S>
where
    S::Error: Debug,
{
    pub(crate) fn new(config: TcpConfig, gateway: Gateway<S>, seed: u64) -> Self {
        Chain {
            config,
            source: Gateway::new(MemoryStore::default(), u64::MAX),
            gateway: Some(gateway),
            sink: Gateway::new(MemoryStore::default(), u64::MAX),
            hops: Default::default(),
            lost: 0.0,
            now: Time::ZERO,
            delivered: Vec::new(),
            largest_store: 0,
            under_way: BTreeMap::new(),
            count: 0,
            rng: Rng::for_component(seed, 0, "chain"),
        }
    }

    /// The application at the source writes the whole stream.
    pub(crate) fn write_all(&mut self, content: &[u8]) {
        for (index, piece) in content.chunks(1000).enumerate() {
            kept(self.source.receive(1000 * index as u64, Bytes::copy_from_slice(piece)));
        }
        kept(self.source.on_end());
        self.hand_on();
    }

    /// The gateway goes down; returns its store.
    pub(crate) fn crash(&mut self) -> S {
        let [before, behind] = &mut self.hops;
        before.connections.iter_mut().for_each(|connection| connection.ends[1] = None);
        behind.connections.iter_mut().for_each(|connection| connection.ends[0] = None);
        self.gateway.take().expect("it is up").into_store()
    }

    /// The gateway comes back. A new listener answers segments of unknown connections with a reset.
    pub(crate) fn restart(&mut self, gateway: Gateway<S>) {
        self.gateway = Some(gateway);
        let seed = self.rng.below(u64::MAX);
        if let Some(last) = self.hops[0].connections.last_mut() {
            last.ends[1] = Some(TcpConnection::pair(&self.config, seed).1);
            self.hops[0].reading = self.hops[0].connections.len() - 1;
        }
        self.hand_on();
    }

    fn connect(&mut self, hop: usize, begin: u64) {
        let seed = self.rng.below(u64::MAX);
        let (writer, listener) = TcpConnection::pair(&self.config, seed);
        // A node that is down has no listener.
        let listener = (hop == 1 || self.gateway.is_some()).then_some(listener);
        self.hops[hop].connections.push(Connection { ends: [Some(writer), listener], reader: Reader::new(begin) });
    }

    /// Forwards data from node to node until nothing moves, and sends.
    fn hand_on(&mut self) {
        loop {
            if self.source.wants_connection() {
                let begin = self.source.on_opened();
                self.connect(0, begin);
            }
            if self.gateway.as_ref().is_some_and(Gateway::wants_connection) {
                let begin = self.gateway.as_mut().expect("it is up").on_opened();
                self.connect(1, begin);
            }
            let [before, behind] = &mut self.hops;
            write(&mut self.source, before, self.now);
            if let Some(gateway) = &mut self.gateway {
                read(gateway, before);
                write(gateway, behind, self.now);
                self.largest_store = self.largest_store.max(gateway.held_bytes());
            }
            read(&mut self.sink, behind);
            while let Some(piece) = kept(self.sink.take_next()) {
                self.delivered.push(piece);
            }
            if !self.take_events() {
                break;
            }
        }
        self.send();
    }

    fn take_events(&mut self) -> bool {
        let mut has_acted = false;
        for hop in 0..2 {
            for index in 0..self.hops[hop].connections.len() {
                for side in 0..2 {
                    while let Some(end) = &mut self.hops[hop].connections[index].ends[side]
                        && let Some(event) = end.poll_event()
                    {
                        has_acted = true;
                        let net = &mut self.hops[hop];
                        match (hop, side, &mut self.gateway) {
                            (0, 0, _) => on_writer_event(&mut self.source, net, event),
                            (0, _, Some(gateway)) => on_reader_event(gateway, net, index, event, self.now),
                            (1, 0, Some(gateway)) => on_writer_event(gateway, net, event),
                            (1, 1, _) => on_reader_event(&mut self.sink, net, index, event, self.now),
                            _ => unreachable!("a node that is down has no connections"),
                        }
                    }
                }
            }
        }
        has_acted
    }

    fn send(&mut self) {
        for (hop, net) in self.hops.iter_mut().enumerate() {
            for (index, connection) in net.connections.iter_mut().enumerate() {
                for (side, end) in connection.ends.iter_mut().enumerate() {
                    while let Some(transmit) = end.as_mut().and_then(|end| end.poll_transmit(self.now)) {
                        if !self.rng.chance(self.lost) {
                            self.count += 1;
                            let key = (self.now + ONE_WAY, self.count);
                            self.under_way.insert(key, (hop, index, 1 - side, transmit.packet));
                        }
                    }
                }
            }
        }
    }

    fn ends(&self) -> impl Iterator<Item = &TcpConnection<Bytes>> {
        self.hops.iter().flat_map(|hop| &hop.connections).flat_map(|connection| connection.ends.iter().flatten())
    }

    /// Handles the next packet or timer; `false` if nothing is left before `end`.
    pub(crate) fn step(&mut self, end: Time) -> bool {
        let timeout = self.ends().filter_map(Endpoint::poll_timeout).min().unwrap_or(Time::NEVER);
        let arrival = self.under_way.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let next = timeout.min(arrival);
        if next > end || next == Time::NEVER {
            self.now = self.now.max(end.min(next));
            return false;
        }
        self.now = self.now.max(next);
        if arrival <= timeout {
            let (_, (hop, index, side, segment)) = self.under_way.pop_first().expect("one arrives");
            if let Some(end) = &mut self.hops[hop].connections[index].ends[side] {
                end.handle_packet(self.now, &segment, Rx::default());
            }
        } else {
            for end in self.hops.iter_mut().flat_map(|hop| &mut hop.connections).flat_map(|it| it.ends.iter_mut()) {
                end.iter_mut().for_each(|end| end.handle_timeout(self.now));
            }
        }
        self.hand_on();
        true
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 500_000, "timers without end");
        }
    }

    /// Number of connections opened over each hop.
    pub(crate) fn opened(&self) -> [usize; 2] {
        [0, 1].map(|hop| self.hops[hop].connections.len())
    }

    /// Whether every node knows that the next one has everything.
    pub(crate) fn is_complete(&self) -> bool {
        self.source.is_complete() && self.gateway.as_ref().is_some_and(Gateway::is_complete) && self.sink.has_end()
    }

    /// Bytes delivered to the sink; checks that positions rise and that the bytes are those of `content`.
    pub(crate) fn received(&self, content: &[u8]) -> u64 {
        let mut position = 0;
        for (begin, piece) in &self.delivered {
            assert!(*begin >= position, "nothing is delivered twice");
            assert!(content[*begin as usize..][..piece.len()] == **piece, "the bytes at this position were sent");
            position = begin + piece.len() as u64;
        }
        self.delivered.iter().map(|(_, piece)| Payload::len(piece) as u64).sum()
    }
}
