//! When to say something again that nobody has answered.

use crate::time::Time;

/// The longest wait is so many times the first one.
const LONGEST: u64 = 8;

/// Says something again after a wait that doubles up to eight times the first one, so that an outage of any length costs no
/// more than that when it ends. `[U6]`
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    /// When it is due.
    pub(super) at: Time,
    wait: Time,
    longest: Time,
}

impl Repeat {
    /// Due at once, and after `first` again.
    pub(super) fn new(first: Time) -> Self {
        Repeat { at: Time::ZERO, wait: first, longest: first.times(LONGEST) }
    }

    /// It has been said.
    pub(super) fn on_said(&mut self, now: Time) {
        self.at = now + self.wait;
        self.wait = self.wait.times(2).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_eight_times_the_first() {
        let mut repeat = Repeat::new(Time::from_secs(1));
        let mut said = vec![];
        for _ in 0..6 {
            said.push(repeat.at.as_secs_f64());
            repeat.on_said(repeat.at);
        }
        assert_eq!(said, [0.0, 1.0, 3.0, 7.0, 15.0, 23.0]);
    }
}
