//! Repetition of a message until it is answered.

use crate::origin::instants;
use crate::time::Time;

/// The interval doubles up to a longest one, so that after an outage of any length the next repetition follows within
/// that time. `[U6]`
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    /// When the next repetition is due.
    pub(super) at: Time,
    wait: Time,
    longest: Time,
}

instants! { Repeat: at; fixed: wait, longest }

impl Repeat {
    /// The message is due at once, and again after `first`.
    pub(super) fn new(first: Time, longest: Time) -> Self {
        Repeat { at: Time::ZERO, wait: first, longest }
    }

    /// The message was sent.
    pub(super) fn on_notice_sent(&mut self, now: Time) {
        self.at = now + self.wait;
        self.wait = self.wait.times(2).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_eight_times_the_first() {
        let mut repeat = Repeat::new(Time::from_secs(1), Time::from_secs(8));
        let mut said = vec![];
        for _ in 0..6 {
            said.push(repeat.at.as_secs_f64());
            repeat.on_notice_sent(repeat.at);
        }
        assert_eq!(said, [0.0, 1.0, 3.0, 7.0, 15.0, 23.0]);
    }
}
