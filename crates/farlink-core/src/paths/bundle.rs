//! One end of a bundle: its state, its paths, and what the owner tells it and asks.

use std::collections::VecDeque;

use super::config::{CLASSES, MOST_PATHS, PathBundleConfig, PathRules};
use super::flight::{Acknowledged, Content, Sent};
use super::lanes::{Delivery, Lanes};
use super::outlook::Outlook;
use super::packet::LANES;
use super::path::{Cause, PathEnd, PathId, PathState, PathStats};
use super::queue::{FlowQueue, Waiting};
use super::repeats::{Chunk, Fate, Repeats};
use crate::endpoint::Ecn;
use crate::payload::Payload;
use crate::rng::{RandomSource, SplitMix64};
use crate::time::Time;

/// Events of a path or of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The path carries packets.
    Up(PathId),
    /// The path carries nothing: what was in flight on it is sent over others.
    Down(PathId, Cause),
    /// The path would make things worse; it is probed.
    LeftOut(PathId, Cause),
    /// The peer has restarted: what was in flight is lost.
    PeerRestarted,
}

/// Most events that wait; older ones are dropped.
const MOST_EVENTS: usize = 256;

/// Incarnations of the peer that are remembered as old.
pub(super) const RETIRED: usize = 8;

/// Counts of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleStats {
    /// Packets that were given to the bundle.
    pub taken: u64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Packets that the queue marked in place of dropping them.
    pub marked: u64,
    /// Packets and pieces that were lost and not sent again.
    pub lost: u64,
    /// Packets and pieces that were sent again.
    pub repeated: u64,
    /// Packets from the peer that belong to another incarnation or path, or have been here before.
    pub strange: u64,
    /// Received packets.
    pub delivery: Delivery,
    /// Bytes that wait in front of the paths.
    pub queued_bytes: u64,
    /// Bytes that wait to be sent again, or for an acknowledgement.
    pub flight_bytes: u64,
    /// Bytes that arrived and wait for earlier ones.
    pub reorder_bytes: u64,
}

/// One end of a bundle of paths. It owns no socket and no clock.
///
/// A driver passes it packets ([`send`](Self::send) those of users, [`handle_packet`](Self::handle_packet) those of the peer), drains
/// [`poll_transmit`](Self::poll_transmit), [`receive`](Self::receive) and [`poll_event`](Self::poll_event), then waits for input or
/// for [`poll_timeout`](Self::poll_timeout), after which it calls [`handle_timeout`](Self::handle_timeout).
#[derive(Clone, Debug)]
pub struct PathBundle<D> {
    pub(super) config: PathBundleConfig,
    pub(super) paths: Vec<Option<PathEnd<D>>>,
    /// Incarnations of this end and of the peer (0: unknown), and former ones of the peer.
    pub(super) own: u16,
    pub(super) peer: u16,
    pub(super) retired: VecDeque<u16>,
    pub(super) queues: Vec<FlowQueue<D>>,
    /// The next packet of each class, and whether its flow has more.
    pub(super) staged: Vec<Option<(Waiting<D>, bool)>>,
    /// Number of the next packet of each lane.
    pub(super) sequences: Vec<u64>,
    pub(super) repeats: Repeats<D>,
    /// Copies of redundant packets that are about to be sent.
    pub(super) copies: VecDeque<(usize, Chunk<D>)>,
    /// Bytes of the user in flight.
    pub(super) flight_bytes: usize,
    pub(super) lanes: Lanes<D>,
    events: VecDeque<Event>,
    /// Paths that are closed, and over which path the peer is told.
    pub(super) closes: VecDeque<(usize, u8)>,
    pub(super) outlook: Outlook,
    /// When something that waits may be sent.
    pub(super) wake: Time,
    pub(super) stats: BundleStats,
    pub(super) arrived: Vec<Acknowledged<D>>,
    pub(super) lost: Vec<Sent<D>>,
    /// The path whose turn it is to send what is no data.
    pub(super) turn: usize,
    /// How packets of the user are read and marked.
    pub(super) class_of: fn(&D) -> u8,
    pub(super) mark: fn(&mut D) -> bool,
    /// Traffic class of the packet that [`poll_transmit`](Self::poll_transmit) returned last.
    pub(super) traffic_class: u8,
}

impl<D: Payload> PathBundle<D> {
    /// An end without paths. The seed tells incarnations apart: each start needs another one.
    pub fn new(config: PathBundleConfig, now: Time, seed: u64) -> Self {
        let own = (SplitMix64::new(seed).next_u64() >> 48) as u16;
        PathBundle {
            lanes: Lanes::new(config.classes, config.reorder_bytes, config.longest_wait),
            paths: (0..MOST_PATHS).map(|_| None).collect(),
            own: own.max(1),
            peer: 0,
            retired: VecDeque::new(),
            queues: (0..CLASSES).map(|_| FlowQueue::new()).collect(),
            staged: (0..CLASSES).map(|_| None).collect(),
            sequences: vec![0; CLASSES * usize::from(LANES)],
            repeats: Repeats::new(),
            copies: VecDeque::new(),
            flight_bytes: 0,
            events: VecDeque::new(),
            closes: VecDeque::new(),
            outlook: Outlook::new(now),
            wake: Time::NEVER,
            stats: BundleStats::default(),
            arrived: Vec::new(),
            lost: Vec::new(),
            turn: 0,
            class_of: |_| 0,
            mark: |_| false,
            traffic_class: 0,
            config,
        }
    }

    /// Says how the user's packets are read: `class_of` gives the byte of traffic class of a packet, `mark` marks congestion in one and
    /// says whether it could. Otherwise all have class 0 and none is marked.
    pub fn read_packets_with(&mut self, class_of: fn(&D) -> u8, mark: fn(&mut D) -> bool) {
        (self.class_of, self.mark) = (class_of, mark);
    }

    /// The byte of traffic class (DSCP and ECN) of the user's packet of which [`poll_transmit`](Self::poll_transmit) has returned a
    /// piece last; 0 if it returned something else.
    pub fn traffic_class(&self) -> u8 {
        self.traffic_class
    }

    /// Other rules of classes, and other bounds; those of memory hold for what comes from now on.
    pub fn set_config(&mut self, now: Time, config: PathBundleConfig) {
        self.lanes.set_rules(config.classes, config.reorder_bytes, config.longest_wait);
        self.config = config;
        self.outlook.expire();
        self.wake = now;
    }

    /// Other rules of a path, which keeps its number, its headers and its MTU.
    pub fn set_rules(&mut self, now: Time, path: PathId, rules: PathRules) {
        if let Some(end) = self.path_mut(path.0.into()) {
            let (number, mtu, overhead_bytes) = (end.rules.number, end.rules.mtu, end.rules.overhead_bytes);
            end.rules = PathRules { number, mtu, overhead_bytes, ..rules };
            self.outlook.expire();
            self.wake = now;
        }
    }

    /// Length of all headers and checks around packets of a path, in bytes.
    pub fn set_overhead(&mut self, path: PathId, bytes: u32) {
        if let Some(end) = self.path_mut(path.0.into()) {
            end.rules.overhead_bytes = bytes;
        }
    }

    /// Adds a path, which is probed at once. A number that is in use is replaced by the lowest free one.
    ///
    /// # Panics
    /// If there are [`MOST_PATHS`] already.
    pub fn add_path(&mut self, now: Time, rules: PathRules) -> PathId {
        let wanted = rules.number.map(usize::from).filter(|&number| self.path(number).is_none() && number < MOST_PATHS);
        let index =
            wanted.or_else(|| self.paths.iter().position(Option::is_none)).expect("a bundle has at most 16 paths");
        let id = PathId(index as u8);
        self.paths[index] = Some(PathEnd::new(now, id, rules));
        self.outlook.expire();
        id
    }

    /// Removes a path; what is in flight on it is sent over others.
    pub fn remove_path(&mut self, now: Time, path: PathId) {
        self.close(now, usize::from(path.0), PathState::NoCarrier);
        if let Some(slot) = self.paths.get_mut(usize::from(path.0)) {
            *slot = None;
        }
    }

    /// Whether the interface or line of a path is up.
    pub fn set_carrier(&mut self, now: Time, path: PathId, is_up: bool) {
        let Some(end) = self.path_mut(path.0.into()) else { return };
        let was_up = end.state != PathState::NoCarrier;
        if is_up && !was_up {
            end.regain(now);
        }
        if !is_up && was_up {
            self.close(now, path.0.into(), PathState::NoCarrier);
            self.tell(Event::Down(path, Cause::Carrier));
        }
    }

    /// Longest packet of a path, headers of the seal already taken off, in bytes.
    pub fn set_mtu(&mut self, now: Time, path: PathId, bytes: u32) {
        let _ = now;
        if let Some(end) = self.path_mut(path.0.into()) {
            end.rules.mtu = bytes;
        }
    }

    /// Takes a packet of the user. `flow` is a hash of what its flow has in common; packets of a flow stay in order. Returns `false`
    /// if it is dropped: no path may ever carry its class, it is empty or longer than 65,535 bytes, or nothing else can be dropped.
    pub fn send(&mut self, now: Time, packet: D, class: u8, flow: u64) -> bool {
        self.stats.taken += 1;
        let class = usize::from(class).min(CLASSES - 1);
        let is_possible = self.ends().any(|end| end.rules.classes >> class & 1 == 1);
        if !is_possible || packet.is_empty() || packet.len() > usize::from(u16::MAX) {
            self.stats.dropped += 1;
            return false;
        }
        // A packet that was taken out and is not sent yet has no advantage over a sparse flow that comes now.
        if let Some((waiting, _)) = self.staged[class].take() {
            self.queues[class].take_back(waiting);
        }
        self.queues[class].push(now, packet, flow);
        // The class that goes last is dropped first.
        while self.queued_bytes() > self.config.queue_bytes {
            if !self.queues.iter_mut().rev().any(|queue| queue.drop_from_longest()) {
                break;
            }
        }
        self.wake = now;
        true
    }

    fn queued_bytes(&self) -> usize {
        self.queues.iter().map(FlowQueue::bytes).sum()
    }

    /// The next packet of the peer's user.
    pub fn receive(&mut self) -> Option<D> {
        self.receive_marked().map(|(packet, _)| packet)
    }

    /// As [`receive`](Self::receive), with the severest mark of the datagrams that brought it.
    pub fn receive_marked(&mut self) -> Option<(D, Ecn)> {
        self.lanes.pop()
    }

    /// The events since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Numbers of a path; without a state if there is none.
    pub fn stats(&self, path: PathId) -> PathStats {
        self.path(path.0.into()).map(PathEnd::stats).unwrap_or_default()
    }

    /// Numbers of the bundle.
    pub fn totals(&self) -> BundleStats {
        BundleStats {
            marked: self.queues.iter().map(FlowQueue::marked).sum(),
            dropped: self.stats.dropped + self.queues.iter().map(FlowQueue::dropped).sum::<u64>(),
            delivery: self.lanes.counts,
            queued_bytes: self.queued_bytes() as u64,
            flight_bytes: (self.flight_bytes + self.repeats.bytes()) as u64,
            reorder_bytes: self.lanes.bytes() as u64,
            ..self.stats
        }
    }

    pub(super) fn path(&self, index: usize) -> Option<&PathEnd<D>> {
        self.paths.get(index)?.as_ref()
    }

    pub(super) fn path_mut(&mut self, index: usize) -> Option<&mut PathEnd<D>> {
        self.paths.get_mut(index)?.as_mut()
    }

    pub(super) fn ends(&self) -> impl Iterator<Item = &PathEnd<D>> {
        self.paths.iter().flatten()
    }

    pub(super) fn tell(&mut self, event: Event) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// This end no longer uses a path, and tells the peer over the others.
    fn close(&mut self, now: Time, index: usize, state: PathState) {
        self.fail(now, index, state);
        self.closes.retain(|&(via, path)| via != index && usize::from(path) != index);
        for end in self.paths.iter().flatten().filter(|end| end.state == PathState::Up) {
            self.closes.push_back((end.id.0.into(), index as u8));
        }
        self.wake = now;
    }

    /// A path carries nothing any more: what was in flight on it goes over others.
    pub(super) fn fail(&mut self, now: Time, index: usize, state: PathState) {
        let Some(end) = self.path_mut(index) else { return };
        let held = end.fail(now, state);
        self.hand_on_all(held);
        self.outlook.expire();
        self.wake = now;
    }

    pub(super) fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Repeated => self.stats.repeated += 1,
            Fate::NotNeeded => {}
            Fate::Lost => self.stats.lost += 1,
        }
    }

    pub(super) fn hand_on_all(&mut self, held: Vec<Sent<D>>) {
        for sent in held {
            if let Content::Chunk(chunk) = sent.content {
                self.flight_bytes -= chunk.data.len();
                let fate = self.repeats.lost(chunk, true);
                self.count(fate);
            }
        }
    }

    /// The acknowledgements of a path are overdue: other paths get copies of what is in flight, unless it is nobody's any more.
    pub(super) fn suspect(&mut self, now: Time, index: usize) {
        let Some(end) = self.paths.get_mut(index).and_then(Option::as_mut) else { return };
        end.suspect(now);
        for sent in end.flight.in_flight() {
            let Content::Chunk(chunk) = &sent.content else { continue };
            let key = chunk.key();
            let Content::Chunk(chunk) = std::mem::replace(&mut sent.content, Content::HandedOn(key)) else { continue };
            self.flight_bytes -= chunk.data.len();
            self.stats.repeated += u64::from(self.repeats.hand_on(chunk));
        }
        self.outlook.expire();
        self.wake = now;
    }

    /// Packets are lost: they are sent again, within the bounds.
    pub(super) fn repeat_lost(&mut self, now: Time) {
        let mut lost = std::mem::take(&mut self.lost);
        for sent in lost.drain(..) {
            if let Content::Chunk(chunk) = sent.content {
                self.flight_bytes -= chunk.data.len();
                let is_young = now.since(chunk.since) < self.config.repeat_within;
                let may_repeat = chunk.losses < self.config.repeat && is_young;
                let fate = self.repeats.lost(chunk, may_repeat);
                self.count(fate);
            }
        }
        self.lost = lost;
    }

    /// The peer has restarted: it knows no numbers, and what it sends has new ones.
    pub(super) fn restart(&mut self) {
        let mut lost = self.repeats.clear() + self.copies.len() as u64;
        self.copies.clear();
        for end in self.paths.iter_mut().flatten() {
            let held = end.peer_restarted();
            lost += held.iter().filter(|sent| matches!(sent.content, Content::Chunk(_))).count() as u64;
        }
        self.flight_bytes = 0;
        for class in 0..CLASSES {
            lost += self.queues[class].drop_begun();
            if let Some((waiting, _)) = self.staged[class].take_if(|(waiting, _)| waiting.begun.is_some()) {
                let _ = waiting;
                lost += 1;
            }
        }
        self.stats.lost += lost;
        self.sequences.fill(0);
        self.lanes.restart();
        self.outlook.expire();
        self.tell(Event::PeerRestarted);
    }
}
