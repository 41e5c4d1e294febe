//! The path that all flows share: links in each direction and what is under way on them.

use std::collections::VecDeque;

use farlink_core::endpoint::{Damage, Integrity};
use farlink_core::link::{Link, Verdict};
use farlink_core::protocol::tcp::Segment;
use farlink_core::protocol::udp::Datagram;
use farlink_core::{Rng, Rx, Time, Virtual};

use super::carried::{Beside, Carried};
use super::fifo::Fifo;
use super::flow::Counts;
use super::setup::Setup;

/// A packet that a link carries, with what only the engine knows.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight<C> {
    sent: Time,
    common: C,
    /// There is an entry for it in the ring of what few packets have.
    has_beside: bool,
}

/// The packets of one protocol on one link.
#[derive(Debug)]
pub(super) struct Ring<P: Carried> {
    packets: Fifo<InFlight<P::Common>>,
    beside: VecDeque<Beside<P::Rare>>,
}

impl<P: Carried> Default for Ring<P> {
    fn default() -> Self {
        Ring { packets: Fifo::default(), beside: VecDeque::new() }
    }
}

/// A protocol's packets: which ring is theirs.
pub(super) trait OnLink: Carried {
    const KIND: u8;
    fn ring(link: &mut UnderWay) -> &mut Ring<Self>;
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<P> {
    pub(super) packet: P,
    pub(super) rx: Rx,
    pub(super) sent: Time,
}

/// Which packet arrives when.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    arrival: Time,
    flow: u32,
    kind: u8,
}

/// What is under way on one link: one order, one ring per protocol.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    order: Fifo<Order>,
    pub(super) tcp: Ring<Segment<Virtual>>,
    pub(super) udp: Ring<Datagram<Virtual>>,
}

/// One link and what is under way on it.
struct Leg {
    link: Link,
    last_arrival: Time,
    under_way: UnderWay,
    overtakes: bool,
}

/// Forward links first, in order; then the links of the way back, in order.
pub(super) struct Path {
    /// Arrival of each link's head; never if nothing is under way. Beside the links, as it is read at every event.
    heads: Vec<Time>,
    legs: Vec<Leg>,
    hops: usize,
    return_bytes: u64,
}

impl Path {
    pub(super) fn new(setup: &Setup, seed: u64, run: u64) -> Self {
        let mut legs = Vec::new();
        for (direction, side) in [("forward", &setup.forward), ("return", &setup.back)] {
            for hop in side {
                let rng = Rng::for_component(seed, run, &format!("hop.{}.{direction}", hop.name));
                legs.push(Leg {
                    link: hop.start(rng),
                    last_arrival: Time::ZERO,
                    under_way: UnderWay::default(),
                    overtakes: hop.overtakes,
                });
            }
        }
        Path { heads: vec![Time::NEVER; legs.len()], legs, hops: setup.forward.len(), return_bytes: 0 }
    }

    /// The link whose head arrives first, and when.
    #[inline]
    pub(super) fn earliest(&self) -> (usize, Time) {
        let mut best = (0, Time::NEVER);
        for (link, &head) in self.heads.iter().enumerate() {
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
        let head = self.legs[link].under_way.order.front().expect("the link has a head");
        (head.flow, head.kind)
    }

    /// The link behind this one in the same direction.
    #[inline]
    pub(super) fn next_link(&self, link: usize) -> Option<usize> {
        (link + 1 != self.hops && link + 1 != self.legs.len()).then_some(link + 1)
    }

    /// Whether a link leads to the server's side.
    #[inline]
    pub(super) fn is_forward(&self, link: usize) -> bool {
        link < self.hops
    }

    /// The first link on the way out of a side.
    #[inline]
    pub(super) fn first_link(&self, side: usize) -> usize {
        side * self.hops
    }

    /// Takes the packet at a link's head off the link.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline(always)]
    pub(super) fn take<P: OnLink>(&mut self, link: usize) -> Arrived<P> {
        let under_way = &mut self.legs[link].under_way;
        let ring = P::ring(under_way);
        let &InFlight { sent, common, has_beside } = ring.packets.front().expect("the link has a head");
        ring.packets.drop_front();
        let mut arrived = Arrived { packet: P::put_together(common, None), rx: Rx::default(), sent };
        if has_beside && let Some(Beside { rare, integrity }) = ring.beside.pop_front() {
            arrived.packet = P::put_together(common, rare);
            arrived.rx.integrity = integrity;
        }
        under_way.order.drop_front();
        self.heads[link] = under_way.order.front().map_or(Time::NEVER, |head| head.arrival);
        arrived
    }

    /// A packet enters the path.
    #[inline(always)]
    pub(super) fn send<P: OnLink>(&mut self, link: usize, now: Time, flow: u32, packet: &P, counts: &mut Counts) {
        if link == self.hops {
            self.return_bytes += u64::from(packet.wire_bytes());
            counts.return_bytes += u64::from(packet.wire_bytes());
        }
        self.put(link, now, flow, packet, Integrity::Intact, now, counts);
    }

    /// A packet goes from one link's end into the next link.
    pub(super) fn forward<P: OnLink>(&mut self, from: usize, to: usize, now: Time, flow: u32, counts: &mut Counts) {
        let Arrived { packet, rx, sent } = self.take::<P>(from);
        self.put(to, now, flow, &packet, rx.integrity, sent, counts);
    }

    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    fn put<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        packet: &P,
        mut integrity: Integrity,
        sent: Time,
        counts: &mut Counts,
    ) {
        let leg = &mut self.legs[link];
        let arrival = match leg.link.send(now, packet.wire_bytes()) {
            Verdict::Arrives(at) => at,
            Verdict::Damaged(at) => {
                match packet.inspect(&Damage { bits: leg.link.wrong_bits() }) {
                    Some(damage) => integrity = worse(integrity, damage),
                    None => return counts.note_loss(link < self.hops),
                }
                at
            }
            Verdict::Lost | Verdict::Dropped => return counts.note_loss(link < self.hops),
        };
        let (common, rare) = packet.take_apart();
        let has_beside = rare.is_some() || integrity != Integrity::Intact;
        if arrival < leg.last_arrival {
            let in_flight = InFlight { sent, common, has_beside };
            self.put_early::<P>(link, arrival, flow, in_flight, Beside { rare, integrity });
            return;
        }
        leg.last_arrival = arrival;
        let under_way = &mut leg.under_way;
        if under_way.order.is_empty() {
            self.heads[link] = arrival;
        }
        let order = under_way.order.push_slot();
        order.arrival = arrival;
        order.flow = flow;
        order.kind = P::KIND;
        let ring = P::ring(under_way);
        let slot = ring.packets.push_slot();
        slot.sent = sent;
        slot.has_beside = has_beside;
        P::write(&mut slot.common, common);
        if has_beside {
            ring.beside.push_back(Beside { rare, integrity });
        }
    }

    /// The delay has fallen: the packet would arrive before one that was sent earlier.
    #[cold]
    fn put_early<P: OnLink>(
        &mut self,
        link: usize,
        arrival: Time,
        flow: u32,
        in_flight: InFlight<P::Common>,
        beside: Beside<P::Rare>,
    ) {
        let leg = &mut self.legs[link];
        let under_way = &mut leg.under_way;
        // A FIFO link holds it back until the earlier one is there; otherwise it overtakes.
        let arrival = if leg.overtakes { arrival } else { leg.last_arrival };
        let at = under_way.order.partition_point(|entry| entry.arrival <= arrival);
        let is_of_kind = |at| under_way.order.get(at).is_some_and(|entry: &Order| entry.kind == P::KIND);
        let of_its_kind = (0..at).filter(|&at| is_of_kind(at)).count();
        under_way.order.insert(at, Order { arrival, flow, kind: P::KIND });
        self.heads[link] = under_way.order.front().map_or(Time::NEVER, |head| head.arrival);
        let ring = P::ring(under_way);
        if in_flight.has_beside {
            let has_beside = |at| ring.packets.get(at).is_some_and(|packet| packet.has_beside);
            let before = (0..of_its_kind).filter(|&at| has_beside(at)).count();
            ring.beside.insert(before, beside);
        }
        ring.packets.insert(of_its_kind, in_flight);
    }

    pub(super) fn begin_measurement(&mut self) {
        self.return_bytes = 0;
    }

    pub(super) fn return_bytes(&self) -> u64 {
        self.return_bytes
    }

    pub(super) fn peak_queue_bytes(&self) -> u64 {
        self.legs[..self.hops].iter().map(|leg| leg.link.peak_waiting_bytes()).max().unwrap_or(0)
    }
}

/// What two links did to a packet, together.
fn worse(first: Integrity, second: Integrity) -> Integrity {
    match (first, second) {
        (Integrity::PayloadDamaged, _) | (_, Integrity::PayloadDamaged) => Integrity::PayloadDamaged,
        (Integrity::Mended { bits: one }, Integrity::Mended { bits: two }) => {
            Integrity::Mended { bits: one.saturating_add(two) }
        }
        (Integrity::Intact, other) | (other, Integrity::Intact) => other,
    }
}
