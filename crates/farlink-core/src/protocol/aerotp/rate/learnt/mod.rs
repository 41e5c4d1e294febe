//! A rate that follows the bottleneck.

use crate::time::Time;
use crate::units::BitRate;

use super::super::clock::ticks;
use super::super::config::AerotpConfig;
use super::super::packet_size::PacketSize;
use super::arrivals::{Arrivals, Speeds};
use super::burst::{Dispersion, FIRST_BURST, FirstBurst, LEAST_PACKETS, SLOWER, before};
use super::friendly::tcp_rate;
use super::{Answer, RateControl};

/// Sets the rate every second round trip from the answers received.
#[derive(Clone, Debug)]
pub(super) struct Learnt {
    /// Bytes per second.
    rate: f64,
    /// Upper limit, in bytes per second.
    most: f64,
    most_hinted: f64,
    packet_bytes: f64,
    /// Bytes on the wire per byte of data, in a full packet.
    wire_share: f64,
    is_friendly: bool,
    /// Whether the rate still doubles, until the bottleneck is found.
    is_starting: bool,
    /// The first burst and its estimate; `None` for a TCP-friendly rate.
    pub(super) burst: Option<Box<FirstBurst>>,
    dispersion: Option<Dispersion>,
    arrivals: Arrivals,
    /// The latest measured rates.
    speeds: Option<Speeds>,
    recent: Recent,
    /// Number of periods in a row with a queue, and the shortest round trip of the first of them.
    waiting: (u32, Time),
    least: LeastRoundTrip,
    marked: u16,
    period: Period,
    /// Congestion events per segment, smoothed. `[P9]`
    events: f64,
}

/// Observations since the rate was last set. `[P5]`
#[derive(Clone, Copy, Debug)]
struct Period {
    /// Only answers to segments sent since this time count, in ticks.
    since: u64,
    began: Time,
    until: Time,
    /// The shortest round trip, which shows the least queue.
    shortest: Time,
    is_marked: bool,
    sent_bytes: u64,
}

/// Measurements since the rate was last set.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    bytes: f64,
    sent_s: f64,
    arrived_s: f64,
}

/// The shortest recent round trip, over enough periods to distinguish a longer path from a queue.
#[derive(Clone, Copy, Debug)]
struct LeastRoundTrip {
    present: Time,
    before: Time,
    periods: u32,
}

/// Number of periods after which an older shortest round trip is forgotten.
const MEMORY_PERIODS: u32 = 16;
/// Growth of the rate in a period without congestion: at the start, at the start above the estimate of the first burst, and
/// later.
const START_GROWTH: f64 = 2.0;
const BEYOND_GROWTH: f64 = 1.25;
const GROWTH: f64 = 1.05;
/// Fraction of the first burst's rate that is tried first, because other flows may use the link as well, and congestion shows
/// only after a round trip. `[P12]`
const FIRST_SHARE: f64 = 0.25;
/// Factor on the rate after congestion marks; factors on the rate of the bottleneck with a long and a short queue, so that it
/// drains.
const MARKED: f64 = 0.8;
const LONG_QUEUE: f64 = 0.9;
const QUEUE: f64 = 0.95;
/// Number of periods in a row with a queue after which the path counts as longer.
const LONGER_PATH_AFTER: u32 = 6;
/// Weight of a period in the smoothed share of congestion events.
const EVENT_WEIGHT: f64 = 0.1;

impl Learnt {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        let size = config.packet_size();
        let packet_bytes = size.packet_bytes as f64;
        let most = config.rate_bps.map_or(f64::INFINITY, |rate| rate.get() / 8.0);
        let start = f64::from(FIRST_BURST) * packet_bytes / config.initial_rto_s.get();
        let is_friendly = config.rate_control == Some(RateControl::Friendly);
        Learnt {
            rate: start.min(most),
            most,
            most_hinted: f64::INFINITY,
            packet_bytes,
            wire_share: wire_share(size),
            is_friendly,
            is_starting: true,
            burst: (!is_friendly).then(Box::default),
            dispersion: None,
            arrivals: Arrivals::default(),
            speeds: None,
            recent: Recent::default(),
            waiting: (0, Time::ZERO),
            least: LeastRoundTrip { present: Time::NEVER, before: Time::NEVER, periods: 0 },
            marked: 0,
            period: Period::begin(Time::ZERO, Time::ZERO),
            events: 0.0,
        }
    }

    /// Packets have another size from now on; the rate stays. `[S6]`
    pub(super) fn set_packet_size(&mut self, size: PacketSize) {
        self.packet_bytes = size.packet_bytes as f64;
        self.wire_share = wire_share(size);
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
    pub(super) fn on_sent(&mut self, now: Time, bytes: u32) {
        self.arrivals.on_sent(now, bytes);
        self.period.sent_bytes += u64::from(bytes);
    }

    /// Takes the rate of the first link; later links may be slower. If it has become faster, the bottleneck may have as well.
    pub(super) fn on_hint(&mut self, rate: BitRate) {
        let hinted = rate.get() / 8.0;
        if hinted > self.most_hinted {
            (self.is_starting, self.dispersion) = (true, None);
        }
        self.most_hinted = hinted;
        self.rate = self.rate.min(hinted);
    }

    pub(super) fn on_answer(&mut self, now: Time, answer: &Answer) {
        let round_trip = answer.round_trip;
        self.least.add(round_trip);
        let arrived = before(now, answer.held);
        let least_bytes = (LEAST_PACKETS * self.packet_bytes) as u64;
        if let Some(speeds) = self.arrivals.on_answer(answer.echo, arrived, least_bytes) {
            self.speeds = Some(speeds);
            self.recent.add(speeds);
        }
        self.period.is_marked |= answer.marked != std::mem::replace(&mut self.marked, answer.marked);
        if let Some(dispersion) = self.burst.as_mut().and_then(|burst| burst.on_answer(now, answer, self.wire_share)) {
            self.go_on_from(now, round_trip, dispersion);
            return;
        }
        self.take_back(now, round_trip);
        if answer.echo < self.period.since {
            return;
        }
        self.period.shortest = self.period.shortest.min(round_trip);
        if now >= self.period.until {
            self.set(now, round_trip);
            self.least.next_period();
            // In the first round trip the queue left by the old rate drains, and the second shows the effect of the new rate. A
            // growing round trip does not delay the end of the period.
            let round_trips = if self.is_starting { 1 } else { 2 };
            self.period = Period::begin(now, now + round_trip.times(round_trips));
        }
    }

    /// Continues from the first burst's estimate of the slowest link. `[P12]`
    fn go_on_from(&mut self, now: Time, round_trip: Time, dispersion: Dispersion) {
        let first = FIRST_SHARE * dispersion.speed;
        (self.speeds, self.recent) = (None, Recent::default()); // the burst was sent much faster than this rate
        if !self.is_starting || self.period.is_marked {
            return;
        }
        self.dispersion = Some(dispersion);
        if first > self.rate {
            self.rate = self.bounded(first, round_trip);
            // The rate grows only after half a round trip of data sent at it was seen to arrive.
            self.period = Period::begin(now, now + round_trip + Time::from_ps(round_trip.as_ps() / 2));
        }
    }

    /// Ends the start as soon as data arrives much more slowly than it was sent. `[P13]`
    fn take_back(&mut self, now: Time, round_trip: Time) {
        let Recent { bytes, sent_s, arrived_s } = self.recent;
        let is_enough =
            bytes >= f64::from(FIRST_BURST) * self.packet_bytes && 4.0 * arrived_s >= self.least.get().as_secs_f64();
        if self.burst.is_none() || !self.is_starting || !is_enough {
            return;
        }
        self.recent = Recent::default();
        if sent_s < SLOWER * arrived_s {
            self.is_starting = false;
            self.rate = self.bounded(self.rate.min(QUEUE * bytes / arrived_s), round_trip);
            self.period = Period::begin(now, now + round_trip.times(2));
        }
    }

    /// Limits a rate to the allowed range. `[P3]`
    fn bounded(&self, rate: f64, round_trip: Time) -> f64 {
        let slowest = self.packet_bytes / round_trip.as_secs_f64().max(1e-6);
        rate.max(slowest).min(self.most).min(self.most_hinted)
    }

    /// The next rate without congestion.
    fn grown(&self) -> f64 {
        if !self.is_starting {
            return self.rate * GROWTH;
        }
        let known =
            self.dispersion.filter(|dispersion| dispersion.is_exact).map_or(f64::INFINITY, |it| QUEUE * it.speed);
        if self.rate < known { (self.rate * START_GROWTH).min(known) } else { self.rate * BEYOND_GROWTH }
    }

    /// A queue shrinks when less is sent than the bottleneck carries. If the round trip stays as long for several such periods,
    /// it is not due to a queue: the path has become longer. `[P7]`
    fn watch_queue(&mut self, is_waiting: bool, shortest: Time) {
        self.waiting.0 = if is_waiting { self.waiting.0 + 1 } else { 0 };
        if self.waiting.0 == 1 {
            self.waiting.1 = shortest;
        }
        if self.waiting.0 == LONGER_PATH_AFTER {
            if shortest >= self.waiting.1 {
                self.least = LeastRoundTrip { present: shortest, before: Time::NEVER, periods: 0 };
            }
            self.waiting.0 = 0;
        }
    }

    /// Sets the rate at the end of a period. `[P6]`
    fn set(&mut self, now: Time, round_trip: Time) {
        let Period { began, shortest, is_marked, sent_bytes, .. } = self.period;
        let queueing = shortest.since(self.least.get());
        let tolerated = tolerated(self.least.get());
        let is_waiting = queueing > tolerated;
        let is_congested = is_marked || is_waiting;
        self.watch_queue(is_waiting, shortest);
        let took = now.since(began).as_secs_f64();
        let is_used = sent_bytes as f64 > 0.75 * self.rate * took;
        let shown = self.speeds.filter(|speeds| speeds.arrived < SLOWER * speeds.sent);
        self.rate = if is_waiting {
            // While there is a queue, packets arrive at the rate of the bottleneck.
            let share = if queueing > tolerated.times(2) { LONG_QUEUE } else { QUEUE };
            share * self.speeds.map_or(self.rate, |speeds| speeds.arrived.min(self.rate))
        } else if is_marked {
            self.rate * MARKED
        } else if let Some(speeds) = shown.filter(|_| self.is_starting) {
            QUEUE * speeds.arrived
        } else if is_used {
            self.grown()
        } else {
            self.rate
        };
        self.is_starting &= shown.is_none() && !is_congested;
        let segments = (sent_bytes as f64 / self.packet_bytes).max(1.0);
        self.events += EVENT_WEIGHT * (f64::from(u8::from(is_congested)) / segments - self.events);
        if self.is_friendly && self.events > 0.0 {
            let seconds = round_trip.as_secs_f64();
            self.rate = self.rate.min(tcp_rate(self.packet_bytes, seconds, self.events));
        }
        self.rate = self.bounded(self.rate, round_trip);
        self.recent = Recent::default();
    }
}

/// Bytes on the wire per byte of data, in a full packet.
fn wire_share(size: PacketSize) -> f64 {
    size.packet_bytes as f64 / (size.data_bytes() as f64).max(1.0)
}

/// Largest queueing delay that does not count as congestion. `[P5]`
fn tolerated(round_trip: Time) -> Time {
    Time::from_ps(round_trip.as_ps() / 16).max(Time::from_millis(5)).min(Time::from_millis(100))
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
        Period { since, until, began: now, shortest: Time::NEVER, is_marked: false, sent_bytes: 0 }
    }
}

impl LeastRoundTrip {
    fn add(&mut self, round_trip: Time) {
        self.present = self.present.min(round_trip);
    }

    fn get(&self) -> Time {
        self.present.min(self.before)
    }

    fn next_period(&mut self) {
        self.periods += 1;
        if self.periods == MEMORY_PERIODS {
            (self.before, self.present, self.periods) = (self.present, Time::NEVER, 0);
        }
    }
}

#[cfg(test)]
mod tests;
