//! When an end notices that its LCP echoes have no answer.

use super::EchoConfig;
use crate::ConfigError;
use crate::bundle::arq::airtime;
use crate::bundle::line_config::LineConfig;
use crate::time::Time;

/// Length of an echo on the line, in bytes: two flags, address, control, protocol (2), code, identifier, length (2), magic number (4)
/// and check (2).
const ECHO_BYTES: u64 = 16;
/// Longest time until an end takes a line down, in s: the longest time that a scenario can express.
const LONGEST_DETECTION_S: f64 = 1e7;

impl EchoConfig {
    /// Checks the echoes on a line.
    ///
    /// # Errors
    /// If the echoes would take every call down, or notice no drop.
    pub(in crate::bundle) fn check(&self, line: &LineConfig) -> Result<(), ConfigError> {
        let patience_s = self.interval_s.get() * self.failures.get();
        if patience_s > LONGEST_DETECTION_S {
            let what = format!("a drop is noticed after {patience_s:.0} s");
            return Err(ConfigError::new("failures", what, "give less, or a shorter interval_s"));
        }
        let round_trip_s = Echo::round_trip(line).as_secs_f64();
        if round_trip_s >= patience_s {
            let what = format!(
                "answers come after {round_trip_s:.1} s, and a line is taken down after {patience_s} s without one, so no call lasts"
            );
            return Err(ConfigError::new("interval_s", what, "give a longer interval_s, or more failures"));
        }
        Ok(())
    }
}

/// The echoes of both ends of a line.
#[derive(Clone, Copy, Debug)]
pub(in crate::bundle) struct Echo {
    interval: Time,
    failures: u64,
    terminate: Time,
    round_trip: Time,
}

impl Echo {
    pub(in crate::bundle) fn new(config: &EchoConfig, terminate: Time, line: &LineConfig) -> Self {
        Echo {
            interval: config.interval_s.time(),
            failures: config.failures.whole(),
            terminate,
            round_trip: Echo::round_trip(line),
        }
    }

    /// Time until the answer to an echo, without losses and without data in front of it.
    pub(super) fn round_trip(line: &LineConfig) -> Time {
        let bytes = line.arq.as_ref().map_or(ECHO_BYTES, |arq| arq.least_bytes(ECHO_BYTES));
        let of = |rate: crate::units::BitRate| airtime(bytes, rate.ps_per_byte()) + line.delay.time();
        of(line.rate) + of(line.return_rate)
    }

    /// How long after a drop an end notices it, if its LCP had been open for `open_for` when the call dropped.
    ///
    /// Echoes are sent at 0, I, 2 I, ... after LCP opened. The end counts those sent since the last answer that came before the
    /// drop. At an instant of sending, if the count has reached the limit, it takes the line down instead (pppd, `lcp.c`,
    /// `LcpSendEchoRequest`).
    pub(in crate::bundle) fn noticed_after(&self, open_for: Time) -> Time {
        let interval = self.interval.as_ps().max(1);
        let open = open_for.as_ps();
        let round_trip = self.round_trip.as_ps();
        // Number of the first echo that was sent after the last answer.
        let first = match open.checked_sub(round_trip) {
            Some(answered) => (answered / interval) + round_trip / interval + 1,
            None => 0,
        };
        let down = first.saturating_add(self.failures).saturating_mul(interval);
        Time::from_ps(down.saturating_sub(open)) + self.terminate
    }

    /// How long LCP has been open at the beginning of a run, if a line is connected from then on: `phase` is a number from 0 to 1
    /// that says where between two echoes the run begins.
    pub(in crate::bundle) fn age(&self, phase: f64) -> Time {
        let intervals = 1 + self.round_trip.as_ps() / self.interval.as_ps().max(1);
        self.interval.times(intervals) + Time::from_secs_f64(phase * self.interval.as_secs_f64())
    }
}
