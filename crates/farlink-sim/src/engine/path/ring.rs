//! The packets of one protocol on one link.

use std::collections::VecDeque;

use farlink_core::{Rx, Time};

use super::super::Rings;
use super::super::carried::{Beside, Carried};
use super::super::fifo::Fifo;
use super::seen_acks::SeenAcks;

/// A packet that a link carries, with what only the engine knows; or the first of a train of them.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight<C> {
    pub(super) sent: Time,
    pub(super) common: C,
    /// What each packet of a train adds to the one before it.
    pub(super) step: u32,
    /// There is an entry for it in the ring of rare options.
    pub(super) has_beside: bool,
}

/// The packets of one protocol on one link.
#[derive(Debug)]
pub(in super::super) struct Ring<P: Carried> {
    pub(super) packets: Fifo<InFlight<P::Common>>,
    pub(super) beside: VecDeque<Beside<P::Rare>>,
    /// What waits in the hop, by ticket.
    pub(super) kept: Vec<Option<Kept<P::Common, P::Rare>>>,
    /// The acknowledgements of each flow that a bundle's end has seen, if it repeats them.
    pub(super) seen_acks: Vec<SeenAcks<P>>,
}

impl<P: Carried> Default for Ring<P> {
    fn default() -> Self {
        Ring { packets: Fifo::default(), beside: VecDeque::new(), kept: Vec::new(), seen_acks: Vec::new() }
    }
}

impl<P: Carried> Ring<P> {
    #[cold]
    pub(super) fn put_beside(&mut self, rare: Option<P::Rare>, rx: Rx) {
        self.beside.push_back(Beside { rare, rx });
    }
}

/// A protocol's packets: which ring is theirs.
pub(in super::super) trait OnLink: Carried {
    const KIND: u8;
    fn ring(rings: &mut Rings) -> &mut Ring<Self>;
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Arrived<P> {
    pub(in super::super) packet: P,
    pub(in super::super) rx: Rx,
    pub(in super::super) sent: Time,
}

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Kept<C, R> {
    pub(super) in_flight: InFlight<C>,
    pub(super) rare: Option<R>,
    pub(super) rx: Rx,
}
