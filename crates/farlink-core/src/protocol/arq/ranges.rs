//! Sets of frame numbers that are mostly contiguous.

/// Disjoint ranges, ascending, never adjacent.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    all: Vec<(u64, u64)>,
}

impl Ranges {
    /// The ranges, each from its first number to before its second.
    #[inline]
    pub(super) fn as_slice(&self) -> &[(u64, u64)] {
        &self.all
    }

    /// The first number from `at` on that is not in the set.
    #[inline]
    pub(super) fn end_of_run(&self, at: u64) -> u64 {
        let index = self.all.partition_point(|&(_, right)| right <= at);
        self.all.get(index).filter(|&&(left, _)| left <= at).map_or(at, |&(_, right)| right)
    }

    /// Whether adding this number would make one more range.
    #[inline]
    pub(super) fn is_apart(&self, number: u64) -> bool {
        let index = self.all.partition_point(|&(_, right)| right < number);
        self.all.get(index).is_none_or(|&(left, _)| left > number + 1)
    }

    /// Adds the numbers from `left` to before `right`.
    #[inline]
    pub(super) fn insert(&mut self, left: u64, right: u64) {
        if let Some(last) = self.all.last_mut()
            && last.1 == left
        {
            last.1 = right; // the most frequent case by far
            return;
        }
        let first = self.all.partition_point(|&(_, end)| end < left);
        let behind = first + self.all[first..].partition_point(|&(start, _)| start <= right);
        if first == behind {
            self.all.insert(first, (left, right));
            return;
        }
        let joined = (left.min(self.all[first].0), right.max(self.all[behind - 1].1));
        self.all[first] = joined;
        self.all.drain(first + 1..behind);
    }

    /// Removes all numbers before `number`.
    #[inline]
    pub(super) fn remove_before(&mut self, number: u64) {
        let gone = self.all.partition_point(|&(_, right)| right <= number);
        if gone > 0 {
            self.all.drain(..gone);
        }
        if let Some(first) = self.all.first_mut() {
            first.0 = first.0.max(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(operations in proptest::collection::vec((0_u8..4, 0_u64..60, 1_u64..9), 0..60)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (operation, at, n) in operations {
                if operation == 0 {
                    ranges.remove_before(at);
                    set.retain(|&number| number >= at);
                } else {
                    ranges.insert(at, at + n);
                    set.extend(at..at + n);
                }
                let listed: Vec<u64> = ranges.as_slice().iter().flat_map(|&(left, right)| left..right).collect();
                prop_assert_eq!(&listed, &set.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.as_slice().windows(2).all(|pair| pair[0].1 < pair[1].0));
                for number in 0..70 {
                    let run_end = (number..).find(|number| !set.contains(number));
                    prop_assert_eq!(Some(ranges.end_of_run(number)), run_end);
                    let mut with = ranges.clone();
                    with.insert(number, number + 1);
                    prop_assert_eq!(ranges.is_apart(number), with.as_slice().len() > ranges.as_slice().len());
                }
            }
        }
    }
}
