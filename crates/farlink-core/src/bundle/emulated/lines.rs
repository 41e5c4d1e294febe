//! The lines of an emulated bundle, as its sender sees them.

use super::super::calls::Calls;
use super::super::fragment::Fragment;
use super::super::lines::Lines;
use super::super::piece::Piece;
use super::line::Line;
use crate::time::Time;

/// Weight of the prior for a line's rate of drops: the line's own drops count for more once it was connected for longer than
/// this.
const PRIOR: Time = Time::from_secs(3000);

/// Emulated lines and their calls.
#[derive(Debug)]
pub(super) struct EmulatedLines<D> {
    pub(super) lines: Vec<Line<D>>,
    pub(super) calls: Option<Calls>,
}

impl<D> Lines<D> for EmulatedLines<D> {
    fn count(&self) -> usize {
        self.lines.len()
    }

    fn is_up(&self, line: usize) -> bool {
        self.lines[line].is_up
    }

    fn is_idle(&self, line: usize, now: Time) -> bool {
        self.lines[line].is_idle(now)
    }

    fn has_room(&self, line: usize, now: Time, bytes: u32) -> bool {
        self.lines[line].has_room(now, bytes)
    }

    fn room_at(&self, line: usize, now: Time, bytes: u32) -> Time {
        self.lines[line].room_at(now, bytes)
    }

    fn is_free(&self, line: usize) -> bool {
        self.lines[line].is_free()
    }

    fn waiting_bytes(&self, line: usize, now: Time) -> u64 {
        self.lines[line].waiting_bytes(now)
    }

    fn ready(&self, line: usize, now: Time) -> Time {
        self.lines[line].ready(now)
    }

    fn arrival(&self, line: usize, now: Time, bytes: u32) -> Time {
        self.lines[line].arrival(now, bytes)
    }

    fn bytes_per_s(&self, line: usize) -> f64 {
        self.lines[line].bytes_per_s()
    }

    fn drop_rate(&self, line: usize, now: Time) -> f64 {
        self.calls.as_ref().map_or(0.0, |calls| calls.drop_rate(line, now, PRIOR))
    }

    fn take(&mut self, line: usize, now: Time, fragment: Fragment<Piece<D>>, bytes: u32) {
        self.lines[line].take(now, fragment, bytes);
    }
}
