//! After the beginning a learnt rate goes up and down in phases, and follows what more sending brings. `[P14]`

use crate::time::Time;

use super::super::super::clock::ticks;
use super::super::least_round_trip::RoundTrips;
use super::super::phases::Phase;
use super::{Cycle, DECAY, Learnt, MARKED};

/// The phases of a cycle, over the base rate. `[P14]`
const GAINS: [f64; 4] = [1.1, 0.9, 0.97, 0.97];
/// A phase has at least this many packets, and lasts for most of a round trip.
const PHASE_PACKETS: f64 = 50.0;
const PHASE_ROUND_TRIPS: f64 = 0.75;
const LONGEST_PHASE: f64 = 4.0;
/// Where reports only count what arrived, a phase lasts for so many of them: one that tells of two phases does not tell them apart. `[U12]`
const PHASE_REPORTS: f64 = 4.0;
/// Growth of the base rate in a cycle of three round trips, where there is room; it doubles after each three cycles of growth, twice.
const GROWTH: f64 = 0.05;
const MOST_GROWTH: f64 = 0.5;
/// The base rate is at most this many times what arrives, apart from the channel's losses.
const MOST_OVER_DELIVERED: f64 = 1.5;

impl Learnt {
    /// The next phase begins. `[P14]`
    pub(super) fn next_phase(&mut self, now: Time) {
        self.jitter = self.jitter.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let seconds = self.feedback().as_secs_f64();
        self.is_used = self.phases.is_present_used(now);
        let before = self.floor_rate();
        self.advance_floor(now);
        let floor = self.floor_rate();
        let most = self.most.min(self.most_hinted);
        let gain = if self.is_gated() {
            self.excess = (self.base / before.max(1.0) * DECAY).max(1.0);
            self.base = floor * self.excess;
            1.0
        } else if self.base.max(floor) >= 0.999 * most {
            // Nothing is sent above the rate of the own link; below it, only where losses may be congestion.
            let is_probed = self.least_loss.share() > 0.0 && self.phase % (4 * GAINS.len()) == 1;
            if is_probed { GAINS[1] } else { 1.0 }
        } else {
            GAINS[self.phase % GAINS.len()]
        };
        self.phase += 1;
        self.base = self.bounded(self.base, self.round_trip);
        self.gain = gain;
        self.rate = self.bounded(self.base.max(floor) * gain, self.round_trip);
        let shortest = PHASE_PACKETS * self.packet_bytes / self.rate;
        let most_s = LONGEST_PHASE * seconds;
        let jitter = 0.9 + 0.2 * f64::from(self.jitter >> 16) / 65_536.0;
        let usual = (PHASE_ROUND_TRIPS * seconds).max(shortest.min(most_s));
        self.phase_until = now + Time::from_secs_f64(jitter * usual.max(self.reports_s()));
        self.phases.begin(now, self.gain, self.rate);
    }

    /// Nearly nothing arrives: another phase begins, of half the rate. `[P19]`
    pub(super) fn halve(&mut self, now: Time) {
        let half = self.bounded(self.base.max(self.floor_rate()) / 2.0, self.round_trip);
        if self.is_starting {
            self.go_on_at(now, half);
            return;
        }
        if let Some(overload) = &mut self.overload {
            overload.begin(now);
        }
        let packets = half * self.round_trip.as_secs_f64() / self.packet_bytes;
        if let Some(floor) = &mut self.floor {
            floor.begin_again(ticks(now), packets);
        }
        self.margin.discount(half / self.base);
        (self.base, self.excess, self.growing) = (half, 1.0, 0);
        self.next_phase(now);
    }

    /// It is known of all packets of a phase whether they arrived.
    pub(super) fn on_settled(&mut self, now: Time, phase: &Phase) {
        if phase.gain <= 1.0 {
            self.least_loss.add(phase.packets, self.runs.mean());
            self.cycle.round_trips.join(phase.round_trips);
            if phase.began() >= self.drained && !self.is_gated() {
                self.drain(now, phase.round_trips);
            }
        }
        if phase.gain < 1.0 && phase.packets.known() > 0.0 {
            self.cycle.delivered = phase.rate * phase.packets.arrived / phase.packets.known();
        }
        self.cycle.is_marked |= phase.is_marked;
        self.cycle.is_used &= phase.is_used();
        if phase.is_used() {
            self.margin.add(phase);
        }
        self.settled += 1;
        if self.settled.is_multiple_of(GAINS.len()) {
            self.decide();
            self.least.next_cycle();
            self.margin.age(self.least_loss.share());
            self.cycle = Cycle::default();
        }
    }

    /// How much longer phases are than most of a round trip, because few packets are sent in one.
    pub(super) fn stretch(&self) -> f64 {
        let phase_s = PHASE_ROUND_TRIPS * self.feedback().as_secs_f64();
        let packets = PHASE_PACKETS * self.packet_bytes / (self.base * phase_s);
        packets.max(self.reports_s() / phase_s).clamp(1.0, LONGEST_PHASE / PHASE_ROUND_TRIPS)
    }

    /// The least time of a phase for its reports, in seconds.
    fn reports_s(&self) -> f64 {
        PHASE_REPORTS * self.report_spacing.as_secs_f64()
    }

    /// Lowers the base rate if a phase not above it met a queue. `[P6]`
    pub(super) fn drain(&mut self, now: Time, seen: RoundTrips) {
        if let Some(drained) = self.drained(self.base, seen) {
            let before = self.base;
            self.base = self.bounded(drained, self.round_trip);
            self.margin.discount(self.base / before);
            (self.drained, self.growing) = (ticks(now), 0);
        }
    }

    /// Sets the base rate at the end of a cycle. `[P6]`
    pub(super) fn decide(&mut self) {
        let is_waiting = self.least.drain(self.cycle.round_trips, self.packet_time(self.base)).is_some();
        self.least.watch(is_waiting, self.cycle.round_trips);
        if self.is_gated() || is_waiting {
            self.growing = 0;
            return;
        }
        let before = self.base;
        // The floor may have been above the base rate: room is found from there.
        let present = self.base.max(self.floor_rate());
        if self.cycle.is_marked {
            self.base *= MARKED;
        } else if self.cycle.is_used
            && let Some(margin) = self.margin.value()
        {
            let wanted = self.sharing.wanted(self.least_loss.share());
            let step = ((margin - wanted) / (1.0 - wanted)).clamp(-1.0, 1.0);
            let faster = f64::from(1 << (self.growing / 3).min(2)) * self.stretch();
            self.base = if step > 0.0 {
                present * (1.0 + (GROWTH * step * faster).min(MOST_GROWTH))
            } else {
                self.base * (1.0 + GROWTH * step)
            };
            self.growing = if step > 0.5 { self.growing + 1 } else { 0 };
            let delivered = self.cycle.delivered / (1.0 - self.least_loss.share().min(0.95));
            if delivered > 0.0 {
                self.base = self.base.min(MOST_OVER_DELIVERED * delivered);
                if margin < 0.1 {
                    self.base = self.base.min(delivered.max(0.7 * before));
                }
            }
        }
        if self.base < before {
            self.growing = 0;
        }
        self.base = self.bounded(self.base, self.round_trip);
        self.margin.discount(self.base / before);
    }
}
