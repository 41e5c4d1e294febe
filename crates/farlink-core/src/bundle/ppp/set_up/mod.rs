//! The set-up of a line: both ends and the frames between them, in virtual time.

use std::collections::VecDeque;

use super::config::PppConfig;
use super::end::{End, Frame};
use crate::bundle::LinkArq;
use crate::bundle::arq::{Arq, airtime};
use crate::bundle::line_config::LineConfig;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::BitRate;

/// Number of frames in one direction after which an attempt has failed. Ends whose restart timers are shorter than the round trip
/// may negotiate for ever.
const MOST_FRAMES: usize = 1000;

impl PppConfig {
    /// Least time from the connected modem to a set-up line.
    pub(in crate::bundle) fn quickest(&self, line: &LineConfig) -> Time {
        let wait = if self.far_is_silent { self.connect_delay_s.time() } else { Time::ZERO };
        wait + Ppp::new(self, line).round_trip()
    }
}

/// PPP on one line.
#[derive(Clone, Debug)]
pub(in crate::bundle) struct Ppp {
    config: PppConfig,
    /// From the near end, which dials, and to it.
    wires: [Wire; 2],
}

/// One direction of a line. A frame waits until those before it have left.
#[derive(Clone, Debug)]
struct Wire {
    ps_per_byte: f64,
    delay: Time,
    arq: Option<Arq>,
    free_at: Time,
    sent: usize,
    /// Frames under way and their arrivals.
    frames: VecDeque<(Time, Frame)>,
}

/// Outcome of an attempt to set a line up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::bundle) struct Outcome {
    /// When both ends took the line for set up, except for the network protocol; never if the attempt failed before.
    pub(in crate::bundle) established: Time,
    /// When the network protocol was open as well, or when the attempt failed.
    pub(in crate::bundle) end: Time,
    /// Whether the network protocol was open at `end`.
    pub(in crate::bundle) has_network: bool,
    /// When LCP opened at the near end and at the far end.
    pub(in crate::bundle) opened: [Time; 2],
}

impl Ppp {
    pub(in crate::bundle) fn new(config: &PppConfig, line: &LineConfig) -> Self {
        let wire = |rate: BitRate| Wire {
            ps_per_byte: rate.ps_per_byte(),
            delay: line.delay.time(),
            arq: line.arq.as_ref().map(LinkArq::start),
            free_at: Time::ZERO,
            sent: 0,
            frames: VecDeque::new(),
        };
        Ppp { config: *config, wires: line.rates_of_near_end().map(wire) }
    }

    /// Time from a frame to its answer, without losses.
    pub(in crate::bundle) fn round_trip(&self) -> Time {
        let bytes = self.config.frame_bytes.whole();
        self.wires.iter().fold(Time::ZERO, |sum, wire| {
            let spent = wire.arq.as_ref().map_or(bytes, |arq| arq.least_bytes(bytes));
            sum + airtime(spent, wire.ps_per_byte) + wire.delay
        })
    }

    /// Sets the line up, from the time `at` at which its modem is connected.
    pub(in crate::bundle) fn set_up(&self, at: Time, rng: &mut Rng) -> Outcome {
        let config = &self.config;
        let bytes = config.frame_bytes.whole() as u32;
        let mut wires = self.wires.clone();
        wires.iter_mut().for_each(|wire| wire.free_at = at);
        let mut ends = [End::new(config, true), End::new(config, false)];
        let mut near_starts = at + config.connect_delay_s.time();
        if !config.far_is_silent {
            ends[1].start(at);
        }
        let (mut now, mut established) = (at, Time::NEVER);
        loop {
            for (end, wire) in ends.iter_mut().zip(&mut wires) {
                end.out.drain(..).for_each(|frame| wire.send(frame, bytes, now, rng));
            }
            let is_established = ends.iter().all(End::is_established);
            established = if is_established { established.min(now) } else { Time::NEVER };
            let has_network = ends.iter().all(End::has_network);
            let has_failed = ends.iter().any(|end| end.has_failed) || wires.iter().any(|wire| wire.sent > MOST_FRAMES);
            if has_network || has_failed {
                return Outcome { established, end: now, has_network, opened: ends.map(|end| end.opened) };
            }
            let arrivals = wires.iter().map(Wire::next_arrival);
            let timers = ends.iter().map(End::timer);
            now = arrivals.chain(timers).fold(near_starts, Time::min);
            if now == Time::NEVER {
                return Outcome { established, end: now, has_network, opened: [now; 2] };
            }
            // Frames that arrive at an instant come before the timers of that instant.
            if let Some(frame) = wires[0].receive(now) {
                ends[1].on_frame(frame, now);
            } else if let Some(frame) = wires[1].receive(now) {
                // The first frame ends the wait.
                near_starts = Time::NEVER;
                ends[0].start(now);
                ends[0].on_frame(frame, now);
            } else if near_starts <= now {
                near_starts = Time::NEVER;
                ends[0].start(now);
            } else {
                ends.iter_mut().filter(|end| end.timer() <= now).for_each(|end| end.on_timeout(now));
            }
        }
    }
}

impl Wire {
    fn send(&mut self, frame: Frame, bytes: u32, now: Time, rng: &mut Rng) {
        let (spent, is_whole) = match &self.arq {
            None => (u64::from(bytes), true),
            Some(arq) => {
                let passage = arq.send(bytes, rng);
                (passage.bytes, passage.is_whole)
            }
        };
        self.sent += 1;
        self.free_at = now.max(self.free_at) + airtime(spent, self.ps_per_byte);
        if is_whole {
            self.frames.push_back((self.free_at + self.delay, frame));
        }
    }

    fn next_arrival(&self) -> Time {
        self.frames.front().map_or(Time::NEVER, |&(arrival, _)| arrival)
    }

    fn receive(&mut self, now: Time) -> Option<Frame> {
        if self.next_arrival() > now { None } else { self.frames.pop_front().map(|(_, frame)| frame) }
    }
}

#[cfg(test)]
mod tests;
