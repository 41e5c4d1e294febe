//! How fast a line is, by what leaves its port.

use crate::time::Time;
use crate::units::BitRate;

/// Rate of a line: the nominal one, until enough bytes have left a port that had always more.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    bytes_per_s: f64,
    /// Since when the port has had more to send, and what it sent since.
    busy_since: Option<(Time, usize)>,
}

/// A measurement takes so long at least: the ticks of drivers do not count then.
const SPAN: Time = Time::from_secs(2);
/// Share of a new measurement.
const GAIN: f64 = 0.25;
/// Slowest rate, so that no time is infinite.
const LEAST_BYTES_PER_S: f64 = 1.0;

impl Rate {
    pub(super) fn nominal(rate: BitRate) -> Self {
        Rate { bytes_per_s: (rate.get() / 8.0).max(LEAST_BYTES_PER_S), busy_since: None }
    }

    pub(super) fn bytes_per_s(&self) -> f64 {
        self.bytes_per_s
    }

    /// Bytes have left a port; `is_busy` says whether it has more.
    pub(super) fn sent(&mut self, now: Time, bytes: usize, is_busy: bool) {
        if !is_busy {
            self.busy_since = None;
            return;
        }
        let Some((since, sent)) = &mut self.busy_since else {
            self.busy_since = Some((now, 0));
            return;
        };
        *sent += bytes;
        let span = now.since(*since);
        if span >= SPAN {
            let measured = (*sent as f64 / span.as_secs_f64()).max(LEAST_BYTES_PER_S);
            self.bytes_per_s += GAIN * (measured - self.bytes_per_s);
            self.busy_since = Some((now, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_line_shows_its_rate_and_pauses_do_not_count() {
        let mut rate = Rate::nominal(BitRate::new(9600.0).unwrap());
        let mut now = Time::ZERO;
        for step in 0..10_000 {
            now += Time::from_millis(10);
            // 3 bytes each 10 ms, with pauses.
            rate.sent(now, 3, step % 1000 != 999);
            if step % 1000 == 999 {
                now += Time::from_secs(60);
            }
        }
        assert!((rate.bytes_per_s() - 300.0).abs() < 10.0, "{}", rate.bytes_per_s());
    }
}
