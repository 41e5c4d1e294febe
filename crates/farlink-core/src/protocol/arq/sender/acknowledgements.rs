//! Handling of acknowledgements, and release of acknowledged frames.

use crate::payload::Payload;
use crate::time::Time;

use super::super::frame::Blocks;
use super::{Kind, Sender, State};

/// The content of an acknowledgement.
pub(in crate::protocol::arq) struct AckFields<'a> {
    pub(in crate::protocol::arq) number: u32,
    pub(in crate::protocol::arq) is_single: bool,
    pub(in crate::protocol::arq) blocks: &'a Blocks,
    /// The round-trip time from the echoed timestamp, if the peer echoed one.
    pub(in crate::protocol::arq) echoed: Option<Time>,
}

/// The progress that an acknowledgement made.
#[derive(Clone, Copy, Debug, Default)]
struct AckProgress {
    frames: u64,
    /// Bytes of data in the newly acknowledged frames.
    bytes: u64,
    /// When the latest of them was sent, among those that were sent only once.
    sent: Option<Time>,
}

impl<D: Payload> Sender<D> {
    /// Handles an acknowledgement.
    #[inline]
    pub(in crate::protocol::arq) fn handle_ack(&mut self, now: Time, fields: &AckFields<'_>) {
        let mut progress = AckProgress::default();
        let ahead = self.numbers.ahead(fields.number, self.una);
        if fields.is_single {
            if ahead < self.slots.len() as u64 {
                self.mark(ahead as usize, &mut progress);
            }
        } else if ahead <= self.slots.len() as u64 {
            for index in 0..ahead as usize {
                self.mark(index, &mut progress);
            }
        }
        if !fields.blocks.is_empty() {
            self.mark_blocks(fields.blocks, &mut progress);
        }
        if progress.frames == 0 {
            return;
        }
        if let Some(length) = &mut self.length {
            length.on_acknowledged(now, progress.frames, progress.bytes);
        }
        self.advance();
        self.timeouts_in_a_row = 0;
        self.last_activity = now;
        self.is_enquiry_due = false;
        //= https://www.rfc-editor.org/rfc/rfc7323#section-4.1
        //# A TSecr value received in a segment MAY be used to update the averaged RTT measurement only if the segment
        //# advances the left edge of the send window, i.e., SND.UNA is increased.
        // With blocks and single acknowledgements: only if it acknowledges new data.
        if let Some(round_trip) = fields.echoed.or(progress.sent.map(|sent| now.since(sent))) {
            self.rto.sample(now, round_trip);
        }
    }

    #[inline]
    fn mark(&mut self, index: usize, progress: &mut AckProgress) {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.state != State::Acknowledged) else { return };
        slot.state = State::Acknowledged;
        self.unacknowledged -= 1;
        progress.frames += 1;
        progress.bytes += if slot.kind == Kind::Data { u64::from(slot.len) } else { 0 };
        //= https://www.rfc-editor.org/rfc/rfc6298#section-3
        //# RTT samples MUST NOT be made using segments that were retransmitted (and thus for which it is ambiguous whether
        //# the reply was for the first instance of the packet or a later instance).
        if slot.transmissions == 1 {
            progress.sent = progress.sent.max(Some(slot.sent));
        }
    }

    fn mark_blocks(&mut self, blocks: &Blocks, progress: &mut AckProgress) {
        let frames = self.slots.len() as u64;
        for block in blocks.iter() {
            let (left, right) = (self.numbers.ahead(block.left, self.una), self.numbers.ahead(block.right, self.una));
            if left >= right || right > frames {
                continue; // old, or never sent
            }
            let (left, right) = (self.una + left, self.una + right);
            let mut number = self.reported.end_of_run(left);
            if number >= right {
                continue;
            }
            while number < right {
                self.mark((number - self.una) as usize, progress);
                number = self.reported.end_of_run(number + 1);
            }
            self.reported.insert(left, right);
        }
    }

    /// Releases acknowledged frames.
    #[inline]
    pub(super) fn advance(&mut self) {
        while let Some(slot) = self.slots.front().filter(|slot| slot.state == State::Acknowledged) {
            self.acknowledged_end = slot.start + u64::from(slot.len);
            self.slots.pop_front();
            self.una += 1;
        }
        self.cursor = self.cursor.max(self.una);
        self.buffer.advance((self.acknowledged_end - self.buffer_start) as usize);
        self.buffer_start = self.acknowledged_end;
        self.reported.remove_before(self.una);
        self.drop_stale_transmissions();
        self.drop_stale_repeats();
    }
}
