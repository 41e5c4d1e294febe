//! The fields of a segment that concern the sending direction.

use crate::payload::Payload;

use super::segment::{Flags, SackBlock, Segment, SnackReport};

/// The acknowledgement in a segment: the fields that the sending direction handles.
pub(super) struct AckFields<'a> {
    pub(super) ack: u32,
    pub(super) window: u16,
    pub(super) flags: Flags,
    pub(super) has_payload: bool,
    /// The timestamp that the peer echoes.
    pub(super) echo: Option<u32>,
    pub(super) sack: &'a [SackBlock],
    pub(super) snack: Option<&'a SnackReport>,
    pub(super) has_corruption: bool,
}

impl<'a> AckFields<'a> {
    #[inline(always)]
    pub(super) fn of<D: Payload>(segment: &'a Segment<D>) -> Self {
        AckFields {
            ack: segment.ack,
            window: segment.window,
            flags: segment.flags,
            has_payload: !segment.payload.is_empty(),
            echo: segment.timestamps.map(|timestamps| timestamps.echo),
            sack: segment.sack.as_slice(),
            snack: segment.snack.as_ref(),
            has_corruption: segment.corruption_experienced,
        }
    }
}
