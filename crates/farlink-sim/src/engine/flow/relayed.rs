//! A connection of a chain, whose ends are read and written by relays.

use farlink_core::{Event, Payload, Stream, Time, Virtual};

use super::super::path::OnLink;
use super::super::relay::{Relay, RelayedFlow};
use super::Flow;

impl<E: Stream<Virtual>> Flow<E>
where
    E::Packet: OnLink,
{
    /// The relay at side 1 reads while it has room.
    #[inline(never)]
    pub(super) fn read_for_relay(&mut self, now: Time) {
        loop {
            let Some(relay) = &mut self.relay else { return };
            if relay.room == 0 {
                relay.is_drained = false;
                return;
            }
            let Some(data) = self.ends[1].read() else {
                relay.is_drained = true;
                return;
            };
            let bytes = data.len() as u64;
            relay.on_read(bytes);
            self.on_read(now, bytes);
        }
    }

    /// Queues an event for the relay; `true` if the endpoint may have more to send now.
    #[inline(never)]
    pub(super) fn on_event_for_relay(&mut self, side: usize, event: Event, now: Time) -> bool {
        let Some(relay) = &mut self.relay else { return false };
        match event {
            Event::Skipped(bytes) if side == 1 => {
                relay.on_skipped(bytes);
                self.on_skipped(now, bytes);
                true
            }
            Event::Finished if side == 1 => {
                relay.events.push((side, event));
                self.ends[1].close(now);
                true
            }
            _ => {
                relay.events.push((side, event));
                false
            }
        }
    }

    /// Calls `each` with the length and the time of every first transmission since the last call.
    pub(in super::super) fn new_transmissions(&mut self, mut each: impl FnMut(u64, Time)) {
        let (Some(relay), Some(end)) = (&mut self.relay, self.sent_end) else { return };
        // Nothing is delivered before the first call, so `delivered_position` is where the stream begins.
        let mut known = relay.sent_end.replace(end).unwrap_or(self.delivered_position);
        let first = self.pending.partition_point(|pending| pending.end.wrapping_sub(known) as i32 <= 0);
        for index in first..self.pending.len() {
            if let Some(pending) = self.pending.get(index) {
                each(u64::from(pending.end.wrapping_sub(known)), pending.sent);
                known = pending.end;
            }
        }
    }
}

impl<E: Stream<Virtual>> RelayedFlow for Flow<E>
where
    E::Packet: OnLink,
{
    fn relay(&mut self) -> Option<&mut Relay> {
        self.relay.as_deref_mut()
    }

    fn write(&mut self, now: Time, bytes: u32) -> u64 {
        self.ends[0].write(now, &mut Virtual(bytes)) as u64
    }

    fn close(&mut self, now: Time) {
        self.ends[0].close(now);
    }

    fn settled_bytes(&self) -> u64 {
        self.ends[0].settled_bytes()
    }

    fn read(&mut self, now: Time) {
        Flow::read(self, now);
    }

    fn new_transmissions(&mut self, each: &mut dyn FnMut(u64, Time)) {
        Flow::new_transmissions(self, each);
    }

    fn take_down(&mut self, side: usize) {
        Flow::take_down(self, side);
    }

    fn is_up(&self, side: usize) -> bool {
        self.route.is_up(side)
    }

    fn take_reset(&mut self) -> Option<usize> {
        Flow::take_reset(self)
    }

    fn has_ended(&self) -> bool {
        Flow::has_ended(self)
    }

    fn spec(&self) -> usize {
        self.spec
    }

    fn restart_transfer(&mut self, side: usize, asked_bytes: Option<u64>, now: Time) {
        Flow::restart_transfer(self, side, asked_bytes, now);
    }
}
