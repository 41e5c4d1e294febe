//! Decisions about a segment without a connection: whether it is valid, and whether it may open a connection at a
//! listener.

use crate::endpoint::{Integrity, Rx};
use crate::time::Time;

use super::config::AerotpConfig;
use super::mode::Mode;
use super::peer::Peer;
use super::segment::{Flags, OPENING_BYTES, Segment};

/// The result of the checks that need no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Screened {
    Passed,
    /// The payload is damaged, and the mode does not deliver that. `[B8]`
    Damaged,
    /// Its mode has no connections but the listener's has, or the other way round.
    Stray,
    /// Its flags contradict its content. `[B3]`
    Malformed,
}

/// Whether a segment arrived as it was sent, or was corrected. `[F7]`
#[inline]
pub(super) fn is_readable(rx: Rx) -> bool {
    matches!(rx.integrity, Integrity::Intact | Integrity::Mended { .. })
}

#[inline]
pub(super) fn screen<D: crate::Payload>(config: &AerotpConfig, segment: &Segment<D>, rx: Rx) -> Screened {
    let is_data = segment.mack.is_none() && segment.repair.is_none();
    let has_states = config.mode != Mode::Datagram;
    let delivers_damage = config.deliver_damaged && is_data && !config.mode.is_acknowledged();
    if !is_readable(rx) && !delivers_damage {
        Screened::Damaged
    } else if (segment.mode == Mode::Datagram) == has_states {
        Screened::Stray
    } else if has_states && !segment.flags.has(Flags::RESET) && segment.is_malformed() {
        Screened::Malformed
    } else {
        Screened::Passed
    }
}

/// Action of a listener for a segment of no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It opens a connection. `[C4]`
    Opens,
    /// It was sent before the last segment of the past peer, and is dropped. `[C11]`
    Late,
    /// It opens nothing, and is answered with a reset. `[C13]`
    Refused,
}

/// Judges a segment by the state of the last peer at its sender's address.
pub(super) fn judge<D>(past: Option<&Peer>, now: Time, segment: &Segment<D>) -> Verdict {
    if past.is_some_and(|past| !past.latest.is_before(now, segment.timestamp)) {
        return Verdict::Late;
    }
    let is_of_past = past.is_some_and(|past| past.has_tag(segment.tag));
    let is_opening = segment.flags.has(Flags::ASYN) && segment.mack.is_none();
    if is_opening && !is_of_past { Verdict::Opens } else { Verdict::Refused }
}

/// A reset, the answer to a segment of no connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset {
    tag: u16,
    sequence: u32,
    timestamp: u32,
    /// The opening of its sender, if that is opening a connection itself.
    opening: Option<u32>,
}

impl Reset {
    /// The answer to a segment; `None` to one that is itself an answer. `[C13]`
    pub(super) fn to<D>(segment: &Segment<D>, opening: Option<u32>) -> Option<Self> {
        let &Segment { tag, sequence, timestamp, .. } = segment;
        let is_answer = segment.mack.is_some() || segment.flags.has(Flags::RESET);
        (!is_answer).then_some(Reset { tag, sequence, timestamp, opening })
    }

    pub(super) fn segment<D: Default>(self, config: &AerotpConfig) -> Segment<D> {
        let Reset { tag, sequence, timestamp, opening } = self;
        let segment = Segment { tag, sequence, timestamp, ..Segment::default() };
        let header_bytes = config.header_bytes.whole() as u16;
        match opening {
            None => Segment { flags: Flags::RESET, header_bytes, ..segment },
            Some(opening) => {
                let flags = Flags::RESET.with(Flags::ASYN);
                Segment { flags, opening, header_bytes: header_bytes + OPENING_BYTES, ..segment }
            }
        }
    }
}
