//! Data that a reliable sender gives up because of its age, and whether the receiver has skipped it (as with Forward TSN in RFC
//! 3758).

use std::collections::VecDeque;

use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::time::Time;

use super::config::{AerotpConfig, LARGEST_BUFFER};
use super::segment::FORWARD_BYTES;
use super::write_times::WriteTimes;

/// The position up to which a stream was given up, the peer's acknowledgement of it, and the bytes to report to the
/// application. Without a deadline it is empty and costs nothing. `[V3]`
#[derive(Clone, Debug)]
pub(super) struct Forward(Option<Box<Abandoned>>);

impl MoveOrigin for Forward {
    fn move_origin(&mut self, by: OriginShift) {
        let Forward(given) = self;
        given.move_origin(by);
    }
}

#[derive(Clone, Debug, Default)]
struct Abandoned {
    write_times: WriteTimes,
    /// The age of all data before this position was checked.
    seen: u64,
    /// All data before this position has arrived or was given up.
    to: u64,
    /// The latest cumulative acknowledgement (ACK number 0).
    acknowledged: u64,
    /// Whether the notice is urgent: it was not sent yet, or the link has come up again since.
    is_urgent: bool,
    /// Whether an answer is due, because sent data was given up or the peer was informed.
    is_awaited: bool,
    /// The last position that the peer was asked to skip to, and when; `None` while there is nothing to skip.
    notice: Option<(u64, Time)>,
    /// Interval between two such notices.
    spacing: Time,
    /// Ranges that were given up without having been sent and that the peer has not skipped yet.
    unsent: VecDeque<(u64, u64)>,
    /// Bytes that were given up unsent before those ranges.
    unsent_before: u64,
    /// Bytes that were given up after they were sent; some of them may have arrived.
    sent: u64,
    /// Bytes that the peer has reported as skipped.
    skipped: u64,
    /// Bytes of them that had been sent.
    skipped_sent: u64,
    /// Bytes given up that were not reported to the application yet.
    expired: u64,
}

instants! {
    Abandoned: write_times, notice;
    fixed: seen, to, acknowledged, is_urgent, is_awaited, spacing, unsent, unsent_before, sent, skipped, skipped_sent, expired
}

impl Forward {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        Forward(
            config.deadline_s.map(|deadline| Box::new(Abandoned::new(deadline.time(), config.mack_timeout_s.time()))),
        )
    }

    /// Whether data may be given up at all.
    #[inline]
    pub(super) fn is_possible(&self) -> bool {
        self.0.is_some()
    }

    /// The stream was written up to a position.
    #[inline]
    pub(super) fn on_written(&mut self, now: Time, end: u64) {
        if let Some(given) = &mut self.0 {
            given.write_times.on_written(now, end);
        }
    }

    /// When something becomes too old next.
    #[inline]
    pub(super) fn next_due(&self) -> Time {
        self.0.as_ref().map_or(Time::NEVER, |given| given.write_times.next_due())
    }

    /// The position before which everything is too old, if that is news.
    #[inline]
    pub(super) fn expire(&mut self, now: Time) -> Option<u64> {
        self.0.as_mut().and_then(|given| given.expire(now))
    }

    /// Gives up data that was never sent and reports it to the application at once.
    pub(super) fn give_up_unsent(&mut self, from: u64, to: u64) {
        if let Some(given) = self.0.as_mut().filter(|_| from < to) {
            given.give_up_unsent(from, to);
        }
    }

    /// Gives up `bytes` bytes that were sent and are not known to have arrived. Only the receiver knows which of them arrived.
    pub(super) fn give_up_sent(&mut self, bytes: u64) {
        if let Some(given) = &mut self.0 {
            given.sent += bytes;
            given.is_awaited |= bytes > 0;
        }
    }

    /// Notes that all data before a position has arrived or was given up.
    pub(super) fn go_to(&mut self, to: u64) {
        if let Some(given) = &mut self.0 {
            let was_pending = given.is_pending();
            given.to = given.to.max(to);
            given.is_urgent |= !was_pending && given.is_pending();
        }
    }

    /// Start of the data that is kept; `first` is the start if no data was given up.
    pub(super) fn kept_from(&self, first: u64) -> u64 {
        self.0.as_ref().map_or(first, |given| first.max(given.to))
    }

    /// The first unacknowledged position; `first` is that position if no data was given up.
    pub(super) fn first(&self, first: u64) -> u64 {
        self.0.as_ref().filter(|given| given.is_pending()).map_or(first, |given| first.min(given.acknowledged))
    }

    /// Whether the peer still has to skip data.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.0.as_ref().is_some_and(|given| given.is_pending())
    }

    /// Whether an answer of the peer is due.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.0.as_ref().is_some_and(|given| given.is_awaited && given.is_pending())
    }

    /// Whether it is time to repeat the notice. `[V5]`
    #[inline]
    pub(super) fn is_wanted(&self, now: Time) -> bool {
        self.0.as_ref().is_some_and(|given| given.is_wanted(now))
    }

    /// When the notice has to be sent in a segment of its own, unless another segment carries it before; `patience` is the usual
    /// time of an answer. `[V5]`
    #[inline]
    pub(super) fn alone_at(&self, patience: Time) -> Time {
        self.0.as_ref().map_or(Time::NEVER, |given| given.alone_at(patience))
    }

    /// Returns the position for a notice, if one is due and `room` bytes suffice for it.
    #[inline]
    pub(super) fn tell(&mut self, now: Time, room: u32) -> Option<u64> {
        let given = self.0.as_mut().filter(|given| given.is_pending() && room >= u32::from(FORWARD_BYTES))?;
        (given.is_urgent, given.is_awaited) = (false, true);
        given.notice = Some((given.target(), now));
        Some(given.target())
    }

    /// Handles the link coming up again.
    pub(super) fn on_link_up(&mut self) {
        if let Some(given) = &mut self.0 {
            given.is_urgent |= given.is_pending();
        }
    }

    /// Handles an acknowledgement up to `position` with the number of bytes that the peer has skipped, modulo 2^32. `[V8]`
    #[inline]
    pub(super) fn on_acknowledged(&mut self, position: u64, skipped: Option<u32>) {
        if let Some(given) = &mut self.0 {
            given.on_acknowledged(position, skipped);
        }
    }

    /// Bytes given up that were not reported to the application yet.
    pub(super) fn take_expired(&mut self) -> u64 {
        self.0.as_mut().map_or(0, |given| std::mem::take(&mut given.expired))
    }
}

impl Abandoned {
    fn new(deadline: Time, spacing: Time) -> Self {
        Abandoned { write_times: WriteTimes::new(Some(deadline)), spacing, ..Abandoned::default() }
    }

    fn expire(&mut self, now: Time) -> Option<u64> {
        let too_old = self.write_times.expired(now);
        let is_news = too_old > self.seen.max(self.acknowledged);
        self.seen = self.seen.max(too_old);
        is_news.then_some(too_old)
    }

    fn give_up_unsent(&mut self, from: u64, to: u64) {
        self.expired += to - from;
        match self.unsent.back_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ => self.unsent.push_back((from, to)),
        }
    }

    fn is_pending(&self) -> bool {
        self.to > self.acknowledged
    }

    /// The position for the notice: not beyond the range of sequence numbers that can be compared.
    fn target(&self) -> u64 {
        self.to.min(self.acknowledged + LARGEST_BUFFER)
    }

    fn is_wanted(&self, now: Time) -> bool {
        let is_time = self.notice.is_none_or(|(_, at)| now >= at + self.spacing);
        self.is_pending() && (self.is_urgent || is_time)
    }

    fn alone_at(&self, patience: Time) -> Time {
        if !self.is_pending() {
            return Time::NEVER;
        }
        match self.notice {
            Some((position, at)) if !self.is_urgent => {
                at + if position < self.target() { self.spacing } else { patience.max(self.spacing) }
            }
            _ => Time::ZERO,
        }
    }

    fn on_acknowledged(&mut self, position: u64, skipped: Option<u32>) {
        self.acknowledged = self.acknowledged.max(position);
        self.write_times.forget(self.acknowledged);
        if !self.is_pending() {
            (self.is_urgent, self.is_awaited, self.notice) = (false, false, None);
        }
        while let Some((from, to)) = self.unsent.front_mut()
            && *from < self.acknowledged
        {
            let passed = (*to).min(self.acknowledged) - *from;
            self.unsent_before += passed;
            *from += passed;
            if from == to {
                self.unsent.pop_front();
            }
        }
        // An older acknowledgement has no new information, and the peer cannot skip more than was given up.
        let more = skipped.map_or(0, |skipped| skipped.wrapping_sub(self.skipped as u32) as i32);
        let skipped = self.skipped + u64::try_from(more).unwrap_or(0);
        let of_sent = skipped.saturating_sub(self.unsent_before);
        if (self.skipped_sent..=self.sent).contains(&of_sent) {
            self.skipped = skipped;
            self.expired += of_sent - self.skipped_sent;
            self.skipped_sent = of_sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACING: Time = Time::from_millis(50);
    const ROOM: u32 = 8;

    fn seconds(s: u64) -> Time {
        Time::from_secs(s)
    }

    /// Two seconds for each byte; 300 bytes were written at once, 100 a second later.
    fn forward() -> Forward {
        let mut forward = Forward(Some(Box::new(Abandoned::new(seconds(2), SPACING))));
        forward.on_written(Time::ZERO, 300);
        forward.on_written(seconds(1), 400);
        forward
    }

    #[test]
    fn unsent_data_is_reported_at_once_and_sent_data_when_the_peer_skips_it() {
        let mut forward = forward();
        assert_eq!((forward.next_due(), forward.expire(seconds(1))), (seconds(2), None));
        assert_eq!((forward.expire(seconds(2)), forward.expire(seconds(2))), (Some(300), None));
        forward.give_up_sent(120);
        forward.give_up_unsent(180, 300);
        forward.go_to(300);
        assert_eq!((forward.take_expired(), forward.take_expired()), (120, 0));
        forward.on_acknowledged(40, None);
        assert_eq!((forward.is_pending(), forward.take_expired()), (true, 0));
        forward.on_acknowledged(300, Some(150));
        assert_eq!((forward.is_pending(), forward.take_expired()), (false, 30), "30 of the sent bytes did not arrive");
        forward.on_acknowledged(300, Some(150));
        forward.on_acknowledged(300, None);
        assert_eq!(forward.take_expired(), 0);
    }

    #[test]
    fn the_peer_cannot_skip_more_than_was_given_up() {
        let mut forward = forward();
        assert_eq!(forward.expire(seconds(2)), Some(300));
        forward.give_up_sent(100);
        forward.go_to(300);
        for forged in [101, 1 << 31, u32::MAX] {
            forward.on_acknowledged(200, Some(forged));
            assert_eq!(forward.take_expired(), 0, "{forged}");
        }
        forward.on_acknowledged(300, Some(100));
        assert_eq!(forward.take_expired(), 100);
    }

    #[test]
    fn data_that_has_arrived_does_not_expire() {
        let mut forward = forward();
        forward.on_acknowledged(300, None);
        assert_eq!((forward.expire(seconds(2)), forward.next_due()), (None, seconds(3)));
        forward.on_acknowledged(400, None);
        assert_eq!((forward.expire(seconds(9)), forward.next_due()), (None, Time::NEVER));
    }

    #[test]
    fn the_notice_is_repeated_until_it_is_answered() {
        let mut forward = forward();
        let patience = Time::from_millis(700);
        assert_eq!((forward.alone_at(patience), forward.tell(seconds(1), ROOM)), (Time::NEVER, None));
        assert!(forward.expire(seconds(2)).is_some());
        forward.go_to(300);
        assert!(forward.is_wanted(seconds(2)) && forward.alone_at(patience) == Time::ZERO && !forward.is_awaited());
        assert_eq!((forward.tell(seconds(2), 7), forward.tell(seconds(2), ROOM)), (None, Some(300)));
        assert!(forward.is_awaited() && !forward.is_wanted(seconds(2)) && forward.is_wanted(seconds(2) + SPACING));
        assert_eq!(forward.alone_at(patience), seconds(2) + patience);
        assert_eq!(forward.alone_at(Time::ZERO), seconds(2) + SPACING, "not more often than that");
        forward.go_to(400);
        assert_eq!(forward.alone_at(patience), seconds(2) + SPACING, "the new position counts");
        forward.on_link_up();
        assert_eq!(forward.alone_at(patience), Time::ZERO);
        forward.on_acknowledged(400, Some(0));
        assert_eq!((forward.alone_at(patience), forward.is_awaited()), (Time::NEVER, false));
    }

    #[test]
    fn the_notice_stays_within_comparable_numbers() {
        let mut forward = Forward(Some(Box::new(Abandoned::new(seconds(2), SPACING))));
        forward.on_written(Time::ZERO, 3 << 30);
        assert_eq!(forward.expire(seconds(2)), Some(3 << 30));
        forward.give_up_unsent(0, 3 << 30);
        forward.go_to(3 << 30);
        let mut skipped = 0_u32;
        for step in 1..=3_u64 {
            assert_eq!(forward.tell(seconds(2), ROOM), Some(step << 30));
            skipped = skipped.wrapping_add(1 << 30);
            forward.on_acknowledged(step << 30, Some(skipped));
        }
        assert_eq!((forward.is_pending(), forward.take_expired()), (false, 3 << 30));
    }
}
