//! The acknowledgements that pass a bundle's end, and what dropped calls have lost: when is one repeated?

use std::collections::VecDeque;

use super::super::carried::Carried;

/// What a bundle's end knows of a flow whose acknowledgements pass it.
#[derive(Clone, Debug)]
pub(super) struct Heard<P> {
    /// The last acknowledgement.
    pub(super) last: Option<P>,
    /// Where what drops have lost begins in the stream, in the order of the losses.
    pub(super) lost: VecDeque<u32>,
}

impl<P> Default for Heard<P> {
    fn default() -> Self {
        Heard { last: None, lost: VecDeque::new() }
    }
}

impl<P: Carried> Heard<P> {
    /// The acknowledgement to repeat, if it has come to something that was lost. Earlier it would only ask for what is on its way.
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
