//! The clock of a driver.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use farlink_core::{OriginShift, Time};

/// The protocols' time. It begins at the wall clock, modulo the range of 32-bit timestamps, so that it goes on where an earlier process
/// stopped; then it never jumps, whatever happens to the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    offset: Duration,
    /// How far its origin has moved since, because a `Time` ends after 213 days.
    moved: OriginShift,
}

/// The wall clock, microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "who drives sockets has a clock")]
pub(crate) fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

#[expect(clippy::disallowed_methods, reason = "who drives sockets has a clock")]
impl Clock {
    pub(crate) fn start() -> Self {
        let offset = Duration::from_micros(unix_us() & 0xffff_ffff);
        Clock { started: Instant::now(), offset, moved: OriginShift::default() }
    }

    pub(crate) fn now(&self) -> Time {
        self.at(Instant::now())
    }

    fn at(&self, instant: Instant) -> Time {
        let unmoved = self.offset + instant.duration_since(self.started);
        Time::from_ps((unmoved - Duration::from_secs(self.moved.as_secs())).as_nanos() as u64 * 1_000)
    }

    /// Moves the origin, if it is time; returns by how much.
    pub(crate) fn move_origin(&mut self) -> Option<OriginShift> {
        let by = OriginShift::due(self.now())?;
        self.moved += by;
        Some(by)
    }

    /// How long it takes until the clock reads `due`; nothing if that is past.
    pub(crate) fn until(&self, due: Time) -> Duration {
        Duration::from_nanos(due.since(self.now()).as_ps().div_ceil(1_000))
    }
}
