//! The rate at which segments arrive at the peer.

use std::collections::VecDeque;

use crate::origin::{MoveOrigin, OriginShift, instants};
use crate::time::Time;

use super::super::clock::ticks;

/// The number of bytes sent up to an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    at: u64,
    bytes: u64,
}

instants! { Sent: ; ticks: at; fixed: bytes }

/// Measures the rate at which sent data arrives, from the receiver's echoes and their times. `[P4]`
///
/// It counts all data sent before the echoed segment, because a lost segment took its time on the link as well.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    sent: VecDeque<Sent>,
    total_bytes: u64,
    /// Start of the present measurement: the bytes sent by then and the time of arrival.
    from: Option<(Sent, Time)>,
}

impl MoveOrigin for Arrivals {
    fn move_origin(&mut self, by: OriginShift) {
        let Self { sent, from, total_bytes: _ } = self;
        sent.move_origin(by);
        if let Some((sent, arrived)) = from {
            sent.move_origin(by);
            arrived.move_origin(by);
        }
    }
}

/// The rates at which the same bytes were sent and arrived, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speeds {
    pub(super) sent: f64,
    pub(super) arrived: f64,
    pub(super) bytes: u64,
}

/// Largest number of instants that are kept; with more, neighbours are merged.
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

    /// Takes an echo: the segment sent at `echo` arrived at `arrived`, not counting the way back. Once at least `least_bytes`
    /// were sent since the first answer of the measurement, returns their rates and begins a new measurement.
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
