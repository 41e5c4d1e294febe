//! The path that all flows share: links in each direction and what is under way on them.

use std::collections::VecDeque;

use farlink_core::endpoint::Damage;
use farlink_core::link::{Link, Verdict};
use farlink_core::protocol::tcp::Segment;
use farlink_core::protocol::udp::Datagram;
use farlink_core::{Packet, Rng, Rx, Time, Virtual};

use super::flow::Counts;
use super::setup::Setup;

/// A packet type that links carry: where its ring is.
pub(super) trait Carried: Packet + 'static {
    const KIND: u8;
    fn ring(link: &mut UnderWay) -> &mut VecDeque<InFlight<Self>>;
}

/// A packet under way, with what only the engine knows.
#[derive(Clone, Debug)]
pub(super) struct InFlight<P> {
    pub(super) packet: P,
    pub(super) rx: Rx,
    pub(super) sent: Time,
}

/// What is under way on one link: one order, one ring per protocol.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    order: VecDeque<(Time, u32, u8)>,
    pub(super) tcp: VecDeque<InFlight<Segment<Virtual>>>,
    pub(super) udp: VecDeque<InFlight<Datagram<Virtual>>>,
}

/// Forward links first, in order; then the links of the way back, in order.
pub(super) struct Path {
    /// Arrival of each link's head; never if nothing is under way. Beside the links, as it is read at every event.
    heads: Vec<Time>,
    links: Vec<Link>,
    under_way: Vec<UnderWay>,
    hops: usize,
    overtakes: Vec<bool>,
    last_arrival: Vec<Time>,
    return_bytes: u64,
}

impl Path {
    pub(super) fn new(setup: &Setup, seed: u64, run: u64) -> Self {
        let hops = setup.forward.len();
        let mut links = Vec::new();
        let mut overtakes = Vec::new();
        for (direction, side) in [("forward", &setup.forward), ("return", &setup.back)] {
            for hop in side {
                let rng = Rng::for_component(seed, run, &format!("hop.{}.{direction}", hop.name));
                links.push(hop.start(rng));
                overtakes.push(hop.overtakes);
            }
        }
        Path {
            heads: vec![Time::NEVER; links.len()],
            under_way: links.iter().map(|_| UnderWay::default()).collect(),
            last_arrival: vec![Time::ZERO; links.len()],
            overtakes,
            links,
            hops,
            return_bytes: 0,
        }
    }

    /// The link whose head arrives first, and when.
    #[inline]
    pub(super) fn earliest(&self) -> (usize, Time) {
        let mut best = (0, self.heads[0]);
        for (link, &head) in self.heads.iter().enumerate().skip(1) {
            if head < best.1 {
                best = (link, head);
            }
        }
        best
    }

    /// Flow and protocol of a link's head.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline]
    pub(super) fn head(&self, link: usize) -> (u32, u8) {
        let &(_, flow, kind) = self.under_way[link].order.front().expect("the link has a head");
        (flow, kind)
    }

    /// The link behind this one in the same direction.
    #[inline]
    pub(super) fn next_link(&self, link: usize) -> Option<usize> {
        (link + 1 != self.hops && link + 1 != self.links.len()).then_some(link + 1)
    }

    /// The side at the end of a last link: 1 is the server at the end of the forward path.
    #[inline]
    pub(super) fn side_behind(&self, link: usize) -> usize {
        usize::from(link < self.hops)
    }

    /// The first link on the way out of a side.
    #[inline]
    pub(super) fn first_link(&self, side: usize) -> usize {
        side * self.hops
    }

    /// The packet at a link's head.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline]
    pub(super) fn front<P: Carried>(&mut self, link: usize) -> &InFlight<P> {
        P::ring(&mut self.under_way[link]).front().expect("the link has a head")
    }

    /// Takes the packet at a link's head off the link.
    #[inline]
    pub(super) fn pop_front<P: Carried>(&mut self, link: usize) -> Option<InFlight<P>> {
        let under_way = &mut self.under_way[link];
        let packet = P::ring(under_way).pop_front();
        under_way.order.pop_front();
        self.heads[link] = under_way.order.front().map_or(Time::NEVER, |head| head.0);
        packet
    }

    /// A packet enters a link.
    #[inline]
    pub(super) fn send<P: Carried>(&mut self, link: usize, now: Time, flow: u32, packet: P, counts: &mut Counts) {
        if link == self.hops {
            self.return_bytes += u64::from(packet.wire_bytes());
            counts.return_bytes += u64::from(packet.wire_bytes());
        }
        self.put(link, now, flow, InFlight { packet, rx: Rx::default(), sent: now }, counts);
    }

    /// A packet goes from one link's end into the next link.
    pub(super) fn forward<P: Carried>(&mut self, from: usize, to: usize, now: Time, flow: u32, counts: &mut Counts) {
        if let Some(packet) = self.pop_front::<P>(from) {
            self.put(to, now, flow, packet, counts);
        }
    }

    #[inline]
    fn put<P: Carried>(&mut self, link: usize, now: Time, flow: u32, mut packet: InFlight<P>, counts: &mut Counts) {
        let arrival = match self.links[link].send(now, packet.packet.wire_bytes()) {
            Verdict::Arrives(at) => at,
            Verdict::Damaged(at) => {
                match packet.packet.inspect(&Damage { bits: self.links[link].wrong_bits() }) {
                    Some(integrity) => packet.rx.integrity = integrity,
                    None => return counts.note_loss(link < self.hops),
                }
                at
            }
            Verdict::Lost | Verdict::Dropped => return counts.note_loss(link < self.hops),
        };
        let under_way = &mut self.under_way[link];
        if arrival < self.last_arrival[link] {
            self.put_early(link, arrival, flow, packet);
            return;
        }
        self.last_arrival[link] = arrival;
        if under_way.order.is_empty() {
            self.heads[link] = arrival;
        }
        under_way.order.push_back((arrival, flow, P::KIND));
        P::ring(under_way).push_back(packet);
    }

    /// The delay has fallen: the packet would arrive before one that was sent earlier.
    #[cold]
    fn put_early<P: Carried>(&mut self, link: usize, arrival: Time, flow: u32, packet: InFlight<P>) {
        let last = self.last_arrival[link];
        let under_way = &mut self.under_way[link];
        // A FIFO link holds it back until the earlier one is there; otherwise it overtakes.
        let arrival = if self.overtakes[link] { arrival } else { last };
        let at = under_way.order.partition_point(|entry| entry.0 <= arrival);
        let of_its_kind = under_way.order.iter().take(at).filter(|entry| entry.2 == P::KIND).count();
        under_way.order.insert(at, (arrival, flow, P::KIND));
        P::ring(under_way).insert(of_its_kind, packet);
        self.heads[link] = under_way.order[0].0;
    }

    pub(super) fn begin_measurement(&mut self) {
        self.return_bytes = 0;
    }

    pub(super) fn return_bytes(&self) -> u64 {
        self.return_bytes
    }

    pub(super) fn peak_queue_bytes(&self) -> u64 {
        self.links[..self.hops].iter().map(Link::peak_waiting_bytes).max().unwrap_or(0)
    }
}
