//! Decides when a bundle's end repeats an acknowledgement, from the acknowledgements that pass it and the data that dropped calls lost.

use std::collections::VecDeque;

use super::super::carried::Carried;

/// A bundle end's knowledge of a flow whose acknowledgements pass it.
#[derive(Clone, Debug)]
pub(super) struct SeenAcks<P> {
    /// The last acknowledgement.
    pub(super) last: Option<P>,
    /// Stream positions of the packets lost by drops, in the order of the losses.
    pub(super) lost: VecDeque<u32>,
}

impl<P> Default for SeenAcks<P> {
    fn default() -> Self {
        SeenAcks { last: None, lost: VecDeque::new() }
    }
}

impl<P: Carried> SeenAcks<P> {
    /// The acknowledgement to repeat, once it asks for lost data. Before, it would only ask for data that is still in flight.
    pub(super) fn due(&mut self) -> Option<P> {
        let last = self.last.as_ref()?;
        let next = last.asks_for()?;
        self.lost.retain(|&position| position.wrapping_sub(next) as i32 >= 0);
        let at = self.lost.iter().position(|&position| position == next)?;
        self.lost.remove(at);
        last.duplicate()
    }
}

#[cfg(test)]
mod tests {
    use farlink_core::Virtual;
    use farlink_core::protocol::tcp::{Flags, Segment};

    use super::*;

    fn acknowledgement(ack: u32) -> Segment<Virtual> {
        Segment { ack, flags: Flags::ACK, header_bytes: 40, ..Segment::default() }
    }

    /// Each loss is asked for once, when everything before it has been acknowledged, and not if it was sent again in the meantime.
    #[test]
    fn an_acknowledgement_is_repeated_when_it_has_come_to_a_loss() {
        let start = u32::MAX - 500; // sequence numbers wrap
        let mut seen_acks = SeenAcks::default();
        seen_acks.lost.extend([2000, 1000, 3000].map(|behind| start.wrapping_add(behind)));
        assert!(seen_acks.due().is_none(), "nothing was acknowledged yet");
        let mut asked = |behind: u32| {
            seen_acks.last = Some(acknowledgement(start.wrapping_add(behind)));
            seen_acks.due().map(|packet| packet.ack.wrapping_sub(start))
        };
        assert_eq!(
            [500, 1000, 1000, 2500, 2000, 3000].map(&mut asked),
            [None, Some(1000), None, None, None, Some(3000)]
        );
    }

    /// A repeated acknowledgement has neither data nor control flags.
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
