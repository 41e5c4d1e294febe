//! Which of many state machines have something to do, so that a call looks at these only.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::origin::{MoveOrigin, OriginShift};
use crate::time::Time;

/// Keeps the deadlines of many state machines, and those to which something has happened since.
///
/// Its owner calls [`touch`](Self::touch) with each one that it passes a packet, a deadline or a call of the application. It then asks
/// the touched ones in turn ([`after`](Self::after)) for what they have to send. One that has nothing more is
/// [settled](Self::settle) with its next deadline, and is not looked at before it.
///
/// ```
/// use farlink_core::Time;
/// use farlink_core::agenda::Agenda;
///
/// let mut agenda = Agenda::default();
/// agenda.touch('b');
/// agenda.touch('a');
/// assert_eq!(agenda.after(Some('a')), Some('b'), "they take turns");
/// agenda.settle('a', Time::from_secs(1));
/// agenda.settle('b', Time::NEVER);
/// assert_eq!((agenda.after(None), agenda.next_due()), (None, Time::from_secs(1)));
/// assert_eq!(agenda.take_due(Time::from_secs(2)), Some('a'));
/// assert_eq!((agenda.after(None), agenda.next_due()), (Some('a'), Time::NEVER));
/// ```
#[derive(Clone, Debug)]
pub struct Agenda<K> {
    touched: BTreeSet<K>,
    /// State machines that may have something to tell.
    telling: BTreeSet<K>,
    deadlines: BTreeSet<(Time, K)>,
    /// The deadline of each that has one.
    scheduled: BTreeMap<K, Time>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Agenda {
            touched: BTreeSet::new(),
            telling: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            scheduled: BTreeMap::new(),
        }
    }
}

impl<K: Copy + Ord> Agenda<K> {
    /// Something has happened to one: it may have something to send or to tell, and another deadline.
    pub fn touch(&mut self, key: K) {
        self.touched.insert(key);
        self.telling.insert(key);
    }

    /// The next touched one in turn after another one, which may be that one again.
    pub fn after(&self, last: Option<K>) -> Option<K> {
        let behind = last.and_then(|last| self.touched.range((Bound::Excluded(last), Bound::Unbounded)).next());
        behind.or_else(|| self.touched.first()).copied()
    }

    /// All touched ones.
    pub fn touched(&self) -> impl Iterator<Item = K> + '_ {
        self.touched.iter().copied()
    }

    /// A state machine has nothing more to send before this deadline.
    pub fn settle(&mut self, key: K, due: Time) {
        self.touched.remove(&key);
        self.schedule(key, due);
    }

    /// One may have something to tell, and nothing to send.
    pub fn may_tell(&mut self, key: K) {
        self.telling.insert(key);
    }

    /// A state machine that may have something to tell. It is asked again until [`has_told`](Self::has_told).
    pub fn telling(&self) -> Option<K> {
        self.telling.first().copied()
    }

    /// A state machine has told everything.
    pub fn has_told(&mut self, key: K) {
        self.telling.remove(&key);
    }

    /// One whose deadline has passed, which is touched by that; `None` if there are no more.
    pub fn take_due(&mut self, now: Time) -> Option<K> {
        let &(_, key) = self.deadlines.first().filter(|(due, _)| *due <= now)?;
        self.schedule(key, Time::NEVER);
        self.touch(key);
        Some(key)
    }

    /// The earliest deadline of those that are settled.
    pub fn next_due(&self) -> Time {
        self.deadlines.first().map_or(Time::NEVER, |(due, _)| *due)
    }

    /// A state machine is gone.
    pub fn remove(&mut self, key: K) {
        self.schedule(key, Time::NEVER);
        self.touched.remove(&key);
        self.telling.remove(&key);
    }

    fn schedule(&mut self, key: K, due: Time) {
        let before = if due == Time::NEVER { self.scheduled.remove(&key) } else { self.scheduled.insert(key, due) };
        if before != Some(due) {
            if let Some(before) = before {
                self.deadlines.remove(&(before, key));
            }
            if due != Time::NEVER {
                self.deadlines.insert((due, key));
            }
        }
    }

    /// The clock reads less from now on ([`OriginShift`]).
    pub fn move_origin(&mut self, by: OriginShift) {
        MoveOrigin::move_origin(self, by);
    }
}

impl<K: Copy + Ord> MoveOrigin for Agenda<K> {
    fn move_origin(&mut self, by: OriginShift) {
        let Self { deadlines, scheduled, touched: _, telling: _ } = self;
        scheduled.values_mut().for_each(|due| due.move_origin(by));
        *deadlines = scheduled.iter().map(|(&key, &due)| (due, key)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Touch(u8),
        Settle(u8, u64),
        Remove(u8),
        Due(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let key = 0..6_u8;
        let step = prop_oneof![
            key.clone().prop_map(Step::Touch),
            (key.clone(), 0..20_u64).prop_map(|(key, due)| Step::Settle(key, due)),
            key.prop_map(Step::Remove),
            (0..20_u64).prop_map(Step::Due),
        ];
        proptest::collection::vec(step, 0..60)
    }

    proptest! {
        /// As a list that is looked through each time.
        #[test]
        fn it_agrees_with_a_list(steps in steps()) {
            let (mut agenda, mut touched, mut due) = (Agenda::default(), BTreeSet::new(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Touch(key) => {
                        agenda.touch(key);
                        touched.insert(key);
                    }
                    Step::Settle(key, at) => {
                        let at = if at == 0 { Time::NEVER } else { Time::from_secs(at) };
                        agenda.settle(key, at);
                        touched.remove(&key);
                        due.insert(key, at);
                    }
                    Step::Remove(key) => {
                        agenda.remove(key);
                        touched.remove(&key);
                        due.remove(&key);
                    }
                    Step::Due(now) => {
                        let now = Time::from_secs(now);
                        while let Some(key) = agenda.take_due(now) {
                            prop_assert!(due.remove(&key).is_some_and(|at| at <= now));
                            touched.insert(key);
                        }
                    }
                }
                prop_assert_eq!(agenda.touched().collect::<BTreeSet<_>>(), touched.clone());
                prop_assert_eq!(agenda.next_due(), due.values().copied().min().unwrap_or(Time::NEVER));
                let (mut turns, mut last) = (BTreeSet::new(), None);
                for _ in 0..touched.len() {
                    last = agenda.after(last);
                    turns.extend(last);
                }
                prop_assert_eq!(turns, touched.clone(), "each has its turn");
            }
        }
    }
}
