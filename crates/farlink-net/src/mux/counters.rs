//! Counters of initiations: a recorded one is known, even after a restart. `[Y5]`, `[Y6]`

use std::collections::BTreeMap;
use std::io;

use crate::seal::PublicKey;

/// Where bounds of counters are kept beyond the end of the process. A bound that was kept is never forgotten.
pub trait CounterStore: Send {
    /// The bound of this side's own counter: it has used none at or above it.
    fn own(&self) -> u64;

    /// Keeps another bound of the own counter.
    ///
    /// # Errors
    /// If it may not last.
    fn keep_own(&mut self, bound: u64) -> io::Result<()>;

    /// The bound of a peer's counter: this side has taken none above it. 0 for a peer of which nothing is kept.
    fn peer(&self, peer: &PublicKey) -> u64;

    /// Keeps another bound of a peer's counter.
    ///
    /// # Errors
    /// If it may not last.
    fn keep_peer(&mut self, peer: &PublicKey, bound: u64) -> io::Result<()>;
}

/// Counters count microseconds of the wall clock where that goes forward. A bound that is kept lies this far ahead, so that not every
/// handshake waits for a disk.
const STEP: u64 = 1 << 24;

/// The counters in memory, ahead of the bounds in the store.
#[derive(Default)]
pub(crate) struct Counters {
    own: u64,
    /// The highest that was taken of each peer since the start.
    peers: BTreeMap<PublicKey, u64>,
}

impl Counters {
    /// The counter of the next initiation: above all before, also those before a restart or with a clock that was ahead.
    pub(crate) fn next_own(&mut self, unix_us: u64, store: &mut dyn CounterStore) -> io::Result<u64> {
        let least = if self.own == 0 { store.own() } else { self.own + 1 };
        let counter = unix_us.max(least);
        if counter >= store.own() {
            // One more than what the peer keeps, so that it takes the next one even if both restart.
            store.keep_own(counter.saturating_add(STEP + 1))?;
        }
        self.own = counter;
        Ok(counter)
    }

    /// Whether a peer's counter is above all that were taken. If so it is taken, and none at or below it ever again.
    pub(crate) fn take(&mut self, peer: &PublicKey, counter: u64, store: &mut dyn CounterStore) -> io::Result<bool> {
        let kept = store.peer(peer);
        if counter <= self.peers.get(peer).copied().unwrap_or(kept) {
            return Ok(false);
        }
        if counter > kept {
            store.keep_peer(peer, counter.saturating_add(STEP))?;
        }
        self.peers.insert(*peer, counter);
        Ok(true)
    }
}

/// A store that lasts as long as the process: for tests, and for hosts without any state, whose early data can be replayed after a
/// restart.
#[derive(Clone, Debug, Default)]
pub struct MemoryCounters {
    own: u64,
    peers: BTreeMap<PublicKey, u64>,
}

impl CounterStore for MemoryCounters {
    fn own(&self) -> u64 {
        self.own
    }

    fn keep_own(&mut self, bound: u64) -> io::Result<()> {
        self.own = bound;
        Ok(())
    }

    fn peer(&self, peer: &PublicKey) -> u64 {
        self.peers.get(peer).copied().unwrap_or(0)
    }

    fn keep_peer(&mut self, peer: &PublicKey, bound: u64) -> io::Result<()> {
        self.peers.insert(*peer, bound);
        Ok(())
    }
}

/// In place of a store that was given back: no counter can be kept any more, so no handshake begins or is answered.
pub(super) struct Released;

impl CounterStore for Released {
    fn own(&self) -> u64 {
        0
    }

    fn keep_own(&mut self, _bound: u64) -> io::Result<()> {
        Err(released())
    }

    fn peer(&self, _peer: &PublicKey) -> u64 {
        0
    }

    fn keep_peer(&mut self, _peer: &PublicKey, _bound: u64) -> io::Result<()> {
        Err(released())
    }
}

fn released() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the endpoint is closed, and its counters belong to others")
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const PEER: PublicKey = PublicKey::new([1; 32]);

    proptest! {
        /// Whatever the clock does, and whenever the process ends.
        #[test]
        fn own_counters_grow(steps in vec((0_u64..1 << 30, any::<bool>()), 1..100)) {
            let (mut counters, mut store, mut last) = (Counters::default(), MemoryCounters::default(), 0);
            for (unix_us, restarts) in steps {
                if restarts {
                    counters = Counters::default();
                }
                let counter = counters.next_own(unix_us, &mut store).unwrap();
                prop_assert!(counter > last || last == 0);
                last = counter;
            }
        }

        #[test]
        fn no_counter_of_a_peer_is_taken_twice(steps in vec((0_u64..1 << 26, any::<bool>()), 1..100)) {
            let (mut counters, mut store, mut taken) = (Counters::default(), MemoryCounters::default(), Vec::new());
            for (counter, restarts) in steps {
                if restarts {
                    counters = Counters::default();
                }
                if counters.take(&PEER, counter, &mut store).unwrap() {
                    prop_assert!(taken.iter().all(|&before| before < counter));
                    taken.push(counter);
                }
            }
        }
    }

    #[test]
    fn the_first_counter_after_both_restart_is_taken() {
        let (mut own, mut taken) = (MemoryCounters::default(), MemoryCounters::default());
        for unix_us in 1_000_000..1_000_010 {
            let counter = Counters::default().next_own(unix_us, &mut own).unwrap();
            assert!(Counters::default().take(&PEER, counter, &mut taken).unwrap());
        }
    }

    #[test]
    fn a_handshake_seldom_waits_for_the_store() {
        let (mut counters, mut store) = (Counters::default(), MemoryCounters::default());
        assert!(counters.take(&PEER, 1_000_000, &mut store).unwrap());
        let kept = store.peer(&PEER);
        for counter in (1_000_001..10_000_000).step_by(1_000_000) {
            assert!(counters.take(&PEER, counter, &mut store).unwrap());
        }
        assert_eq!(store.peer(&PEER), kept);
    }
}
