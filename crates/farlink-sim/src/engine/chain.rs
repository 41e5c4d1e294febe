//! A flow that gateways split: a chain of connections, and the nodes between them.
//!
//! Node 0 is the source, the last one the sink; the connection of hop n leads from node n to node n + 1. Every byte keeps its
//! place in the stream from source to sink, so that it is known what was lost on the way and what came twice.

use farlink_core::event::Abort;
use farlink_core::{Rng, Time};

use super::account::Account;
use super::flow::FlowResult;
use super::route::Route;
use super::source::{BULK_WRITE_BYTES, Source};
use super::spans::{Span, Spans, covered};

/// A flow in the population of its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) kind: u8,
    pub(super) flow: u32,
}

/// One connection of a chain.
#[derive(Debug)]
pub(super) struct HopConnection {
    pub(super) hop: usize,
    pub(super) port: Port,
    /// Written and not read at the other end.
    pub(super) on_the_way: Spans,
    /// Written and never sent.
    unsent: Spans,
    pub(super) written: u64,
    released: u64,
    /// It takes more.
    pub(super) is_writable: bool,
    pub(super) is_closing: bool,
    /// The sender knows that everything has arrived, the end included.
    pub(super) has_closed: bool,
    /// The receiver has got the end.
    pub(super) is_finished: bool,
    /// The sender was told that it is over.
    pub(super) aborted: Option<Abort>,
}

/// Where connections end and begin.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// What is below has been taken, and is not taken again.
    taken: u64,
    /// Taken and not written to the next connection.
    pub(super) waiting: Spans,
    /// Written, and perhaps to be sent again.
    lent: Spans,
    /// There is reason to open the next connection.
    pub(super) is_called: bool,
    /// Nothing more will come.
    pub(super) is_ending: bool,
    pub(super) is_down: bool,
}

/// What lies between two nodes.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) route: Route,
    /// The flow's own transport runs on it, and not that of the edges.
    pub(super) is_own: bool,
    /// The connection into which its first node writes.
    pub(super) writing: Option<usize>,
    /// The connection from which its last node reads. An old one is read until a new one is established.
    pub(super) reading: Option<usize>,
    /// What is below was sent before.
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
    /// Seeds of its connections.
    pub(super) seeds: Rng,
    pub(super) first_seed: u64,
    pub(super) has_ended: bool,
    peak_bytes: u64,
}

impl Node {
    /// Takes bytes that are not known yet; returns them. `[N4]`
    fn take(&mut self, span: Span) -> Option<Span> {
        let new = Span { from: span.from.max(self.taken), ..span };
        self.taken = self.taken.max(span.to);
        (new.from < new.to).then_some(new)
    }

    /// What it holds.
    pub(super) fn stored(&self) -> u64 {
        self.waiting.bytes() + self.lent.bytes()
    }

    /// What was written into a connection that is no more goes out again. `[N4]`
    fn take_back(&mut self) {
        self.waiting.prepend(std::mem::take(&mut self.lent));
    }

    /// All its memory is lost; what is on disk stays. `[N5]`
    pub(super) fn crash(&mut self, has_disk: bool) {
        if has_disk {
            self.take_back();
        } else {
            *self = Node::default();
        }
        self.is_called = false;
        self.is_down = true;
    }
}

impl HopConnection {
    pub(super) fn new(hop: usize, port: Port) -> Self {
        HopConnection {
            hop,
            port,
            on_the_way: Spans::default(),
            unsent: Spans::default(),
            written: 0,
            released: 0,
            is_writable: true,
            is_closing: false,
            has_closed: false,
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
        seed: u64,
    ) -> Self {
        let nodes = (0..=hops.len()).map(|_| Node::default()).collect();
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

    /// The source's alarm: it starts, or writes again; returns when it does so next.
    pub(super) fn on_source(&mut self, now: Time) -> Option<Time> {
        self.nodes[0].is_called = true;
        self.account.last_write = now;
        match self.source {
            Source::Bulk | Source::Relay => None,
            Source::File { left } => {
                self.produce(left);
                self.nodes[0].is_ending = true;
                None
            }
            Source::Cbr { interval, payload_bytes, ref mut left } => {
                let bytes = u64::from(payload_bytes).min(*left);
                if *left != u64::MAX {
                    *left -= bytes;
                }
                let is_done = *left == 0;
                self.produce(bytes);
                self.nodes[0].is_ending = is_done;
                (!is_done).then_some(now + interval)
            }
        }
    }

    fn produce(&mut self, bytes: u64) {
        let from = self.produced;
        self.produced += bytes;
        self.nodes[0].waiting.push(Span { from, to: self.produced });
    }

    /// Endless data for a connection that takes more.
    pub(super) fn replenish(&mut self, connection: usize) {
        let has_room = self.connections[connection].is_writable && self.nodes[0].waiting.is_empty();
        if matches!(self.source, Source::Bulk) && has_room {
            self.produce(u64::from(BULK_WRITE_BYTES));
            self.connections[connection].is_writable = false;
        }
    }

    /// A node has written what waited first into its connection.
    pub(super) fn on_written(&mut self, connection: usize, mut bytes: u64) {
        let HopConnection { hop, on_the_way, unsent, written, .. } = &mut self.connections[connection];
        let node = &mut self.nodes[*hop];
        *written += bytes;
        while let Some(span) = node.waiting.pop(bytes) {
            bytes -= span.len();
            node.lent.push(span);
            on_the_way.push(span);
            unsent.push(span);
        }
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

    /// Nothing of so much of all that was written goes out again; `true` if that is more than before. `[N3]`
    pub(super) fn on_settled(&mut self, connection: usize, settled: u64) -> bool {
        let HopConnection { hop, written, released, .. } = &mut self.connections[connection];
        let more = settled.min(*written).saturating_sub(*released);
        *released += more;
        self.nodes[*hop].lent.drop_front(more);
        more > 0
    }

    /// Bytes came out of a connection.
    pub(super) fn on_read(&mut self, connection: usize, mut bytes: u64, now: Time) {
        let is_last = self.connections[connection].hop + 1 == self.hops.len();
        let node = self.connections[connection].hop + 1;
        while let Some(span) = self.connections[connection].on_the_way.pop(bytes) {
            bytes -= span.len();
            let Some(new) = self.nodes[node].take(span) else { continue };
            if is_last {
                self.account.deliver(new, now);
            } else {
                self.nodes[node].waiting.push(new);
            }
        }
    }

    /// A connection has given up the next bytes.
    pub(super) fn on_skipped(&mut self, connection: usize, mut bytes: u64) {
        let node = self.connections[connection].hop + 1;
        while let Some(span) = self.connections[connection].on_the_way.pop(bytes) {
            bytes -= span.len();
            if let Some(new) = self.nodes[node].take(span) {
                self.account.on_skipped(new);
            }
        }
    }

    /// A node has got the end of the stream. `[N6]`
    pub(super) fn on_end(&mut self, node: usize, now: Time) {
        self.nodes[node].is_ending = true;
        if node + 1 == self.nodes.len() {
            self.account.on_end(self.produced, now);
        }
    }

    /// The connection into which a hop's first node writes is no more: what was not acknowledged waits again.
    pub(super) fn lose_connection(&mut self, hop: usize) {
        self.hops[hop].writing = None;
        self.nodes[hop].take_back();
    }

    /// Room that a node has; the sink's has no end. `[N3]`
    pub(super) fn room(&self, node: usize, buffer_bytes: u64) -> u64 {
        if node + 1 == self.nodes.len() { u64::MAX } else { buffer_bytes.saturating_sub(self.nodes[node].stored()) }
    }

    /// The chain as it stands now counts for its largest store.
    pub(super) fn note_peak(&mut self) {
        let gateways = self.nodes.len() - 1;
        let most = self.nodes[1..gateways].iter().map(Node::stored).max();
        self.peak_bytes = self.peak_bytes.max(most.unwrap_or(0));
    }

    /// A connection gave up: the gateways drop what they hold, and nothing more happens.
    pub(super) fn give_up(&mut self, now: Time, why: Abort) {
        self.account.aborted = Some((now, why));
        let gateways = self.nodes.len() - 1;
        self.nodes[1..gateways].iter_mut().for_each(|node| *node = Node::default());
        self.connections.iter_mut().for_each(|connection| connection.on_the_way.clear());
    }

    /// Whether the sender of each hop knows that all has arrived.
    pub(super) fn is_complete(&self) -> bool {
        let has_closed = |hop: &Hop| hop.writing.is_some_and(|connection| self.connections[connection].has_closed);
        self.hops.iter().all(has_closed)
    }

    /// The warm-up is over: counts start anew.
    pub(super) fn begin_measurement(&mut self) {
        self.account.begin_measurement();
        self.hops.iter_mut().for_each(|hop| hop.resent_bytes = 0);
    }

    /// Bytes that the source was told have arrived, that were not delivered, and that nobody holds any more.
    fn lost_without_trace(&self) -> u64 {
        let source = &self.nodes[0];
        let acknowledged = source.lent.start().or(source.waiting.start()).unwrap_or(self.produced);
        let position = self.account.position();
        let gateways = self.nodes.len() - 1;
        let stores = self.nodes[1..gateways].iter().flat_map(|node| node.waiting.iter().chain(node.lent.iter()));
        let open = self.hops.iter().filter_map(|hop| hop.writing);
        let on_the_way = open.flat_map(|connection| self.connections[connection].on_the_way.iter());
        let held = stores.chain(on_the_way).chain(self.account.skipped());
        acknowledged.saturating_sub(position) - covered(position, acknowledged.max(position), held)
    }

    /// What came of it; `parts` are the results of the connections over the gateways' hop.
    pub(super) fn result(self, parts: &[FlowResult], end: Time, warmup: Time) -> FlowResult {
        let sum = |count: fn(&FlowResult) -> u64| parts.iter().map(count).sum::<u64>();
        let most = |size: fn(&FlowResult) -> u64| parts.iter().map(size).max().unwrap_or(0);
        let resent_bytes: u64 = self.hops.iter().filter(|hop| hop.is_own).map(|hop| hop.resent_bytes).sum();
        let mut arrival_delay = super::DelaySum::default();
        parts.iter().for_each(|part| arrival_delay.merge(&part.arrival_delay));
        let lost = self.lost_without_trace();
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
