//! The number of repair symbols owed to each block, and their transmission.

use crate::payload::Payload;
use crate::time::Time;

use super::super::super::clock::{span, ticks};
use super::super::super::outgoing::Outgoing;
use super::super::needed::needed;
use super::{Sender, Transmission};

/// Number of symbols sent to get a report on a block, if none has arrived although the whole block was sent.
const MOST_UNREPORTED: u32 = 32;
/// `[K9]` Symbols for an incomplete block suffice with a failure probability that is smaller by this factor than that of a whole
/// block: they cost less, and other blocks wait for it.
const FAILURE_DIVISOR: f64 = 8.0;
/// Completion probability of a block while more data waits.
const EVEN: f64 = 0.5;

impl<D: Payload> Sender<D> {
    /// The next repair symbol of a block.
    pub(super) fn repair(&mut self, index: usize, now: Time) -> Outgoing<D> {
        let block = &mut self.blocks[index];
        block.in_flight += 1;
        block.last_sent = ticks(now);
        self.owed -= u64::from(block.owed.min(1));
        block.owed = block.owed.saturating_sub(1);
        let (start, is_end) = (block.start, block.is_end);
        let (payload, repair) = if block.bytes == 0 {
            (D::default(), None)
        } else {
            let (payload, repair) = block.next_repair::<D>();
            (payload, Some(repair))
        };
        let payload_bytes = payload.len() as u32;
        self.by_time.push_back(Transmission { sent: ticks(now), start, payload_bytes });
        Outgoing { position: start, payload, is_end, repair }
    }

    /// Decides how many symbols to send for a block. `[K7]`, `[K9]`
    pub(super) fn settle(&mut self, index: usize, now: Time) {
        // The link would be idle otherwise.
        let is_idle = self.source_at() == Time::NEVER;
        let bits = (u64::from(self.blocks[index].symbol_bytes) + self.shape.header_bytes) * 8;
        let patience = self.patience();
        let block = &mut self.blocks[index];
        let mut is_report_lost = false;
        if block.unreported > 0 {
            // After twice the usual time of an answer the report must be lost.
            let due = span(block.last_sent) + patience.times(2);
            if now >= due {
                (block.unreported, is_report_lost) = (0, true);
            } else {
                self.report_due = self.report_due.min(due);
            }
        }
        self.owed -= u64::from(block.owed);
        if !block.is_closed || block.has_unsent() {
            block.owed = 0;
            return;
        }
        let is_answered = block.in_flight + block.unreported == 0;
        let is_first = !std::mem::replace(&mut block.is_again, true);
        // Its symbols should have been answered by now, but no report on the block has arrived.
        block.is_unreported = block.told.is_none() && (block.is_unreported || (!is_first && is_answered));
        let decides = is_first || is_answered || is_idle;
        if decides {
            block.completion = match (is_first, is_idle) {
                (true, false) => EVEN,
                (true, true) => self.shape.completion,
                (false, _) => 1.0 - (1.0 - self.shape.completion) / FAILURE_DIVISOR,
            };
        }
        if decides || block.owed > 0 {
            let all = needed(block.missing(), self.loss.of(bits as f64), block.completion);
            let mut more = all.saturating_sub(block.in_flight + block.unreported);
            if block.is_unreported || is_report_lost {
                more = more.min(MOST_UNREPORTED.saturating_sub(block.in_flight));
            }
            block.owed = if decides { more } else { more.min(block.owed) };
        }
        self.owed += u64::from(block.owed);
    }

    pub(super) fn settle_all(&mut self, now: Time) {
        self.report_due = Time::NEVER;
        for index in 0..self.blocks.len() {
            self.settle(index, now);
        }
    }
}
