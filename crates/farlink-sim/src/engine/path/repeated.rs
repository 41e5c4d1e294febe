//! A bundle's end that makes duplicate acknowledgements of a dropped call: it reads those that pass, and repeats the one that asks for
//! what was lost (Zaghloul, chapters 6 and 8).

use farlink_core::{Rx, Time};

use super::Path;
use super::heard::Heard;
use super::ring::{InFlight, OnLink};

/// So many mean a loss to TCP (RFC 5681, section 3.2).
const DUPLICATES: usize = 3;

impl Path {
    /// The bundle of the other direction of the same hop.
    fn opposite(&self, link: usize) -> usize {
        2 * self.hops - 1 - link
    }

    /// A packet came out of a bundle.
    #[cold]
    pub(super) fn hear<P: OnLink>(&mut self, link: usize, now: Time, flow: u32, packet: P) {
        if packet.asks_for().is_some() {
            self.heard::<P>(link, flow).last = Some(packet);
            self.repeat::<P>(link, now, flow);
        }
    }

    /// A packet was lost on the way over `link` as a call dropped.
    #[cold]
    pub(super) fn note_cut<P: OnLink>(&mut self, link: usize, now: Time, flow: u32, packet: &P) {
        let back = self.opposite(link);
        if let Some(position) = packet.stream_position() {
            self.heard::<P>(back, flow).lost.push_back(position);
            self.repeat::<P>(back, now, flow);
        }
    }

    /// The sender hears an acknowledgement again, as often as makes it send again.
    fn repeat<P: OnLink>(&mut self, link: usize, now: Time, flow: u32) {
        let Some(duplicate) = self.heard::<P>(link, flow).due() else { return };
        for _ in 0..DUPLICATES {
            let mut in_flight = InFlight { sent: now, ..InFlight::default() };
            duplicate.write(&mut in_flight.common);
            self.put_out::<P>(link, now, flow, in_flight, duplicate.rare(), Rx::default());
        }
    }

    fn heard<P: OnLink>(&mut self, link: usize, flow: u32) -> &mut Heard<P> {
        let waiting = self.legs[link].waiting.as_deref_mut().expect("both ways of a hop are bundles");
        let heard = &mut P::ring(&mut waiting.packets).heard;
        let index = flow as usize;
        if heard.len() <= index {
            heard.resize_with(index + 1, Heard::default);
        }
        &mut heard[index]
    }
}
