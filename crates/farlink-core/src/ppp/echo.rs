//! Whether the peer still answers: Echo-Requests of LCP (RFC 1661, section 5.8) that wait for a full queue.

use crate::time::Time;

/// When a line that does not answer is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EchoConfig {
    /// From one request to the next.
    pub interval: Time,
    /// Requests without an answer until the line is given up.
    pub failures: u8,
}

impl Default for EchoConfig {
    /// 10 s, three times: a black hole is noticed in 30 to 40 s, and costs a line of 2400 bit/s half a percent.
    fn default() -> Self {
        EchoConfig { interval: Time::from_secs(10), failures: 3 }
    }
}

/// The peer's answer may wait behind what the peer sends: as long as frames come, the line gets so many times as long.
const BUSY: u64 = 4;

/// The echoes of one open line.
///
/// A request that waits behind data for the line is not judged: its time begins when the driver has reported its last byte as sent.
#[derive(Clone, Debug)]
pub struct Echo {
    config: EchoConfig,
    /// When the next request is sent; never while the last one has not left.
    due: Option<Time>,
    /// Requests that left since the last answer.
    unanswered: u8,
    /// The last one that was sent: its number, and when it left.
    last: Option<(u8, Option<Time>)>,
    /// When the first one without an answer left.
    silent_since: Option<Time>,
    /// When a frame came last.
    heard: Time,
    next_id: u8,
    /// Shortest time from the departure of a request to its answer.
    round_trip: Option<Time>,
}

impl Echo {
    /// The line opened.
    pub fn start(now: Time, config: EchoConfig) -> Self {
        Echo {
            config,
            due: Some(now + config.interval),
            unanswered: 0,
            last: None,
            silent_since: None,
            heard: now,
            next_id: 0,
            round_trip: None,
        }
    }

    /// Shortest time from the departure of a request to its answer so far.
    pub fn round_trip(&self) -> Option<Time> {
        self.round_trip
    }

    /// A good frame of any kind came.
    pub fn on_frame(&mut self, now: Time) {
        self.heard = now;
    }

    /// The answer to request `id` came.
    pub fn on_reply(&mut self, now: Time, id: u8) {
        let Some((last, left)) = self.last.filter(|_| self.unanswered > 0) else { return };
        // Any answer proves that the line carries both ways.
        self.unanswered = 0;
        self.silent_since = None;
        if let Some(left) = left.filter(|_| last == id) {
            let took = now.since(left);
            self.round_trip = Some(self.round_trip.map_or(took, |before| before.min(took)));
        }
    }

    /// Whether the last request has not left the line's port.
    pub fn is_waiting(&self) -> bool {
        self.last.is_some_and(|(_, left)| left.is_none())
    }

    /// The last byte of the last request has left.
    pub fn on_sent(&mut self, now: Time) {
        if let Some((_, left)) = self.last.as_mut().filter(|(_, left)| left.is_none()) {
            *left = Some(now);
            self.unanswered = self.unanswered.saturating_add(1);
            self.silent_since = self.silent_since.or(Some(now));
            self.due = Some(now + self.config.interval);
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    /// The number of a request that is due.
    pub fn on_timeout(&mut self, now: Time) -> Option<u8> {
        self.due.filter(|due| *due <= now)?;
        self.due = None;
        self.next_id = self.next_id.wrapping_add(1);
        self.last = Some((self.next_id, None));
        Some(self.next_id)
    }

    /// Whether the line has to be given up: enough requests have no answer, and nothing else came, or it came for too long.
    pub fn has_failed(&self, now: Time) -> bool {
        let span = self.config.interval.times(u64::from(self.config.failures));
        let Some(since) = self.silent_since.filter(|_| self.unanswered >= self.config.failures) else { return false };
        let silent = now.since(since);
        silent >= span && (now.since(self.heard) >= span || silent >= span.times(BUSY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: EchoConfig = EchoConfig { interval: Time::from_secs(10), failures: 3 };

    /// Runs echoes until the line fails, at most for 1000 s: `departs` from due time to departure, `hears` whether frames come.
    fn fails_after(departs: Time, hears: bool, answers: bool) -> Option<f64> {
        let mut echo = Echo::start(Time::ZERO, CONFIG);
        let mut now = Time::ZERO;
        while now < Time::from_secs(1000) {
            now = echo.poll_timeout().unwrap();
            if hears {
                echo.on_frame(now);
            }
            if echo.has_failed(now) {
                return Some(now.as_secs_f64());
            }
            let id = echo.on_timeout(now).unwrap();
            assert_eq!(echo.poll_timeout(), None, "the next one waits until this one has left");
            now += departs;
            echo.on_sent(now);
            if answers {
                echo.on_reply(now + Time::from_secs(1), id);
            }
        }
        None
    }

    #[test]
    fn a_silent_line_fails_after_the_echoes_and_one_that_answers_does_not() {
        assert_eq!(fails_after(Time::ZERO, false, false), Some(40.0));
        assert_eq!(fails_after(Time::ZERO, false, true), None);
    }

    #[test]
    fn the_queue_in_front_of_an_echo_does_not_count() {
        assert_eq!(fails_after(Time::from_secs(60), false, true), None);
        // 10 + 60 s until the first has left, and two more of 70 s, and 10 s.
        assert_eq!(fails_after(Time::from_secs(60), false, false), Some(220.0));
    }

    #[test]
    fn a_line_that_carries_one_way_only_fails_later() {
        assert_eq!(fails_after(Time::ZERO, true, false), Some(130.0));
    }
}
