//! Packets that wait in a hop whose next departure is decided late: by classes of service, or in a bundle of lines.
//!
//! The hop decides ([`farlink_core::hop`]); this file keeps the packets by their tickets, and the alarm that wakes the hop. The alarm comes
//! before all other events of its instant, so that a packet whose transmission begins leaves the queue first, as where departures are
//! computed ahead. A run with such a hop handles packets one by one, because departures could come between the packets of a train.

use farlink_core::bundle::{Availability, Counts as BundleCounts, OnDrop};
use farlink_core::hop::{Entry, HopSetup, Outcome, PathCounts, Ticket};
use farlink_core::turns::CLASSES;
use farlink_core::{Rx, Time};

use super::super::Rings;
use super::super::carried::Load;
use super::super::counts::Counts;
use super::super::timers::{Alarm, Kind, Timers};
use super::ring::{InFlight, OnLink, WaitingPacket};
use super::{Path, is_whole};

/// The packets waiting in one direction of a hop.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The packets by ticket; those of each protocol in its ring.
    pub(super) packets: Rings,
    /// Flow and protocol of each, by ticket.
    owners: Vec<(u32, u8)>,
    /// When the alarm is due; `Time::NEVER` if none is set.
    alarm: Time,
    /// Whether drops are signalled to senders by duplicate acknowledgements.
    repeats: bool,
}

/// A packet that has left a hop, and its outcome.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Departed {
    ticket: Ticket,
    outcome: Outcome,
}

/// Statistics of a run's bundles: lines of the first bundle, forward; packets of all bundles, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BundleResult {
    /// How long lines were up.
    pub availability: Availability,
    /// Fragments that arrived after one that was sent later.
    pub out_of_order: u64,
    /// Packets that went back into the queue as calls dropped.
    pub requeued: u64,
}

impl Waiting {
    /// `None` if the hop's link is FIFO.
    pub(super) fn new(hop: &HopSetup) -> Option<Box<Self>> {
        let repeats = |config: &farlink_core::bundle::BundleConfig| config.what_on_drop() == OnDrop::DuplicateAcks;
        (hop.weights.is_some() || hop.is_bundle()).then(|| {
            Box::new(Waiting {
                packets: Rings::default(),
                owners: Vec::new(),
                alarm: Time::NEVER,
                repeats: hop.bundle.as_ref().is_some_and(|bundle| repeats(&bundle.config)),
            })
        })
    }

    fn keep<P: OnLink>(&mut self, ticket: Ticket, flow: u32, packet: WaitingPacket<P::Common, P::Rare>) {
        let index = ticket.index();
        let kept = &mut P::ring(&mut self.packets).kept;
        if kept.len() <= index {
            kept.resize_with(index + 1, || None);
        }
        kept[index] = Some(packet);
        if self.owners.len() <= index {
            self.owners.resize(index + 1, (0, 0));
        }
        self.owners[index] = (flow, P::KIND);
    }
}

/// The number of a flow among the flows of all protocols.
fn flow_number(kind: u8, flow: u32) -> u64 {
    u64::from(flow) << 8 | u64::from(kind)
}

/// Assembles a packet from its parts.
fn whole<P: OnLink>(common: P::Common, rare: Option<P::Rare>) -> P {
    let mut packet = P::plain(common);
    if let Some(rare) = rare {
        packet.add(rare);
    }
    packet
}

impl Path {
    /// Whether packets wait in any hop, so that departures are events.
    pub(in super::super) fn has_departures(&self) -> bool {
        self.legs.iter().any(|leg| leg.waiting.is_some())
    }

    /// Whether any packet waits whose arrival is not known yet.
    pub(in super::super) fn has_waiting(&self) -> bool {
        self.legs.iter().any(|leg| leg.hop.has_waiting())
    }

    /// Sets the class of a flow's packets.
    pub(in super::super) fn classify(&mut self, kind: u8, flow: usize, class: u8) {
        if class > 0 {
            let classes = &mut self.classes[usize::from(kind)];
            classes.resize(flow, 0);
            classes.push(class);
        }
    }

    /// A packet's own class if above 0, else that of its flow.
    fn class_of<P: OnLink>(&self, flow: u32, packet: &impl Load<P>) -> usize {
        let own = usize::from(packet.class().0).min(CLASSES - 1);
        let of_flow = || self.classes[usize::from(P::KIND)].get(flow as usize).copied().unwrap_or_default();
        if own > 0 { own } else { usize::from(of_flow()) }
    }

    /// Puts a packet into a hop in which it may have to wait; `false` if there was no room. It is passed in parts, because a whole one
    /// would be written to memory on FIFO links too.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    pub(super) fn queue_up<P: OnLink>(
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
        let mut packet = whole::<P>(in_flight.common.clone(), rare.clone());
        let class = self.class_of::<P>(flow, &packet);
        let leg = &mut self.legs[link];
        let is_taken = match leg.hop.send_of_flow(now, packet.wire_bytes(), class, flow_number(P::KIND, flow)) {
            Entry::Sent(verdict) => {
                self.carry::<P>(link, verdict, flow, &mut packet, rx, in_flight.sent, counts, timers)
            }
            Entry::Waits(ticket) => {
                let waiting = leg.waiting.as_deref_mut().expect("packets wait in this hop");
                waiting.keep::<P>(ticket, flow, WaitingPacket { in_flight, rare, rx });
                true
            }
        };
        self.arm(link, timers);
        is_taken
    }

    /// Sets the alarm for when the hop has something to do, unless one is set for earlier. Both directions of a bundle of paths have
    /// something to do when either has.
    fn arm(&mut self, link: usize, timers: &mut Timers) {
        self.arm_one(link, timers);
        if self.legs[link].hop.is_over_paths() {
            self.arm_one(2 * self.hops - 1 - link, timers);
        }
    }

    fn arm_one(&mut self, link: usize, timers: &mut Timers) {
        let leg = &mut self.legs[link];
        let at = leg.hop.poll_timeout();
        if let Some(waiting) = leg.waiting.as_deref_mut().filter(|waiting| at < waiting.alarm) {
            waiting.alarm = at;
            timers.push(at, Alarm { event: Kind::Departure, kind: 0, side: 0, flow: link as u32 });
        }
    }

    /// Whether an alarm at `at` is the hop's current one.
    pub(in super::super) fn is_alarm(&self, link: usize, at: Time) -> bool {
        self.legs[link].waiting.as_ref().is_some_and(|waiting| waiting.alarm == at)
    }

    /// The next hop whose alarm is due.
    pub(in super::super) fn next_due(&self, now: Time) -> Option<usize> {
        self.legs.iter().position(|leg| leg.waiting.as_ref().is_some_and(|waiting| waiting.alarm <= now))
    }

    /// Lets a hop do what is due.
    pub(in super::super) fn wake(&mut self, link: usize, now: Time) {
        let leg = &mut self.legs[link];
        if let Some(waiting) = &mut leg.waiting {
            waiting.alarm = Time::NEVER;
            leg.hop.handle_timeout(now);
        }
    }

    /// The next packet that leaves a hop: its flow, its protocol and its outcome. Sets the alarm when there is none.
    pub(in super::super) fn next_departed(
        &mut self,
        link: usize,
        now: Time,
        timers: &mut Timers,
    ) -> Option<(u32, u8, Departed)> {
        let Some((ticket, outcome)) = self.legs[link].hop.poll(now) else {
            self.arm(link, timers);
            return None;
        };
        let waiting = self.legs[link].waiting.as_deref().expect("packets wait in this hop");
        let (flow, kind) = waiting.owners[ticket.index()];
        Some((flow, kind, Departed { ticket, outcome }))
    }

    /// Handles a packet that leaves the queue of a hop, leaves a bundle, or is lost there.
    pub(in super::super) fn leave<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        Departed { ticket, outcome }: Departed,
        counts: &mut Counts,
        timers: &mut Timers,
    ) {
        let waiting = self.legs[link].waiting.as_deref_mut().expect("packets wait in this hop");
        let repeats = waiting.repeats;
        let kept = P::ring(&mut waiting.packets).kept.get_mut(ticket.index()).and_then(Option::take);
        let Some(WaitingPacket { in_flight, rare, rx }) = kept else { return };
        match outcome {
            Outcome::Sent(verdict) => {
                let mut packet = whole::<P>(in_flight.common, rare);
                self.carry::<P>(link, verdict, flow, &mut packet, rx, in_flight.sent, counts, timers);
            }
            Outcome::Lost | Outcome::CutOff => {
                if is_whole(rx.integrity) {
                    counts.note_loss(link < self.hops, in_flight.sent);
                }
                if repeats && outcome == Outcome::CutOff {
                    self.note_cut(link, now, flow, &whole::<P>(in_flight.common, rare));
                }
            }
            Outcome::ComesOut => {
                if link == self.measured_back && in_flight.sent >= counts.since {
                    let packet = whole::<P>(in_flight.common.clone(), rare.clone());
                    counts.carried_back_bytes += u64::from(packet.wire_bytes());
                }
                let packet = repeats.then(|| whole::<P>(in_flight.common.clone(), rare.clone()));
                self.put_out::<P>(link, now, flow, in_flight, rare, rx);
                if let Some(packet) = packet {
                    self.pass_ack(link, now, flow, packet);
                }
            }
        }
    }

    /// Puts a packet that has left a bundle in flight, to arrive now.
    pub(super) fn put_out<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        in_flight: InFlight<P::Common>,
        rare: Option<P::Rare>,
        rx: Rx,
    ) {
        let leg = &mut self.legs[link];
        if leg.under_way.order.is_empty() {
            self.heads[link] = now;
        }
        leg.under_way.append::<P>(flow, now, in_flight.sent, |place| *place = in_flight.common, rare, rx);
    }

    /// Counts of each path of the bundles of paths: of hops from the first on, forward and back.
    pub(in super::super) fn over_paths(&mut self, now: Time) -> Vec<[PathCounts; 2]> {
        let mut all = Vec::new();
        for link in 0..self.hops {
            let Some(there) = self.legs[link].hop.path_counts(now) else { continue };
            let back = self.legs[2 * self.hops - 1 - link].hop.path_counts(now).unwrap_or_default();
            all.extend(there.into_iter().zip(back).map(|(there, back)| [there, back]));
        }
        all
    }

    /// Statistics of the bundles; `None` if there are none.
    pub(in super::super) fn bundles(&mut self, now: Time) -> Option<BundleResult> {
        let mut all: Option<BundleResult> = None;
        for (availability, counts) in self.legs.iter_mut().filter_map(|leg| leg.hop.bundle_report(now)) {
            let BundleCounts { out_of_order, requeued, .. } = counts;
            let sum = all.get_or_insert(BundleResult { availability, out_of_order: 0, requeued: 0 });
            sum.out_of_order += out_of_order;
            sum.requeued += requeued;
        }
        all
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

    /// A packet's class above 0 counts; otherwise its flow's does.
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
        }
        assert_eq!(path.class_of(2, &udp::Datagram { payload: Virtual(1), ..udp::Datagram::default() }), 3);
    }
}
