//! Requests of a sender for a longer window.

use crate::origin::instants;
use crate::time::Time;

/// The rest of the window, and the time that an answer takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemainingWindow {
    /// Bytes of data that may still be sent.
    pub(super) bytes: u64,
    /// How long an answer usually takes.
    pub(super) answer: Time,
}

/// Requests a longer window before the present one is used up, because the answer takes a round trip. `[W2]`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowRequests {
    /// The longest window that the peer has announced.
    widest: u64,
    /// Time of the next request at the earliest.
    next: Time,
    /// Number of unsuccessful requests in a row.
    in_vain: u32,
    /// The window beyond the sent data that is to be requested now.
    wanted: Option<u64>,
}

instants! { WindowRequests: next; fixed: widest, in_vain, wanted }

/// The sender requests a longer window when the rest lasts for fewer round trips than this: the answer takes one, and at the
/// start the rate doubles in the next. It requests a window for this many round trips, because segments that are lost several
/// times keep the start of the window from moving.
const LEAST_ROUND_TRIPS: f64 = 4.0;
const ROUND_TRIPS: f64 = 8.0;
/// Requests are a quarter of a round trip apart, because one may be lost. After this many unsuccessful ones, the
/// interval doubles with each further one, up to 2^6 times.
const APART: u64 = 4;
const DOUBLED_AFTER: u32 = 7;
const MOST_DOUBLINGS: u32 = 6;

impl WindowRequests {
    /// Takes the window that a MACK announces, the rest of it and the rate in bytes per second. `left` is `None` if the window
    /// does not limit the sender.
    pub(super) fn on_window(&mut self, now: Time, window: u64, left: Option<RemainingWindow>, rate: Option<f64>) {
        if window > self.widest + self.widest / 8 {
            (self.widest, self.in_vain, self.next) = (window, 0, now);
        }
        let (Some(left), Some(rate)) = (left, rate) else { return };
        let in_round_trip = rate * left.answer.as_secs_f64();
        if now < self.next || left.bytes as f64 >= LEAST_ROUND_TRIPS * in_round_trip {
            return;
        }
        self.wanted = Some((ROUND_TRIPS * in_round_trip) as u64);
        let doublings = self.in_vain.saturating_sub(DOUBLED_AFTER).min(MOST_DOUBLINGS);
        self.next = now + Time::from_ps(left.answer.as_ps() / APART).times(1 << doublings);
        self.in_vain += 1;
    }

    /// The window beyond the sent data that is to be requested now, if any; each request is returned once.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u64> {
        self.wanted.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Time = Time::from_secs(4);

    fn left(bytes: u64) -> Option<RemainingWindow> {
        Some(RemainingWindow { bytes, answer: ANSWER })
    }

    #[test]
    fn a_window_is_requested_before_it_is_exhausted() {
        let mut window_requests = WindowRequests::default();
        let rate = Some(1e6);
        window_requests.on_window(Time::from_secs(1), 16_000_000, left(16_000_000), rate);
        assert_eq!(window_requests.take(), None, "an answer has arrived in time");
        window_requests.on_window(Time::from_secs(1), 16_000_000, left(15_999_999), rate);
        assert_eq!((window_requests.take(), window_requests.take()), (Some(32_000_000), None));
        window_requests.on_window(Time::from_secs(2), 16_000_000, left(0), None);
        window_requests.on_window(Time::from_secs(2), 16_000_000, None, rate);
        assert_eq!(window_requests.take(), None, "nothing is known, or nothing is to be sent");
    }

    #[test]
    fn requests_to_a_full_receiver_become_rare() {
        let mut window_requests = WindowRequests::default();
        let mut asked = Vec::new();
        for second in 1..2000 {
            window_requests.on_window(Time::from_secs(second), 1000, left(0), Some(1e6));
            asked.extend(window_requests.take().map(|_| second));
        }
        assert_eq!(asked[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 23]);
        assert_eq!(asked[asked.len() - 2..], [1927, 1991], "64 s apart");
        window_requests.on_window(Time::from_secs(2000), 2000, left(0), Some(1e6));
        assert!(window_requests.take().is_some(), "the window has grown and may grow further");
    }
}
