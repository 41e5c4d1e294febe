//! Datagrams that are sent several times: when each was first sent, and whether a copy of it has arrived.

use farlink_core::Time;

use crate::engine::fifo::Fifo;

/// Number of datagrams that are remembered, as many as the receiver remembers.
const REMEMBERED: u32 = 1 << 20;

/// The datagrams of a flow that may still arrive, by number.
#[derive(Default)]
pub(super) struct Numbered {
    /// The number of the first one.
    start: u32,
    sent: Fifo<Sent>,
}

#[derive(Clone, Copy, Default)]
struct Sent {
    first: Time,
    has_arrived: bool,
}

impl Numbered {
    /// A datagram is sent; whether it is a copy.
    pub(super) fn on_transmit(&mut self, now: Time, number: u32) -> bool {
        if number.wrapping_sub(self.start) < self.sent.len() as u32 || number.wrapping_sub(self.start) > u32::MAX / 2 {
            return true;
        }
        while self.sent.front().is_some_and(|sent| sent.has_arrived) || self.sent.len() as u32 >= REMEMBERED {
            self.sent.drop_front();
            self.start = self.start.wrapping_add(1);
        }
        *self.sent.push_slot() = Sent { first: now, has_arrived: false };
        false
    }

    /// A datagram arrives; when it was first sent, if no copy of it has arrived before.
    pub(super) fn on_arrival(&mut self, number: u32) -> Option<Time> {
        let sent = self.sent.get_mut(number.wrapping_sub(self.start) as usize)?;
        let is_first = !std::mem::replace(&mut sent.has_arrived, true);
        is_first.then_some(sent.first)
    }
}
