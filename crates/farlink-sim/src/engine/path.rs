//! The path that all flows share: links in each direction and what is under way on them.

mod bundled;
mod repeated;
mod served;

use std::collections::VecDeque;

use farlink_core::correction::Correction;
use farlink_core::endpoint::{Damage, Ecn, Integrity};
use farlink_core::link::{Capacity, Link, LinkState, Verdict};
use farlink_core::{Packet, PacketCode, PlainPacket, Rng, Rx, Time, Train};

use super::carried::{Beside, Carried, Load};
use super::counts::Counts;
use super::fifo::Fifo;
use super::setup::{HopSetup, Setup};
use super::timers::{Alarm, Kind, Timers};
use super::{KINDS, Rings};
pub use bundled::BundleResult;
use bundled::{Bundled, Kept};
use repeated::Heard;
use served::Served;

/// A packet that a link carries, with what only the engine knows; or the first of a train of them.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight<C> {
    sent: Time,
    common: C,
    /// What each packet of a train adds to the one before it.
    step: u32,
    /// There is an entry for it in the ring of what few packets have.
    has_beside: bool,
}

/// The packets of one protocol on one link.
#[derive(Debug)]
pub(super) struct Ring<P: Carried> {
    packets: Fifo<InFlight<P::Common>>,
    beside: VecDeque<Beside<P::Rare>>,
    /// What is in a bundle, by place.
    kept: Vec<Option<Kept<P::Common, P::Rare>>>,
    /// What a bundle's end has heard of each flow, where it repeats acknowledgements.
    heard: Vec<Heard<P>>,
}

impl<P: Carried> Default for Ring<P> {
    fn default() -> Self {
        Ring { packets: Fifo::default(), beside: VecDeque::new(), kept: Vec::new(), heard: Vec::new() }
    }
}

impl<P: Carried> Ring<P> {
    #[cold]
    fn put_beside(&mut self, rare: Option<P::Rare>, rx: Rx) {
        self.beside.push_back(Beside { rare, rx });
    }
}

/// A protocol's packets: which ring is theirs.
pub(super) trait OnLink: Carried {
    const KIND: u8;
    fn ring(rings: &mut Rings) -> &mut Ring<Self>;
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<P> {
    pub(super) packet: P,
    pub(super) rx: Rx,
    pub(super) sent: Time,
}

/// Which packet arrives when; or the first packet of which train.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    arrival: Time,
    /// Between one packet of a train and the next.
    gap: Time,
    flow: u32,
    /// Packets in the train.
    count: u32,
    kind: u8,
}

/// What is under way on one link: one order, one ring per protocol.
#[derive(Debug, Default)]
struct UnderWay {
    order: Fifo<Order>,
    rings: Rings,
    /// The end of the warm-up: of what was sent before, nothing goes into one train with what is sent later.
    warmup: Time,
}

impl UnderWay {
    /// Couples packets to the train that was put last; `false` if they do not continue it.
    #[inline(always)]
    fn couple<P: OnLink>(&mut self, flow: u32, train: &Train<P::Common>, sent: Time) -> bool {
        let Some(&order) = self.order.back() else { return false };
        if order.flow != flow || order.kind != P::KIND {
            return false;
        }
        let Some(in_flight) = P::ring(&mut self.rings).packets.back_mut().filter(|last| !last.has_beside) else {
            return false;
        };
        if (in_flight.sent < self.warmup) != (sent < self.warmup) {
            return false;
        }
        let Order { arrival, gap, count, .. } = order;
        let mut last = Train { first: in_flight.common, step: in_flight.step, count, at: arrival, gap };
        if !last.couple(train) {
            return false;
        }
        in_flight.step = last.step;
        if let Some(order) = self.order.back_mut() {
            order.gap = last.gap;
            order.count = last.count;
        }
        true
    }

    /// Puts packets behind all others.
    #[inline(always)]
    fn put<P: OnLink>(&mut self, flow: u32, train: &Train<P::Common>, sent: Time) {
        if self.couple::<P>(flow, train, sent) {
            return;
        }
        let &Train { first, step, count, at, gap } = train;
        *self.order.push_slot() = Order { arrival: at, gap, flow, count, kind: P::KIND };
        *P::ring(&mut self.rings).packets.push_slot() = InFlight { sent, common: first, step, has_beside: false };
    }

    /// Puts a packet behind all others, coupled to none.
    #[inline(always)]
    fn append<P: OnLink>(
        &mut self,
        flow: u32,
        arrival: Time,
        sent: Time,
        mut common: P::Common,
        rare: Option<P::Rare>,
        rx: Rx,
    ) {
        let has_beside = !is_usual::<P>(&mut common, rare.as_ref(), rx);
        *self.order.push_slot() = Order { arrival, gap: Time::ZERO, flow, count: 1, kind: P::KIND };
        let ring = P::ring(&mut self.rings);
        let slot = ring.packets.push_slot();
        slot.sent = sent;
        slot.common = common;
        slot.has_beside = has_beside;
        if has_beside {
            ring.put_beside(rare, rx);
        }
    }

    /// Takes out the packet at the head.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    fn take<P: OnLink>(&mut self) -> Arrived<P> {
        let ring = P::ring(&mut self.rings);
        let in_flight = ring.packets.front().expect("there is a head");
        let rx = Rx { ecn: P::ecn(&in_flight.common), ..Rx::default() };
        let mut arrived = Arrived { packet: P::plain(&in_flight.common), rx, sent: in_flight.sent };
        if in_flight.has_beside
            && let Some(Beside { rare, rx }) = ring.beside.pop_front()
        {
            if let Some(rare) = rare {
                arrived.packet.add(rare);
            }
            arrived.rx = rx;
        }
        self.skip::<P>(1);
        arrived
    }

    /// Takes so many packets of the train at the head out; a single packet is a train of one.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    fn skip<P: OnLink>(&mut self, count: u32) {
        let head = self.order.front_mut().expect("there is a head");
        head.count -= count;
        if head.count == 0 {
            self.order.drop_front();
            P::ring(&mut self.rings).packets.drop_front();
        } else {
            head.arrival += head.gap.times(u64::from(count));
            let in_flight = P::ring(&mut self.rings).packets.front_mut().expect("there is a head");
            in_flight.common = in_flight.common.ahead(in_flight.step, count);
        }
    }
}

/// One link and what is under way on it.
struct Leg {
    link: Link,
    last_arrival: Time,
    under_way: UnderWay,
    overtakes: bool,
    /// What waits, if the link serves classes.
    served: Option<Box<Served>>,
    /// The lines that stand in place of the link.
    bundled: Option<Box<Bundled>>,
}

impl Leg {
    fn new(hop: &HopSetup, direction: &str, seed: u64, run: u64, warmup: Time) -> Self {
        let rng = Rng::for_component(seed, run, &format!("hop.{}.{direction}", hop.name));
        let of_hop = Rng::for_component(seed, run, &format!("hop.{}", hop.name));
        Leg {
            bundled: Bundled::new(hop, direction, rng.clone(), &of_hop),
            link: hop.start(rng, &of_hop),
            last_arrival: Time::ZERO,
            under_way: UnderWay { warmup, ..UnderWay::default() },
            overtakes: hop.overtakes,
            served: Served::new(hop),
        }
    }
}

/// Forward links first, in order; then the links of the way back, in order; then the spools of gateways.
pub(super) struct Path {
    /// Arrival of each link's head; never if nothing is under way. Beside the links, as it is read at every event.
    heads: Vec<Time>,
    legs: Vec<Leg>,
    hops: usize,
    return_bytes: u64,
    /// The link of the way back of which it is measured how much it sends.
    measured_back: usize,
    /// When the run ends at the latest.
    duration: Time,
    /// The codes around the packets of each protocol's flows; none at all if no flow has one.
    codes: [Vec<PacketCode>; KINDS],
    /// The classes of each protocol's flows; none beyond those of the last flow above class 0.
    classes: [Vec<u8>; KINDS],
    /// Per link: the station at its end, if somebody there wants to hear of frames that are damaged beyond use.
    ears: Vec<Option<u8>>,
}

impl Path {
    pub(super) fn new(setup: &Setup, seed: u64, run: u64) -> Self {
        let mut legs = Vec::new();
        for (direction, side) in [("forward", &setup.forward), ("return", &setup.back)] {
            legs.extend(side.iter().map(|hop| Leg::new(hop, direction, seed, run, setup.warmup)));
        }
        if let Some(spool) = setup.gateway.as_ref().and_then(|gateway| gateway.spool.as_ref()) {
            legs.extend(["sender", "receiver"].map(|side| Leg::new(spool, side, seed, run, setup.warmup)));
        }
        Path {
            ears: vec![None; legs.len()],
            heads: vec![Time::NEVER; legs.len()],
            legs,
            hops: setup.forward.len(),
            return_bytes: 0,
            measured_back: setup.forward.len() + setup.measured_back(),
            duration: setup.duration,
            codes: Default::default(),
            classes: Default::default(),
        }
    }

    /// Somebody at the end of a link, in the station of that number, wants to hear of frames that are damaged beyond use.
    pub(super) fn listen(&mut self, link: usize, station: u8) {
        self.ears[link] = Some(station);
    }

    /// Sets an alarm for the frame that would have arrived at the end of a link and is of no use, if somebody listens there.
    #[cold]
    fn note_corrupted(&self, link: usize, arrival: Time, timers: &mut Timers) {
        let leg = &self.legs[link];
        if let Some(station) = self.ears[link] {
            let at = if leg.overtakes { arrival } else { arrival.max(leg.last_arrival) };
            timers.push(at, Alarm { event: Kind::Corrupted, kind: 0, side: station, flow: 0 });
        }
    }

    /// Packets of a flow carry a code, or not.
    pub(super) fn protect(&mut self, kind: u8, flow: usize, correction: Option<Correction>) {
        if let Some(correction) = correction {
            let codes = &mut self.codes[usize::from(kind)];
            codes.resize(flow, PacketCode::None);
            codes.push(correction.code());
        }
    }

    /// The link whose head arrives first, and when.
    #[inline]
    pub(super) fn earliest(&self) -> (usize, Time) {
        if let [forward, back] = self.heads[..] {
            return if back < forward { (1, back) } else { (0, forward) };
        }
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

    /// How many hops there are.
    pub(super) fn hops(&self) -> usize {
        self.hops
    }

    /// What a link is like at `now`, and when that may change next.
    pub(super) fn state(&mut self, link: usize, now: Time) -> (LinkState, Time) {
        let Leg { link, bundled, .. } = &mut self.legs[link];
        match bundled {
            None => (link.state(now), link.next_change(now)),
            Some(bundled) => (bundled.state(now), bundled.next_change()),
        }
    }

    /// Takes the packet at a link's head off the link.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline(always)]
    pub(super) fn take<P: OnLink>(&mut self, link: usize) -> Arrived<P> {
        let under_way = &mut self.legs[link].under_way;
        let arrived = under_way.take::<P>();
        self.heads[link] = under_way.order.front().map_or(Time::NEVER, |head| head.arrival);
        arrived
    }

    /// The packet at a link's head reaches an endpoint that is down.
    #[cold]
    pub(super) fn discard<P: OnLink>(&mut self, link: usize) {
        self.take::<P>(link);
    }

    /// Takes so many packets of the train at a link's head off the link; a single packet is a train of one.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline]
    pub(super) fn skip<P: OnLink>(&mut self, link: usize, count: u32) {
        let under_way = &mut self.legs[link].under_way;
        under_way.skip::<P>(count);
        self.heads[link] = under_way.order.front().map_or(Time::NEVER, |head| head.arrival);
    }

    /// The train at a link's head as far as it arrives by `until`, if there is more than one packet of it.
    #[inline(always)]
    pub(super) fn peek_train<P: OnLink>(&mut self, link: usize, until: Time) -> Option<Train<P::Common>> {
        let under_way = &mut self.legs[link].under_way;
        let &Order { arrival, gap, count, .. } = under_way.order.front()?;
        if count == 1 || arrival + gap > until {
            return None;
        }
        let in_flight = P::ring(&mut under_way.rings).packets.front()?;
        let in_time = |count: u32| arrival + gap.times(u64::from(count - 1)) <= until;
        let count = if in_time(count) { count } else { (until.since(arrival).as_ps() / gap.as_ps()) as u32 + 1 };
        Some(Train { first: in_flight.common, step: in_flight.step, count, at: arrival, gap })
    }

    /// The packet at a link's head and when it was sent, if it arrives intact and has nothing rare.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline(always)]
    pub(super) fn peek_plain<P: OnLink>(&mut self, link: usize) -> Option<(P::Common, Time)> {
        let ring = P::ring(&mut self.legs[link].under_way.rings);
        let in_flight = ring.packets.front().expect("the link has a head");
        if in_flight.has_beside { None } else { Some((in_flight.common, in_flight.sent)) }
    }

    /// A packet enters the path by a first link of a flow's way, forward or back; `false` if the queue was full and dropped
    /// it.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    pub(super) fn send<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        packet: &impl Load<P>,
        ecn: Ecn,
        counts: &mut Counts,
        timers: &mut Timers,
    ) -> bool {
        if link >= self.hops {
            self.return_bytes += u64::from(packet.wire_bytes());
            counts.return_bytes += u64::from(packet.wire_bytes());
        }
        self.put::<P, false>(link, now, flow, packet, Rx { ecn, ..Rx::default() }, now, counts, timers)
    }

    /// A train enters the path.
    pub(super) fn send_train<P: OnLink>(
        &mut self,
        link: usize,
        flow: u32,
        train: &Train<P::Common>,
        counts: &mut Counts,
        timers: &mut Timers,
    ) {
        let mut rest = *train;
        while rest.count > 0 {
            let leg = &mut self.legs[link];
            let wire_bytes = rest.first.wire_bytes();
            let (count, at, gap) = match (&leg.served, &leg.bundled) {
                (None, None) => leg.link.send_train(rest.at, rest.gap, rest.count, wire_bytes),
                _ => (0, Time::ZERO, Time::ZERO), // one by one
            };
            if count == 0 || at < leg.last_arrival {
                debug_assert!(count == 0, "links of constant delay keep the order");
                self.send::<P>(link, rest.at, flow, &rest.first, P::ecn(&rest.first), counts, timers);
                rest.skip(1);
                continue;
            }
            if link >= self.hops {
                self.return_bytes += u64::from(count) * u64::from(wire_bytes);
                counts.return_bytes += u64::from(count) * u64::from(wire_bytes);
            }
            if link == self.measured_back {
                let late = leg.link.free_at().since(self.duration);
                let too_late = if late == Time::ZERO { 0 } else { late.as_ps().div_ceil(gap.as_ps().max(1)) };
                let sent = u64::from(count).saturating_sub(too_late);
                counts.carried_back_bytes += sent * u64::from(wire_bytes);
            }
            let carried = Train { count, at, gap, ..rest };
            leg.last_arrival = carried.time(count - 1);
            if leg.under_way.order.is_empty() {
                self.heads[link] = at;
            }
            leg.under_way.put::<P>(flow, &carried, rest.at);
            rest.skip(count);
        }
    }

    /// A packet goes from one link's end into the next link.
    pub(super) fn forward<P: OnLink>(
        &mut self,
        from: usize,
        to: usize,
        now: Time,
        flow: u32,
        counts: &mut Counts,
        timers: &mut Timers,
    ) {
        let Arrived { packet, rx, sent } = self.take::<P>(from);
        self.put::<P, false>(to, now, flow, &packet, rx, sent, counts, timers);
    }

    /// A packet enters a link, or `DEPARTS` from the queue of one that serves classes; `false` if the queue was full and
    /// dropped it.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    fn put<P: OnLink, const DEPARTS: bool>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        packet: &impl Load<P>,
        mut rx: Rx,
        sent: Time,
        counts: &mut Counts,
        timers: &mut Timers,
    ) -> bool {
        let leg = &mut self.legs[link];
        if !DEPARTS && leg.served.is_some() {
            let mut common = P::Common::default();
            packet.write(&mut common);
            let in_flight = InFlight { sent, common, step: 0, has_beside: false };
            return self.line_up::<P>(link, now, flow, in_flight, packet.rare(), rx, counts, timers);
        }
        if leg.bundled.is_some() {
            let mut common = P::Common::default();
            packet.write(&mut common);
            let in_flight = InFlight { sent, common, step: 0, has_beside: false };
            return self.load::<P>(link, now, flow, in_flight, packet.rare(), rx, counts, timers);
        }
        // A packet that was damaged before has been counted as lost.
        let was_whole = is_whole(rx.integrity);
        let verdict = leg.link.send(now, packet.wire_bytes());
        let is_measured = link == self.measured_back && verdict != Verdict::Dropped;
        if is_measured && sent >= counts.since && leg.link.free_at() <= self.duration {
            counts.carried_back_bytes += u64::from(packet.wire_bytes());
        }
        let arrival = match verdict {
            Verdict::Arrives(at) => at,
            Verdict::Damaged(at) => {
                let code = self.codes[usize::from(P::KIND)].get(flow as usize).copied().unwrap_or_default();
                match packet.inspect(&Damage { bits: leg.link.wrong_bits(), code }) {
                    Some(damage) => {
                        match damage {
                            // Once, however many links it is mended behind.
                            Integrity::Mended { .. } if rx.integrity == Integrity::Intact => {
                                counts.note_mended(link < self.hops, sent);
                            }
                            damage if was_whole && !is_whole(damage) => counts.note_loss(link < self.hops, sent),
                            _ => {}
                        }
                        rx.integrity = worse(rx.integrity, damage);
                    }
                    None => {
                        if was_whole {
                            counts.note_loss(link < self.hops, sent);
                        }
                        self.note_corrupted(link, at, timers);
                        return true;
                    }
                }
                at
            }
            verdict @ (Verdict::Lost | Verdict::Dropped) => {
                if was_whole {
                    counts.note_loss(link < self.hops, sent);
                }
                return verdict == Verdict::Lost;
            }
        };
        if rx.ecn != Ecn::NotCapable && rx.ecn != Ecn::Congestion && leg.link.is_marking() {
            rx.ecn = Ecn::Congestion;
            counts.note_marked(link < self.hops, sent);
        }
        if arrival < leg.last_arrival && leg.overtakes {
            let mut common = P::Common::default();
            packet.write(&mut common);
            let in_flight = InFlight { sent, common, step: 0, has_beside: false };
            self.put_early::<P>(link, arrival, flow, in_flight, packet.rare(), rx);
            return true;
        }
        // The delay may have fallen: a FIFO link holds the packet back until the earlier one is there.
        let arrival = arrival.max(leg.last_arrival);
        leg.last_arrival = arrival;
        let under_way = &mut leg.under_way;
        if under_way.order.is_empty() {
            self.heads[link] = arrival;
        }
        let rare = packet.rare();
        let mut common = P::Common::default();
        packet.write(&mut common);
        if is_usual::<P>(&mut common, rare.as_ref(), rx) && !leg.overtakes {
            under_way.put::<P>(flow, &Train::one(common, arrival), sent);
        } else {
            under_way.append::<P>(flow, arrival, sent, common, rare, rx);
        }
        true
    }

    /// The delay has fallen, and the packet overtakes some that were sent earlier.
    #[cold]
    fn put_early<P: OnLink>(
        &mut self,
        link: usize,
        arrival: Time,
        flow: u32,
        mut in_flight: InFlight<P::Common>,
        rare: Option<P::Rare>,
        rx: Rx,
    ) {
        in_flight.has_beside = !is_usual::<P>(&mut in_flight.common, rare.as_ref(), rx);
        let leg = &mut self.legs[link];
        let under_way = &mut leg.under_way;
        let at = under_way.order.partition_point(|entry| entry.arrival <= arrival);
        let is_of_kind = |at| under_way.order.get(at).is_some_and(|entry: &Order| entry.kind == P::KIND);
        let of_its_kind = (0..at).filter(|&at| is_of_kind(at)).count();
        under_way.order.insert(at, Order { arrival, gap: Time::ZERO, flow, count: 1, kind: P::KIND });
        self.heads[link] = under_way.order.front().map_or(Time::NEVER, |head| head.arrival);
        let ring = P::ring(&mut under_way.rings);
        if in_flight.has_beside {
            let has_beside = |at| ring.packets.get(at).is_some_and(|packet| packet.has_beside);
            let before = (0..of_its_kind).filter(|&at| has_beside(at)).count();
            ring.beside.insert(before, Beside { rare, rx });
        }
        ring.packets.insert(of_its_kind, in_flight);
    }

    pub(super) fn begin_measurement(&mut self, now: Time) {
        self.return_bytes = 0;
        self.legs.iter_mut().filter_map(|leg| leg.bundled.as_mut()).for_each(|bundled| bundled.begin_measurement(now));
    }

    pub(super) fn return_bytes(&self) -> u64 {
        self.return_bytes
    }

    /// What the links forward could carry, and the measured one back.
    pub(super) fn capacities(&self) -> (Vec<Capacity>, Capacity) {
        let forward = self.legs[..self.hops].iter().map(|leg| leg.link.capacity()).collect();
        (forward, self.legs[self.measured_back].link.capacity())
    }

    /// When the measured link back has sent all that it counts, in a run that ends at `end`.
    pub(super) fn back_end(&self, end: Time) -> Time {
        self.legs[self.measured_back].link.free_at().min(self.duration).max(end)
    }

    /// Largest queue of the forward links, bytes; `None` if one of them keeps no account.
    pub(super) fn peak_queue_bytes(&self) -> Option<f64> {
        let peaks = self.legs[..self.hops].iter().map(|leg| match (&leg.served, &leg.bundled) {
            (_, Some(bundled)) => Some(bundled.peak_waiting_bytes()),
            (Some(served), None) => Some(served.peak_waiting_bytes()),
            (None, None) => leg.link.peak_waiting_bytes(),
        });
        peaks.reduce(|one, other| Some(one?.max(other?))).flatten()
    }
}

/// Writes a congestion codepoint into a packet's common part; `false` if it has to stand beside.
#[inline(always)]
fn write_ecn<P: OnLink>(common: &mut P::Common, ecn: Ecn) -> bool {
    ecn == Ecn::NotCapable || P::write_ecn(common, ecn)
}

/// Whether nothing of a packet stands beside its common part, into which its congestion codepoint is written.
#[inline(always)]
fn is_usual<P: OnLink>(common: &mut P::Common, rare: Option<&P::Rare>, rx: Rx) -> bool {
    rare.is_none() && rx.integrity == Integrity::Intact && write_ecn::<P>(common, rx.ecn)
}

/// Whether no link has damaged a packet beyond what its code mended.
#[inline(always)]
fn is_whole(integrity: Integrity) -> bool {
    matches!(integrity, Integrity::Intact | Integrity::Mended { .. })
}

/// What two links did to a packet, together.
fn worse(first: Integrity, second: Integrity) -> Integrity {
    match (first, second) {
        (Integrity::PayloadDamaged, _) | (_, Integrity::PayloadDamaged) => Integrity::PayloadDamaged,
        (Integrity::PayloadErrors { symbols: one }, Integrity::PayloadErrors { symbols: two }) => {
            Integrity::PayloadErrors { symbols: one.saturating_add(two) }
        }
        (wrong @ Integrity::PayloadErrors { .. }, _) | (_, wrong @ Integrity::PayloadErrors { .. }) => wrong,
        (Integrity::Mended { bits: one }, Integrity::Mended { bits: two }) => {
            Integrity::Mended { bits: one.saturating_add(two) }
        }
        (Integrity::Intact, other) | (other, Integrity::Intact) => other,
    }
}
