//! How a sender of the coded mode gives up data that is too old.

use crate::payload::Payload;
use crate::time::Time;

use super::super::super::outgoing::Outgoing;
use super::super::outbound::Outbound;
use super::Sender;

impl<D: Payload> Sender<D> {
    /// Gives up blocks whose data has all expired, and expired data outside blocks. A block with some recent data is
    /// kept whole, because the same repair symbols recover all of it. `[V3]`
    pub(super) fn give_up(&mut self, now: Time) {
        let Some(too_old) = self.forward.expire(now) else { return };
        let mut to = None;
        while let Some(block) = self.blocks.front()
            && block.bytes > 0
            && block.start + block.bytes <= too_old
        {
            let sent_bytes = block.possibly_arrived_bytes();
            let (sent_to, end) = (block.start + sent_bytes, block.start + block.bytes);
            self.forward.give_up_sent(sent_bytes);
            self.forward.give_up_unsent(sent_to, end);
            self.owed -= u64::from(block.owed);
            to = Some(end);
            let has_end = block.is_end;
            self.blocks.pop_front();
            if has_end {
                self.blocks.push_front(Outbound::end_only(end, now));
                self.next = self.next.max(end + 1);
            }
        }
        if self.blocks.is_empty() {
            let from = self.next.max(to.unwrap_or(0));
            let unsent = too_old.saturating_sub(from).min(self.unsent_bytes);
            self.forward.give_up_unsent(from, from + unsent);
            to = if unsent > 0 { Some(from + unsent) } else { to };
            self.unsent_bytes -= unsent;
            let mut left = unsent as usize;
            while left > 0
                && let Some(data) = self.unsent.front_mut()
            {
                left -= data.split_to(data.len().min(left)).len();
                if data.is_empty() {
                    self.unsent.pop_front();
                }
            }
        }
        if let Some(to) = to {
            self.next = self.next.max(to);
            self.forward.go_to(to);
            self.settle_all(now);
        }
    }

    /// A segment that only says where the stream continues, and requests an answer.
    pub(super) fn forward_alone(&self) -> Outgoing<D> {
        Outgoing { position: self.first, payload: D::default(), is_end: false, repair: None }
    }

    /// The position at which the stream continues, if the peer has to be told and there is room for it.
    #[inline]
    pub(in super::super::super) fn tell_forward(&mut self, now: Time, room: u32) -> Option<u64> {
        self.forward.tell(now, room)
    }

    pub(in super::super::super) fn take_expired(&mut self) -> u64 {
        self.forward.take_expired()
    }
}
