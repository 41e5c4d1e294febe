//! How fast a path is sent into: its delivery rate, and a small queue that keeps it busy.
//!
//! The rate is the largest delivery rate of the last round trips, measured by the far end's timestamps. The sender paces a little
//! above it while the queue is below its target and a little below it while the queue is above, so that the rate follows the path
//! up and down within a few round trips. From time to time a round trip is sent below the rate: the queue drains, so that the least
//! delay is seen again, and what is lost then is not lost because of too much load. Losses of that kind are made up for, others
//! make the sender more careful.

use std::collections::VecDeque;

use crate::time::Time;

/// Share of the rate at which a queue is drained.
const DRAIN: f64 = 0.85;

/// Least time between two drains.
const BETWEEN_DRAINS: f64 = 2.0;

/// Bounds of the share by which the pace exceeds the rate while the queue is short.
const PUSH: (f64, f64) = (0.02, 0.25);

/// Losses of so much more than those without load are taken for a full buffer.
const EXCESS_LOSS: f64 = 0.04;

/// Packets after which a loss is counted.
const LOSS_SAMPLE: f64 = 40.0;

/// Round trips without growth after which the start is over.
const FLAT_ROUNDS: u32 = 3;

/// Rounds whose rates count.
const RATE_ROUNDS: usize = 4;

/// A measured delivery rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateSample {
    /// Bytes per second.
    pub(super) rate: f64,
    /// Whether less was sent than the path would have carried.
    pub(super) is_limited: bool,
}

/// The delay of a path, as [`Delays`](super::estimate::Delays) sees it, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) round_trip: f64,
    /// Without the queue and the packet's own time on the line.
    pub(super) unqueued: f64,
    pub(super) queue: f64,
}

/// Outcomes of packets.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: f64,
    lost: f64,
}

impl Counts {
    fn total(&self) -> f64 {
        self.arrived + self.lost
    }

    fn loss(&self) -> f64 {
        if self.total() > 0.0 { self.lost / self.total() } else { 0.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Start,
    Cruise,
    /// Until this time.
    Drain(f64),
}

/// Pace and window of a path. Times are in seconds, rates in bytes per second, headers included.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    phase: Phase,
    /// The largest rate of each of the last rounds, the present one last.
    rates: VecDeque<f64>,
    has_full_sample: bool,
    /// Whether less was sent lately than the path would have carried.
    is_limited: bool,
    full_rate: f64,
    flat_rounds: u32,
    push: f64,
    /// Share of the packets that is lost without load, in [0, 0.5].
    loss: f64,
    /// How often it was measured.
    losses_seen: u32,
    /// Packets sent while pushing, and while not.
    loaded: Counts,
    unloaded: Counts,
    last_drain: f64,
    /// Rounds with a queue above the target, and the queue in the first of them.
    rounds_above: u32,
    queue_above: f64,
    /// Window of the start, in bytes.
    window: f64,
    /// The queue that the path may have.
    queue_target: f64,
    /// Length of a packet, headers included.
    packet: f64,
    /// How long a small packet may wait.
    latency: f64,
}

/// Actions for the owner of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    Nothing,
    /// The queue does not drain: the path has become longer.
    PathIsLonger,
}

impl Controller {
    pub(super) fn new(queue: Time, packet: u32) -> Self {
        Controller {
            phase: Phase::Start,
            rates: VecDeque::from([0.0]),
            has_full_sample: false,
            is_limited: false,
            full_rate: 0.0,
            flat_rounds: 0,
            push: PUSH.1,
            loss: 0.0,
            losses_seen: 0,
            loaded: Counts::default(),
            unloaded: Counts::default(),
            last_drain: 0.0,
            rounds_above: 0,
            queue_above: 0.0,
            window: 2.0 * f64::from(packet),
            queue_target: queue.as_secs_f64(),
            packet: f64::from(packet),
            latency: f64::INFINITY,
        }
    }

    /// The path begins anew, with the rate that two probes showed.
    pub(super) fn begin(&mut self, now: Time, rate: f64, round_trip: f64) {
        let (loss, losses_seen) = (self.loss, self.losses_seen);
        let rate = rate.min(10.0 * self.packet / round_trip);
        *self = Controller { phase: Phase::Start, rates: VecDeque::from([rate]), ..self.fresh() };
        (self.loss, self.losses_seen) = (loss, losses_seen);
        self.window = (rate * round_trip).max(2.0 * self.packet);
        self.last_drain = now.as_secs_f64();
    }

    fn fresh(&self) -> Self {
        let mut fresh = Controller::new(Time::ZERO, 1);
        (fresh.queue_target, fresh.packet, fresh.latency) = (self.queue_target, self.packet, self.latency);
        fresh
    }

    /// Delivery rate that arrives, in bytes per second; 0 before anything was measured.
    pub(super) fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// Rate that has to be sent so that the path is full.
    pub(super) fn sending_rate(&self) -> f64 {
        self.rate() / (1.0 - self.loss)
    }

    /// Whether its rate is known: the start is over.
    pub(super) fn is_explored(&self) -> bool {
        self.phase != Phase::Start
    }

    /// Share of packets that is lost without load.
    pub(super) fn loss(&self) -> f64 {
        self.loss
    }

    /// Whether that share is known well enough to judge the path by it.
    pub(super) fn knows_loss(&self) -> bool {
        self.losses_seen >= 2
    }

    /// Length of the packets that are sent, headers included, and how long a small one may wait for them.
    pub(super) fn set_packet(&mut self, bytes: u32, latency: Time) {
        (self.packet, self.latency) = (f64::from(bytes), latency.as_secs_f64());
    }

    /// Forgets losses: a path that was left out is tried again.
    pub(super) fn forget_loss(&mut self) {
        (self.loss, self.losses_seen, self.unloaded, self.loaded) = (0.0, 0, Counts::default(), Counts::default());
    }

    /// Length of the packets that are sent, headers included.
    pub(super) fn packet(&self) -> f64 {
        self.packet
    }

    /// The queue that packets of this end may cause, in seconds. A small packet waits for it and for a packet that is being sent.
    fn target(&self, seen: Seen) -> f64 {
        let packet = self.packet / self.sending_rate().max(1.0);
        let held = super::received::ACKNOWLEDGEMENT_DELAY.as_secs_f64();
        let wanted = (seen.unqueued / 8.0).max(packet);
        let most = (self.latency - 2.0 * packet - held).max(packet / 4.0);
        self.queue_target.max(wanted.min(most))
    }

    /// By how much the pace exceeds the rate at the start. Where the users' own slow starts decide what is sent, they come in bursts
    /// that a pace of twice the rate would stretch over the round trip, which ends them (CUBIC's HyStart).
    fn growth(&self) -> f64 {
        if self.is_limited { 4.0 } else { 2.0 }
    }

    /// Bytes per second to send now.
    pub(super) fn pace(&self, seen: Seen) -> f64 {
        let rate = self.sending_rate();
        let pace = match self.phase {
            Phase::Start => self.growth() * rate.max(2.0 * self.packet / seen.round_trip),
            Phase::Drain(_) => DRAIN * self.rate(),
            Phase::Cruise => {
                let target = self.target(seen);
                let room = ((target - seen.queue) / target).clamp(-1.0, 1.0);
                rate * (1.0 + room * if room > 0.0 { self.push } else { 0.25 })
            }
        };
        pace.max(self.packet / seen.round_trip / 2.0)
    }

    /// Most bytes in flight.
    pub(super) fn window(&self, seen: Seen) -> f64 {
        let held = super::received::ACKNOWLEDGEMENT_DELAY.as_secs_f64();
        let full = self.sending_rate() * (seen.unqueued + self.target(seen) + held) + self.packet;
        match self.phase {
            Phase::Start => self.window.max(2.0 * self.packet),
            _ => full.max(2.0 * self.packet),
        }
    }

    /// Whether a packet that is sent now is sent without load.
    pub(super) fn is_unloaded(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Drain(until) if now.as_secs_f64() < until)
    }

    /// A packet arrived or was lost; it was sent without load or not.
    pub(super) fn count(&mut self, is_lost: bool, was_unloaded: bool) {
        let counts = match (self.phase, was_unloaded) {
            (_, true) => &mut self.unloaded,
            (Phase::Start, false) => return,
            _ => &mut self.loaded,
        };
        *(if is_lost { &mut counts.lost } else { &mut counts.arrived }) += 1.0;
        if self.unloaded.total() >= LOSS_SAMPLE {
            let seen = self.unloaded.loss().min(0.6);
            self.loss = (self.loss + 0.5 * (seen - self.loss)).min(0.5);
            self.losses_seen += 1;
            self.unloaded = Counts::default();
        }
    }

    /// Bytes were acknowledged.
    pub(super) fn acknowledged(&mut self, now: Time, bytes: u32, sample: Option<RateSample>, seen: Seen) {
        if let Some(sample) = sample {
            self.is_limited = sample.is_limited;
        }
        // Where packets wait, the path is full, whatever the sender had to send.
        let is_full = seen.queue > self.target(seen);
        if let Some(sample) = sample.filter(|sample| is_full || !sample.is_limited || sample.rate > self.rate()) {
            let present = self.rates.back_mut().expect("there is always a present round");
            *present = present.max(sample.rate);
            self.has_full_sample |= is_full || !sample.is_limited;
        }
        if self.phase == Phase::Start {
            let most = 1.1 * self.growth() * self.sending_rate() * seen.unqueued + 2.0 * self.packet;
            self.window = (self.window + f64::from(bytes)).min(most).max(2.0 * self.packet);
            if seen.queue > self.target(seen) {
                self.drain(now, seen);
            }
        }
        if let Phase::Drain(until) = self.phase
            && now.as_secs_f64() >= until
        {
            self.phase = Phase::Cruise;
        }
    }

    fn drain(&mut self, now: Time, seen: Seen) {
        let target = self.target(seen);
        let now = now.as_secs_f64();
        (self.phase, self.last_drain) = (Phase::Drain(now + seen.round_trip + 7.0 * target.min(seen.queue)), now);
    }

    /// A round trip is over. `wants_drain`: losses should be measured soon.
    pub(super) fn round_ended(&mut self, now: Time, seen: Seen) -> Advice {
        let mut advice = Advice::Nothing;
        let target = self.target(seen);
        if self.has_full_sample {
            self.has_full_sample = false;
            self.rates.push_back(0.0);
            let most = if seen.queue > 3.0 * target && self.phase == Phase::Cruise { 2 } else { RATE_ROUNDS };
            while self.rates.len() > most {
                self.rates.pop_front();
            }
            if self.phase == Phase::Start {
                self.flat_rounds += 1;
                if self.rate() > 1.25 * self.full_rate {
                    (self.full_rate, self.flat_rounds) = (self.rate(), 0);
                } else if self.flat_rounds >= FLAT_ROUNDS {
                    self.drain(now, seen);
                }
            }
        }
        let mut wants_drain = false;
        if self.loaded.total() >= LOSS_SAMPLE / 2.0 {
            let excess = self.loaded.loss() - self.loss;
            self.push = if excess > EXCESS_LOSS { self.push / 2.0 } else { self.push * 1.5 }.clamp(PUSH.0, PUSH.1);
            wants_drain = excess > EXCESS_LOSS;
            self.loaded = Counts::default();
        }
        if self.phase == Phase::Cruise {
            if seen.queue > target {
                if self.rounds_above == 0 {
                    self.queue_above = seen.queue;
                }
                self.rounds_above += 1;
                if self.rounds_above >= 6 {
                    if seen.queue > 0.8 * self.queue_above {
                        advice = Advice::PathIsLonger;
                    }
                    self.rounds_above = 0;
                }
            } else {
                self.rounds_above = 0;
            }
            let since = now.as_secs_f64() - self.last_drain;
            let length = seen.round_trip + 7.0 * target;
            if since > (10.0 * length).max(BETWEEN_DRAINS) || (wants_drain && since > 3.0 * length) {
                self.drain(now, seen);
            }
        }
        advice
    }
}
