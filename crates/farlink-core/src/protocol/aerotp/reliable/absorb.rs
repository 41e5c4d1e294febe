//! Data for which no acknowledgement becomes due: a shortcut of the simulator.

use crate::payload::Payload;
use crate::time::Time;

use super::super::absorbed::Absorbed;
use super::super::incoming::most_pieces;
use super::receiver::{Pace, REPEATS, Receiver};

impl<D: Payload> Receiver<D> {
    /// Takes the next data in order and counts it as read, if no acknowledgement becomes due; without any effect otherwise. As
    /// [`on_segment`](Self::on_segment), then [`read`](Self::read).
    pub(in super::super) fn absorb(&mut self, now: Time, bytes: u64, timestamp: u32) -> Option<Absorbed> {
        let next = self.data.next + bytes;
        let is_in_order = !self.data.has_gaps() && self.data.unread_bytes == 0 && self.skipped_data.is_empty();
        if !is_in_order || next > self.window_end() || self.report.is_pressing() {
            return None;
        }
        let pace = self.pace_without_mack(now)?;
        if self.tells_of_room(next, next + self.room.bytes()) {
            return None;
        }
        let overtaken_by = self.echo.on_segment(now, timestamp);
        if overtaken_by > 0 {
            self.echo.on_overtaken_data(overtaken_by);
        }
        self.data.pass(bytes);
        self.repeats = 0;
        Some(Absorbed { bytes, has_set_timer: self.count(now, pace) })
    }

    /// As [`absorb`](Self::absorb), for data behind a gap.
    pub(in super::super) fn absorb_early(
        &mut self,
        now: Time,
        position: u64,
        payload: &D,
        timestamp: u32,
    ) -> Option<Absorbed> {
        let end = position + payload.len() as u64;
        let has_place = self.data.piece_count() < most_pieces(self.room.bytes());
        if !has_place || end > self.window_end() || self.report.is_nearly_pressing() {
            return None;
        }
        let pace = self.pace_without_mack(now)?;
        let overtaken_by = self.echo.on_segment(now, timestamp);
        let had = self.here_bytes();
        self.data.put(position, payload.clone());
        if overtaken_by > 0 && self.here_bytes() > had {
            self.echo.on_overtaken_data(overtaken_by);
        }
        self.report.add(position);
        self.repeats = REPEATS;
        Some(Absorbed { bytes: 0, has_set_timer: self.count(now, pace) })
    }

    /// The pace after one more segment, if that makes no acknowledgement due.
    #[inline]
    fn pace_without_mack(&self, now: Time) -> Option<Pace> {
        let mut pace = self.pace;
        pace.on_segment(now);
        (!self.is_due && self.end.is_none() && self.untold + 1 < pace.wanted()).then_some(pace)
    }

    /// Counts a segment that no acknowledgement covers yet; returns whether the timer was set.
    #[inline]
    fn count(&mut self, now: Time, pace: Pace) -> bool {
        (self.pace, self.untold) = (pace, self.untold + 1);
        let sets_timer = self.deadline == Time::NEVER || self.untold == 1;
        if sets_timer {
            self.deadline = now + pace.timeout;
        }
        sets_timer
    }
}
