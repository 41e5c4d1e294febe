//! Scheduling of classes of service: which class is served next.

/// Number of classes of service, 0 to 7, as in the three bits of IP precedence (RFC 2474, section 4.2.2).
pub const CLASSES: usize = 8;

/// Serves classes strictly by number, or by weight, or some in one way and some in the other.
///
/// Classes without a share are strict: none is served while a lower class has a backlog. Classes with shares divide the remaining
/// capacity by deficit round robin (Shreedhar and Varghese, "Efficient fair queuing using deficit round-robin", IEEE/ACM
/// Transactions on Networking 4 (1996)): each may send its share in a turn, and carries unused credit over to later turns as long
/// as it has a backlog. The service of two classes that always have a backlog differs from the ratio of their shares by at most a
/// turn and the largest item of each, whatever the sizes of items.
///
/// Call [`next`](Turns::next), send the first item of that class, and report it with [`sent`](Turns::sent).
#[derive(Clone, Debug)]
pub struct Turns {
    /// How much each class may send in a turn; 0 for strict classes.
    shares: [u64; CLASSES],
    /// Unused credit of each class.
    deficit: [u64; CLASSES],
    /// The class with a share whose turn it is.
    turn: usize,
    /// Whether that class has got the credit of this turn.
    is_credited: bool,
}

impl Turns {
    /// A scheduler with the share of each class in a turn, above 0 and in the unit of the items' sizes; `None` for a strict
    /// class.
    pub fn new(shares: [Option<u64>; CLASSES]) -> Self {
        let shares = shares.map(share_or_none);
        Turns { shares, deficit: [0; CLASSES], turn: 0, is_credited: false }
    }

    /// Gives a class another share; its unused credit is lost.
    pub fn set_share(&mut self, class: usize, share: Option<u64>) {
        self.shares[class] = share_or_none(share);
        self.deficit[class] = 0;
    }

    /// The class to be served next, given the size of the first item of each; `None` if nothing waits.
    #[inline]
    pub fn next(&mut self, first: impl Fn(usize) -> Option<u64>) -> Option<usize> {
        let strict = (0..CLASSES).find(|&class| self.shares[class] == 0 && first(class).is_some());
        if strict.is_some() {
            return strict;
        }
        loop {
            for _ in 0..CLASSES {
                if self.may_send(first(self.turn)) {
                    return Some(self.turn);
                }
                self.turn = (self.turn + 1) % CLASSES;
                self.is_credited = false;
            }
            // A whole round served no class. Count all further rounds that will serve none, except the last of them, in one step.
            let wanted = |class: usize| Some((first(class)? - self.deficit[class]).div_ceil(self.shares[class]));
            let rounds = (0..CLASSES).filter_map(wanted).min()?;
            for class in 0..CLASSES {
                if first(class).is_some() {
                    self.deficit[class] += (rounds - 1) * self.shares[class];
                }
            }
        }
    }

    /// Whether the class whose turn it is may send its first item.
    fn may_send(&mut self, first: Option<u64>) -> bool {
        let (share, deficit) = (self.shares[self.turn], &mut self.deficit[self.turn]);
        let Some(size) = first.filter(|_| share > 0) else {
            *deficit = 0; // a class without a backlog keeps no credit
            return false;
        };
        if !std::mem::replace(&mut self.is_credited, true) {
            *deficit += share;
        }
        size <= *deficit
    }

    /// The class that [`next`](Turns::next) returned has sent an item of `size`.
    #[inline]
    pub fn sent(&mut self, class: usize, size: u64) {
        self.deficit[class] = self.deficit[class].saturating_sub(size);
    }
}

/// The share of a class; 0 for a strict class.
fn share_or_none(share: Option<u64>) -> u64 {
    share.map_or(0, |share| share.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Serves classes that always have items of the given sizes waiting; returns how much each was served.
    fn serve(shares: [Option<u64>; CLASSES], sizes: [Option<u64>; CLASSES], items: u32) -> [u64; CLASSES] {
        let mut turns = Turns::new(shares);
        let mut served = [0; CLASSES];
        for _ in 0..items {
            let class = turns.next(|class| sizes[class]).expect("something waits");
            let size = sizes[class].expect("it is served");
            turns.sent(class, size);
            served[class] += size;
        }
        served
    }

    /// As [`Turns::next`] without the shortcut over rounds that serve no class.
    fn next_round_by_round(turns: &mut Turns, first: &[Option<u64>; CLASSES]) -> Option<usize> {
        loop {
            if turns.may_send(first[turns.turn]) {
                return Some(turns.turn);
            }
            turns.turn = (turns.turn + 1) % CLASSES;
            turns.is_credited = false;
        }
    }

    #[test]
    fn no_class_is_served_when_nothing_waits() {
        let mut turns = Turns::new([None, Some(1), None, Some(2), None, None, None, None]);
        assert_eq!(turns.next(|_| None), None);
        assert_eq!(turns.next(|class| (class == 3).then_some(1_000_000)), Some(3));
    }

    #[test]
    fn strict_classes_go_before_shares() {
        let mut turns = Turns::new([Some(5), None, Some(5), None, Some(5), Some(5), Some(5), Some(5)]);
        assert_eq!(turns.next(|_| Some(1500)), Some(1));
        assert_eq!(turns.next(|class| (class != 1).then_some(1500)), Some(3));
        assert_eq!(turns.next(|class| (![1, 3].contains(&class)).then_some(5)), Some(0));
    }

    /// A class loses its unused credit once it has no backlog.
    #[test]
    fn an_idle_class_keeps_no_credit() {
        let mut turns = Turns::new([Some(100); CLASSES]);
        assert_eq!(turns.next(|class| [Some(150), Some(100)].get(class).copied().flatten()), Some(1));
        turns.sent(1, 100);
        assert_eq!(turns.deficit[0], 100);
        assert_eq!(turns.next(|class| (class == 1).then_some(100)), Some(1));
        assert_eq!(turns.deficit[0], 0);
    }

    proptest! {
        #[test]
        fn shares_hold_for_any_packet_sizes(
            shares in proptest::array::uniform2(1_u64..2000),
            sizes in proptest::array::uniform2(1_u64..2000),
            items in 100_u32..3000,
        ) {
            let (mut all_shares, mut all_sizes) = ([None; CLASSES], [None; CLASSES]);
            for (at, class) in [1, 4].into_iter().enumerate() {
                (all_shares[class], all_sizes[class]) = (Some(shares[at]), Some(sizes[at]));
            }
            let served = serve(all_shares, all_sizes, items);
            // Turns that each had, by what it was served.
            let turns = |at: usize, class: usize| served[class] as f64 / shares[at] as f64;
            let item = |at: usize| sizes[at] as f64 / shares[at] as f64;
            prop_assert!((turns(0, 1) - turns(1, 4)).abs() <= 1.0 + item(0) + item(1), "{:?}", served);
        }

        /// Rounds that serve no class may be counted in one step.
        #[test]
        fn skipping_empty_rounds_gives_the_same_order(
            shares in proptest::array::uniform8(1_u64..500),
            steps in proptest::collection::vec(proptest::array::uniform8(proptest::option::weighted(0.6, 1_u64..100_000)), 1..60),
        ) {
            let shares = shares.map(Some);
            let (mut short, mut long) = (Turns::new(shares), Turns::new(shares));
            // Calling `next` while nothing waits would clear all unused credit.
            for first in steps.into_iter().filter(|first| first.iter().any(Option::is_some)) {
                let next = short.next(|class| first[class]);
                prop_assert_eq!(next, next_round_by_round(&mut long, &first));
                if let Some(class) = next {
                    let size = first[class].unwrap();
                    short.sent(class, size);
                    long.sent(class, size);
                    prop_assert_eq!(short.deficit, long.deficit);
                    prop_assert_eq!(short.turn, long.turn);
                }
            }
        }
    }
}
