//! A bundle's end that signals a dropped call by duplicate acknowledgements: it reads passing acknowledgements, and repeats the one that
//! asks for lost data (Zaghloul, chapters 6 and 8).

use farlink_core::{Rx, Time};

use super::Path;
use super::ring::{InFlight, OnLink};
use super::seen_acks::SeenAcks;

/// Number of duplicates that mean a loss to TCP (RFC 5681, section 3.2).
const DUPLICATES: usize = 3;

impl Path {
    /// The bundle of the other direction of the same hop.
    fn opposite(&self, link: usize) -> usize {
        2 * self.hops - 1 - link
    }

    /// Notes a packet that came out of a bundle.
    #[cold]
    pub(super) fn pass_ack<P: OnLink>(&mut self, link: usize, now: Time, flow: u32, packet: P) {
        if packet.asks_for().is_some() {
            self.seen_acks::<P>(link, flow).last = Some(packet);
            self.repeat::<P>(link, now, flow);
        }
    }

    /// Notes a packet that was lost in flight over `link` because a call dropped.
    #[cold]
    pub(super) fn note_cut<P: OnLink>(&mut self, link: usize, now: Time, flow: u32, packet: &P) {
        let back = self.opposite(link);
        if let Some(position) = packet.stream_position() {
            self.seen_acks::<P>(back, flow).lost.push_back(position);
            self.repeat::<P>(back, now, flow);
        }
    }

    /// Repeats an acknowledgement as often as makes the sender retransmit.
    fn repeat<P: OnLink>(&mut self, link: usize, now: Time, flow: u32) {
        let Some(mut duplicate) = self.seen_acks::<P>(link, flow).due() else { return };
        for _ in 0..DUPLICATES {
            let mut in_flight = InFlight { sent: now, ..InFlight::default() };
            duplicate.write(&mut in_flight.common);
            self.put_out::<P>(link, now, flow, in_flight, duplicate.rare(), Rx::default());
        }
    }

    fn seen_acks<P: OnLink>(&mut self, link: usize, flow: u32) -> &mut SeenAcks<P> {
        let waiting = self.legs[link].waiting.as_deref_mut().expect("both ways of a hop are bundles");
        let seen_acks = &mut P::ring(&mut waiting.packets).seen_acks;
        let index = flow as usize;
        if seen_acks.len() <= index {
            seen_acks.resize_with(index + 1, SeenAcks::default);
        }
        &mut seen_acks[index]
    }
}
