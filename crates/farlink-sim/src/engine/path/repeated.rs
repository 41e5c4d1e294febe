//! A bundle's end that makes duplicate acknowledgements of a dropped call: it reads those that pass, and repeats the one that asks for
//! what was lost (Zaghloul, chapters 6 and 8).

use std::collections::VecDeque;

use farlink_core::{Rx, Time};

use super::{InFlight, OnLink, Path};

/// So many mean a loss to TCP (RFC 5681, section 3.2).
const DUPLICATES: usize = 3;

/// What a bundle's end knows of a flow whose acknowledgements pass it.
#[derive(Clone, Debug)]
pub(super) struct Heard<P> {
    /// The last acknowledgement.
    last: Option<P>,
    /// Where what drops have lost begins in the stream, in the order of the losses.
    lost: VecDeque<u32>,
}

impl<P> Default for Heard<P> {
    fn default() -> Self {
        Heard { last: None, lost: VecDeque::new() }
    }
}

impl<P: OnLink> Heard<P> {
    /// The acknowledgement to repeat, if it has come to something that was lost. Earlier it would only ask for what is on its way.
    fn due(&mut self) -> Option<P> {
        let last = self.last.as_ref()?;
        let next = last.asks_for()?;
        self.lost.retain(|&position| position.wrapping_sub(next) as i32 >= 0);
        let at = self.lost.iter().position(|&position| position == next)?;
        self.lost.remove(at);
        last.duplicate()
    }
}

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

#[cfg(test)]
mod tests {
    use farlink_core::Virtual;
    use farlink_core::protocol::tcp::{Flags, Segment};

    use super::super::super::carried::Carried;
    use super::*;

    fn acknowledgement(ack: u32) -> Segment<Virtual> {
        Segment { ack, flags: Flags::ACK, header_bytes: 40, ..Segment::default() }
    }

    /// What was lost is asked for once each, when everything before it has been acknowledged, and not when it was sent again meanwhile.
    #[test]
    fn an_acknowledgement_is_repeated_when_it_has_come_to_a_loss() {
        let start = u32::MAX - 500; // numbers come round
        let mut heard = Heard::default();
        heard.lost.extend([2000, 1000, 3000].map(|behind| start.wrapping_add(behind)));
        assert!(heard.due().is_none(), "nothing was acknowledged yet");
        let mut asked = |behind: u32| {
            heard.last = Some(acknowledgement(start.wrapping_add(behind)));
            heard.due().map(|packet| packet.ack.wrapping_sub(start))
        };
        assert_eq!(
            [500, 1000, 1000, 2500, 2000, 3000].map(&mut asked),
            [None, Some(1000), None, None, None, Some(3000)]
        );
    }

    /// Data and control beside an acknowledgement are left out of what is repeated.
    #[test]
    fn only_the_acknowledgement_is_repeated() {
        let with_data =
            Segment { seq: 7, payload: Virtual(100), flags: Flags::ACK.with(Flags::PSH), ..acknowledgement(9) };
        let repeated = with_data.duplicate().expect("it acknowledges");
        assert_eq!((repeated.seq, repeated.payload, repeated.flags, repeated.ack), (107, Virtual(0), Flags::ACK, 9));
        let end = Segment { flags: Flags::ACK.with(Flags::FIN), ..acknowledgement(9) };
        assert_eq!(end.asks_for(), None);
    }
}
