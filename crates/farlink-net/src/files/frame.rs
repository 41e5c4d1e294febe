//! Frames: their kinds, their bounds, and reading and writing them. `docs/files-format.md` has the layouts.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::digest::{DIGEST_BYTES, Digest};
use super::error::{FilesError, FormatError};
use super::printable::printable_text;

/// First bytes of both sides' streams.
const MAGIC: [u8; 8] = *b"FARFILES";

/// Version of the format, behind [`MAGIC`].
pub(super) const VERSION: u16 = 1;

const PREAMBLE_BYTES: usize = MAGIC.len() + 2;

/// Kind, and length of the body.
pub(super) const HEADER_BYTES: usize = 5;

/// Bytes of a file in one chunk, at most.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of manifest entries in one frame, at most.
pub(super) const MANIFEST_FRAME_BYTES: usize = 1 << 16;

/// Bytes of a reason or a message, at most.
const TEXT_BYTES: usize = 1024;

/// Bytes that are read from the stream at a time, and so allocated before any byte of a frame has come.
const READ_BYTES: usize = 1 << 16;

/// How long a side that ends a transfer tries to say why, or to hear why the other one does.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);

mod kind {
    pub(super) const MANIFEST: u8 = 0x01;
    pub(super) const MANIFEST_END: u8 = 0x02;
    pub(super) const BEGIN: u8 = 0x03;
    pub(super) const CHUNK: u8 = 0x04;
    pub(super) const END: u8 = 0x05;
    pub(super) const ABANDON: u8 = 0x06;
    pub(super) const DIFFERS: u8 = 0x07;
    pub(super) const DONE: u8 = 0x08;
    pub(super) const NOTHING: u8 = 0x11;
    pub(super) const CLAIM: u8 = 0x12;
    pub(super) const VERDICT: u8 = 0x13;
    pub(super) const FINISHED: u8 = 0x14;
    pub(super) const REFUSE: u8 = 0x7f;
}

/// How a file ended at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It stands under its name, and that survives a loss of power.
    Placed,
    /// It stood there before, byte for byte.
    AlreadyThere,
    /// It was not received, or not placed.
    Failed(String),
}

/// One frame of either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Entries of the manifest.
    Manifest(Bytes),
    /// The manifest is complete.
    ManifestEnd { entries: u32, bytes: u64 },
    /// Chunks of this file follow, from this offset.
    Begin { index: u32, offset: u64 },
    /// The next bytes of the file.
    Chunk { sha256: Digest, data: Bytes },
    /// The file is complete; SHA-256 of all of it.
    End { sha256: Digest },
    /// The sender cannot send this file, or not the rest of it.
    Abandon { index: u32, reason: String },
    /// The file differs from the claim, and the receiver wants no other.
    Differs { index: u32 },
    /// Nothing more comes from the sender.
    Done,
    /// The receiver has nothing of these files, in the order of the manifest.
    Nothing { first: u32, count: u32 },
    /// The receiver has the first `length` bytes of this file, with this SHA-256. `only`: it wants no other bytes.
    Claim { index: u32, length: u64, sha256: Digest, only: bool },
    /// How an entry ended.
    Verdict { index: u32, outcome: Outcome },
    /// Every verdict was sent and all is durable.
    Finished,
    /// The side ends the transfer, and why.
    Refuse { is_network: bool, reason: String },
}

impl Frame {
    pub(super) const fn kind(&self) -> u8 {
        match self {
            Frame::Manifest(_) => kind::MANIFEST,
            Frame::ManifestEnd { .. } => kind::MANIFEST_END,
            Frame::Begin { .. } => kind::BEGIN,
            Frame::Chunk { .. } => kind::CHUNK,
            Frame::End { .. } => kind::END,
            Frame::Abandon { .. } => kind::ABANDON,
            Frame::Differs { .. } => kind::DIFFERS,
            Frame::Done => kind::DONE,
            Frame::Nothing { .. } => kind::NOTHING,
            Frame::Claim { .. } => kind::CLAIM,
            Frame::Verdict { .. } => kind::VERDICT,
            Frame::Finished => kind::FINISHED,
            Frame::Refuse { .. } => kind::REFUSE,
        }
    }

    /// Header and body; the data of a chunk is left out, for the caller to send from where it lies.
    fn head(&self) -> Vec<u8> {
        let mut frame = vec![self.kind(), 0, 0, 0, 0];
        let mut behind = 0;
        match self {
            Frame::Manifest(entries) => frame.put_slice(entries),
            Frame::ManifestEnd { entries, bytes } => {
                frame.put_u32(*entries);
                frame.put_u64(*bytes);
            }
            Frame::Begin { index, offset } => {
                frame.put_u32(*index);
                frame.put_u64(*offset);
            }
            Frame::Chunk { sha256, data } => {
                frame.put_slice(sha256);
                behind = data.len();
            }
            Frame::End { sha256 } => frame.put_slice(sha256),
            Frame::Abandon { index, reason } => {
                frame.put_u32(*index);
                frame.put_slice(cut(reason));
            }
            Frame::Differs { index } => frame.put_u32(*index),
            Frame::Done | Frame::Finished => {}
            Frame::Nothing { first, count } => {
                frame.put_u32(*first);
                frame.put_u32(*count);
            }
            Frame::Claim { index, length, sha256, only } => {
                frame.put_u32(*index);
                frame.put_u64(*length);
                frame.put_slice(sha256);
                frame.put_u8(u8::from(*only));
            }
            Frame::Verdict { index, outcome } => {
                frame.put_u32(*index);
                match outcome {
                    Outcome::Placed => frame.put_u8(0),
                    Outcome::AlreadyThere => frame.put_u8(1),
                    Outcome::Failed(message) => {
                        frame.put_u8(2);
                        frame.put_slice(cut(message));
                    }
                }
            }
            Frame::Refuse { is_network, reason } => {
                frame.put_u8(if *is_network { 1 } else { 2 });
                frame.put_slice(cut(reason));
            }
        }
        let length = u32::try_from(frame.len() - HEADER_BYTES + behind).expect("frames are far shorter than 4 GiB");
        frame[1..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
        frame
    }

    fn decode(kind: u8, mut body: Bytes) -> Result<Self, FormatError> {
        // `body_bounds` has checked that the fixed fields are there.
        let fields = FormatError::Fields(kind);
        Ok(match kind {
            kind::MANIFEST => Frame::Manifest(body),
            kind::MANIFEST_END => Frame::ManifestEnd { entries: body.get_u32(), bytes: body.get_u64() },
            kind::BEGIN => Frame::Begin { index: body.get_u32(), offset: body.get_u64() },
            kind::CHUNK => Frame::Chunk { sha256: digest(&mut body), data: body },
            kind::END => Frame::End { sha256: digest(&mut body) },
            kind::ABANDON => Frame::Abandon { index: body.get_u32(), reason: printable_text(&body) },
            kind::DIFFERS => Frame::Differs { index: body.get_u32() },
            kind::DONE => Frame::Done,
            kind::NOTHING => Frame::Nothing { first: body.get_u32(), count: body.get_u32() },
            kind::CLAIM => Frame::Claim {
                index: body.get_u32(),
                length: body.get_u64(),
                sha256: digest(&mut body),
                only: match body.get_u8() {
                    0 => false,
                    1 => true,
                    _ => return Err(fields),
                },
            },
            kind::VERDICT => Frame::Verdict {
                index: body.get_u32(),
                outcome: match (body.get_u8(), body.is_empty()) {
                    (0, true) => Outcome::Placed,
                    (1, true) => Outcome::AlreadyThere,
                    (2, _) => Outcome::Failed(printable_text(&body)),
                    _ => return Err(fields),
                },
            },
            kind::FINISHED => Frame::Finished,
            kind::REFUSE => Frame::Refuse {
                is_network: match body.get_u8() {
                    1 => true,
                    2 => false,
                    _ => return Err(fields),
                },
                reason: printable_text(&body),
            },
            other => return Err(FormatError::Kind(other)),
        })
    }
}

/// Shortest and longest body of a kind, in bytes.
const fn body_bounds(kind: u8) -> Option<(usize, usize)> {
    Some(match kind {
        kind::MANIFEST => (1, MANIFEST_FRAME_BYTES),
        kind::MANIFEST_END | kind::BEGIN => (12, 12),
        kind::CHUNK => (DIGEST_BYTES + 1, DIGEST_BYTES + CHUNK_BYTES),
        kind::END => (DIGEST_BYTES, DIGEST_BYTES),
        kind::ABANDON => (4, 4 + TEXT_BYTES),
        kind::DIFFERS => (4, 4),
        kind::DONE | kind::FINISHED => (0, 0),
        kind::NOTHING => (8, 8),
        kind::CLAIM => (12 + DIGEST_BYTES + 1, 12 + DIGEST_BYTES + 1),
        kind::VERDICT => (5, 5 + TEXT_BYTES),
        kind::REFUSE => (1, 1 + TEXT_BYTES),
        _ => return None,
    })
}

fn digest(body: &mut Bytes) -> Digest {
    let mut digest = [0; DIGEST_BYTES];
    body.copy_to_slice(&mut digest);
    digest
}

/// The text up to [`TEXT_BYTES`], cut between characters.
fn cut(text: &str) -> &[u8] {
    let end = (0..=TEXT_BYTES.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text.as_bytes()[..end]
}

/// Writes the frame; it may stay in the stream's buffer until it is flushed.
pub(super) async fn write(stream: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> Result<(), FilesError> {
    stream.write_all(&frame.head()).await.map_err(FilesError::Stream)?;
    if let Frame::Chunk { data, .. } = frame {
        stream.write_all(data).await.map_err(FilesError::Stream)?;
    }
    Ok(())
}

/// Tells the other side why this one ends the transfer, if it can be told within a short time, and closes the stream.
pub(super) async fn write_last_words(
    stream: &mut (impl AsyncWrite + Unpin),
    error: Option<&FilesError>,
    base: Option<&Path>,
) {
    let is_network = error.is_some_and(|error| error.exit_code() == 1);
    let refusal = error.and_then(|error| error.for_peer(base)).map(|reason| Frame::Refuse { is_network, reason });
    let words = async {
        if let Some(refusal) = &refusal {
            write(stream, refusal).await?;
        }
        stream.shutdown().await.map_err(FilesError::Stream)
    };
    // The transfer is decided: whether this succeeds changes nothing. A side that waits for ever would not read it.
    if error.is_some() {
        let _ = tokio::time::timeout(LAST_WORDS, words).await;
    } else {
        let _ = words.await;
    }
}

/// Writes what a stream begins with.
pub(super) async fn write_preamble(stream: &mut (impl AsyncWrite + Unpin)) -> Result<(), FilesError> {
    let mut preamble = [0; PREAMBLE_BYTES];
    preamble[..MAGIC.len()].copy_from_slice(&MAGIC);
    preamble[MAGIC.len()..].copy_from_slice(&VERSION.to_be_bytes());
    stream.write_all(&preamble).await.map_err(FilesError::Stream)
}

/// Reads frames. A call that was dropped loses nothing: the next one goes on with what had come.
pub(super) struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
    has_preamble: bool,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(stream: R) -> Self {
        FrameReader { stream, buffer: BytesMut::new(), has_preamble: false }
    }

    /// The next frame.
    ///
    /// # Errors
    ///
    /// The stream failed or ended, its bytes are against the format or of another version, or the frame is a `Refuse`.
    pub(super) async fn next(&mut self) -> Result<Frame, FilesError> {
        if !self.has_preamble {
            self.fill(PREAMBLE_BYTES).await?;
            if self.buffer[..MAGIC.len()] != MAGIC {
                return Err(FormatError::NoPreamble.into());
            }
            let theirs = u16::from_be_bytes([self.buffer[MAGIC.len()], self.buffer[MAGIC.len() + 1]]);
            if theirs != VERSION {
                return Err(FilesError::Version { theirs, ours: VERSION });
            }
            self.buffer.advance(PREAMBLE_BYTES);
            self.has_preamble = true;
        }
        self.fill(HEADER_BYTES).await?;
        let kind = self.buffer[0];
        let bytes = u32::from_be_bytes([self.buffer[1], self.buffer[2], self.buffer[3], self.buffer[4]]);
        let (least, most) = body_bounds(kind).ok_or(FormatError::Kind(kind))?;
        let body_bytes = usize::try_from(bytes)
            .ok()
            .filter(|length| (least..=most).contains(length))
            .ok_or(FormatError::Length { kind, bytes })?;
        self.fill(HEADER_BYTES + body_bytes).await?;
        self.buffer.advance(HEADER_BYTES);
        let body = self.buffer.split_to(body_bytes).freeze();
        match Frame::decode(kind, body)? {
            Frame::Refuse { is_network, reason } => Err(FilesError::RefusedByPeer { reason, is_network }),
            frame => Ok(frame),
        }
    }

    /// Reads until the buffer has this many bytes, and possibly some of the next frame.
    async fn fill(&mut self, bytes: usize) -> Result<(), FilesError> {
        while self.buffer.len() < bytes {
            // Memory grows with what came, not with what a header promises.
            let missing = bytes - self.buffer.len();
            self.buffer.reserve(missing.min(READ_BYTES.max(self.buffer.len())));
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) => return Err(FilesError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FilesError::Stream(error)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        "[a-z ]{0,40}"
    }

    fn frames() -> impl Strategy<Value = Frame> {
        let digest = any::<Digest>();
        prop_oneof![
            prop::collection::vec(any::<u8>(), 1..300).prop_map(|bytes| Frame::Manifest(bytes.into())),
            any::<(u32, u64)>().prop_map(|(entries, bytes)| Frame::ManifestEnd { entries, bytes }),
            any::<(u32, u64)>().prop_map(|(index, offset)| Frame::Begin { index, offset }),
            (digest, prop::collection::vec(any::<u8>(), 1..300))
                .prop_map(|(sha256, data)| Frame::Chunk { sha256, data: data.into() }),
            any::<Digest>().prop_map(|sha256| Frame::End { sha256 }),
            (any::<u32>(), text()).prop_map(|(index, reason)| Frame::Abandon { index, reason }),
            any::<u32>().prop_map(|index| Frame::Differs { index }),
            Just(Frame::Done),
            any::<(u32, u32)>().prop_map(|(first, count)| Frame::Nothing { first, count }),
            any::<(u32, u64, Digest, bool)>().prop_map(|(index, length, sha256, only)| Frame::Claim {
                index,
                length,
                sha256,
                only
            }),
            (
                any::<u32>(),
                prop_oneof![Just(Outcome::Placed), Just(Outcome::AlreadyThere), text().prop_map(Outcome::Failed)]
            )
                .prop_map(|(index, outcome)| Frame::Verdict { index, outcome }),
            Just(Frame::Finished),
        ]
    }

    fn encode(frames: &[Frame]) -> Vec<u8> {
        let mut bytes = b"FARFILES\x00\x01".to_vec();
        for frame in frames {
            bytes.extend(frame.head());
            if let Frame::Chunk { data, .. } = frame {
                bytes.extend(data);
            }
        }
        bytes
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn read_all(bytes: &[u8]) -> (Vec<Frame>, FilesError) {
        block_on(async {
            let mut reader = FrameReader::new(bytes);
            let mut frames = Vec::new();
            loop {
                match reader.next().await {
                    Ok(frame) => frames.push(frame),
                    Err(error) => return (frames, error),
                }
                assert!(reader.buffer.capacity() <= 2 * (HEADER_BYTES + DIGEST_BYTES + CHUNK_BYTES) + READ_BYTES);
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frames in prop::collection::vec(frames(), 0..20)) {
            let (read, error) = read_all(&encode(&frames));
            prop_assert_eq!(read, frames);
            prop_assert!(matches!(error, FilesError::Closed));
        }

        #[test]
        fn changed_bytes_never_panic(
            frames in prop::collection::vec(frames(), 1..20),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut bytes = encode(&frames);
            for (index, value) in changes {
                let index = index.index(bytes.len());
                bytes[index] = value;
            }
            read_all(&bytes);
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            read_all(&[b"FARFILES\x00\x01", &bytes[..]].concat());
        }
    }

    #[test]
    fn a_promise_of_a_long_frame_allocates_little() {
        block_on(async {
            let bytes = [&b"FARFILES\x00\x01"[..], &[kind::CHUNK], &(1_u32 << 20).to_be_bytes()].concat();
            let mut reader = FrameReader::new(&bytes[..]);
            assert!(matches!(reader.next().await, Err(FilesError::Closed)));
            assert!(reader.buffer.capacity() <= 2 * READ_BYTES);
        });
    }

    #[test]
    fn another_version_is_named() {
        let (_, error) = read_all(b"FARFILES\x00\x02");
        assert!(
            error.to_string().starts_with("the other side speaks version 2 of the file format, this one version 1")
        );
        assert!(matches!(read_all(b"GET / HTTP/1.1").1, FilesError::Format(FormatError::NoPreamble)));
    }
}
