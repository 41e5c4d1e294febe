//! A connection's state of its peer, and how it distinguishes the peer's segments from those of past connections.

use crate::origin::{MoveOrigin, MoveTicks, OriginShift, instants};
use crate::time::Time;

use super::clock::HALF_ROUND;
use super::segment::{Flags, Segment};

/// The latest timestamp that was received, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latest {
    pub(super) stamp: u32,
    pub(super) at: Time,
}

instants! { Latest: at; fixed: stamp }

impl Latest {
    pub(super) fn new(now: Time, stamp: u32) -> Self {
        Latest { stamp, at: now }
    }

    /// Whether a segment that arrives now was sent after it. After half of the range of timestamps this holds for every segment,
    /// because none is in flight that long. `[L8]`
    #[inline]
    pub(super) fn is_before(&self, now: Time, stamp: u32) -> bool {
        self.is_stale(now) || stamp.wrapping_sub(self.stamp) as i32 > 0
    }

    /// Whether a segment that arrives now was sent before it.
    #[inline]
    fn is_behind(&self, now: Time, stamp: u32) -> bool {
        self.behind(now, stamp) > 0
    }

    /// How many ticks before it a segment was sent that arrives now; 0 if it was sent later.
    #[inline]
    pub(super) fn behind(&self, now: Time, stamp: u32) -> u32 {
        if self.is_before(now, stamp) { 0 } else { self.stamp.wrapping_sub(stamp) }
    }

    #[inline]
    fn is_stale(&self, now: Time) -> bool {
        now.since(self.at) > HALF_ROUND
    }

    #[inline]
    pub(super) fn update(&mut self, now: Time, stamp: u32) {
        if self.is_before(now, stamp) {
            *self = Latest::new(now, stamp);
        }
    }
}

/// The peer as a connection knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    tag: u16,
    /// Initial sequence number of its stream.
    pub(super) initial: u32,
    pub(super) latest: Latest,
    /// Timestamps of two earlier positions in its stream; segments older than the first of them are of a past cycle of the
    /// sequence numbers.
    high_water_marks: HighWaterMarks<Latest>,
}

instants! { Peer: latest, high_water_marks; fixed: tag, initial }

impl Peer {
    pub(super) fn new(now: Time, tag: u16, initial: u32, timestamp: u32) -> Self {
        Peer { tag, initial, latest: Latest::new(now, timestamp), high_water_marks: HighWaterMarks::new(DATA_STEP) }
    }

    /// Whether a segment is of the same connection: it has the same tag and, if it opens a connection, the same initial number.
    /// `[C11]`
    #[inline]
    pub(super) fn has_sent<D>(&self, segment: &Segment<D>) -> bool {
        segment.tag == self.tag && (!segment.flags.has(Flags::ASYN) || segment.opening == self.initial)
    }

    #[inline]
    pub(super) fn has_tag(&self, tag: u16) -> bool {
        tag == self.tag
    }

    /// Whether a segment is so old that its sequence number has wrapped since. `[R8]`
    #[inline]
    pub(super) fn is_of_past_round(&self, now: Time, timestamp: u32) -> bool {
        self.high_water_marks.oldest().is_some_and(|mark| mark.is_behind(now, timestamp))
    }

    /// Notes the position up to which its stream has arrived.
    #[inline]
    pub(super) fn on_progress(&mut self, position: u64) {
        self.high_water_marks.pass(position, self.latest);
    }
}

/// Notes taken when a stream passed the last two multiples of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct HighWaterMarks<T> {
    step: u64,
    next: u64,
    noted: [Option<T>; 2],
}

impl<T: MoveOrigin> MoveOrigin for HighWaterMarks<T> {
    fn move_origin(&mut self, by: OriginShift) {
        let Self { noted, step: _, next: _ } = self;
        noted.move_origin(by);
    }
}

impl<T: MoveTicks> MoveTicks for HighWaterMarks<T> {
    fn move_ticks(&mut self, by: OriginShift) {
        let Self { noted, step: _, next: _ } = self;
        noted.move_ticks(by);
    }
}

/// Half of the largest window, so that a window spans at most two steps.
const DATA_STEP: u64 = 1 << 29;
/// The largest window, because an acknowledgement may refer to data that was sent a window ago.
const MACK_STEP: u64 = 1 << 30;

impl<T: Copy> HighWaterMarks<T> {
    fn new(step: u64) -> Self {
        HighWaterMarks { step, next: step, noted: [None; 2] }
    }

    pub(super) fn of_own_stream() -> Self {
        Self::new(MACK_STEP)
    }

    /// Notes that the stream has reached `position`; several steps at once count one by one.
    #[inline]
    pub(super) fn pass(&mut self, position: u64, note: T) {
        while position >= self.next {
            self.noted = [self.noted[1], Some(note)];
            self.next += self.step;
        }
    }

    /// The note taken between one and two steps ago.
    #[inline]
    pub(super) fn oldest(&self) -> Option<T> {
        self.noted[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_half_the_range_of_timestamps_every_segment_is_newer() {
        let latest = Latest::new(Time::from_secs(10), 1000);
        let now = Time::from_secs(20);
        assert!(latest.is_before(now, 1001) && !latest.is_before(now, 1000));
        assert!(latest.is_behind(now, 999) && !latest.is_behind(now, 1000));
        let late = Time::from_secs(10 + 2148);
        assert!(latest.is_before(late, 999) && !latest.is_behind(late, 999));
    }

    #[test]
    fn a_moved_origin_makes_no_segment_older_or_newer() {
        let by = OriginShift::from_secs(1_000);
        let at = |seconds| Time::from_secs(seconds);
        let mut peer = Peer::new(at(1_010), 1, 0, 500);
        for step in 1..=2 {
            peer.latest.update(at(1_010 + step), 500 + step as u32);
            peer.on_progress(step * DATA_STEP);
        }
        let mut moved = peer;
        moved.move_origin(by);
        let told = |peer: &Peer, now, stamp| (peer.latest.is_before(now, stamp), peer.is_of_past_round(now, stamp));
        for seconds in [1_012, 1_100, 3_158, 3_159, 3_160, 5_000] {
            for stamp in [499, 500, 501, 502, 503] {
                let expected = told(&peer, at(seconds), stamp);
                assert_eq!(told(&moved, at(seconds) - by.time(), stamp), expected, "{stamp} at {seconds} s");
            }
        }
        let mut of_own = HighWaterMarks::of_own_stream();
        for step in 1..=2 {
            of_own.pass(step * MACK_STEP, 2_000_000_000 + step);
        }
        of_own.move_ticks(by);
        assert_eq!(of_own.oldest(), Some(1_000_000_001));
    }

    #[test]
    fn high_water_marks_are_one_to_two_steps_old() {
        let mut high_water_marks = HighWaterMarks::of_own_stream();
        for gigabytes in 0..5 {
            high_water_marks.pass(gigabytes << 30, gigabytes);
        }
        assert_eq!(high_water_marks.oldest(), Some(3));
        high_water_marks.pass((5 << 30) - 1, 9);
        assert_eq!(high_water_marks.oldest(), Some(3));
    }
}
