//! A bundle of IP paths that replaces a link: the ends that `farlink bundle carry` runs, and emulated paths between them.
//!
//! Both directions of a hop are one [`Pair`] of ends, since acknowledgements and probes of one direction take bytes of the other. The
//! ends carry [`Parcel`]s, which have a length and a number and no bytes. Nothing tells the ends what became of a packet: that the
//! last copy of a parcel is gone, without having come out, tells the pair that the packet is lost.

mod pair;
mod parcel;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Entry, HopSetup, Outcome, PathsSetup, Ticket};
use crate::bundle::{Availability, Counts};
use crate::link::{Capacity, LinkState, Verdict};
use crate::time::Time;
use crate::units::BitRate;

pub use wire::PathCounts;

use pair::{Fate, Pair};

/// One direction of a bundle of paths: what one end sends.
pub(super) struct OverPaths {
    pair: Arc<Mutex<Pair>>,
    setup: Arc<PathsSetup>,
    /// The end that sends: 0 the near one, 1 the far one.
    end: usize,
    rate: BitRate,
    delay: Time,
}

impl OverPaths {
    /// Both directions in a run.
    pub(super) fn both(hop: &HopSetup, setup: &Arc<PathsSetup>, seed: u64, run: u64) -> [Self; 2] {
        let pair = Arc::new(Mutex::new(Pair::start(setup, &hop.name, seed, run)));
        [0, 1].map(|end| OverPaths {
            pair: Arc::clone(&pair),
            setup: Arc::clone(setup),
            end,
            rate: setup.rate(end),
            delay: setup.delay(end),
        })
    }

    fn pair(&self) -> MutexGuard<'_, Pair> {
        self.pair.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet arrives.
    pub(super) fn send(&self, now: Time, bytes: u32, class: usize, flow: u64) -> Entry {
        let slot = self.pair().send(now, self.end, bytes, class as u8, flow);
        slot.map_or(Entry::Sent(Verdict::Dropped), |slot| Entry::Waits(Ticket(slot)))
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due. The near end's direction wakes both ends.
    pub(super) fn poll_timeout(&self) -> Time {
        let pair = self.pair();
        let events = if self.end == 0 { pair.next_event() } else { Time::NEVER };
        pair.next_outcome(self.end).min(events)
    }

    pub(super) fn handle_timeout(&self, now: Time) {
        self.pair().handle_timeout(now);
    }

    pub(super) fn poll(&self, now: Time) -> Option<(Ticket, Outcome)> {
        let (slot, fate) = self.pair().poll(now, self.end)?;
        let outcome = match fate {
            Fate::Delivered => Outcome::ComesOut,
            Fate::Dropped => Outcome::Sent(Verdict::Dropped),
            Fate::Lost => Outcome::Lost,
        };
        Some((Ticket(slot), outcome))
    }

    /// Whether any packet of this direction is in the bundle.
    pub(super) fn has_waiting(&self) -> bool {
        self.pair().has_packets(self.end)
    }

    pub(super) fn begin_measurement(&self, now: Time) {
        if self.end == 0 {
            self.pair().begin_measurement(now);
        }
    }

    /// How long paths were up at the sending end, and the bundle's counts.
    pub(super) fn report(&self, now: Time) -> (Availability, Counts) {
        let mut pair = self.pair();
        (pair.availability(now, self.end), pair.counts(self.end))
    }

    /// Largest backlog in front of the paths, in bytes.
    pub(super) fn peak_waiting_bytes(&self) -> u64 {
        self.pair().counts(self.end).peak_waiting_bytes
    }

    /// Counts of each path.
    pub(super) fn of_paths(&self, now: Time) -> Vec<PathCounts> {
        self.pair().of_paths(now, self.end)
    }

    /// All paths together that do not stand by.
    pub(super) fn capacity(&self) -> Capacity {
        let pair = self.pair();
        Capacity::Together(self.setup.usual().map(|path| pair.capacity(path, self.end)).collect())
    }

    /// A bundle, as hosts see it: it is up, and has the rates of the paths that do not stand by, on average.
    pub(super) fn state(&self) -> LinkState {
        LinkState {
            up: true,
            rate: self.rate,
            delay: self.delay,
            cn0_dbhz: None,
            ber: None,
            setting: Default::default(),
        }
    }
}
