//! Restarts of an endpoint during a run.

use farlink_core::{Stream, Time, Virtual};

use super::super::fifo::Fifo;
use super::super::path::OnLink;
use super::super::source::Source;
use super::super::timers::{Alarm, Kind, Timers};
use super::Flow;

impl<E: Stream<Virtual>> Flow<E>
where
    E::Packet: OnLink,
{
    /// An endpoint goes down, and its timer is cancelled.
    pub(in super::super) fn take_down(&mut self, side: usize) {
        self.route.take_down(side);
        self.armed[side] = Time::NEVER;
    }

    /// Replaces an endpoint by a new one.
    pub(in super::super) fn replace(&mut self, side: usize, end: E) {
        let gone = std::mem::replace(&mut self.ends[side], end).counters();
        let former = &mut self.former;
        if side == 0 {
            former.timeouts += gone.timeouts - self.counted_before.timeouts;
            self.counted_before.timeouts = 0;
        }
        former.peak_reorder_bytes = former.peak_reorder_bytes.max(gone.peak_reorder_bytes);
        former.peak_send_buffer_bytes = former.peak_send_buffer_bytes.max(gone.peak_send_buffer_bytes);
        self.armed[side] = Time::NEVER;
        self.route.bring_up(side);
    }

    /// The next side whose connection was reset by a restarted peer; each reset is returned once.
    pub(in super::super) fn take_reset(&mut self) -> Option<usize> {
        let side = self.was_reset.iter().position(|&was_reset| was_reset)?;
        self.was_reset[side] = false;
        Some(side)
    }

    /// Whether the sender has finished the connection or given it up.
    pub(in super::super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The application at one side restarts, and the transfer starts again: the data delivered so far is discarded.
    pub(in super::super) fn restart_transfer(&mut self, side: usize, asked_bytes: Option<u64>, now: Time) {
        self.counts.discarded_bytes += std::mem::take(&mut self.counts.delivered_bytes);
        self.undelivered = asked_bytes;
        self.finished = None;
        self.delivered_position = self.begin;
        if side == 0 {
            self.sent_end = None;
            self.pending = Fifo::default();
            self.restarted_at = Some(now);
        }
    }

    /// The application at side 0 starts again.
    pub(in super::super) fn begin_source(
        &mut self,
        source: Source,
        now: Time,
        flow: u32,
        kind: u8,
        timers: &mut Timers,
    ) {
        self.source = source;
        self.source_due = now;
        timers.push(now, Alarm { event: Kind::Source, kind, side: 0, flow });
    }
}
