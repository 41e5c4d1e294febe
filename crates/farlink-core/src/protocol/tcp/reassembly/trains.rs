//! Trains of segments at the receiver.

use crate::payload::Payload;
use crate::time::Time;

use super::{AckDelay, Receiver};

/// Segments that a receiver took of a train.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Taken {
    /// Number of segments, from the first on.
    pub(in super::super) count: u32,
    /// Index of the first one that is acknowledged; after it, every [`ack_every`](Receiver::ack_every)-th is.
    pub(in super::super) first: u32,
    /// Number of acknowledgements.
    pub(in super::super) acks: u32,
}

impl<D: Payload> Receiver<D> {
    /// Whether a FIN waits for data before it.
    #[inline(always)]
    pub(in super::super) fn has_early_fin(&self) -> bool {
        self.early_fin.is_some()
    }

    /// The content of a report if it is one block and no duplicate.
    #[inline]
    pub(in super::super) fn only_block(&self) -> Option<(u64, u64)> {
        let (left, right) = self.stream.last_early().filter(|_| self.stream.is_one_early())?;
        let is_recent = self.recent.iter().any(|anchor| (left..right).contains(anchor));
        (is_recent && self.duplicate.is_none()).then_some((left, right))
    }

    /// Takes up to `count` payloads of `len` bytes each that follow in order, `gap` apart from `at` on, each of which is read at
    /// once. Returns `None`, without any effect, if the first one has to be handled by itself.
    pub(in super::super) fn on_data_train(&mut self, at: Time, gap: Time, len: u32, count: u32) -> Option<Taken> {
        let (len, every) = (u64::from(len), u32::from(self.ack_every));
        let first = every - u32::from(self.unacknowledged) - 1;
        // Far enough from a window update between two acknowledgements.
        let quarter = self.buffer_bytes / 4;
        let is_roomy = (u64::from(every) + 1) * len + quarter <= self.buffer_bytes
            && self.stream.next + u64::from(first + 1) * len + quarter <= self.advertised_end;
        let is_usual = !self.stream.has_gaps() && self.stream.unread_bytes == 0 && !self.ack_now;
        if !is_usual || !is_roomy {
            return None;
        }
        let count = self.before_timer(gap, len, count);
        if count == 0 {
            return None;
        }
        self.stream.next += u64::from(count) * len;
        let late = u32::from(self.unacknowledged) + count;
        let (acks, left) = (late / every, late % every);
        if acks > 0 {
            self.ack_deadline = Time::NEVER;
            self.last_ack_sent = self.stream.next - u64::from(left) * len;
            self.advertised_end = self.last_ack_sent + self.buffer_bytes;
        }
        if left > 0 && self.ack_deadline == Time::NEVER {
            self.ack_deadline = at
                + gap.times(u64::from(count - left))
                + self.ack_delay.at(self.stream.next - u64::from(left - 1) * len);
        }
        self.unacknowledged = left as u16;
        Some(Taken { count, first, acks })
    }

    /// How many of `count` payloads, as above, arrive before a timer of delayed acknowledgements that one of them starts.
    #[inline(always)]
    fn before_timer(&self, gap: Time, len: u64, count: u32) -> u32 {
        let every = u32::from(self.ack_every);
        let wait = gap.times(u64::from(every));
        match self.ack_delay {
            AckDelay::Fixed(delay) if wait >= delay => 0,
            AckDelay::Fixed(_) => count,
            AckDelay::Uniform { least, .. } if every == 1 || wait < least => count,
            AckDelay::Uniform { .. } => {
                // Segments that start the timer: the first after each that is acknowledged.
                let first = (every - u32::from(self.unacknowledged)) % every;
                let is_short = |index: &u32| self.ack_delay.at(self.stream.next + u64::from(index + 1) * len) <= wait;
                (first..count).step_by(every as usize).find(is_short).unwrap_or(count)
            }
        }
    }

    /// Takes the data of `count` payloads, each acknowledged at once, that extend the most recently changed block, which is also
    /// the last one. Returns `false`, without any effect, if they have to be handled one by one.
    pub(in super::super) fn on_early_train(&mut self, start: u64, len: u32, count: u32, all: D) -> bool {
        let end = start + all.len() as u64;
        let grows = self.stream.last_early().is_some_and(|(left, right)| {
            let is_latest = (left..right).contains(&self.recent[0]);
            is_latest && right == start && all.len() as u64 == u64::from(len) * u64::from(count)
        });
        let is_usual = !self.names_holes && self.hold.is_none() && self.duplicate.is_none() && !self.ack_now;
        if !grows || !is_usual || end > self.stream.next + self.window() || !self.stream.extend_early(all) {
            return false;
        }
        self.recent[0] = end - u64::from(len);
        self.on_ack_sent();
        true
    }
}
