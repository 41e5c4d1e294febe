//! Links that serve classes of service: what goes next is decided when the link can begin with it.
//!
//! Such a link keeps what waits in a ring per class, and sets an alarm for the instant at which it is free. Whatever else
//! happens at that instant comes later, so that a packet that begins no longer waits, as where departures are
//! computed ahead. The run then takes packets one by one: a train is handled in one step, and departures would come between.

use farlink_core::link::ClassQueue;
use farlink_core::turns::CLASSES;
use farlink_core::{Rx, Time};

use super::super::carried::Load;
use super::super::counts::Counts;
use super::super::setup::HopSetup;
use super::super::timers::{Alarm, Kind, Timers};
use super::{Arrived, InFlight, Leg, OnLink, Path, UnderWay, is_whole};

/// What waits in front of a link that serves classes.
#[derive(Debug)]
pub(super) struct Served {
    queue: ClassQueue,
    /// The packets of each class, in the same order.
    packets: [UnderWay; CLASSES],
    /// When the alarm is due; never if none is set.
    alarm: Time,
    /// The class that goes next, once that is decided.
    next: usize,
}

impl Served {
    /// None if classes make no difference.
    pub(super) fn new(hop: &HopSetup) -> Option<Box<Self>> {
        let queue = ClassQueue::new(hop.weights?, hop.limit, hop.mark_from);
        Some(Box::new(Served { queue, packets: Default::default(), alarm: Time::NEVER, next: 0 }))
    }

    /// Largest amount that waited, bytes.
    pub(super) fn peak_waiting_bytes(&self) -> f64 {
        self.queue.peak_waiting_bytes() as f64
    }

    fn arm(&mut self, link: usize, at: Time, timers: &mut Timers) {
        if self.alarm == Time::NEVER && at < Time::NEVER {
            self.alarm = at;
            timers.push(at, Alarm { event: Kind::Departure, kind: 0, side: 0, flow: link as u32 });
        }
    }
}

impl Path {
    /// Whether any link serves classes.
    pub(in super::super) fn serves_classes(&self) -> bool {
        self.legs.iter().any(|leg| leg.served.is_some())
    }

    /// Whether anything waits that no arrival is known of yet.
    pub(in super::super) fn has_waiting(&self) -> bool {
        self.legs.iter().any(|leg| {
            leg.served.as_ref().is_some_and(|served| !served.queue.is_empty())
                || leg.bundled.as_ref().is_some_and(|bundled| bundled.has_any())
        })
    }

    /// Packets of a flow are of a class.
    pub(in super::super) fn classify(&mut self, kind: u8, flow: usize, class: u8) {
        if class > 0 {
            let classes = &mut self.classes[usize::from(kind)];
            classes.resize(flow, 0);
            classes.push(class);
        }
    }

    /// A packet enters a link that serves classes: it goes at once, or waits; `false` if there was no room for it. It is taken
    /// apart, as one that is handed over whole has to stand in memory also where no link serves classes.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    pub(super) fn line_up<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        in_flight: InFlight<P::Common>,
        rare: Option<P::Rare>,
        rx: Rx,
        counts: &mut Counts,
        timers: &mut Timers,
    ) -> bool {
        let InFlight { sent, common, .. } = in_flight;
        let mut packet = P::plain(&common);
        if let Some(rare) = rare.clone() {
            packet.add(rare);
        }
        let class = self.class_of::<P>(flow, &packet);
        let Leg { link: transmitter, served, .. } = &mut self.legs[link];
        let served = served.as_deref_mut().expect("the link serves classes");
        let start = transmitter.next_start(now);
        if served.queue.is_empty() && start <= now {
            transmitter.set_marking(false); // it found nothing waiting
            return self.put::<P, true>(link, now, flow, &packet, rx, sent, counts, timers);
        }
        if !served.queue.put(class, packet.wire_bytes(), transmitter.is_idle(now)) {
            if is_whole(rx.integrity) {
                counts.note_loss(link < self.hops, sent);
            }
            return false;
        }
        served.packets[class].append::<P>(flow, now, sent, common, rare, rx);
        served.arm(link, start, timers);
        true
    }

    /// A link's alarm rings; `false` if it was answered before.
    pub(in super::super) fn is_alarm(&self, link: usize, at: Time) -> bool {
        let Leg { served, bundled, .. } = &self.legs[link];
        served.as_ref().is_some_and(|served| served.alarm == at)
            || bundled.as_ref().is_some_and(|bundled| bundled.is_alarm(at))
    }

    /// The next link whose departure is due.
    pub(in super::super) fn next_due(&self, now: Time) -> Option<usize> {
        self.legs.iter().position(|leg| {
            leg.served.as_ref().is_some_and(|served| served.alarm <= now)
                || leg.bundled.as_ref().is_some_and(|bundled| bundled.is_due(now))
        })
    }

    /// Decides what a link sends now: flow and protocol of the packet. If it can begin with nothing, sets the alarm for when
    /// it can.
    pub(in super::super) fn decide(&mut self, link: usize, now: Time, timers: &mut Timers) -> Option<(u32, u8)> {
        let Leg { link: transmitter, served, .. } = &mut self.legs[link];
        let served = served.as_deref_mut()?;
        served.alarm = Time::NEVER;
        if served.queue.is_empty() {
            return None;
        }
        let start = transmitter.next_start(now);
        if start > now {
            served.arm(link, start, timers);
            return None;
        }
        served.next = served.queue.next_class()?;
        served.packets[served.next].order.front().map(|head| (head.flow, head.kind))
    }

    /// Sends the packet that was [decided](Self::decide) on.
    pub(in super::super) fn depart<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        counts: &mut Counts,
        timers: &mut Timers,
    ) {
        let Leg { link: transmitter, served, .. } = &mut self.legs[link];
        let served = served.as_deref_mut().expect("the link serves classes");
        transmitter.set_marking(served.queue.take(served.next));
        let Arrived { packet, rx, sent } = served.packets[served.next].take::<P>();
        self.put::<P, true>(link, now, flow, &packet, rx, sent, counts, timers);
    }

    /// A packet's own class, or that of its flow.
    fn class_of<P: OnLink>(&self, flow: u32, packet: &impl Load<P>) -> usize {
        let own = usize::from(packet.class().0).min(CLASSES - 1);
        let of_flow = || self.classes[usize::from(P::KIND)].get(flow as usize).copied().unwrap_or_default();
        if own > 0 { own } else { usize::from(of_flow()) }
    }
}

#[cfg(test)]
mod tests {
    use farlink_core::Virtual;
    use farlink_core::protocol::{aerotp, udp};
    use farlink_core::scenario::expand;
    use farlink_core::trace::MemoryTraces;
    use serde_json::json;

    use super::*;
    use crate::resolve;

    /// A datagram names a class of its own if that is above 0; whoever names none has its flow's.
    #[test]
    fn a_packets_own_class_counts() {
        let scenario = json!({
            "duration_s": 1,
            "link": { "rate_bps": 1e6, "delay_s": 0 },
            "transport": { "udp": { "kind": "udp" } },
            "flow": { "data": { "transport": "udp", "traffic": { "kind": "file", "bytes": 1 } } },
        });
        let setup = resolve(&expand(&scenario).unwrap().points[0].scenario, &MemoryTraces::default()).unwrap();
        let mut path = Path::new(&setup, 1, 0);
        let kinds = [<aerotp::Segment<Virtual> as OnLink>::KIND, <udp::Datagram<Virtual> as OnLink>::KIND];
        for kind in kinds {
            path.classify(kind, 2, 3);
        }
        for (flow, own, class) in [(0, 0, 0), (2, 0, 3), (7, 0, 0), (0, 5, 5), (2, 1, 1), (2, 7, 7)] {
            let segment = aerotp::Segment { class: own, payload: Virtual(10), ..aerotp::Segment::default() };
            assert_eq!(path.class_of(flow, &segment), class);
            assert_eq!(path.class_of(flow, &segment.plain()), class);
        }
        assert_eq!(path.class_of(2, &udp::Datagram { payload: Virtual(1), ..udp::Datagram::default() }), 3);
    }
}
