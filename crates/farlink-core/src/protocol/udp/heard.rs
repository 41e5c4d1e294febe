//! The numbers of the datagrams that have arrived.

use std::collections::VecDeque;

/// Number of datagrams, up to the newest one, whose arrival is remembered. A copy of an older one is dropped.
const REMEMBERED: u32 = 1 << 20;

/// Which datagrams have arrived, as a window of bits whose beginning moves over what has arrived without a gap.
///
/// It takes at most 128 KiB, whatever numbers a stranger sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// The number of the first bit. All earlier datagrams have arrived, or are too old.
    start: u32,
    words: VecDeque<u64>,
}

impl Heard {
    /// Notes the arrival of a datagram; whether it is the first copy.
    pub(super) fn is_new(&mut self, number: u32) -> bool {
        let mut ahead = number.wrapping_sub(self.start);
        if ahead > u32::MAX / 2 {
            return false;
        }
        if ahead >= REMEMBERED {
            let words = (ahead - REMEMBERED) / 64 + 1;
            self.words.drain(..self.words.len().min(words as usize));
            self.start = self.start.wrapping_add(words * 64);
            ahead -= words * 64;
        }
        let word = (ahead / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (ahead % 64);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.start = self.start.wrapping_add(64);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_unbroken_row_takes_no_memory() {
        let mut heard = Heard::default();
        assert!((0..1_000_000).all(|number| heard.is_new(number)));
        assert!(heard.words.len() <= 1);
        assert!(!heard.is_new(999_999) && !heard.is_new(5));
    }

    #[test]
    fn numbers_wrap() {
        let mut heard = Heard { start: u32::MAX - 63, words: VecDeque::new() };
        assert!((0..200_u32).all(|n| heard.is_new((u32::MAX - 63).wrapping_add(n))));
        assert!(!heard.is_new(100) && !heard.is_new(u32::MAX) && heard.is_new(136));
    }

    proptest! {
        /// Within the window it is a set; jumps of any size keep the memory bounded.
        #[test]
        fn it_agrees_with_a_set(
            jumps in proptest::collection::vec(prop_oneof![8 => -300i64..300, 1 => -3_000_000i64..3_000_000], 1..400),
        ) {
            let (mut heard, mut set) = (Heard::default(), BTreeSet::new());
            let mut at = 0i64;
            for jump in jumps {
                at = (at + jump).max(0);
                let highest = set.last().copied().unwrap_or(0).max(at);
                let is_new = heard.is_new(at as u32);
                prop_assert!(heard.words.len() <= REMEMBERED as usize / 64);
                // The window moves by whole words.
                if at + i64::from(REMEMBERED) - 64 > highest {
                    prop_assert_eq!(is_new, set.insert(at));
                } else {
                    prop_assert!(!is_new || set.insert(at));
                }
            }
        }
    }
}
