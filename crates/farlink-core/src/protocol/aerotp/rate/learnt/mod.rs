//! A rate that follows the bottleneck.

mod cycles;
mod shared;
mod start;

use crate::origin::instants;
use crate::time::Time;
use crate::units::BitRate;

use super::super::clock::ticks;
use super::super::config::AerotpConfig;
use super::super::packet_size::PacketSize;
use super::arrivals::{Arrivals, Speeds};
use super::burst::{Dispersion, FIRST_BURST, FirstBurst, LEAST_PACKETS, before};
use super::floor::Floor;
use super::gate::LeastLoss;
use super::least_round_trip::{LeastRoundTrip, RoundTrips, tolerated};
use super::margin::{LOSSY, Margin};
use super::overload::Overload;
use super::phases::Phases;
use super::runs::Runs;
use super::{Answer, RateControl};

/// Doubles the rate until the bottleneck is found, then follows it.
#[derive(Clone, Debug)]
pub(super) struct Learnt {
    /// The rate of the present phase, in bytes per second.
    rate: f64,
    /// The rate around which phases differ.
    base: f64,
    /// The rate of the present phase over it.
    gain: f64,
    /// Upper limit, in bytes per second.
    most: f64,
    most_hinted: f64,
    packet_bytes: f64,
    /// Bytes on the wire per byte of data, in a full packet.
    wire_share: f64,
    /// How the path is shared.
    sharing: Sharing,
    /// Whether the rate still doubles, until the bottleneck is found.
    is_starting: bool,
    /// The first burst and its estimate.
    pub(super) burst: Box<FirstBurst>,
    dispersion: Option<Dispersion>,
    arrivals: Arrivals,
    /// The latest measured rates.
    speeds: Option<Speeds>,
    recent: Recent,
    least: LeastRoundTrip,
    /// Packets sent before, in ticks, were shorter and do not count for it.
    least_since: u64,
    marked: u16,
    period: Period,
    /// The smoothed round trip; zero before the first answer.
    round_trip: Time,
    /// How long the latest acknowledgement waited on the way back; zero if no longer than a queue may be. `[P18]`
    waited: Time,
    phases: Phases,
    margin: Margin,
    least_loss: LeastLoss,
    runs: Runs,
    floor: Option<Floor>,
    /// Whether nearly nothing arrives; `None` on a path of one's own, where acknowledgements tell what arrives.
    overload: Option<Overload>,
    /// Excess of the base rate over the floor since losses became congestion.
    excess: f64,
    /// Until when the floor was advanced, and whether the rate was used of late.
    advanced: Time,
    is_used: bool,
    /// When the present phase ends, the number of phases so far, and that of settled ones.
    phase_until: Time,
    phase: usize,
    settled: usize,
    /// Findings of the present cycle.
    cycle: Cycle,
    /// Number of cycles in a row in which the rate grew.
    growing: u32,
    /// When a queue last lowered the rate, in ticks: phases that began earlier do not lower it again.
    drained: u64,
    /// The usual time between reports that only count what arrived; zero where acknowledgements tell what became of each packet. `[U12]`
    report_spacing: Time,
    /// When the latest answer came, and how much longer than a round trip the next one may usually take.
    answered: Time,
    answer_delay: Time,
    /// State of the generator that makes phases differ in length.
    jitter: u32,
}

instants! {
    Learnt: burst, arrivals, period, phases, runs, floor, overload, advanced, phase_until, answered;
    ticks: drained, least_since;
    fixed: rate, base, gain, most, most_hinted, packet_bytes, wire_share, sharing, is_starting, dispersion, speeds, recent, least,
    marked, round_trip, waited, margin, least_loss, excess, is_used, phase, settled, cycle, growing, report_spacing, answer_delay, jitter
}

/// How a path is shared with others. `[P9]`, `[P15]`
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sharing {
    /// The share of its window that the flow of CUBIC, which the rate is never below, keeps after a loss; `None` on a path of one's own.
    beta: Option<f64>,
    /// Share of additional packets that must arrive for the rate to grow; and where much is lost at random, so that it is not known
    /// as well.
    wanted: f64,
    wanted_lossy: f64,
    /// Packets in a round trip that the first burst's speed counts for at most. `[P12]`
    first_packets: f64,
}

impl Sharing {
    fn of(config: &AerotpConfig) -> Self {
        match config.rate_control {
            _ if config.is_alone() => {
                Sharing { beta: None, wanted: 0.5, wanted_lossy: 0.5, first_packets: f64::INFINITY }
            }
            Some(RateControl::Friendly) => {
                Sharing { beta: Some(0.7), wanted: 0.9, wanted_lossy: 0.8, first_packets: f64::from(FIRST_BURST) }
            }
            _ => Sharing { beta: Some(0.8), wanted: 0.8, wanted_lossy: 0.7, first_packets: f64::INFINITY },
        }
    }

    /// The share of additional packets that must arrive, at this least loss. `[P9]`
    fn wanted(&self, least_loss: f64) -> f64 {
        if least_loss > LOSSY { self.wanted_lossy } else { self.wanted }
    }
}

/// Findings of the settled phases of a cycle.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    round_trips: RoundTrips,
    is_marked: bool,
    is_used: bool,
    /// Bytes per second that arrived in phases below the base rate.
    delivered: f64,
}

impl Default for Cycle {
    fn default() -> Self {
        Cycle { round_trips: RoundTrips::default(), is_marked: false, is_used: true, delivered: 0.0 }
    }
}

/// Observations since the rate was last set. `[P5]`
#[derive(Clone, Copy, Debug)]
struct Period {
    /// Only answers to segments sent since this time count, in ticks.
    since: u64,
    began: Time,
    until: Time,
    round_trips: RoundTrips,
    is_marked: bool,
    sent_bytes: u64,
}

instants! { Period: began, until; ticks: since; fixed: round_trips, is_marked, sent_bytes }

/// Measurements since the rate was last set.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    bytes: f64,
    sent_s: f64,
    arrived_s: f64,
}

/// Factor on the rate after congestion marks.
const MARKED: f64 = 0.8;
/// The share of the base rate that is kept after a phase on a path whose losses are congestion.
const DECAY: f64 = 0.9;

impl Learnt {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        let size = config.packet_size();
        let packet_bytes = size.packet_bytes as f64;
        let most = config.rate_bps.map_or(f64::INFINITY, |rate| rate.get() / 8.0);
        let start = f64::from(FIRST_BURST) * packet_bytes / config.initial_rto_s.get();
        let is_guarded = !config.is_alone() || !config.mode.is_acknowledged();
        Learnt {
            rate: start.min(most),
            base: start.min(most),
            gain: 1.0,
            most,
            most_hinted: f64::INFINITY,
            packet_bytes,
            wire_share: wire_share(size),
            sharing: Sharing::of(config),
            is_starting: true,
            burst: Box::default(),
            dispersion: None,
            arrivals: Arrivals::default(),
            speeds: None,
            recent: Recent::default(),
            least: LeastRoundTrip::default(),
            least_since: 0,
            marked: 0,
            period: Period::begin(Time::ZERO, Time::ZERO),
            round_trip: Time::ZERO,
            waited: Time::ZERO,
            phases: Phases::default(),
            margin: Margin::default(),
            least_loss: LeastLoss::default(),
            runs: Runs::default(),
            floor: None,
            overload: is_guarded.then(|| Overload::new(config.initial_rto_s.time())),
            excess: 1.0,
            advanced: Time::ZERO,
            is_used: true,
            phase_until: Time::NEVER,
            phase: 0,
            settled: 0,
            cycle: Cycle::default(),
            growing: 0,
            drained: 0,
            report_spacing: Time::ZERO,
            answered: Time::ZERO,
            answer_delay: config.mack_timeout_s.time().times(2),
            jitter: 1,
        }
    }

    /// Packets have another size from now on; the rate stays. `[S6]`
    pub(super) fn set_packet_size(&mut self, size: PacketSize) {
        self.packet_bytes = size.packet_bytes as f64;
        self.wire_share = wire_share(size);
    }

    /// Packets are longer from now on, and take longer on a slow link, which is no queue: the least round trip is that of packets sent
    /// since. `[P5]`
    pub(super) fn forget_least_round_trip(&mut self, now: Time) {
        (self.least, self.least_since) = (LeastRoundTrip::default(), ticks(now));
    }

    /// Whether an answer to the first burst is to be requested now.
    pub(super) fn is_asking(&self) -> bool {
        self.burst.is_question_due()
    }

    /// The rate on the wire.
    #[inline]
    pub(super) fn bytes_per_s(&self) -> f64 {
        self.rate
    }

    pub(super) fn first_burst_bytes(&self) -> u32 {
        FIRST_BURST * self.packet_bytes as u32
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: u32, has_data: bool) {
        if now >= self.phase_until {
            self.next_phase(now);
        }
        self.arrivals.on_sent(now, bytes);
        self.phases.on_sent(bytes, has_data);
        self.period.sent_bytes += u64::from(bytes);
    }

    /// Counts a packet sent at `sent`, in ticks: a share arrived, the rest was lost.
    #[inline]
    pub(super) fn on_outcome(&mut self, now: Time, sent: u64, arrived: f64) {
        self.phases.on_outcome(sent, arrived);
        if let Some(overload) = &mut self.overload {
            overload.on_outcome(sent, arrived);
        }
        if arrived == 0.0 {
            self.runs.on_lost(sent, self.packet_bytes / self.rate);
        }
        if arrived < 1.0
            && let Some(floor) = &mut self.floor
        {
            let in_flight = self.rate * self.round_trip.as_secs_f64() / self.packet_bytes;
            floor.on_lost(ticks(now), sent, 1.0 - arrived, in_flight);
        }
    }

    /// A report has come; the next one is overdue after `timeout`, and the usual time between two of them is `spacing`.
    pub(super) fn on_report(&mut self, now: Time, timeout: Time, spacing: Time) {
        self.report_spacing = spacing;
        let least_loss = self.least_loss.seen().unwrap_or(1.0);
        if self.overload.as_mut().is_some_and(|overload| overload.on_report(now, timeout, least_loss)) {
            self.halve(now);
        }
    }

    /// Takes the rate of the first link; later links may be slower. If it has become faster, the bottleneck may have as well.
    pub(super) fn on_hint(&mut self, rate: BitRate) {
        let hinted = rate.get() / 8.0;
        if hinted > self.most_hinted {
            (self.is_starting, self.dispersion) = (true, None);
            (self.rate, self.phase_until) = (self.base, Time::NEVER);
        }
        self.most_hinted = hinted;
        (self.rate, self.base) = (self.rate.min(hinted), self.base.min(hinted));
    }

    pub(super) fn on_answer(&mut self, now: Time, answer: &Answer) {
        let round_trip = answer.round_trip;
        if answer.echo >= self.least_since {
            self.least.add(round_trip);
        }
        let arrived = before(now, answer.held);
        let least_bytes = (LEAST_PACKETS * self.packet_bytes) as u64;
        if let Some(speeds) = self.arrivals.on_answer(answer.echo, arrived, least_bytes) {
            self.speeds = Some(speeds);
            self.recent.add(speeds);
        }
        let marks = answer.marked.wrapping_sub(std::mem::replace(&mut self.marked, answer.marked));
        self.period.is_marked |= marks > 0;
        self.phases.on_round_trip(answer.echo, round_trip, marks > 0);
        let eighth = Time::from_ps(self.round_trip.as_ps() / 8);
        self.round_trip = match self.round_trip {
            Time::ZERO => round_trip,
            smoothed => smoothed + Time::from_ps(round_trip.as_ps() / 8) - eighth,
        };
        let is_late = self.sharing.beta.is_some() && answer.waited > tolerated(self.least.get());
        self.waited = if is_late { answer.waited } else { Time::ZERO };
        if !self.is_starting {
            if let Some(floor) = self.floor.as_mut().filter(|_| marks > 0) {
                floor.on_lost(ticks(now), answer.echo, f64::from(marks), 0.0);
            }
            // Packets that others overtake arrive later than the echo.
            while let Some(phase) =
                self.phases.settled(answer.echo.saturating_sub(ticks(eighth)), ticks(self.round_trip))
            {
                self.on_settled(now, &phase);
            }
            self.follow_floor(now);
            self.answered = now;
            return;
        }
        if let Some(dispersion) = self.burst.on_answer(now, answer, self.wire_share) {
            self.go_on_from(now, round_trip, dispersion);
            return;
        }
        self.take_back(now, round_trip);
        if answer.echo < self.period.since {
            return;
        }
        self.period.round_trips.add(round_trip);
        if now >= self.period.until && self.is_starting {
            self.set(now, round_trip);
            self.least.next_cycle();
            self.begin_period(now, round_trip);
        }
        while let Some(phase) = self.phases.settled(answer.echo.saturating_sub(ticks(eighth)), ticks(self.round_trip)) {
            self.watch_loss(now, &phase);
        }
    }

    /// How long it takes until what was sent shows in an answer. `[P18]`
    fn feedback(&self) -> Time {
        self.round_trip + self.waited
    }

    /// A lower rate than `rate`, if packets with these round trips waited in a queue: while there is one, they arrive at the rate
    /// of the bottleneck. `[P6]`
    fn drained(&self, rate: f64, seen: RoundTrips) -> Option<f64> {
        let share = self.least.drain(seen, self.packet_time(rate))?;
        Some(share * self.speeds.map_or(rate, |speeds| speeds.arrived.min(rate)))
    }

    fn packet_time(&self, rate: f64) -> Time {
        Time::from_secs_f64(self.packet_bytes / rate)
    }

    /// Limits a rate to the allowed range. `[P3]`
    fn bounded(&self, rate: f64, round_trip: Time) -> f64 {
        let slowest = self.packet_bytes / round_trip.as_secs_f64().max(1e-6);
        rate.max(slowest).min(self.most).min(self.most_hinted)
    }
}

/// Bytes on the wire per byte of data, in a full packet.
fn wire_share(size: PacketSize) -> f64 {
    size.packet_bytes as f64 / (size.data_bytes() as f64).max(1.0)
}

impl Recent {
    fn add(&mut self, speeds: Speeds) {
        let bytes = speeds.bytes as f64;
        self.bytes += bytes;
        self.sent_s += bytes / speeds.sent;
        self.arrived_s += bytes / speeds.arrived;
    }
}

impl Period {
    fn begin(now: Time, until: Time) -> Self {
        let since = ticks(now);
        Period { since, until, began: now, round_trips: RoundTrips::default(), is_marked: false, sent_bytes: 0 }
    }
}

#[cfg(test)]
mod tests;
