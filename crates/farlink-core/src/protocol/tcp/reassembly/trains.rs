//! Trains of segments at the receiver.

use crate::payload::Payload;
use crate::time::Time;

use super::Receiver;

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

    /// Takes `count` payloads of `len` bytes each that follow in order, `gap` apart from `at` on, each of which is read at once.
    /// Returns the index of the first that is acknowledged (after it, every [`ack_every`](Self::ack_every)-th is) and the number
    /// of acknowledgements. Returns `None`, without any effect, if they have to be handled one by one.
    pub(in super::super) fn on_data_train(&mut self, at: Time, gap: Time, len: u32, count: u32) -> Option<(u32, u32)> {
        let (len, every) = (u64::from(len), u32::from(self.ack_every));
        let first = every - u32::from(self.unacknowledged) - 1;
        // Far enough from a window update between two acknowledgements.
        let quarter = self.buffer_bytes / 4;
        let is_roomy = (u64::from(every) + 1) * len + quarter <= self.buffer_bytes
            && self.stream.next + u64::from(first + 1) * len + quarter <= self.advertised_end;
        let is_usual = !self.stream.has_gaps() && self.stream.unread_bytes == 0 && !self.ack_now;
        if !is_usual || !is_roomy || gap.times(u64::from(every)) >= self.ack_delay {
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
            self.ack_deadline = at + gap.times(u64::from(count - left)) + self.ack_delay;
        }
        self.unacknowledged = left as u16;
        Some((first, acks))
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
