//! Which packet numbers have opened.

/// How many numbers up to the highest are told apart. `[O9]`
pub const WINDOW_NUMBERS: u64 = 8192;
const WORDS: usize = (WINDOW_NUMBERS / 64) as usize;

/// Why a packet number cannot open any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    /// A packet with this number has opened.
    Repeated,
    /// It lies before the window.
    Old,
}

/// The last [`WINDOW_NUMBERS`] packet numbers up to the highest that opened, and whether each of them has. `[O9]`
///
/// A ring of bits, as RFC 6479 suggests: the window moves without a shift.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// Whether each number has opened, at the number modulo the window.
    opened: Box<[u64; WORDS]>,
    /// One after the highest number that opened.
    next: u64,
}

impl Default for ReplayWindow {
    fn default() -> Self {
        ReplayWindow { opened: Box::new([0; WORDS]), next: 0 }
    }
}

impl ReplayWindow {
    /// The number after the highest that opened; 0 at first.
    pub fn expected(&self) -> u64 {
        self.next
    }

    /// The least number that may still open.
    pub fn start(&self) -> u64 {
        self.next.saturating_sub(WINDOW_NUMBERS)
    }

    /// Whether a number may open. Changes nothing.
    ///
    /// # Errors
    /// If it has opened, or if the window has passed it.
    pub fn check(&self, number: u64) -> Result<(), Stale> {
        if number >= self.next {
            return Ok(());
        }
        if number < self.start() {
            return Err(Stale::Old);
        }
        let (word, bit) = place(number);
        if self.opened[word] & bit == 0 { Ok(()) } else { Err(Stale::Repeated) }
    }

    /// Counts a number as opened.
    pub fn mark(&mut self, number: u64) {
        if number >= self.next {
            // A number that comes into the window has not opened.
            for fresh in self.next.max(number.saturating_sub(WINDOW_NUMBERS - 1))..=number {
                let (word, bit) = place(fresh);
                self.opened[word] &= !bit;
            }
            self.next = number.saturating_add(1);
        }
        if number >= self.start() {
            let (word, bit) = place(number);
            self.opened[word] |= bit;
        }
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number % WINDOW_NUMBERS / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_window_has_its_length() {
        let mut window = ReplayWindow::default();
        assert_eq!((window.check(0), window.expected()), (Ok(()), 0));
        window.mark(9_000);
        assert_eq!(window.expected(), 9_001);
        assert_eq!(window.check(9_000), Err(Stale::Repeated));
        assert_eq!(window.check(9_001 - WINDOW_NUMBERS), Ok(()));
        assert_eq!(window.check(9_000 - WINDOW_NUMBERS), Err(Stale::Old));
        window.mark(u64::MAX);
        assert_eq!(window.check(9_001), Err(Stale::Old));
    }

    proptest! {
        /// Beside a set of all numbers that opened.
        #[test]
        fn each_number_opens_once(steps in vec((-10_000_i64..10_000, 1_u64..4), 1..200), begin in 0..1_u64 << 40) {
            let (mut window, mut opened, mut highest) = (ReplayWindow::default(), BTreeSet::new(), begin);
            window.mark(begin);
            opened.insert(begin);
            for (away, scale) in steps {
                let number = highest.saturating_add_signed(away / 8_i64.pow(scale as u32 - 1));
                let expected = if number + WINDOW_NUMBERS <= highest {
                    Err(Stale::Old)
                } else if opened.contains(&number) {
                    Err(Stale::Repeated)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.check(number), expected);
                if expected.is_ok() {
                    window.mark(number);
                    opened.insert(number);
                    highest = highest.max(number);
                }
                prop_assert_eq!(window.expected(), highest + 1);
            }
        }
    }
}
