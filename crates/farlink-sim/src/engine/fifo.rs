//! A ring of plain values, like `VecDeque` but faster per packet.
//!
//! Slots are written in place, field by field. Building a value first and copying it with wider loads than it was
//! stored with defeats store forwarding, and the stall costs more than the rest of the work for a packet.

/// A queue; grows by doubling. A value that is dropped stays in its slot until another takes its place.
#[derive(Clone, Debug)]
pub(super) struct Fifo<T> {
    /// Their number is a power of two, or 0.
    slots: Vec<T>,
    /// Numbers of values taken and put so far; they wrap.
    taken: usize,
    put: usize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Fifo { slots: Vec::new(), taken: 0, put: 0 }
    }
}

impl<T: Default> Fifo<T> {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken)
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.put == self.taken
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> usize {
        index & self.slots.len().wrapping_sub(1)
    }

    /// The first value.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.slots.get(self.slot(self.taken)) }
    }

    /// The first value.
    #[inline(always)]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        let slot = self.slot(self.taken);
        if self.is_empty() { None } else { self.slots.get_mut(slot) }
    }

    /// The last value.
    #[inline(always)]
    pub(super) fn back(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.slots.get(self.slot(self.put.wrapping_sub(1))) }
    }

    /// The last value.
    #[inline(always)]
    pub(super) fn back_mut(&mut self) -> Option<&mut T> {
        let slot = self.slot(self.put.wrapping_sub(1));
        if self.is_empty() { None } else { self.slots.get_mut(slot) }
    }

    /// The value at a position from the front.
    pub(super) fn get(&self, position: usize) -> Option<&T> {
        if position < self.len() { self.slots.get(self.slot(self.taken.wrapping_add(position))) } else { None }
    }

    /// The value at a position from the front.
    pub(super) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        let slot = self.slot(self.taken.wrapping_add(position));
        if position < self.len() { self.slots.get_mut(slot) } else { None }
    }

    /// Removes the first value.
    ///
    /// # Panics
    /// In debug builds, if there is none.
    #[inline(always)]
    pub(super) fn drop_front(&mut self) {
        debug_assert!(!self.is_empty(), "nothing to drop");
        self.taken = self.taken.wrapping_add(1);
    }

    /// Appends a slot, to be filled in place.
    #[inline(always)]
    pub(super) fn push_slot(&mut self) -> &mut T {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.put);
        self.put = self.put.wrapping_add(1);
        &mut self.slots[slot]
    }

    /// Appends `count` values.
    #[inline(always)]
    pub(super) fn extend(&mut self, count: usize, mut next: impl FnMut() -> T) {
        while self.slots.len() - self.len() < count {
            self.grow();
        }
        for _ in 0..count {
            let slot = self.slot(self.put);
            self.slots[slot] = next();
            self.put = self.put.wrapping_add(1);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (first, len) = (self.slot(self.taken), self.len());
        self.slots.rotate_left(first);
        (self.taken, self.put) = (0, len);
        let capacity = (self.slots.len() * 2).max(8);
        self.slots.resize_with(capacity, T::default);
    }

    /// Inserts a value so that it has the given position from the front.
    pub(super) fn insert(&mut self, position: usize, value: T) {
        *self.push_slot() = value;
        for behind in (position + 1..self.len()).rev() {
            let (one, other) =
                (self.slot(self.taken.wrapping_add(behind)), self.slot(self.taken.wrapping_add(behind - 1)));
            self.slots.swap(one, other);
        }
    }

    /// Number of values that satisfy `is_before`; they must all precede those that do not.
    pub(super) fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(&is_before) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_like_a_deque(operations in proptest::collection::vec((0u8..5, 0usize..40, any::<u32>()), 0..300)) {
            let mut fifo = Fifo::default();
            let mut deque = VecDeque::new();
            for (operation, position, value) in operations {
                match operation {
                    0 if !deque.is_empty() => {
                        fifo.drop_front();
                        deque.pop_front();
                    }
                    1 => {
                        let position = position.min(deque.len());
                        fifo.insert(position, value);
                        deque.insert(position, value);
                    }
                    2 => {
                        let mut values = (0..position as u32).map(|n| value.wrapping_add(n));
                        deque.extend(values.clone());
                        fifo.extend(position, || values.next().unwrap());
                    }
                    _ => {
                        *fifo.push_slot() = value;
                        deque.push_back(value);
                    }
                }
                prop_assert_eq!(fifo.len(), deque.len());
                prop_assert_eq!(fifo.front(), deque.front());
                prop_assert_eq!(fifo.front_mut(), deque.front_mut());
                prop_assert_eq!(fifo.back(), deque.back());
                prop_assert_eq!(fifo.back_mut(), deque.back_mut());
                prop_assert!((0..deque.len() + 1).all(|at| fifo.get(at) == deque.get(at)));
            }
        }
    }
}
