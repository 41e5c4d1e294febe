//! Moves of the origin of a connection's clock.

use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::payload::Payload;

use super::Connection;

impl<D: Payload> Connection<D> {
    /// The caller's clock reads less by `by` from now on. All instants that the connection knows move with it, and its timestamps
    /// continue, so that the peer notices nothing. A connection of a driver whose clock has been moved before gets the sum of these
    /// moves before it is used. `[L15]`
    ///
    /// Instants before the new origin count as the origin. Therefore the clock should still read more than
    /// [`LONGEST_ROUND_TRIP`](super::super::AerotpConfig::LONGEST_ROUND_TRIP) afterwards, and more than the longest time of the
    /// configuration. With less, answers to segments that were sent before the new origin are dropped, and timers that began before
    /// it run late. [`OriginShift::due`] leaves 50 days.
    pub fn move_origin(&mut self, by: OriginShift) {
        MoveOrigin::move_origin(self, by);
    }
}

instants! {
    Connection<D>: errors, sending, receiving, rate, way_back, mack_pacer, window_requests, peer, challenge, clock, moved, last_sign,
    last_received, asked, end_sent;
    ticks: first_sent, high_water_marks;
    fixed: config, constants, size, mode, mode_changes_made, lifecycle, is_passive, told, marked, damaged, tag, initial, reset, allowance,
    confirmation, is_question_due, is_proof_due, is_link_down, pending_events, dropped, #[cfg(test)] without
}
