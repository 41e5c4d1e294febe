//! The packets of one protocol on one link.

use std::collections::VecDeque;

use farlink_core::{Rx, Time};

use super::super::Rings;
use super::super::carried::{Carried, Extras};
use super::super::fifo::Fifo;
use super::seen_acks::SeenAcks;

/// A packet in flight, or the first packet of a train, and data of the engine.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight<C> {
    pub(super) sent: Time,
    pub(super) common: C,
    /// Increment from one packet of a train to the next.
    pub(super) step: u32,
    /// Whether it has an entry in the ring of rare options.
    pub(super) has_extras: bool,
}

/// The packets of one protocol on one link.
#[derive(Debug)]
pub(in super::super) struct Ring<P: Carried> {
    pub(super) packets: Fifo<InFlight<P::Common>>,
    pub(super) extras: VecDeque<Extras<P::Rare>>,
    /// The packets waiting in the hop, by ticket.
    pub(super) kept: Vec<Option<WaitingPacket<P::Common, P::Rare>>>,
    /// The acknowledgements of each flow that a bundle's end has seen, if it repeats them.
    pub(super) seen_acks: Vec<SeenAcks<P>>,
}

impl<P: Carried> Default for Ring<P> {
    fn default() -> Self {
        Ring { packets: Fifo::default(), extras: VecDeque::new(), kept: Vec::new(), seen_acks: Vec::new() }
    }
}

impl<P: Carried> Ring<P> {
    #[cold]
    pub(super) fn put_extras(&mut self, rare: Option<P::Rare>, rx: Rx) {
        self.extras.push_back(Extras { rare, rx });
    }
}

/// A packet type and its ring on a link.
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

/// A packet that waits in a hop.
#[derive(Debug)]
pub(super) struct WaitingPacket<C, R> {
    pub(super) in_flight: InFlight<C>,
    pub(super) rare: Option<R>,
    pub(super) rx: Rx,
}
