//! Reorders a reliable stream and acknowledges it.

use crate::origin::instants;
use crate::payload::Payload;
use crate::protocol::parts::reorder::Reorder;
use crate::time::Time;

use super::super::config::AerotpConfig;
use super::super::echo::Echo;
use super::super::incoming::{Incoming, most_pieces};
use super::super::room::Room;
use super::super::segment::Mack;
use super::super::skipped_data::SkippedData;
use super::report::Report;

/// The receiving half of a reliable stream. `[R1]`
#[derive(Clone, Debug)]
pub(in super::super) struct Receiver<D> {
    pub(super) data: Reorder<D>,
    /// Data that the sender gave up.
    pub(super) skipped_data: SkippedData,
    /// Where the stream ends, once that is known.
    pub(super) end: Option<u64>,
    pub(super) room: Room,
    /// Buffer for a peer that has not yet shown that it receives the answers. `[B7]`
    half_open_bytes: u64,
    pub(super) echo: Echo,
    /// Recent arrivals out of order.
    pub(super) report: Report,
    pub(super) pace: Pace,
    /// Number of segments that no acknowledgement has covered yet.
    pub(super) untold: u64,
    pub(super) deadline: Time,
    pub(super) is_due: bool,
    /// How many more times the last acknowledgement is repeated while no other is due.
    pub(super) repeats: u32,
    /// End of the window that the last acknowledgement announced.
    told_window_end: u64,
}

instants! {
    Receiver<D>: echo, pace, deadline;
    fixed: data, skipped_data, end, room, half_open_bytes, report, untold, is_due, repeats, told_window_end
}

/// How many segments an acknowledgement waits for.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pace {
    given: Option<u64>,
    pub(in super::super) timeout: Time,
    /// Mean time between segments, in ps; unknown before the second one.
    gap: f64,
    latest: Time,
}

instants! { Pace: latest; fixed: given, timeout, gap }

/// Number of repetitions of an acknowledgement that may be the last for some time, so that its loss does not cost a round trip.
/// `[A7]`
pub(super) const REPEATS: u32 = 2;
/// Default limit of segments per acknowledgement.
const MOST_ACKS: f64 = 64.0;

impl Pace {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        Pace {
            given: config.acks_per_mack.map(|acks| acks.whole()),
            timeout: config.mack_timeout_s.time(),
            gap: 0.0,
            latest: Time::ZERO,
        }
    }

    pub(in super::super) fn on_segment(&mut self, now: Time) {
        let gap = now.since(self.latest).as_ps() as f64;
        if self.latest > Time::ZERO {
            self.gap = if self.gap == 0.0 { gap } else { self.gap + (gap - self.gap) / 16.0 };
        }
        self.latest = now;
    }

    /// Number of segments that arrive within the timer that limits the delay; two if the rate is unknown. `[A5]`
    pub(in super::super) fn wanted(&self) -> u64 {
        self.given.unwrap_or_else(|| {
            if self.gap == 0.0 { 2 } else { (self.timeout.as_ps() as f64 / self.gap).clamp(1.0, MOST_ACKS) as u64 }
        })
    }
}

impl<D: Payload> Receiver<D> {
    pub(in super::super) fn new(config: &AerotpConfig) -> Self {
        let room = Room::new(config);
        Receiver {
            data: Reorder::default(),
            skipped_data: SkippedData::default(),
            end: None,
            room,
            half_open_bytes: config.half_open(),
            echo: Echo::default(),
            report: Report::default(),
            pace: Pace::new(config),
            untold: 0,
            deadline: Time::NEVER,
            is_due: false,
            repeats: 0,
            told_window_end: room.bytes(),
        }
    }

    pub(in super::super) fn on_segment(&mut self, now: Time, incoming: Incoming<D>) -> bool {
        let Incoming { position, payload, is_end, repair, timestamp, is_opening } = incoming;
        let end = position + payload.len() as u64;
        let is_beyond_end = self.end.is_some_and(|known| end > known || (is_end && end != known));
        let is_end_before_data = is_end && self.data.early_end().max(self.data.next) > end;
        let is_question = payload.is_empty() && !is_end;
        // Many small pieces far apart would take much more memory than their bytes. `[B6]`
        let most = most_pieces(if is_opening { self.half_open_bytes } else { self.room.bytes() });
        let is_one_too_many = position > self.data.next && self.data.piece_count() >= most;
        let is_outside = end > self.window_end() || is_beyond_end || is_end_before_data || is_one_too_many;
        if repair.is_some() || (is_outside && !is_question) {
            return false;
        }
        if is_end {
            self.end = Some(end);
        }
        let overtaken_by = self.echo.on_segment(now, timestamp);
        let is_known = end <= self.data.next;
        if !is_known && !payload.is_empty() {
            let had = self.here_bytes();
            if position == self.data.next && !self.data.has_gaps() {
                self.data.deliver(payload);
            } else {
                self.data.put(position, payload);
            }
            if overtaken_by > 0 && self.here_bytes() > had {
                self.echo.on_overtaken_data(overtaken_by);
            }
        }
        if position > self.data.next {
            self.report.add(position);
        }
        self.pace.on_segment(now);
        self.untold += 1;
        // A question, and a segment that may be the last, are answered at once. `[A6]`
        let is_enough = self.untold >= self.pace.wanted() || self.report.is_pressing();
        if is_question || is_end || self.is_complete() || is_enough {
            self.is_due = true;
        } else if self.deadline == Time::NEVER || self.untold == 1 {
            self.deadline = now + self.pace.timeout;
        }
        self.repeats = if self.data.has_gaps() || self.end.is_some() { REPEATS } else { 0 };
        true
    }

    /// Whether a sender that was blocked by the window must learn of the new room after data up to `next` has arrived.
    #[inline]
    pub(super) fn tells_of_room(&self, next: u64, window_end: u64) -> bool {
        let grown = window_end.saturating_sub(self.told_window_end);
        let was_small = self.told_window_end.saturating_sub(next) < self.room.bytes() / 4;
        was_small && grown >= self.room.bytes() / 2 && self.echo.is_known()
    }

    /// The sender has given up missing data before a position. Returns whether that position is possible. `[V7]`
    pub(in super::super) fn go_forward(&mut self, to: u64) -> bool {
        let (is_within, most) = (self.end.is_none_or(|end| to <= end), most_pieces(self.room.bytes()));
        self.is_due |= is_within && self.skipped_data.skip_to(&mut self.data, to, most);
        is_within
    }

    pub(in super::super) fn on_timeout(&mut self, now: Time) {
        if now >= self.deadline {
            self.deadline = Time::NEVER;
            self.is_due = true;
            if self.untold == 0 {
                self.repeats = self.repeats.saturating_sub(1);
            }
        }
    }

    #[inline]
    pub(in super::super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// The sender requests a window of `bytes` beyond the received data. `[W1]`
    pub(in super::super) fn make_room(&mut self, bytes: u64) {
        self.is_due |= self.room.grow(bytes, self.data.unread_bytes);
    }

    /// The length of the window when all data was read.
    pub(in super::super) fn buffer_bytes(&self) -> u64 {
        self.room.bytes()
    }

    /// How much of the stream has arrived, in order or not.
    pub(super) fn here_bytes(&self) -> u64 {
        self.data.next + self.data.held_bytes()
    }

    /// Position after the last byte that the buffer has room for.
    pub(super) fn window_end(&self) -> u64 {
        self.data.next + self.room.bytes().saturating_sub(self.data.unread_bytes)
    }

    /// Whether an acknowledgement is due.
    pub(in super::super) fn is_mack_due(&self) -> bool {
        self.is_due && self.echo.is_known()
    }

    pub(in super::super) fn next_mack(&mut self, now: Time, number: impl Fn(u64) -> u32) -> Option<(u64, Box<Mack>)> {
        if !self.is_due {
            return None;
        }
        let mut mack = self.echo.mack(now)?;
        (self.is_due, self.untold) = (false, 0);
        self.deadline = if self.repeats > 0 { now + self.pace.timeout } else { Time::NEVER };
        let ack = self.acknowledged();
        let window_end = self.window_end();
        self.told_window_end = window_end;
        mack.window = u32::try_from(window_end.saturating_sub(ack)).unwrap_or(u32::MAX);
        self.report.write(&self.data, self.end, &mut mack, number);
        Some((ack, mack))
    }

    /// The position up to which all data has arrived; the end of the stream takes one. `[A1]`
    fn acknowledged(&self) -> u64 {
        self.data.next + u64::from(self.is_complete())
    }

    pub(in super::super) fn read(&mut self) -> Option<D> {
        let data = self.skipped_data.read(&mut self.data)?;
        if self.tells_of_room(self.data.next, self.window_end()) {
            self.is_due = true;
            self.repeats = REPEATS;
        }
        Some(data)
    }

    #[inline]
    pub(in super::super) fn may_have_event(&self) -> bool {
        self.end.is_some() || !self.skipped_data.is_empty()
    }

    pub(in super::super) fn take_skipped(&mut self) -> Option<u64> {
        self.skipped_data.take(&self.data)
    }

    /// The next acknowledgement's report on overtaken segments. `[A10]`
    pub(in super::super) fn take_overtaken(&mut self) -> Option<u32> {
        self.echo.take_overtaken()
    }

    pub(in super::super) fn skipped(&self) -> Option<u32> {
        self.skipped_data.number()
    }

    #[inline]
    pub(in super::super) fn next_position(&self) -> u64 {
        self.data.next
    }

    pub(in super::super) fn is_complete(&self) -> bool {
        self.end == Some(self.data.next)
    }

    pub(in super::super) fn is_read(&self) -> bool {
        self.is_complete() && self.data.unread_bytes == 0 && self.skipped_data.is_empty()
    }

    pub(in super::super) fn peak_bytes(&self) -> u64 {
        self.data.peak_early_bytes
    }
}
