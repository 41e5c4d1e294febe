//! A flow that gateways split: a chain of connections and the nodes between them.
//!
//! Node 0 is the source, the last node the sink; the connection of hop n leads from node n to node n + 1. Every byte
//! keeps its position in the stream from source to sink, so that losses and duplicates are known.

use farlink_core::event::Abort;
use farlink_core::gateway::{Gateway, Journal, Span, Spans};
use farlink_core::{Rng, Time};

use super::account::{Account, covered};
use super::flow::FlowResult;
use super::lengths::{Length, NoBytes, WritingEnd};
use super::relay::RelayedFlow;
use super::route::Route;
use super::source::{BULK_WRITE_BYTES, Source};

/// Identifies a flow: its protocol and its index in the population of that protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowKey {
    pub(super) kind: u8,
    pub(super) flow: u32,
}

/// One connection of a chain.
#[derive(Debug)]
pub(super) struct HopConnection {
    pub(super) hop: usize,
    pub(super) key: FlowKey,
    /// Position of its first byte.
    pub(super) begin: u64,
    /// Written, but not read at the other end.
    pub(super) on_the_way: Spans,
    /// Written, but never sent.
    unsent: Spans,
    /// The connection accepts more data.
    pub(super) is_writable: bool,
    /// The end of the stream has arrived.
    pub(super) is_finished: bool,
    /// The sender's connection was aborted.
    pub(super) aborted: Option<Abort>,
}

/// The source, a gateway or the sink.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) gateway: Gateway<NoBytes>,
    pub(super) is_down: bool,
}

/// The connections between two adjacent nodes.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) route: Route,
    /// Whether it runs the flow's own transport instead of that of the edges.
    pub(super) is_own: bool,
    /// The connection that its first node writes into.
    pub(super) writing: Option<usize>,
    /// The connection that its last node reads. An old one is read until a new one is established.
    pub(super) reading: Option<usize>,
    /// Bytes below this position were sent at least once.
    sent_end: u64,
    resent_bytes: u64,
}

/// A flow that gateways split.
#[derive(Debug)]
pub(super) struct Chain {
    /// Its number among the chains of the run.
    pub(super) number_in_run: u32,
    pub(super) id: u32,
    pub(super) spec: usize,
    pub(super) number: u64,
    pub(super) start: Time,
    pub(super) source: Source,
    /// Bytes that the source has written.
    produced: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) hops: Vec<Hop>,
    pub(super) connections: Vec<HopConnection>,
    pub(super) account: Account,
    /// Source of seeds for its connections.
    pub(super) seeds: Rng,
    pub(super) first_seed: u64,
    pub(super) has_ended: bool,
    peak_bytes: u64,
}

impl Node {
    fn new(buffer_bytes: u64) -> Self {
        Node { gateway: Gateway::new(NoBytes, buffer_bytes), is_down: false }
    }

    /// The node goes down and loses everything that is not on disk. `[N5]`
    pub(super) fn crash(&mut self, buffer_bytes: u64, has_disk: bool) {
        let journal = if has_disk { self.gateway.journal() } else { Journal::default() };
        self.gateway = Gateway::recovered(NoBytes, buffer_bytes, journal);
        self.is_down = true;
    }
}

impl HopConnection {
    pub(super) fn new(hop: usize, key: FlowKey, begin: u64) -> Self {
        HopConnection {
            hop,
            key,
            begin,
            on_the_way: Spans::default(),
            unsent: Spans::default(),
            is_writable: true,
            is_finished: false,
            aborted: None,
        }
    }
}

impl Chain {
    pub(super) fn new(
        number_in_run: u32,
        (id, spec, number): (u32, usize, u64),
        start: Time,
        source: Source,
        hops: Vec<(Route, bool)>,
        buffer_bytes: u64,
        seed: u64,
    ) -> Self {
        // Only gateways limit their buffers; the applications limit source and sink.
        let is_end = |node| node == 0 || node == hops.len();
        let nodes =
            (0..=hops.len()).map(|node| Node::new(if is_end(node) { u64::MAX } else { buffer_bytes })).collect();
        let hop = |(route, is_own)| Hop { route, is_own, writing: None, reading: None, sent_end: 0, resent_bytes: 0 };
        Chain {
            number_in_run,
            id,
            spec,
            number,
            start,
            account: Account::new(source.asked_bytes(), start),
            source,
            produced: 0,
            nodes,
            hops: hops.into_iter().map(hop).collect(),
            connections: Vec::new(),
            seeds: Rng::for_component(seed, 0, "connections of a chain"),
            first_seed: seed,
            has_ended: false,
            peak_bytes: 0,
        }
    }

    /// The source starts or writes again; returns when it writes next.
    pub(super) fn on_source(&mut self, now: Time) -> Option<Time> {
        self.nodes[0].gateway.on_incoming(0);
        self.account.last_write = now;
        match self.source {
            Source::Bulk | Source::Relay => None,
            Source::File { left } => {
                self.produce(left);
                self.end(0);
                None
            }
            Source::Cbr { interval, payload_bytes, ref mut left } => {
                let bytes = u64::from(payload_bytes).min(*left);
                if *left != u64::MAX {
                    *left -= bytes;
                }
                let is_done = *left == 0;
                self.produce(bytes);
                if is_done {
                    self.end(0);
                }
                (!is_done).then_some(now + interval)
            }
        }
    }

    fn produce(&mut self, bytes: u64) {
        let from = self.produced;
        self.produced += bytes;
        self.receive(0, Span { from, to: self.produced });
    }

    /// A node receives bytes and stores those that are new to it.
    fn receive(&mut self, node: usize, span: Span) {
        let Ok(_) = self.nodes[node].gateway.receive(span.from, Length(span.len()));
    }

    /// A node has received the end of the stream.
    fn end(&mut self, node: usize) {
        let Ok(()) = self.nodes[node].gateway.on_end();
    }

    /// Produces data of a bulk source when its connection accepts more.
    pub(super) fn replenish(&mut self, connection: usize) {
        let has_room = self.connections[connection].is_writable && self.nodes[0].gateway.is_drained();
        if matches!(self.source, Source::Bulk) && has_room {
            self.produce(u64::from(BULK_WRITE_BYTES));
            self.connections[connection].is_writable = false;
        }
    }

    /// A hop's first node writes waiting data into its connection; `true` if anything was done.
    pub(super) fn write_to(&mut self, connection: usize, now: Time, end: &mut dyn RelayedFlow) -> bool {
        let HopConnection { hop, on_the_way, unsent, .. } = &mut self.connections[connection];
        let Ok(has_acted) = self.nodes[*hop].gateway.write_to(now, &mut WritingEnd(end), |span| {
            on_the_way.push(span);
            unsent.push(span);
        });
        has_acted
    }

    /// A connection has sent bytes for the first time.
    pub(super) fn on_sent(&mut self, connection: usize, mut bytes: u64, at: Time) {
        let HopConnection { hop, unsent, .. } = &mut self.connections[connection];
        let first = *hop;
        let hop = &mut self.hops[first];
        while let Some(span) = unsent.pop(bytes) {
            bytes -= span.len();
            hop.resent_bytes += span.to.min(hop.sent_end).saturating_sub(span.from);
            hop.sent_end = hop.sent_end.max(span.to);
            if first == 0 {
                self.account.on_sent(span.to, at);
            }
        }
    }

    /// See [`Gateway::on_settled`]. `[N3]`
    pub(super) fn on_settled(&mut self, hop: usize, bytes: u64) -> bool {
        let Ok(is_more) = self.nodes[hop].gateway.on_settled(bytes);
        is_more
    }

    /// Bytes were read from a connection.
    pub(super) fn on_read(&mut self, connection: usize, mut bytes: u64, now: Time) {
        let is_last = self.connections[connection].hop + 1 == self.hops.len();
        let node = self.connections[connection].hop + 1;
        while let Some(span) = self.connections[connection].on_the_way.pop(bytes) {
            bytes -= span.len();
            self.receive(node, span);
        }
        while is_last && let Ok(Some((from, Length(bytes)))) = self.nodes[node].gateway.take_next() {
            self.account.deliver(Span { from, to: from + bytes }, now);
        }
    }

    /// A connection has given up the next bytes.
    pub(super) fn on_skipped(&mut self, connection: usize, mut bytes: u64) {
        let node = self.connections[connection].hop + 1;
        while let Some(span) = self.connections[connection].on_the_way.pop(bytes) {
            bytes -= span.len();
            if let Some(new) = self.nodes[node].gateway.skip(span) {
                self.account.on_skipped(new);
            }
        }
    }

    /// The end of the stream has reached a node. `[N6]`
    pub(super) fn on_end(&mut self, node: usize, now: Time) {
        self.end(node);
        if node + 1 == self.nodes.len() {
            self.account.on_end(self.produced, now);
        }
    }

    /// Updates the peak of the gateways' stores.
    pub(super) fn note_peak(&mut self) {
        let gateways = self.nodes.len() - 1;
        let most = self.nodes[1..gateways].iter().map(|node| node.gateway.held_bytes()).max();
        self.peak_bytes = self.peak_bytes.max(most.unwrap_or(0));
    }

    /// Gives up the flow after a connection gave up: the gateways drop all data.
    pub(super) fn give_up(&mut self, now: Time, why: Abort) {
        self.account.aborted = Some((now, why));
        let gateways = self.nodes.len() - 1;
        for node in &mut self.nodes[1..gateways] {
            let Ok(()) = node.gateway.give_up();
        }
        self.connections.iter_mut().for_each(|connection| connection.on_the_way.clear());
    }

    /// Whether the sender of each hop knows that everything has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.nodes[..self.hops.len()].iter().all(|node| node.gateway.is_complete())
    }

    /// Resets all counts at the end of the warm-up.
    pub(super) fn begin_measurement(&mut self) {
        self.account.begin_measurement();
        self.hops.iter_mut().for_each(|hop| hop.resent_bytes = 0);
    }

    /// Bytes that were acknowledged to the source, were not delivered, and that no node or connection holds any more.
    fn lost_in_custody(&self) -> u64 {
        let acknowledged = self.nodes[0].gateway.held().next().map_or(self.produced, |held| held.from);
        let position = self.account.position();
        let gateways = self.nodes.len() - 1;
        let stores = self.nodes[1..gateways].iter().flat_map(|node| node.gateway.held());
        let open = self.hops.iter().filter_map(|hop| hop.writing);
        let on_the_way = open.flat_map(|connection| self.connections[connection].on_the_way.iter());
        let held = stores.chain(on_the_way).chain(self.account.skipped());
        acknowledged.saturating_sub(position) - covered(position, acknowledged.max(position), held)
    }

    /// The flow's result; `parts` are the results of the connections over the gateways' hop.
    pub(super) fn result(self, parts: &[FlowResult], end: Time, warmup: Time) -> FlowResult {
        let sum = |count: fn(&FlowResult) -> u64| parts.iter().map(count).sum::<u64>();
        let most = |size: fn(&FlowResult) -> u64| parts.iter().map(size).max().unwrap_or(0);
        let resent_bytes: u64 = self.hops.iter().filter(|hop| hop.is_own).map(|hop| hop.resent_bytes).sum();
        let mut arrival_delay = super::DelaySum::default();
        parts.iter().for_each(|part| arrival_delay.merge(&part.arrival_delay));
        let lost = self.lost_in_custody();
        let (spec, number, start, peak_custody_bytes) = (self.spec, self.number, self.start, self.peak_bytes);
        let account = self.account.finish(lost);
        FlowResult {
            spec,
            number,
            start,
            measured: account.finished.unwrap_or(end).since(start.max(warmup)),
            is_finite: account.asked.is_some(),
            finished: account.finished,
            undelivered_bytes: account.undelivered_bytes,
            delivered_bytes: account.delivered_bytes,
            delivered_packets: account.delivered_packets,
            skipped_bytes: account.skipped_bytes,
            discarded_bytes: 0,
            lost_in_custody_bytes: account.lost_bytes,
            peak_custody_bytes,
            last_progress: account.last_progress,
            last_arrival: parts.iter().map(|part| part.last_arrival).fold(account.last_progress, Time::max),
            round_trip: parts.iter().filter_map(|part| part.round_trip).max(),
            aborted: account.aborted,
            lowered: parts.iter().filter_map(|part| part.lowered).min(),
            sent_packets: sum(|part| part.sent_packets),
            sent_bytes: sum(|part| part.sent_bytes),
            overhead_bytes: sum(|part| part.overhead_bytes),
            retransmitted_bytes: sum(|part| part.retransmitted_bytes) + resent_bytes,
            lost_packets: sum(|part| part.lost_packets),
            mended_packets: sum(|part| part.mended_packets),
            marked_packets: sum(|part| part.marked_packets),
            return_bytes: sum(|part| part.return_bytes),
            carried_back_bytes: sum(|part| part.carried_back_bytes),
            timeouts: sum(|part| part.timeouts),
            peak_reorder_bytes: most(|part| part.peak_reorder_bytes),
            peak_send_buffer_bytes: most(|part| part.peak_send_buffer_bytes),
            delay: account.delay,
            arrival_delay,
            histogram: account.histogram,
        }
    }
}
