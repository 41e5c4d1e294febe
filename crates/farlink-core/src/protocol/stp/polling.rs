//! Decides when the sender polls.

use crate::time::Time;

/// Default number of POLLs per window; between two of them a sender sends at least `LEAST_PACKETS` packets.
const POLLS_PER_WINDOW: u64 = 4;
const LEAST_PACKETS: u64 = 25;

/// The POLLs of one direction.
#[derive(Clone, Debug)]
pub(super) struct Polling {
    interval: Time,
    /// Number of data packets after which a POLL is due; if `None`, a share of the outstanding ones.
    every: Option<u64>,
    /// Number of the latest POLL, VT(PS); the first is 1.
    pub(super) number: u32,
    /// Number of the latest POLL that was answered, VT(PA).
    answered: u32,
    /// When the next POLL is due.
    pub(super) at: Time,
    /// Whether a POLL must be sent now.
    pub(super) is_due: bool,
    /// Data packets sent since the latest POLL.
    data_since: u64,
    /// Whether an RTO has passed without an answer.
    is_silent: bool,
    last_sent: Time,
}

/// The situation of a sender that has nothing to send at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standstill {
    /// Whether data is unacknowledged.
    pub(super) is_outstanding: bool,
    /// Whether the whole stream has been sent.
    pub(super) is_at_end: bool,
    /// Whether the receiver's window has no room for the waiting data.
    pub(super) is_shut_out: bool,
}

impl Polling {
    pub(super) fn new(interval: Time, every: Option<u64>) -> Self {
        Polling {
            interval,
            every,
            number: 0,
            answered: 0,
            at: Time::NEVER,
            is_due: false,
            data_since: 0,
            is_silent: false,
            last_sent: Time::ZERO,
        }
    }

    /// Whether the latest POLL is unanswered.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.number != self.answered
    }

    /// Whether a POLL now would cover only data that the previous one covered.
    #[inline]
    pub(super) fn is_repetition(&self) -> bool {
        self.data_since == 0
    }

    /// Data is sent; `outstanding` packets are unacknowledged.
    #[inline(always)]
    pub(super) fn on_data_sent(&mut self, now: Time, outstanding: u64) {
        self.data_since += 1;
        if !self.is_silent {
            // The length of a STAT grows with the window, so a fixed number of POLLs per window keeps the cost per packet
            // constant.
            let every = self.every.unwrap_or_else(|| LEAST_PACKETS.max(outstanding / POLLS_PER_WINDOW));
            self.is_due |= self.data_since >= every;
            if self.at == Time::NEVER {
                self.at = now + self.interval;
            }
        }
    }

    /// Advances to `now`.
    #[inline]
    pub(super) fn on_time(&mut self, now: Time) {
        if self.at <= now {
            self.is_due = true;
            self.at = Time::NEVER;
        }
    }

    /// Handles a standstill of the sender: polls at once, instead of waiting for the interval, where that helps.
    pub(super) fn on_standstill(&mut self, standstill: Standstill) {
        let Standstill { is_outstanding, is_at_end, is_shut_out } = standstill;
        if self.is_silent {
            return;
        }
        // After the last data, poll at once. Otherwise wait for the answer to the POLL before; with an application that writes
        // rarely, or with a small window, the sender would poll after every packet.
        let asks_for_data = is_outstanding && self.data_since > 0 && (is_at_end || !self.is_waiting());
        let asks_for_window = is_shut_out && !is_outstanding && !self.is_waiting() && self.at == Time::NEVER;
        self.is_due |= asks_for_data || asks_for_window;
    }

    /// Sends a POLL; returns its number.
    pub(super) fn send(&mut self, now: Time) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.is_due = false;
        self.data_since = 0;
        self.last_sent = now;
        // Without answers the retransmission timer triggers POLLs, at increasing intervals.
        self.at = if !self.is_silent { now + self.interval } else { Time::NEVER };
        self.number
    }

    /// Checks the number of the POLL that a STAT answers: `None` if there was no such POLL, otherwise whether it is the latest
    /// answer so far.
    pub(super) fn is_own_poll(&self, number: u32) -> Option<bool> {
        let ahead = number.wrapping_sub(self.answered) as i32;
        let was_sent = (self.number.wrapping_sub(number) as i32) >= 0 && number != 0;
        was_sent.then_some(ahead > 0)
    }

    /// Handles the latest answer so far; `is_needed` says whether further POLLs are needed.
    pub(super) fn on_answer(&mut self, now: Time, number: u32, is_needed: bool) {
        self.answered = number;
        let was_silent = std::mem::take(&mut self.is_silent);
        if !is_needed {
            self.stop(); // also a POLL that waits for the pacer
        } else if was_silent {
            self.at = now.max(self.last_sent + self.interval);
        }
    }

    /// Handles an RTO without an answer; returns whether it is the first since the last answer.
    pub(super) fn on_silence(&mut self) -> bool {
        self.is_due = true;
        self.at = Time::NEVER;
        !std::mem::replace(&mut self.is_silent, true)
    }

    /// Stops polling.
    pub(super) fn stop(&mut self) {
        self.at = Time::NEVER;
        self.is_due = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Time = Time::from_millis(100);
    const MIDDLE: Standstill = Standstill { is_outstanding: true, is_at_end: false, is_shut_out: false };
    const END: Standstill = Standstill { is_at_end: true, ..MIDDLE };
    const SHUT: Standstill = Standstill { is_outstanding: false, is_at_end: false, is_shut_out: true };

    #[test]
    fn polls_at_the_interval_while_data_is_sent() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        assert_eq!(polling.at, Time::NEVER);
        polling.on_data_sent(Time::ZERO, 1);
        polling.on_time(Time::from_millis(99));
        assert!(!polling.is_due && polling.at == INTERVAL);
        polling.on_time(INTERVAL);
        assert!(polling.is_due);
        assert_eq!((polling.send(INTERVAL), polling.at), (1, INTERVAL.times(2)));
        polling.on_answer(INTERVAL.times(2), 1, false);
        assert_eq!(polling.at, Time::NEVER, "everything is acknowledged");
    }

    #[test]
    fn polls_at_once_when_the_window_is_full_with_one_poll_in_flight() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        polling.on_data_sent(Time::ZERO, 1);
        polling.on_standstill(MIDDLE);
        assert!(polling.is_due);
        polling.send(Time::ZERO);
        polling.on_data_sent(Time::ZERO, 1);
        polling.on_standstill(MIDDLE);
        assert!(!polling.is_due, "one is in flight");
        polling.on_answer(Time::ZERO, 1, true);
        polling.on_standstill(MIDDLE);
        assert!(polling.is_due);
    }

    #[test]
    fn polls_at_once_and_only_once_after_the_last_data() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        polling.on_data_sent(Time::ZERO, 1);
        polling.send(Time::ZERO);
        polling.on_data_sent(Time::ZERO, 1);
        polling.on_standstill(END);
        assert!(polling.is_due, "although one is in flight");
        polling.send(Time::ZERO);
        polling.on_standstill(END);
        assert!(!polling.is_due);
    }

    #[test]
    fn a_pending_poll_is_dropped_when_everything_is_acknowledged() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        polling.on_data_sent(Time::ZERO, 1);
        assert!(!polling.is_repetition());
        polling.send(Time::ZERO);
        polling.on_time(INTERVAL);
        assert!(polling.is_due && polling.is_repetition());
        polling.on_answer(INTERVAL, 1, true);
        assert!(polling.is_due);
        polling.on_answer(INTERVAL, 1, false);
        assert!(!polling.is_due);
    }

    #[test]
    fn polls_after_the_maximum_number_of_packets_unless_the_peer_is_silent() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        for is_due in [false, false, true] {
            polling.on_data_sent(Time::ZERO, 1);
            assert_eq!(polling.is_due, is_due);
        }
        polling.on_silence();
        polling.send(Time::ZERO);
        (0..9).for_each(|_| polling.on_data_sent(Time::ZERO, 1));
        assert!(!polling.is_due);
    }

    #[test]
    fn polls_four_times_per_window_by_default() {
        for (outstanding, packets) in [(10, 25), (100, 25), (1000, 250)] {
            let mut polling = Polling::new(INTERVAL, None);
            let sent = (1..).find(|_| {
                polling.on_data_sent(Time::ZERO, outstanding);
                polling.is_due
            });
            assert_eq!(sent, Some(packets));
        }
    }

    #[test]
    fn polls_a_closed_window() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        polling.on_standstill(SHUT);
        assert!(polling.is_due);
        polling.send(Time::ZERO);
        polling.on_answer(Time::ZERO, 1, true);
        polling.on_standstill(SHUT);
        assert!(!polling.is_due && polling.at == INTERVAL, "and then at the interval");
    }

    #[test]
    fn while_the_peer_is_silent_it_polls_only_at_its_timer() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        polling.on_data_sent(Time::ZERO, 1);
        polling.send(Time::ZERO);
        polling.on_silence();
        assert!(polling.is_due);
        polling.send(Time::from_secs(1));
        polling.on_data_sent(Time::from_secs(1), 1);
        polling.on_standstill(END);
        assert!(!polling.is_due && polling.at == Time::NEVER);
        polling.on_answer(Time::from_secs(2), 1, true);
        assert_eq!(polling.at, Time::from_secs(2), "at once, and then at the interval");
    }

    #[test]
    fn answers_to_own_polls_are_recognised() {
        let mut polling = Polling::new(INTERVAL, Some(3));
        for _ in 0..3 {
            polling.send(Time::ZERO);
        }
        polling.on_answer(Time::ZERO, 2, true);
        let answers = [0, 1, 2, 3, 4].map(|number| polling.is_own_poll(number));
        assert_eq!(answers, [None, Some(false), Some(false), Some(true), None]);
    }
}
