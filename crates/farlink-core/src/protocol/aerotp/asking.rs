//! When a sender asks its peer for a longer window.

use crate::time::Time;

/// What is left of the window, and how fast that goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// Bytes of data that may still be sent.
    pub(super) bytes: u64,
    /// How long an answer usually takes.
    pub(super) answer: Time,
}

/// Asks for room before there is none: an answer takes a round trip. `[W2]`
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asking {
    /// The longest window that the peer has told of.
    widest: u64,
    /// Not before.
    next: Time,
    /// How often in a row it was asked in vain.
    in_vain: u32,
    /// Room beyond what was sent for which it is time to ask.
    wanted: Option<u64>,
}

/// It asks when less is left than goes out in so many round trips: the answer takes one, and at the beginning twice as much goes out
/// in the next. It asks for so many, as what is lost again and again holds the window's beginning back.
const LEAST_ROUND_TRIPS: f64 = 4.0;
const ROUND_TRIPS: f64 = 8.0;
/// Questions are a quarter of a round trip apart, as one may be lost; after so many in vain, further ones are twice as far apart each
/// time, up to 2^6 times.
const APART: u64 = 4;
const PATIENT_AFTER: u32 = 7;
const MOST_DOUBLINGS: u32 = 6;

impl Asking {
    /// A MACK tells of a window, after which so much is left at a rate in bytes per second; nothing if it is not the window that
    /// will hold back what is sent next.
    pub(super) fn on_window(&mut self, now: Time, window: u64, left: Option<Left>, rate: Option<f64>) {
        if window > self.widest + self.widest / 8 {
            (self.widest, self.in_vain, self.next) = (window, 0, now);
        }
        let (Some(left), Some(rate)) = (left, rate) else { return };
        let in_round_trip = rate * left.answer.as_secs_f64();
        if now < self.next || left.bytes as f64 >= LEAST_ROUND_TRIPS * in_round_trip {
            return;
        }
        self.wanted = Some((ROUND_TRIPS * in_round_trip) as u64);
        let doublings = self.in_vain.saturating_sub(PATIENT_AFTER).min(MOST_DOUBLINGS);
        self.next = now + Time::from_ps(left.answer.as_ps() / APART).times(1 << doublings);
        self.in_vain += 1;
    }

    /// How much room beyond what was sent is to be asked for now, if any; once for each time.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u64> {
        self.wanted.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Time = Time::from_secs(4);

    fn left(bytes: u64) -> Option<Left> {
        Some(Left { bytes, answer: ANSWER })
    }

    #[test]
    fn it_asks_before_there_is_no_room() {
        let mut asking = Asking::default();
        let rate = Some(1e6);
        asking.on_window(Time::from_secs(1), 16_000_000, left(16_000_000), rate);
        assert_eq!(asking.take(), None, "an answer is there in time");
        asking.on_window(Time::from_secs(1), 16_000_000, left(15_999_999), rate);
        assert_eq!((asking.take(), asking.take()), (Some(32_000_000), None));
        asking.on_window(Time::from_secs(2), 16_000_000, left(0), None);
        asking.on_window(Time::from_secs(2), 16_000_000, None, rate);
        assert_eq!(asking.take(), None, "nothing is known, or nothing is to be sent");
    }

    #[test]
    fn who_has_no_more_room_is_asked_ever_less_often() {
        let mut asking = Asking::default();
        let mut asked = Vec::new();
        for second in 1..2000 {
            asking.on_window(Time::from_secs(second), 1000, left(0), Some(1e6));
            asked.extend(asking.take().map(|_| second));
        }
        assert_eq!(asked[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 23]);
        assert_eq!(asked[asked.len() - 2..], [1927, 1991], "64 s apart");
        asking.on_window(Time::from_secs(2000), 2000, left(0), Some(1e6));
        assert!(asking.take().is_some(), "the window has grown: it may go on growing");
    }
}
