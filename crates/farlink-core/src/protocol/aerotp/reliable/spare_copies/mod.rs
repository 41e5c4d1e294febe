//! Copies at the end of a stream, sent where the rate leaves room, before losses are detected.

use std::collections::{BinaryHeap, VecDeque};

use crate::origin::instants;
use crate::payload::Payload;
use crate::time::Time;

use super::super::clock::{span, ticks};
use super::super::config::MOST_COPIES;
use super::super::loss::Loss;
use super::flight::{Flight, Transmission};

/// Chooses the segments to copy once the end of the stream was sent. `[R11]`
///
/// A piece with k transmissions in flight is missing with probability p^k, where p is the loss rate measured so far. If it is
/// missing, a copy saves the remaining time until the answer to its last transmission. Therefore, of pieces with the same k, the
/// one sent last comes first, and of these candidates the one with the largest product of p^k and the remaining time.
#[derive(Clone, Debug)]
pub(super) struct SpareCopies {
    loss: Loss,
    /// Whether the end of the stream was sent.
    is_open: bool,
    /// Unanswered transmissions since then, the oldest first.
    under_way: VecDeque<Transmission>,
    /// Recent transmissions, which are not copied yet because the same burst of losses might hit the copy.
    resting: VecDeque<Transmission>,
    /// The other transmissions, by the number of transmissions of their piece in flight, from one on; some may be out of date.
    by_copies: Vec<BinaryHeap<Transmission>>,
    /// Start of the piece that is copied next.
    chosen: Option<u64>,
    /// When the next copy, or the next search for one, is due.
    at: Time,
}

instants! { SpareCopies: under_way, resting, by_copies, at; fixed: loss, is_open, chosen }

/// Times that the choice depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// From a transmission to its answer, once one has come.
    pub(super) answer: Time,
    /// Interval between copies.
    pub(super) spacing: Time,
}

/// Copying ends when the probability that the transmissions in flight do not complete the stream is below this.
const INCOMPLETE: f64 = 0.05;

impl SpareCopies {
    pub(super) fn new() -> Self {
        SpareCopies {
            loss: Loss::new(0.0, false),
            is_open: false,
            under_way: VecDeque::new(),
            resting: VecDeque::new(),
            by_copies: vec![BinaryHeap::new(); MOST_COPIES as usize - 1],
            chosen: None,
            at: Time::NEVER,
        }
    }

    /// Adds to the measured loss rate: of pieces that were sent once since their last loss, `arrived` have arrived and `lost`
    /// were lost.
    pub(super) fn measure(&mut self, arrived: u64, lost: u64) {
        self.loss.add(arrived + lost, 0, arrived);
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Begins to copy: the end of the stream was sent.
    pub(super) fn open<D: Payload>(&mut self, flight: &Flight<D>) {
        self.is_open = true;
        self.under_way.extend(flight.waiting());
        self.resting.extend(flight.waiting());
    }

    /// Pieces in flight were cut into parts, each of which may be copied separately.
    pub(super) fn follow_cut<D: Payload>(&mut self, flight: &Flight<D>) {
        if self.is_open {
            self.under_way.clear();
            self.resting.clear();
            self.by_copies.iter_mut().for_each(BinaryHeap::clear);
            self.open(flight);
        }
    }

    /// A piece was sent again.
    pub(super) fn on_sent(&mut self, now: Time, start: u64) {
        if self.is_open {
            let transmission = Transmission { sent: ticks(now), start };
            self.under_way.push_back(transmission);
            self.resting.push_back(transmission);
        }
    }

    /// Transmissions before an instant, in ticks, are answered: they have arrived or are lost.
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

    /// Chooses the next piece to copy.
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
            // If the answer is due soon, waiting for it is better than a copy.
            let wait = (span(sent) + waits.answer).since(now);
            let gain = missing * wait.as_secs_f64();
            if wait >= waits.spacing && gain > most_gain {
                (self.chosen, self.at, most_gain) = (Some(start), Time::ZERO, gain);
            }
        }
    }

    /// Start of the piece to copy now.
    pub(super) fn chosen(&self) -> Option<u64> {
        self.chosen
    }

    /// When the next call is useful.
    #[inline]
    pub(super) fn at(&self) -> Time {
        self.at
    }
}

#[cfg(test)]
mod tests;
