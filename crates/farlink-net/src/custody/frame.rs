//! Frames of the streams of custody, in both directions. `docs/gateway-protocol.md`

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::framing::{self, Malformed};

use super::stream::{Label, StreamId};

/// A frame of a connection that passes a stream on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes of the stream, with the position of the first one. `[T16]`
    Data {
        /// The position.
        position: u64,
        /// At least one byte.
        data: Bytes,
    },
    /// Says which stream it is; the first frame. `[T15]`
    Open {
        /// The stream.
        stream: StreamId,
        /// Where it goes.
        label: Label,
    },
    /// The stream ends here. `[T16]`
    End {
        /// The position behind the last byte.
        position: u64,
    },
    /// Everything below is kept, and with `has_end` the end as well. `[T17]`
    Kept {
        /// The position.
        position: u64,
        /// Whether the end is kept.
        has_end: bool,
    },
    /// The node that holds the whole stream may forget it. `[T18]`
    Forget,
    /// The stream is not taken. `[T19]`
    Refused(Refusal),
}

/// Why a stream is not taken. `[T19]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Something that has no other name.
    Other,
    /// The peer may not send to this sink, or nobody knows it.
    NotAllowed,
    /// There are as many streams as there may be, or it is about to stop.
    Full,
    /// The stream belongs to another peer.
    NotYours,
    /// The stream was given up.
    GivenUp,
}

/// Most data of a frame.
pub(super) const MOST_DATA: usize = 16 * 1024;
const MOST_CONTENT: usize = MOST_DATA + 8;

const DATA: u8 = 0;
const OPEN: u8 = 1;
const END: u8 = 2;
const KEPT: u8 = 3;
const FORGET: u8 = 4;
const REFUSED: u8 = 5;

const REFUSALS: [Refusal; 5] =
    [Refusal::Other, Refusal::NotAllowed, Refusal::Full, Refusal::NotYours, Refusal::GivenUp];

/// Finds frames in a stream.
#[derive(Debug, Default)]
pub struct Frames(BytesMut);

impl Frames {
    /// Takes what has arrived.
    pub fn push(&mut self, arrived: &[u8]) {
        self.0.extend_from_slice(arrived);
    }

    /// The next frame; `None` if more has to arrive.
    ///
    /// # Errors
    /// If what stands there can be no frame, whatever follows.
    pub fn take(&mut self) -> Result<Option<Frame>, Malformed> {
        let Some((kind, bytes)) = framing::header(&self.0) else { return Ok(None) };
        if kind > REFUSED || bytes > MOST_CONTENT {
            return Err(Malformed);
        }
        let Some(content) = framing::take_content(&mut self.0, bytes) else { return Ok(None) };
        Frame::of(kind, content).ok_or(Malformed).map(Some)
    }
}

impl Frame {
    fn of(kind: u8, mut content: Bytes) -> Option<Self> {
        // Bytes behind the fields belong to later versions.
        Some(match kind {
            DATA => {
                let position = content.try_get_u64().ok()?;
                position.checked_add(content.len() as u64).filter(|_| !content.is_empty())?;
                Frame::Data { position, data: content }
            }
            OPEN => {
                let stream = StreamId::from(content.try_get_u128().ok()?.to_be_bytes());
                let bytes = usize::from(content.try_get_u8().ok()?);
                let label = std::str::from_utf8(content.get(..bytes)?).ok()?.parse().ok()?;
                Frame::Open { stream, label }
            }
            END => Frame::End { position: content.try_get_u64().ok()? },
            KEPT => {
                let position = content.try_get_u64().ok()?;
                Frame::Kept { position, has_end: content.try_get_u8().ok()? != 0 }
            }
            FORGET => Frame::Forget,
            _ => Frame::Refused(Refusal::of(content.try_get_u8().ok()?)),
        })
    }

    /// Puts it behind what there is. Data have no more than 16 KiB.
    pub fn put(&self, into: &mut BytesMut) {
        framing::put(into, MOST_CONTENT, |into| match self {
            Frame::Data { position, data } => {
                into.put_u64(*position);
                into.put_slice(data);
                DATA
            }
            Frame::Open { stream, label } => {
                into.put_slice(stream.as_bytes());
                into.put_u8(label.as_str().len() as u8);
                into.put_slice(label.as_str().as_bytes());
                OPEN
            }
            Frame::End { position } => {
                into.put_u64(*position);
                END
            }
            Frame::Kept { position, has_end } => {
                into.put_u64(*position);
                into.put_u8((*has_end).into());
                KEPT
            }
            Frame::Forget => FORGET,
            Frame::Refused(why) => {
                into.put_u8(why.code());
                REFUSED
            }
        });
    }
}

impl Refusal {
    fn of(code: u8) -> Self {
        framing::meaning(&REFUSALS, code)
    }

    fn code(self) -> u8 {
        framing::code(&REFUSALS, self)
    }

    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Refusal::Other => "the next node does not take the stream; look at its log",
            Refusal::NotAllowed => {
                "the next node has no such sink for this host; look at [[custody.route]] there, or at the sink's name"
            }
            Refusal::Full => {
                "the next node is about to end, or has as many streams as it may have; wait, or raise custody.streams there"
            }
            Refusal::NotYours => "another host has sent this stream; draw another number",
            Refusal::GivenUp => "the next node has given the stream up, as nothing came for too long; send it anew",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        prop_oneof![
            (0..1_u64 << 60, prop::collection::vec(any::<u8>(), 1..2000))
                .prop_map(|(position, data)| Frame::Data { position, data: data.into() }),
            (any::<[u8; 16]>(), "[a-zA-Z0-9._-]{1,64}")
                .prop_map(|(id, label)| Frame::Open { stream: id.into(), label: label.parse().unwrap() }),
            any::<u64>().prop_map(|position| Frame::End { position }),
            (any::<u64>(), any::<bool>()).prop_map(|(position, has_end)| Frame::Kept { position, has_end }),
            Just(Frame::Forget),
            prop::sample::select(REFUSALS.to_vec()).prop_map(Frame::Refused),
        ]
    }

    proptest! {
        #[test]
        fn frames_come_back_however_they_are_cut(sent in prop::collection::vec(frames(), 0..8), piece in 1..500_usize) {
            let mut bytes = BytesMut::new();
            sent.iter().for_each(|frame| frame.put(&mut bytes));
            let (mut frames, mut came) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                frames.push(piece);
                while let Some(frame) = frames.take().unwrap() {
                    came.push(frame);
                }
            }
            prop_assert_eq!(came, sent);
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut frames = Frames::default();
            frames.push(&noise);
            while let Ok(Some(frame)) = frames.take() {
                let (mut again, mut bytes) = (Frames::default(), BytesMut::new());
                frame.put(&mut bytes);
                again.push(&bytes);
                prop_assert_eq!(again.take(), Ok(Some(frame)));
            }
        }
    }

    #[test]
    fn frames_that_cannot_be_are_malformed() {
        let no_data: &[u8] = &[0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        let beyond_the_last_position: &[u8] = &[0, 0, 9, 255, 255, 255, 255, 255, 255, 255, 255, 7];
        for wrong in [&[6, 0, 0][..], &[0, 0x40, 9], &[2, 0, 1, 0], &[1, 0, 2, 0, 0], no_data, beyond_the_last_position]
        {
            let mut frames = Frames::default();
            frames.push(wrong);
            assert_eq!(frames.take(), Err(Malformed), "{wrong:?}");
        }
    }
}
