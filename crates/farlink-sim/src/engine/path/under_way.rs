//! The packets in flight on one link: one ring with the order of all packets, and one ring of packets per protocol.

use farlink_core::endpoint::{Ecn, Integrity};
use farlink_core::protocol::tcp::trains::Train;
use farlink_core::{Rx, Time};

use super::super::Rings;
use super::super::carried::Extras;
use super::super::fifo::Fifo;
use super::ring::{Arrived, InFlight, OnLink, Ring};

/// The arrival of a packet, or of the first packet of a train.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    pub(super) arrival: Time,
    /// Time between two packets of a train.
    pub(super) gap: Time,
    pub(super) flow: u32,
    /// Number of packets in the train.
    pub(super) count: u32,
    pub(super) kind: u8,
}

/// The packets in flight on one link.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) order: Fifo<Order>,
    pub(super) rings: Rings,
    /// The end of the warm-up. Packets sent before and after it are never in one train.
    pub(super) warmup: Time,
}

impl UnderWay {
    /// Appends packets to the last train; `false` if they do not continue it.
    #[inline(always)]
    fn couple<P: OnLink>(&mut self, flow: u32, train: &Train<P::Common>, sent: Time) -> bool {
        let Some(&order) = self.order.back() else { return false };
        if order.flow != flow || order.kind != P::KIND {
            return false;
        }
        let Order { arrival, gap, count, .. } = order;
        let packets = Train { first: (), step: 0, count, at: arrival, gap };
        if packets.gap_to(train).is_none() {
            return false;
        }
        let Some(in_flight) = P::ring(&mut self.rings).packets.back_mut().filter(|last| !last.has_extras) else {
            return false;
        };
        if (in_flight.sent < self.warmup) != (sent < self.warmup) {
            return false;
        }
        let mut last = Train { first: in_flight.common.clone(), step: in_flight.step, count, at: arrival, gap };
        if !P::couple(&mut last, train) {
            return false;
        }
        in_flight.step = last.step;
        if let Some(order) = self.order.back_mut() {
            order.gap = last.gap;
            order.count = last.count;
        }
        true
    }

    /// Appends packets.
    #[inline(always)]
    pub(super) fn put<P: OnLink>(&mut self, flow: u32, train: &Train<P::Common>, sent: Time) {
        if self.couple::<P>(flow, train, sent) {
            return;
        }
        let &Train { ref first, step, count, at, gap } = train;
        *self.order.push_slot() = Order { arrival: at, gap, flow, count, kind: P::KIND };
        *P::ring(&mut self.rings).packets.push_slot() =
            InFlight { sent, common: first.clone(), step, has_extras: false };
    }

    /// Appends a packet that joins no train; `write` fills its slot.
    #[inline(always)]
    pub(super) fn append<P: OnLink>(
        &mut self,
        flow: u32,
        arrival: Time,
        sent: Time,
        write: impl FnOnce(&mut P::Common),
        rare: Option<P::Rare>,
        rx: Rx,
    ) {
        *self.order.push_slot() = Order { arrival, gap: Time::ZERO, flow, count: 1, kind: P::KIND };
        let ring = P::ring(&mut self.rings);
        let slot = ring.packets.push_slot();
        slot.sent = sent;
        write(&mut slot.common);
        slot.has_extras = !is_usual::<P>(&mut slot.common, rare.as_ref(), rx);
        if slot.has_extras {
            ring.put_extras(rare, rx);
        }
    }

    /// Inserts a packet before those that arrive later: the delay has fallen, and it overtakes them.
    #[cold]
    pub(super) fn insert<P: OnLink>(
        &mut self,
        flow: u32,
        arrival: Time,
        mut in_flight: InFlight<P::Common>,
        rare: Option<P::Rare>,
        rx: Rx,
    ) {
        in_flight.has_extras = !is_usual::<P>(&mut in_flight.common, rare.as_ref(), rx);
        let at = self.order.partition_point(|entry| entry.arrival <= arrival);
        let is_of_kind = |at| self.order.get(at).is_some_and(|entry: &Order| entry.kind == P::KIND);
        let of_its_kind = (0..at).filter(|&at| is_of_kind(at)).count();
        self.order.insert(at, Order { arrival, gap: Time::ZERO, flow, count: 1, kind: P::KIND });
        let ring = P::ring(&mut self.rings);
        if in_flight.has_extras {
            let has_extras = |at| ring.packets.get(at).is_some_and(|packet| packet.has_extras);
            let before = (0..of_its_kind).filter(|&at| has_extras(at)).count();
            ring.extras.insert(before, Extras { rare, rx });
        }
        ring.packets.insert(of_its_kind, in_flight);
    }

    /// Removes and returns the first packet.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    pub(super) fn take<P: OnLink>(&mut self) -> Arrived<P> {
        let ring = P::ring(&mut self.rings);
        let in_flight = ring.packets.front_mut().expect("there is a head");
        let rx = Rx { ecn: P::ecn(&in_flight.common), ..Rx::default() };
        // A packet that is kept whole leaves the ring; the first of a train is still needed.
        let common = if P::FORMS_TRAINS { in_flight.common.clone() } else { std::mem::take(&mut in_flight.common) };
        let mut arrived = Arrived { packet: P::plain(common), rx, sent: in_flight.sent };
        if in_flight.has_extras
            && let Some(Extras { rare, rx }) = ring.extras.pop_front()
        {
            if let Some(rare) = rare {
                arrived.packet.add(rare);
            }
            arrived.rx = rx;
        }
        self.skip::<P>(1);
        arrived
    }

    /// The first packet where it is kept whole, how it arrived and when it was sent. It is handled where it lies, and skipped then.
    #[inline(always)]
    pub(super) fn open_whole<P: OnLink>(&mut self) -> Option<(&P, Rx, Time)> {
        let Ring { packets, extras, .. } = P::ring(&mut self.rings);
        let in_flight = packets.front()?;
        let packet = P::whole(&in_flight.common)?;
        let extras = if in_flight.has_extras { extras.pop_front() } else { None };
        Some((packet, extras.map_or_else(Rx::default, |extras| extras.rx), in_flight.sent))
    }

    /// Removes `count` packets of the first train; a single packet is a train of one.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    pub(super) fn skip<P: OnLink>(&mut self, count: u32) {
        let head = self.order.front_mut().expect("there is a head");
        head.count -= count;
        if head.count == 0 {
            self.order.drop_front();
            P::ring(&mut self.rings).packets.drop_front();
        } else {
            head.arrival += head.gap.times(u64::from(count));
            let in_flight = P::ring(&mut self.rings).packets.front_mut().expect("there is a head");
            in_flight.common = P::ahead(&in_flight.common, in_flight.step, count);
        }
    }
}

/// Writes a congestion codepoint into a packet's common part; `false` if that has no place for it.
#[inline(always)]
fn write_ecn<P: OnLink>(common: &mut P::Common, ecn: Ecn) -> bool {
    ecn == Ecn::NotCapable || P::write_ecn(common, ecn)
}

/// Whether a packet needs no entry in the ring of rare options. Writes its congestion codepoint into the common part.
#[inline(always)]
pub(super) fn is_usual<P: OnLink>(common: &mut P::Common, rare: Option<&P::Rare>, rx: Rx) -> bool {
    rare.is_none() && rx.integrity == Integrity::Intact && write_ecn::<P>(common, rx.ecn)
}
