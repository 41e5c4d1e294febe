//! The path that all flows share: hops in each direction and the packets in flight on them.

mod repeated;
mod ring;
mod seen_acks;
mod under_way;
mod waiting;

use farlink_core::correction::Correction;
use farlink_core::endpoint::{Damage, Ecn, Integrity};
use farlink_core::hop::{Hop, HopSetup, Place};
use farlink_core::link::{Capacity, LinkState, Verdict};
use farlink_core::protocol::tcp::trains::Train;
use farlink_core::{Packet, PacketCode, Rx, Time};

use super::KINDS;
use super::carried::Load;
use super::counts::Counts;
use super::setup::Setup;
use super::timers::{Alarm, Kind, Timers};
use ring::InFlight;
pub(super) use ring::{Arrived, OnLink, Ring};
use under_way::{Order, UnderWay, is_usual};
pub use waiting::BundleResult;
pub(super) use waiting::Departed;
use waiting::Waiting;

/// One direction of a hop and the packets in flight on it.
struct Leg {
    hop: Hop,
    under_way: UnderWay,
    /// The packets waiting in the hop, if departures are not known when packets are queued.
    waiting: Option<Box<Waiting>>,
}

impl Leg {
    fn new(hop: Hop, setup: &HopSetup, warmup: Time) -> Self {
        Leg { hop, under_way: UnderWay { warmup, ..UnderWay::default() }, waiting: Waiting::new(setup) }
    }
}

/// Forward links first, in order; then the links of the way back, in order; then the spools of gateways.
pub(super) struct Path {
    /// Arrival of each link's first packet; `Time::NEVER` if there is none. WaitingPacket apart from the links because every event reads it.
    heads: Vec<Time>,
    legs: Vec<Leg>,
    hops: usize,
    return_bytes: u64,
    /// The return link whose carried bytes are measured.
    measured_back: usize,
    /// The latest end of the run.
    duration: Time,
    /// The codes around the packets of each protocol's flows; empty if no flow has one.
    codes: [Vec<PacketCode>; KINDS],
    /// The classes of each protocol's flows, up to the last flow above class 0.
    classes: [Vec<u8>; KINDS],
    /// For each link, the station at its end, if an endpoint there wants hints about corrupted frames.
    listeners: Vec<Option<u8>>,
}

impl Path {
    pub(super) fn new(setup: &Setup, seed: u64, run: u64) -> Self {
        let mut legs = Vec::new();
        let [forward, back] = Hop::start_both([&setup.forward, &setup.back], seed, run);
        for (hop, of) in forward.into_iter().chain(back).zip(setup.forward.iter().chain(&setup.back)) {
            legs.push(Leg::new(hop, of, setup.warmup));
        }
        if let Some(spool) = setup.gateway.as_ref().and_then(|gateway| gateway.spool.as_ref()) {
            let start = |side| Leg::new(Hop::start(spool, side, seed, run), spool, setup.warmup);
            legs.extend(["sender", "receiver"].map(start));
        }
        Path {
            listeners: vec![None; legs.len()],
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

    /// Registers a station at the end of a link for hints about corrupted frames.
    pub(super) fn register_listener(&mut self, link: usize, station: u8) {
        self.listeners[link] = Some(station);
    }

    /// Sets an alarm for the arrival of a corrupted frame, if an endpoint at the end of the link wants hints.
    #[cold]
    fn note_corrupted(&self, link: usize, arrival: Time, timers: &mut Timers) {
        let leg = &self.legs[link];
        if let Some(station) = self.listeners[link] {
            let at = leg.hop.arrival_of_useless(arrival);
            timers.push(at, Alarm { event: Kind::Corrupted, kind: 0, side: station, flow: 0 });
        }
    }

    /// Sets the code around the packets of a flow.
    pub(super) fn protect(&mut self, kind: u8, flow: usize, correction: Option<Correction>) {
        if let Some(correction) = correction {
            let codes = &mut self.codes[usize::from(kind)];
            codes.resize(flow, PacketCode::None);
            codes.push(correction.code());
        }
    }

    /// The link whose first packet arrives next, and its arrival time.
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

    /// Flow and protocol of a link's first packet.
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

    /// The state of a link at `now`, and when it may change next.
    pub(super) fn state(&mut self, link: usize, now: Time) -> (LinkState, Time) {
        self.legs[link].hop.state(now)
    }

    /// Removes and returns a link's first packet.
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

    /// A link's first packet where it is kept whole, how it arrived and when it was sent; it is skipped after it was handled.
    #[inline(always)]
    pub(super) fn open_whole<P: OnLink>(&mut self, link: usize) -> Option<(&P, Rx, Time)> {
        self.legs[link].under_way.open_whole::<P>()
    }

    /// Drops a link's first packet, because its endpoint is down.
    #[cold]
    pub(super) fn discard<P: OnLink>(&mut self, link: usize) {
        self.take::<P>(link);
    }

    /// Removes `count` packets of the train at the front of a link; a single packet is a train of one.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline(always)]
    pub(super) fn skip<P: OnLink>(&mut self, link: usize, count: u32) {
        let under_way = &mut self.legs[link].under_way;
        under_way.skip::<P>(count);
        self.heads[link] = under_way.order.front().map_or(Time::NEVER, |head| head.arrival);
    }

    /// The part of the train at the front of a link that arrives by `until`, if the train has more than one packet.
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
        Some(Train { first: in_flight.common.clone(), step: in_flight.step, count, at: arrival, gap })
    }

    /// A link's first packet and when it was sent, if it is intact and has no rare options.
    ///
    /// # Panics
    /// If nothing is under way.
    #[inline(always)]
    pub(super) fn peek_plain<P: OnLink>(&mut self, link: usize) -> Option<(P::Common, Time)> {
        let ring = P::ring(&mut self.legs[link].under_way.rings);
        let in_flight = ring.packets.front().expect("the link has a head");
        if in_flight.has_extras { None } else { Some((in_flight.common.clone(), in_flight.sent)) }
    }

    /// Sends a packet into the first link of a flow's route, forward or back; `false` if the full queue dropped it.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    pub(super) fn send<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        packet: &mut impl Load<P>,
        ecn: Ecn,
        counts: &mut Counts,
        timers: &mut Timers,
    ) -> bool {
        if link >= self.hops {
            self.return_bytes += u64::from(packet.wire_bytes());
            counts.return_bytes += u64::from(packet.wire_bytes());
        }
        self.put::<P>(link, now, flow, packet, Rx { ecn, ..Rx::default() }, now, counts, timers)
    }

    /// Sends a train into the first link of a flow's route.
    pub(super) fn send_train<P: OnLink>(
        &mut self,
        link: usize,
        flow: u32,
        train: &Train<P::Common>,
        counts: &mut Counts,
        timers: &mut Timers,
    ) {
        let mut rest = train.clone();
        while rest.count > 0 {
            let leg = &mut self.legs[link];
            let wire_bytes = rest.first.wire_bytes();
            let (count, at, gap) = leg.hop.send_train(rest.at, rest.gap, rest.count, wire_bytes);
            if count == 0 {
                let ecn = P::ecn(&rest.first);
                self.send::<P>(link, rest.at, flow, &mut rest.first, ecn, counts, timers);
                skip::<P>(&mut rest, 1);
                continue;
            }
            if link >= self.hops {
                self.return_bytes += u64::from(count) * u64::from(wire_bytes);
                counts.return_bytes += u64::from(count) * u64::from(wire_bytes);
            }
            if link == self.measured_back {
                let late = leg.hop.free_at().since(self.duration);
                let too_late = if late == Time::ZERO { 0 } else { late.as_ps().div_ceil(gap.as_ps().max(1)) };
                let sent = u64::from(count).saturating_sub(too_late);
                counts.carried_back_bytes += sent * u64::from(wire_bytes);
            }
            let carried = Train { count, at, gap, ..rest.clone() };
            if leg.under_way.order.is_empty() {
                self.heads[link] = at;
            }
            leg.under_way.put::<P>(flow, &carried, rest.at);
            skip::<P>(&mut rest, count);
        }
    }

    /// Passes a packet from the end of one link into the next.
    pub(super) fn forward<P: OnLink>(
        &mut self,
        from: usize,
        to: usize,
        now: Time,
        flow: u32,
        counts: &mut Counts,
        timers: &mut Timers,
    ) {
        let Arrived { mut packet, rx, sent } = self.take::<P>(from);
        self.put::<P>(to, now, flow, &mut packet, rx, sent, counts, timers);
    }

    /// Puts a packet into a hop; `false` if the full queue dropped it.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    fn put<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        packet: &mut impl Load<P>,
        rx: Rx,
        sent: Time,
        counts: &mut Counts,
        timers: &mut Timers,
    ) -> bool {
        let Some(transmitter) = self.legs[link].hop.fifo() else {
            let mut common = P::Common::default();
            packet.write(&mut common);
            let in_flight = InFlight { sent, common, step: 0, has_extras: false };
            return self.queue_up::<P>(link, now, flow, in_flight, packet.rare(), rx, counts, timers);
        };
        let verdict = transmitter.send(now, packet.wire_bytes());
        self.carry::<P>(link, verdict, flow, packet, rx, sent, counts, timers)
    }

    /// Does to a packet what the link decided; `false` if the full queue dropped it.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    fn carry<P: OnLink>(
        &mut self,
        link: usize,
        verdict: Verdict,
        flow: u32,
        packet: &mut impl Load<P>,
        mut rx: Rx,
        sent: Time,
        counts: &mut Counts,
        timers: &mut Timers,
    ) -> bool {
        let leg = &mut self.legs[link];
        // A packet that an earlier link damaged was counted as lost there.
        let was_whole = is_whole(rx.integrity);
        let is_measured = link == self.measured_back && verdict != Verdict::Dropped;
        if is_measured && sent >= counts.since && leg.hop.free_at() <= self.duration {
            counts.carried_back_bytes += u64::from(packet.wire_bytes());
        }
        let arrival = match verdict {
            Verdict::Arrives(at) => at,
            Verdict::Damaged(at) => {
                let code = self.codes[usize::from(P::KIND)].get(flow as usize).copied().unwrap_or_default();
                match packet.inspect(&Damage { bits: leg.hop.wrong_bits(), code }) {
                    Some(damage) => {
                        match damage {
                            // Counted once, however many links a packet is corrected after.
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
            Verdict::Lost => {
                if was_whole {
                    counts.note_loss(link < self.hops, sent);
                }
                return true;
            }
            Verdict::Dropped => {
                if was_whole {
                    counts.note_drop(link < self.hops, sent);
                }
                return false;
            }
        };
        if rx.ecn != Ecn::NotCapable && rx.ecn != Ecn::Congestion && leg.hop.is_marking() {
            rx.ecn = Ecn::Congestion;
            counts.note_marked(link < self.hops, sent);
        }
        let arrival = match leg.hop.place(arrival) {
            Place::Behind(at) => at,
            Place::InFront(at) => {
                let mut common = P::Common::default();
                packet.write(&mut common);
                let in_flight = InFlight { sent, common, step: 0, has_extras: false };
                leg.under_way.insert::<P>(flow, at, in_flight, packet.rare(), rx);
                self.heads[link] = leg.under_way.order.front().map_or(Time::NEVER, |head| head.arrival);
                return true;
            }
        };
        let under_way = &mut leg.under_way;
        if under_way.order.is_empty() {
            self.heads[link] = arrival;
        }
        let rare = packet.rare();
        if P::FORMS_TRAINS && rare.is_none() && !leg.hop.overtakes() {
            let mut common = P::Common::default();
            packet.write(&mut common);
            if is_usual::<P>(&mut common, None, rx) {
                under_way.put::<P>(flow, &Train::one(common, arrival), sent);
                return true;
            }
        }
        under_way.append::<P>(flow, arrival, sent, |place| packet.write(place), rare, rx);
        true
    }

    pub(super) fn begin_measurement(&mut self, now: Time) {
        self.return_bytes = 0;
        self.legs.iter_mut().for_each(|leg| leg.hop.begin_measurement(now));
    }

    pub(super) fn return_bytes(&self) -> u64 {
        self.return_bytes
    }

    /// Capacities of the forward links, and of the measured return link.
    pub(super) fn capacities(&self) -> (Vec<Capacity>, Capacity) {
        let forward = self.legs[..self.hops].iter().map(|leg| leg.hop.capacity()).collect();
        (forward, self.legs[self.measured_back].hop.capacity())
    }

    /// When the measured return link has sent all bytes that it counts, in a run that ends at `end`.
    pub(super) fn back_end(&self, end: Time) -> Time {
        self.legs[self.measured_back].hop.free_at().min(self.duration).max(end)
    }

    /// Largest queue of the forward links, in bytes; `None` if one of them does not record it.
    pub(super) fn peak_queue_bytes(&self) -> Option<f64> {
        let peaks = self.legs[..self.hops].iter().map(|leg| leg.hop.peak_waiting_bytes());
        peaks.reduce(|one, other| Some(one?.max(other?))).flatten()
    }
}

/// Removes the first `n` packets of a train.
fn skip<P: OnLink>(train: &mut Train<P::Common>, n: u32) {
    train.at = train.time(n);
    train.first = P::ahead(&train.first, train.step, n);
    train.count -= n;
}

/// Whether a packet is intact or its code corrected all damage.
#[inline(always)]
fn is_whole(integrity: Integrity) -> bool {
    matches!(integrity, Integrity::Intact | Integrity::Mended { .. })
}

/// The combined damage of two links.
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
