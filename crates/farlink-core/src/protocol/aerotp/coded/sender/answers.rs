//! Handling of the receiver's reports: the symbols that each block needs, and the losses.

use crate::payload::Payload;
use crate::time::Time;

use super::super::super::clock::{span, ticks};
use super::super::super::mack_fields::MackFields;
use super::super::super::rate::ReportTimes;
use super::{Sender, Transmission};

impl<D: Payload> Sender<D> {
    pub(in super::super::super) fn on_mack(&mut self, now: Time, mack: &MackFields) {
        self.silent_since = now;
        self.is_silent = false;
        self.opening.at = Time::NEVER;
        let is_news = mack.echo > self.latest_echo || self.round_trip.smoothed().is_none();
        if is_news {
            self.round_trip.sample(mack.round_trip);
            self.round_trip.answered_after(span(ticks(now).saturating_sub(mack.echo)));
            self.account.latest_round_trip = Some(mack.round_trip);
            self.learn(now, mack);
            self.latest_echo = mack.echo;
        }
        let is_latest = mack.echo >= self.latest_echo;
        for &(start, missing) in mack.deficits() {
            let missing = u32::try_from(missing).unwrap_or(u32::MAX);
            if let Some(block) = self.block(start)
                && block.bytes > 0
            {
                block.told = Some(block.missing().min(missing));
                if is_latest {
                    block.unreported = 0;
                }
            }
        }
        self.window_end = self.window_end.max(mack.window_end);
        self.first = self.first.max(mack.ack);
        self.forward.on_acknowledged(mack.ack, mack.skipped);
        while let Some(block) = self.blocks.front()
            && block.end() <= mack.ack
            && !block.has_unsent()
        {
            self.owed -= u64::from(block.owed);
            self.blocks.pop_front();
        }
        if self.unsent_bytes > 0 && self.source_at() == Time::NEVER {
            self.close_last(now); // the peer's window stays full until it is complete
        }
        self.settle_all(now);
        self.outcomes.on_report(ReportTimes { timeout: self.patience(), spacing: Time::ZERO });
        if self.is_stuck() {
            self.ask = self.ask.max(now + self.patience());
        }
    }

    /// Segments sent before the one that the peer echoes have arrived or are lost. `[K10]`, `[K11]`
    pub(super) fn learn(&mut self, now: Time, mack: &MackFields) {
        let arrived = u64::from(mack.arrived.wrapping_sub(self.arrived));
        self.arrived = mack.arrived;
        self.reordering.on_mack(now, mack.overtaken_by, self.patience());
        let (mut segments, mut payload_bytes) = (0, 0);
        while let Some(&Transmission { sent, start, payload_bytes: bytes }) = self.by_time.front()
            && self.reordering.is_decided(sent, mack.echo)
        {
            let is_echoed = sent == mack.echo;
            self.by_time.pop_front();
            let is_in_flight = self.expired == 0;
            self.expired = self.expired.saturating_sub(1);
            if is_in_flight && let Some(block) = self.block(start) {
                block.in_flight -= 1;
                block.unreported += 1;
            }
            if bytes > 0 {
                self.sent_times.push(sent);
                segments += 1;
                payload_bytes += u64::from(bytes);
            }
            if is_echoed {
                break;
            }
        }
        let bits = (payload_bytes + segments * self.shape.header_bytes) * 8;
        // Which of them were lost is not known, only how many: each is taken to have arrived in part.
        let share = self.loss.add(segments, bits, arrived) as f32 / segments.max(1) as f32;
        for sent in self.sent_times.drain(..) {
            self.outcomes.add(sent, share);
        }
        if let Some(length) = &mut self.length {
            let lost = segments.saturating_sub(arrived);
            let mean = payload_bytes.checked_div(segments).unwrap_or(0);
            length.on_acknowledged(now, segments - lost, mean * (segments - lost));
            for _ in 0..lost {
                length.on_lost(now, mean as u32);
            }
        }
        self.follow_length(now);
    }
}
