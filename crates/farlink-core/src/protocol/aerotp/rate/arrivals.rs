//! How fast segments arrive at the other side.

use std::collections::VecDeque;

use crate::time::Time;

use super::super::clock::ticks;

/// What was sent up to an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    at: u64,
    bytes: u64,
}

/// The rate at which what was sent arrives, from what the receiver echoes and when. `[P4]`
///
/// It counts all that was sent before what is echoed: a segment that was lost on the way took its time on the link as well.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    sent: VecDeque<Sent>,
    total_bytes: u64,
    /// From where the present measurement goes: sent, and arrived.
    from: Option<(Sent, Time)>,
}

/// How segments went out and came in over the same bytes, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speeds {
    pub(super) sent: f64,
    pub(super) arrived: f64,
    pub(super) bytes: u64,
}

/// Instants that are kept in mind; with more, neighbours are joined.
const MOST_INSTANTS: usize = 1 << 16;

impl Arrivals {
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: u32) {
        self.total_bytes += u64::from(bytes);
        let entry = Sent { at: ticks(now), bytes: self.total_bytes };
        let is_full = self.sent.len() == MOST_INSTANTS;
        match self.sent.back_mut() {
            Some(last) if last.at == entry.at || is_full => *last = entry,
            _ => self.sent.push_back(entry),
        }
    }

    /// A segment sent at an instant has arrived; so long ago, the way back aside. Returns the speeds of all that was sent since
    /// the first answer of the measurement, once that are so many bytes; then a new measurement begins.
    pub(super) fn on_answer(&mut self, echo: u64, arrived: Time, least_bytes: u64) -> Option<Speeds> {
        let mut latest = None;
        while let Some(&entry) = self.sent.front()
            && entry.at <= echo
        {
            latest = Some(entry);
            self.sent.pop_front();
        }
        let latest = latest?;
        let Some((from, from_arrived)) = self.from else {
            self.from = Some((latest, arrived));
            return None;
        };
        let bytes = latest.bytes - from.bytes;
        if bytes < least_bytes {
            return None;
        }
        self.from = Some((latest, arrived));
        let took = arrived.since(from_arrived).as_secs_f64();
        let sending_took = (latest.at - from.at) as f64 / 1e6;
        let speed = |seconds: f64| if seconds > 0.0 { bytes as f64 / seconds } else { f64::INFINITY };
        Some(Speeds { sent: speed(sending_took), arrived: speed(took), bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_arrives_at_the_speed_of_the_link() {
        let mut arrivals = Arrivals::default();
        for n in 0..10 {
            arrivals.on_sent(Time::from_millis(n), 1000);
        }
        assert_eq!(arrivals.on_answer(0, Time::from_secs(1), 4000), None, "it begins here");
        assert_eq!(arrivals.on_answer(2_000, Time::from_millis(1020), 4000), None, "too little");
        let speeds = arrivals.on_answer(8_000, Time::from_millis(1080), 4000);
        assert_eq!(speeds, Some(Speeds { sent: 1e6, arrived: 1e5, bytes: 8000 }));
        assert_eq!(arrivals.on_answer(8_000, Time::from_millis(1090), 0), None, "no news");
    }
}
