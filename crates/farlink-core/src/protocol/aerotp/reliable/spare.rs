//! What is repeated at the end of a stream, where the rate leaves room, before anybody has found it lost.

use std::collections::{BinaryHeap, VecDeque};

use crate::payload::Payload;
use crate::time::Time;

use super::super::clock::{span, ticks};
use super::super::config::MOST_COPIES;
use super::super::loss::Loss;
use super::flight::{Flight, Transmission};

/// Chooses what to repeat once the end of the stream has gone out. `[R11]`
///
/// A piece of which k transmissions are under way is missing with the probability p^k, p the loss measured so far; if it is, a copy
/// saves what is left until the answer to its last transmission. So of pieces with equally many under way the one sent last
/// comes first, and of these first ones that for which p^k times the wait is largest.
#[derive(Clone, Debug)]
pub(super) struct Spare {
    loss: Loss,
    /// The end of the stream has gone out.
    is_open: bool,
    /// Since then: transmissions of which nothing is known, the oldest first.
    under_way: VecDeque<Transmission>,
    /// Those of late: what hit them might hit a copy as well.
    resting: VecDeque<Transmission>,
    /// The others, by how many of their piece are under way, from one on; some may be out of date.
    by_copies: Vec<BinaryHeap<Transmission>>,
    /// Where the piece begins that is repeated next.
    chosen: Option<u64>,
    /// From when on there is something to repeat, or to look for it.
    at: Time,
}

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// From a transmission to its answer, once one has come.
    pub(super) answer: Time,
    /// Between copies.
    pub(super) spacing: Time,
}

/// What is under way completes the stream but for this probability: then nothing more is repeated.
const INCOMPLETE: f64 = 0.05;

impl Spare {
    pub(super) fn new() -> Self {
        Spare {
            loss: Loss::new(0.0, false),
            is_open: false,
            under_way: VecDeque::new(),
            resting: VecDeque::new(),
            by_copies: vec![BinaryHeap::new(); MOST_COPIES as usize - 1],
            chosen: None,
            at: Time::NEVER,
        }
    }

    /// Of pieces that had gone out once since they were lost last, so many have arrived and so many were lost.
    pub(super) fn measure(&mut self, arrived: u64, lost: u64) {
        self.loss.add(arrived + lost, 0, arrived);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The end of the stream has gone out.
    pub(super) fn open<D: Payload>(&mut self, flight: &Flight<D>) {
        self.is_open = true;
        self.under_way.extend(flight.waiting());
        self.resting.extend(flight.waiting());
    }

    /// A piece was sent again.
    pub(super) fn on_sent(&mut self, now: Time, start: u64) {
        if self.is_open {
            let transmission = Transmission { sent: ticks(now), start };
            self.under_way.push_back(transmission);
            self.resting.push_back(transmission);
        }
    }

    /// What was sent before an instant, in ticks, has arrived or is lost.
    pub(super) fn on_answer<D: Payload>(&mut self, before: u64, flight: &mut Flight<D>) {
        while let Some(&oldest) = self.under_way.front()
            && oldest.sent < before
        {
            self.under_way.pop_front();
            let is_at_rest = |last: Transmission| self.resting.front().is_some_and(|first| *first <= last);
            if let Some((last, copies)) = flight.is_missing(oldest.start)
                && !is_at_rest(last)
                && let Some(heap) = self.by_copies.get_mut(copies - 1)
            {
                heap.push(last);
            }
        }
    }

    /// Finds out what to repeat next.
    pub(super) fn look<D: Payload>(&mut self, now: Time, flight: &Flight<D>, waits: Waits) {
        (self.chosen, self.at) = (None, Time::NEVER);
        if !self.is_open || flight.is_empty() {
            return;
        }
        while let Some(&oldest) = self.resting.front() {
            let due = span(oldest.sent) + waits.spacing;
            if due > now {
                self.at = due;
                break;
            }
            self.resting.pop_front();
            if let Some(heap) = flight.copies(oldest).and_then(|copies| self.by_copies.get_mut(copies - 1)) {
                heap.push(oldest);
            }
        }
        let loss = self.loss.of(0.0);
        let (mut missing, mut most_gain) = (1.0, 0.0);
        for (index, heap) in self.by_copies.iter_mut().enumerate() {
            missing *= loss;
            while heap.peek().is_some_and(|&top| flight.copies(top) != Some(index + 1)) {
                heap.pop();
            }
            let Some(&Transmission { sent, start }) = heap.peek() else { continue };
            if missing * flight.pieces_like(start) < INCOMPLETE {
                break;
            }
            // What is answered soon is better waited for.
            let wait = (span(sent) + waits.answer).since(now);
            let gain = missing * wait.as_secs_f64();
            if wait >= waits.spacing && gain > most_gain {
                (self.chosen, self.at, most_gain) = (Some(start), Time::ZERO, gain);
            }
        }
    }

    /// Where the piece begins that is to be repeated now.
    pub(super) fn chosen(&self) -> Option<u64> {
        self.chosen
    }

    /// From when on it is worth asking.
    #[inline]
    pub(super) fn at(&self) -> Time {
        self.at
    }
}

#[cfg(test)]
mod tests;
