//! The records in the files of a store, and what is found of them after a crash or damage.
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 2 | `f7 52 43` |
//! | 3 | kind: 0 stream, 1 data, 2 released, 3 end, 4 finished, 5 durable, 6 gap |
//! | 4 to 7 | length of the content |
//! | 8 to 15 | position in the stream |
//! | 16 to 19 | CRC-32 of the name of the file and of what stands before |
//! | 20 on | content |
//! | behind it, if there is any | CRC-32 of the name of the file and the content |
//!
//! Numbers are big-endian. The CRC begins with the name of the file, so that what was there before in the same blocks of the disk is no
//! record.

use std::io;
use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::seal::{KEY_BYTES, PublicKey};

use super::medium::MediumFile;
use super::stream::{Label, StreamId};

/// Which file of which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    pub(super) stream: StreamId,
    pub(super) number: u64,
}

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// How the stream stands where the file begins, which is the position; the content is [`Stream`].
    Stream,
    /// Bytes of the stream from the position on.
    Data,
    /// Bytes below the position are not needed any more.
    Released,
    /// The stream ends at the position.
    End,
    /// The next node has everything.
    Finished,
    /// Everything below the position was brought to the disk and may have been acknowledged.
    Durable,
    /// Data before the position does not come any more; the content is the position where the gap begins.
    Gap,
}

/// Content of the first record of each file, which has it twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// The key of who sends it. Nobody else may continue it.
    pub(super) owner: PublicKey,
    pub(super) label: Label,
    pub(super) released: u64,
    pub(super) durable: u64,
    pub(super) end: Option<u64>,
}

/// A whole record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) position: u64,
    /// Where its content is in the file.
    pub(super) content: Range<usize>,
}

/// Content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) found: Vec<Found>,
    /// Bytes of the file that are no whole record.
    pub(super) damaged: Vec<Range<usize>>,
}

const MAGIC: [u8; 3] = [0xf7, b'R', b'C'];
pub(super) const HEAD_BYTES: usize = 20;
const CRC_BYTES: usize = 4;
/// Most content of a record.
pub(super) const MOST_CONTENT: usize = 1 << 16;
/// The format of the content of a stream's record.
const FORMAT: u8 = 1;

impl FileName {
    pub(super) fn text(&self) -> String {
        format!("{}.{:016x}", self.stream, self.number)
    }

    /// `None` for files that are none of a store.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('.')?;
        let name = FileName { stream: stream.parse().ok()?, number: u64::from_str_radix(number, 16).ok()? };
        (name.text() == text).then_some(name)
    }

    fn crc(&self, bytes: &[u8]) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.stream.as_bytes());
        crc.update(&self.number.to_be_bytes());
        crc.update(bytes);
        crc.finalize()
    }
}

const KINDS: [Kind; 7] =
    [Kind::Stream, Kind::Data, Kind::Released, Kind::End, Kind::Finished, Kind::Durable, Kind::Gap];

impl Kind {
    fn of(code: u8) -> Option<Self> {
        KINDS.get(usize::from(code)).copied()
    }
}

/// Bytes that a record with so much content takes.
pub(super) const fn record_bytes(content: usize) -> usize {
    HEAD_BYTES + content + if content > 0 { CRC_BYTES } else { 0 }
}

/// Puts a record behind what there is.
pub(super) fn put(name: &FileName, kind: Kind, position: u64, content: &[u8], into: &mut BytesMut) {
    debug_assert!(content.len() <= MOST_CONTENT);
    let begins = into.len();
    into.put_slice(&MAGIC);
    into.put_u8(kind as u8);
    into.put_u32(content.len() as u32);
    into.put_u64(position);
    let crc = name.crc(&into[begins..]);
    into.put_u32(crc);
    if !content.is_empty() {
        into.put_slice(content);
        into.put_u32(name.crc(content));
    }
}

impl Stream {
    pub(super) fn to_bytes(&self) -> BytesMut {
        let mut bytes = BytesMut::new();
        bytes.put_u8(FORMAT);
        bytes.put_slice(self.owner.as_bytes());
        bytes.put_u64(self.released);
        bytes.put_u64(self.durable);
        bytes.put_u64(self.end.unwrap_or(u64::MAX));
        bytes.put_slice(self.label.as_str().as_bytes());
        bytes
    }

    /// `None` if it is of another format.
    pub(super) fn parse(mut bytes: &[u8]) -> Option<Self> {
        if bytes.try_get_u8().ok()? != FORMAT {
            return None;
        }
        let owner = PublicKey::new(*bytes.split_off(..KEY_BYTES)?.first_chunk()?);
        let released = bytes.try_get_u64().ok()?;
        let durable = bytes.try_get_u64().ok()?;
        let end = Some(bytes.try_get_u64().ok()?).filter(|&end| end != u64::MAX);
        let label = std::str::from_utf8(bytes).ok()?.parse().ok()?;
        Some(Stream { owner, label, released, durable, end })
    }
}

/// Finds all whole records.
pub(super) fn scan(name: &FileName, file: &[u8]) -> Scan {
    let mut scan = Scan::default();
    let (mut at, mut whole_to) = (0, 0);
    while at < file.len() {
        let Some((found, end)) = read(name, file, at) else {
            // The rest may be whole: the next place where a record may begin.
            let rest = &file[at + 1..];
            at += 1 + rest.windows(MAGIC.len()).position(|it| it == MAGIC).unwrap_or(rest.len());
            continue;
        };
        if at > whole_to {
            scan.damaged.push(whole_to..at);
        }
        scan.found.push(found);
        (at, whole_to) = (end, end);
    }
    if whole_to < file.len() {
        scan.damaged.push(whole_to..file.len());
    }
    scan
}

/// The content of a record that was found or written.
///
/// # Errors
/// If it cannot be read, or is not what was written.
pub(super) fn read_content(name: &FileName, file: &dyn MediumFile, offset: u64, bytes: usize) -> io::Result<Bytes> {
    let mut content = vec![0; bytes + CRC_BYTES];
    file.read_at(offset, &mut content)?;
    let mut crc = &content[bytes..];
    if name.crc(&content[..bytes]) != crc.get_u32() {
        let what = format!("bytes {offset} to {} of the file {} have changed", offset + bytes as u64, name.text());
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    content.truncate(bytes);
    Ok(content.into())
}

/// The record that begins here, and where it ends.
fn read(name: &FileName, file: &[u8], at: usize) -> Option<(Found, usize)> {
    let head = file.get(at..at + HEAD_BYTES)?;
    let (before, mut crc) = head.split_at(HEAD_BYTES - CRC_BYTES);
    if before[..3] != MAGIC || name.crc(before) != crc.get_u32() {
        return None;
    }
    let kind = Kind::of(before[3])?;
    let mut fields = &before[4..];
    let (bytes, position) = (fields.get_u32() as usize, fields.get_u64());
    if bytes > MOST_CONTENT || position.checked_add(bytes as u64).is_none() {
        return None;
    }
    let content = at + HEAD_BYTES..at + HEAD_BYTES + bytes;
    let end = at + record_bytes(bytes);
    if bytes > 0 {
        let mut crc = file.get(content.end..end)?;
        if name.crc(&file[content.clone()]) != crc.get_u32() {
            return None;
        }
    }
    Some((Found { kind, position, content }, end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name() -> FileName {
        FileName { stream: StreamId::from([0xa7; 16]), number: 3 }
    }

    fn records() -> impl Strategy<Value = Vec<(Kind, u64, Vec<u8>)>> {
        let kind = prop::sample::select(KINDS.to_vec());
        // Contents in which records seem to begin, too.
        let content = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(prop::sample::select(vec![0xf7, b'R', b'C', 0, 1]), 0..200),
        ];
        prop::collection::vec((kind, 0..u64::MAX / 2, content), 0..12)
    }

    /// The file, and where each record stands in it.
    fn written(records: &[(Kind, u64, Vec<u8>)]) -> (BytesMut, Vec<Range<usize>>) {
        let (mut file, mut places) = (BytesMut::new(), Vec::new());
        for (kind, position, content) in records {
            let begins = file.len();
            put(&name(), *kind, *position, content, &mut file);
            assert_eq!(file.len() - begins, record_bytes(content.len()));
            places.push(begins..file.len());
        }
        (file, places)
    }

    fn as_written(file: &[u8], scan: &Scan) -> Vec<(Kind, u64, Vec<u8>)> {
        scan.found.iter().map(|it| (it.kind, it.position, file[it.content.clone()].to_vec())).collect()
    }

    proptest! {
        #[test]
        fn records_come_back(records in records()) {
            let (file, _) = written(&records);
            let scan = scan(&name(), &file);
            prop_assert_eq!(as_written(&file, &scan), records);
            prop_assert_eq!(scan.damaged, Vec::<Range<usize>>::new());
        }

        /// Whatever is cut off or turned over: all records that it does not touch are found, no other, and the rest is reported.
        #[test]
        fn whole_records_are_found_and_the_rest_is_reported(
            records in records(),
            cut in any::<prop::sample::Index>(),
            flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 0..4),
        ) {
            let (mut file, places) = written(&records);
            let before = file.clone();
            if !file.is_empty() {
                for (at, bit) in flips {
                    let at = at.index(file.len());
                    file[at] ^= 1 << bit;
                }
                file.truncate(cut.index(file.len() + 1));
            }
            let is_whole = |place: &Range<usize>| file.get(place.clone()) == Some(&before[place.clone()]);
            let whole: Vec<_> = records.iter().zip(&places).filter(|(_, place)| is_whole(place)).collect();
            let scan = scan(&name(), &file);
            prop_assert_eq!(as_written(&file, &scan), whole.iter().map(|(it, _)| (*it).clone()).collect::<Vec<_>>());
            // Each byte of the file is in a whole record or reported, in order.
            let mut all: Vec<Range<usize>> = whole.iter().map(|(_, place)| (*place).clone()).collect();
            all.extend(scan.damaged);
            all.sort_by_key(|it| it.start);
            let mut at = 0;
            for range in all {
                prop_assert_eq!(range.start, at);
                at = range.end;
            }
            prop_assert_eq!(at, file.len());
        }

        #[test]
        fn noise_has_no_records(noise in prop::collection::vec(any::<u8>(), 0..400)) {
            let scan = scan(&name(), &noise);
            prop_assert!(scan.found.is_empty());
        }

        #[test]
        fn what_a_stream_is_comes_back(owner in any::<[u8; 32]>(), label in "[a-z]{1,9}", released in any::<u64>(), durable in any::<u64>(), end in prop::option::of(0..u64::MAX)) {
            let stream = Stream { owner: PublicKey::new(owner), label: label.parse().unwrap(), released, durable, end };
            prop_assert_eq!(Stream::parse(&stream.to_bytes()), Some(stream));
        }
    }

    #[test]
    fn records_of_another_file_are_none() {
        let (file, _) = written(&[(Kind::Data, 0, b"data".to_vec())]);
        let other = FileName { number: 4, ..name() };
        let all = 0..file.len();
        assert_eq!(scan(&other, &file), Scan { found: vec![], damaged: Vec::from([all]) });
        assert_eq!(FileName::parse(&other.text()), Some(other));
        for text in ["", "lock", "format", "07.1", &other.text()[1..], &other.text().to_uppercase()] {
            assert_eq!(FileName::parse(text), None, "{text}");
        }
    }
}
