//! Bundles of lines in place of a link: what goes over which line is decided when a line has room, and what comes out depends on
//! what the others still carry. As where classes are served, the run takes packets one by one and an alarm wakes the bundle.

use farlink_core::bundle::{Availability, Calls, Counts as BundleCounts, Multilink, OnDrop, Outcome};
use farlink_core::link::LinkState;
use farlink_core::units::BitRate;
use farlink_core::{Rng, Rx, Time};

use super::super::Rings;
use super::super::counts::Counts;
use super::super::setup::{BundleSetup, HopSetup};
use super::super::timers::{Alarm, Kind, Timers};
use super::{InFlight, Leg, OnLink, Path, is_whole};

/// One direction of a bundle.
#[derive(Debug)]
pub(super) struct Bundled {
    bundle: Multilink,
    /// What is in it, by place; of each protocol in its ring.
    pub(super) packets: Rings,
    /// Flow and protocol of what is at each place.
    owners: Vec<(u32, u8)>,
    /// When the alarm is due; never if none is set.
    alarm: Time,
    asked: Asked,
    /// Senders hear of drops by duplicate acknowledgements.
    repeats: bool,
}

/// A packet is no longer in a bundle.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Left {
    place: u32,
    outcome: Outcome,
}

/// A packet in a bundle.
#[derive(Debug)]
pub(super) struct Kept<C, R> {
    in_flight: InFlight<C>,
    rare: Option<R>,
    rx: Rx,
}

/// The same calls for those who ask what the bundle is like, at times of their own.
#[derive(Debug)]
struct Asked {
    calls: Option<Calls>,
    setup: std::sync::Arc<BundleSetup>,
    rate: BitRate,
}

/// What a run's bundles did: of the first bundle the lines forward, of all of them the packets both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BundleResult {
    /// How long lines were up.
    pub availability: Availability,
    /// Fragments that arrived after one that was sent later.
    pub out_of_order: u64,
    /// Packets that went back into the queue as calls dropped.
    pub requeued: u64,
}

impl Bundled {
    /// None if the hop is a single link.
    pub(super) fn new(hop: &HopSetup, direction: &str, rng: Rng, of_hop: &Rng) -> Option<Box<Self>> {
        let setup = hop.bundle.as_ref()?;
        let calls = setup.config.calls.as_ref().map(|calls| calls.start(&setup.lines, of_hop));
        let bundle = Multilink::new(&setup.config, &setup.lines, hop.limit, rng, of_hop);
        Some(Box::new(Bundled {
            bundle: if direction == "return" { bundle.reversed() } else { bundle },
            packets: Rings::default(),
            owners: Vec::new(),
            alarm: Time::NEVER,
            asked: Asked { calls, setup: std::sync::Arc::clone(setup), rate: setup.rate() },
            repeats: setup.config.what_on_drop() == OnDrop::DuplicateAcks,
        }))
    }

    pub(super) fn is_alarm(&self, at: Time) -> bool {
        self.alarm == at
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.alarm <= now
    }

    pub(super) fn has_any(&self) -> bool {
        self.bundle.poll_timeout() < Time::NEVER
    }

    /// Largest amount that waited, bytes.
    pub(super) fn peak_waiting_bytes(&self) -> f64 {
        self.counts().peak_waiting_bytes as f64
    }

    fn counts(&self) -> BundleCounts {
        self.bundle.counts()
    }

    pub(super) fn begin_measurement(&mut self, now: Time) {
        self.bundle.begin_measurement(now);
    }

    /// Wakes the bundle when it is due, unless an alarm will sooner.
    fn arm(&mut self, link: usize, timers: &mut Timers) {
        let at = self.bundle.poll_timeout();
        if at < self.alarm {
            self.alarm = at;
            timers.push(at, Alarm { event: Kind::Departure, kind: 0, side: 0, flow: link as u32 });
        }
    }

    /// What the bundle is like, as a link.
    pub(super) fn state(&mut self, now: Time) -> LinkState {
        let Asked { calls, setup, rate } = &mut self.asked;
        let mut is_up = true;
        if let Some(calls) = calls {
            let mut changes = Vec::new();
            while calls.advance(now, &mut changes) {}
            let up = setup.lines.iter().enumerate().filter(|(index, _)| calls.seems_up(*index));
            let rates: f64 = up.map(|(_, line)| line.rate.get()).sum();
            is_up = rates > 0.0;
            *rate = BitRate::new(rates.min(1e13)).unwrap_or(*rate); // while none is up, what it was before
        }
        let delay = setup.lines.iter().map(|line| line.delay.time()).max().unwrap_or(Time::ZERO);
        LinkState { up: is_up, rate: *rate, delay, cn0_dbhz: None, ber: None, setting: Default::default() }
    }

    pub(super) fn next_change(&self) -> Time {
        self.asked.calls.as_ref().map_or(Time::NEVER, Calls::next_change)
    }
}

/// A packet of its parts.
fn whole<P: OnLink>(common: &P::Common, rare: Option<P::Rare>) -> P {
    let mut packet = P::plain(common);
    if let Some(rare) = rare {
        packet.add(rare);
    }
    packet
}

impl Path {
    /// Whether any hop is a bundle.
    pub(in super::super) fn has_bundles(&self) -> bool {
        self.legs.iter().any(|leg| leg.bundled.is_some())
    }

    pub(in super::super) fn is_bundle(&self, link: usize) -> bool {
        self.legs[link].bundled.is_some()
    }

    /// A packet enters a bundle; `false` if there was no room for it.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "a packet and what the engine knows of it")]
    pub(super) fn load<P: OnLink>(
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
        let Leg { bundled, .. } = &mut self.legs[link];
        let bundled = bundled.as_deref_mut().expect("the link is a bundle");
        let bytes = whole::<P>(&in_flight.common, rare.clone()).wire_bytes();
        let place = bundled.bundle.send(now, bytes);
        let Some(place) = place else {
            if is_whole(rx.integrity) {
                counts.note_loss(link < self.hops, in_flight.sent);
            }
            bundled.arm(link, timers);
            return false;
        };
        let index = place as usize;
        let kept = &mut P::ring(&mut bundled.packets).kept;
        if kept.len() <= index {
            kept.resize_with(index + 1, || None);
        }
        kept[index] = Some(Kept { in_flight, rare, rx });
        if bundled.owners.len() <= index {
            bundled.owners.resize(index + 1, (0, 0));
        }
        bundled.owners[index] = (flow, P::KIND);
        bundled.arm(link, timers);
        true
    }

    /// A bundle's alarm rings.
    pub(in super::super) fn wake(&mut self, link: usize, now: Time) {
        if let Some(bundled) = &mut self.legs[link].bundled {
            bundled.alarm = Time::NEVER;
            bundled.bundle.handle_timeout(now);
        }
    }

    /// What came of the next packet of a bundle: its flow, its protocol, its place and whether it comes out. Sets the alarm when there
    /// is no more.
    pub(in super::super) fn next_outcome(&mut self, link: usize, timers: &mut Timers) -> Option<(u32, u8, Left)> {
        let bundled = self.legs[link].bundled.as_deref_mut()?;
        let Some((place, outcome)) = bundled.bundle.poll() else {
            bundled.arm(link, timers);
            return None;
        };
        let (flow, kind) = bundled.owners[place as usize];
        Some((flow, kind, Left { place, outcome }))
    }

    /// A packet comes out of a bundle, or never will.
    pub(in super::super) fn unload<P: OnLink>(
        &mut self,
        link: usize,
        now: Time,
        flow: u32,
        Left { place, outcome }: Left,
        counts: &mut Counts,
    ) {
        let bundled = self.legs[link].bundled.as_deref_mut().expect("the link is a bundle");
        let repeats = bundled.repeats;
        let kept = P::ring(&mut bundled.packets).kept.get_mut(place as usize).and_then(Option::take);
        let Some(Kept { in_flight, rare, rx }) = kept else { return };
        if outcome != Outcome::Delivered {
            if is_whole(rx.integrity) {
                counts.note_loss(link < self.hops, in_flight.sent);
            }
            if repeats && outcome == Outcome::Cut {
                self.note_cut(link, now, flow, &whole::<P>(&in_flight.common, rare));
            }
            return;
        }
        if link == self.measured_back && in_flight.sent >= counts.since {
            let packet = whole::<P>(&in_flight.common, rare.clone());
            counts.carried_back_bytes += u64::from(packet.wire_bytes());
        }
        let packet = repeats.then(|| whole::<P>(&in_flight.common, rare.clone()));
        self.put_out::<P>(link, now, flow, in_flight, rare, rx);
        if let Some(packet) = packet {
            self.hear(link, now, flow, packet);
        }
    }

    /// A packet comes out of a bundle.
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
        leg.last_arrival = now;
        leg.under_way.append::<P>(flow, now, in_flight.sent, in_flight.common, rare, rx);
    }

    /// What the bundles did; none if there is none.
    pub(in super::super) fn bundles(&mut self, now: Time) -> Option<BundleResult> {
        let mut all: Option<BundleResult> = None;
        for bundled in self.legs.iter_mut().filter_map(|leg| leg.bundled.as_deref_mut()) {
            let availability = bundled.bundle.availability(now);
            let BundleCounts { out_of_order, requeued, .. } = bundled.counts();
            let sum = all.get_or_insert(BundleResult { availability, out_of_order: 0, requeued: 0 });
            sum.out_of_order += out_of_order;
            sum.requeued += requeued;
        }
        all
    }
}
