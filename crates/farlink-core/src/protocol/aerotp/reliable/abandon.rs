//! How a sender of the reliable modes gives up data that is too old.

use crate::payload::Payload;
use crate::time::Time;

use super::super::outgoing::Outgoing;
use super::sender::Sender;

impl<D: Payload> Sender<D> {
    /// Gives up data that was written too long ago, whether it was sent or not. `[V3]`
    #[inline]
    pub(super) fn give_up(&mut self, now: Time) {
        let Some(to) = self.forward.expire(now) else { return };
        let unsent = to.saturating_sub(self.next).min(self.unsent_bytes);
        self.forward.give_up_unsent(self.next, self.next + unsent);
        self.unsent.advance(unsent as usize);
        self.unsent_bytes -= unsent;
        self.next += unsent;
        let (sent, cut) = self.flight.abandon(to);
        self.forward.give_up_sent(sent);
        self.forward.go_to(to);
        self.copies.follow(to, cut);
        self.account.in_flight_bytes = self.flight.bytes;
        self.look_for_copy(now); // the chosen piece may be gone
    }

    /// A segment that only says where the stream continues, and requests an answer.
    pub(super) fn forward_alone(&self) -> Outgoing<D> {
        Outgoing { position: self.first, payload: D::default(), is_end: false, repair: None }
    }

    /// The position at which the stream continues, if the peer has to be told and there is room for it.
    #[inline]
    pub(in super::super) fn tell_forward(&mut self, now: Time, room: u32) -> Option<u64> {
        self.forward.tell(now, room)
    }

    pub(in super::super) fn take_expired(&mut self) -> u64 {
        self.forward.take_expired()
    }
}
