//! Outcomes of the packets of each phase of sending.

use std::collections::VecDeque;

use crate::origin::instants;
use crate::time::Time;

use super::super::clock::ticks;
use super::least_round_trip::RoundTrips;
use super::packets::Packets;

/// A time during which packets were sent at one rate. `[P14]`
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    /// Begin and end, in ticks.
    began: u64,
    ended: u64,
    /// Its rate over the base rate.
    pub(super) gain: f64,
    /// Its rate, in bytes per second.
    pub(super) rate: f64,
    sent_bytes: u64,
    sent_packets: u32,
    pub(super) packets: Packets,
    /// The round trips of its packets.
    pub(super) round_trips: RoundTrips,
    /// Whether congestion marks were reported while it was the last one to be answered.
    pub(super) is_marked: bool,
}

instants! {
    Phase: ;
    ticks: began, ended;
    fixed: gain, rate, sent_bytes, sent_packets, packets, round_trips, is_marked
}

impl Phase {
    /// When it began, in ticks.
    pub(super) fn began(&self) -> u64 {
        self.began
    }

    /// Whether most of its rate was used.
    pub(super) fn is_used(&self) -> bool {
        self.sent_bytes as f64 > USED * self.rate * (self.ended - self.began) as f64 / 1e6
    }
}

/// Share of a rate that must be used, for the rate to show anything.
pub(super) const USED: f64 = 0.75;

/// Phases of which not everything is known yet, the present one last.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    phases: VecDeque<Phase>,
}

instants! { Phases: phases }

/// Largest number of phases that are kept: more are not answered within several round trips.
const MOST_PHASES: usize = 64;

/// Share of the packets of a phase that must be known.
const NEARLY_ALL: f64 = 0.95;

impl Phases {
    /// Ends the present phase and begins another one.
    pub(super) fn begin(&mut self, now: Time, gain: f64, rate: f64) {
        let began = ticks(now);
        if let Some(present) = self.phases.back_mut() {
            present.ended = began;
        }
        if self.phases.len() == MOST_PHASES {
            self.phases.pop_front();
        }
        self.phases.push_back(Phase {
            began,
            ended: u64::MAX,
            gain,
            rate,
            sent_bytes: 0,
            sent_packets: 0,
            packets: Packets::default(),
            round_trips: RoundTrips::default(),
            is_marked: false,
        });
    }

    /// Whether most of the rate of the present phase was used.
    pub(super) fn is_present_used(&self, now: Time) -> bool {
        self.phases.back().is_none_or(|present| Phase { ended: ticks(now), ..*present }.is_used())
    }

    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u32, has_data: bool) {
        if let Some(present) = self.phases.back_mut() {
            present.sent_bytes += u64::from(bytes);
            present.sent_packets += u32::from(has_data);
        }
    }

    /// The phase in which a packet was sent.
    #[inline]
    fn of(&mut self, sent: u64) -> Option<&mut Phase> {
        self.phases.iter_mut().find(|phase| sent < phase.ended).filter(|phase| sent >= phase.began)
    }

    /// Counts a packet sent at `sent`: a share arrived, the rest was lost.
    #[inline]
    pub(super) fn on_outcome(&mut self, sent: u64, arrived: f64) {
        if let Some(phase) = self.of(sent) {
            phase.packets.add_one(arrived);
        }
    }

    /// A packet sent at `sent` was echoed after this round trip.
    #[inline]
    pub(super) fn on_round_trip(&mut self, sent: u64, round_trip: Time, is_marked: bool) {
        if let Some(phase) = self.of(sent) {
            phase.round_trips.add(round_trip);
            phase.is_marked |= is_marked;
        }
    }

    /// The earliest phase, if all its packets were sent before `before`, in ticks, and it is known of nearly all of them whether they
    /// arrived. An acknowledgement may not have had room for all gaps, but the next ones have, within `patience`.
    pub(super) fn settled(&mut self, before: u64, patience: u64) -> Option<Phase> {
        let phase = self.phases.front().filter(|phase| phase.ended <= before)?;
        let is_known = phase.packets.known() >= NEARLY_ALL * f64::from(phase.sent_packets);
        (is_known || phase.ended + patience <= before).then(|| self.phases.pop_front()).flatten()
    }

    pub(super) fn clear(&mut self) {
        self.phases.clear();
    }
}
