//! The beginning of a learnt rate: it doubles until the bottleneck is found. `[P6]`, `[P8]`, `[P11]` to `[P13]`

use crate::time::Time;

use super::super::burst::{Dispersion, FIRST_BURST, SLOWER};
use super::super::floor::Floor;
use super::super::least_round_trip::QUEUE;
use super::super::margin::Margin;
use super::super::packets::deviation;
use super::super::phases::{Phase, USED};
use super::super::runs::Runs;
use super::{Cycle, Learnt, MARKED, Period, Recent};

/// Growth of the rate in a period without congestion at the start, and at the start above the estimate of the first burst.
const START_GROWTH: f64 = 2.0;
const BEYOND_GROWTH: f64 = 1.25;
/// Fraction of the first burst's rate that is tried first, because other flows may use the link as well, and congestion shows
/// only after a round trip. `[P12]`
const FIRST_SHARE: f64 = 0.25;
/// A loss that grows by this share with the rate ends the start. `[P8]`
const LOSS_GREW: f64 = 0.1;

impl Learnt {
    /// A period of the start begins, and with it a phase.
    pub(super) fn begin_period(&mut self, now: Time, length: Time) {
        self.period = Period::begin(now, now + length);
        if self.is_starting {
            self.phases.begin(now, 1.0, self.rate);
        }
    }

    /// Continues from the first burst's estimate of the slowest link. `[P12]`
    pub(super) fn go_on_from(&mut self, now: Time, round_trip: Time, dispersion: Dispersion) {
        let window = self.sharing.first_packets * self.packet_bytes / round_trip.as_secs_f64().max(1e-6);
        let first = window.min(FIRST_SHARE * dispersion.speed);
        (self.speeds, self.recent) = (None, Recent::default()); // the burst was sent much faster than this rate
        if !self.is_starting || self.period.is_marked {
            return;
        }
        self.dispersion = Some(dispersion);
        let rate = first.max(self.rate.min(QUEUE * dispersion.speed));
        if rate != self.rate {
            self.rate = self.bounded(rate, round_trip);
            self.base = self.rate;
            // The rate grows only after half a round trip of data sent at it was seen to arrive.
            self.begin_period(now, round_trip + Time::from_ps(round_trip.as_ps() / 2));
        }
    }

    /// Ends the start as soon as data arrives much more slowly than it was sent. `[P13]`
    pub(super) fn take_back(&mut self, now: Time, round_trip: Time) {
        let Recent { bytes, sent_s, arrived_s } = self.recent;
        let is_enough =
            bytes >= f64::from(FIRST_BURST) * self.packet_bytes && 4.0 * arrived_s >= self.least.get().as_secs_f64();
        if !self.is_starting || !is_enough {
            return;
        }
        self.recent = Recent::default();
        if sent_s < SLOWER * arrived_s {
            self.go_on_at(now, self.bounded(self.rate.min(QUEUE * bytes / arrived_s), round_trip));
        }
    }

    /// Ends the start when more is lost than before at a lower rate: the bottleneck has a short queue. `[P8]`
    pub(super) fn watch_loss(&mut self, now: Time, phase: &Phase) {
        let known = phase.packets.known();
        if !self.is_starting || known < FIRST_BURST.into() {
            return;
        }
        let share = phase.packets.arrived / known;
        let before = self.least_loss.seen().map_or(share, |lost| 1.0 - lost);
        // Of few packets, all may have arrived by chance.
        let deviation = deviation(share, known).max(1.0 / known);
        if share < before - (LOSS_GREW * before).max(4.0 * deviation) {
            let delivered = phase.rate * share / before;
            self.go_on_at(now, self.bounded(QUEUE * delivered.min(self.rate), self.round_trip));
        } else {
            self.least_loss.add(phase.packets, 1.0);
        }
    }

    /// The next rate of the start without congestion.
    pub(super) fn grown(&self) -> f64 {
        let known =
            self.dispersion.filter(|dispersion| dispersion.is_exact).map_or(f64::INFINITY, |it| QUEUE * it.speed);
        if self.rate < known { (self.rate * START_GROWTH).min(known) } else { self.rate * BEYOND_GROWTH }
    }

    /// Sets the rate at the end of a period of the start. `[P6]`
    pub(super) fn set(&mut self, now: Time, round_trip: Time) {
        let Period { began, round_trips, is_marked, sent_bytes, .. } = self.period;
        let took = now.since(began).as_secs_f64();
        let is_used = sent_bytes as f64 > USED * self.rate * took;
        // Packets sent faster than the rate, such as the first burst, may have passed a policer at the speed of a faster link.
        let shown = self.speeds.filter(|speeds| speeds.arrived < SLOWER * speeds.sent.min(self.rate));
        self.recent = Recent::default();
        let found = if let Some(drained) = self.drained(self.rate, round_trips) {
            drained
        } else if is_marked {
            self.rate * MARKED
        } else if let Some(speeds) = shown {
            QUEUE * speeds.arrived
        } else {
            let grown = if is_used { self.grown() } else { self.rate };
            self.rate = self.bounded(grown, round_trip);
            self.base = self.rate;
            return;
        };
        self.go_on_at(now, self.bounded(found, round_trip));
    }

    /// The start is over: phases of this base rate follow.
    pub(super) fn go_on_at(&mut self, now: Time, base: f64) {
        (self.is_starting, self.base) = (false, base);
        if let Some(overload) = &mut self.overload {
            overload.begin(now);
        }
        self.phases.clear();
        self.runs = Runs::default();
        self.margin = Margin::default();
        // The queue of the start drains in the first phase.
        (self.cycle, self.phase, self.settled, self.growing) = (Cycle::default(), 1, 1, 0);
        let packets = base * self.round_trip.as_secs_f64() / self.packet_bytes;
        self.floor = self.sharing.beta.map(|beta| Floor::new(beta, packets));
        (self.advanced, self.answered, self.is_used) = (now, now, true);
        self.next_phase(now);
    }
}
