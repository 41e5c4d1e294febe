//! A store on disk, as an example of the trait: an append-only file of records, which is never shortened.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use bytes::Bytes;
use farlink_core::gateway::{Journal, Span, Store};

/// The kind of a record, its first byte. All records have the same header: kind, position, length of the rest.
const DATA: u8 = 1;
const RELEASE: u8 = 2;
const END: u8 = 3;
const HEAD_BYTES: usize = 13;

pub(crate) struct DiskStore {
    file: File,
    end: u64,
    /// The held ranges, with their offsets in the file.
    pieces: VecDeque<(Span, u64)>,
}

impl DiskStore {
    /// Opens or creates the file and reads its records. A record truncated by a crash is removed.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Journal)> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let (mut journal, mut pieces, mut at) = (Journal::default(), VecDeque::new(), 0);
        while let Some(head) = content.get(at..at + HEAD_BYTES) {
            let position = u64::from_be_bytes(head[1..9].try_into().expect("eight bytes"));
            let len = u32::from_be_bytes(head[9..13].try_into().expect("four bytes")) as usize;
            if at + HEAD_BYTES + len > content.len() {
                break;
            }
            match head[0] {
                DATA => {
                    pieces.push_back((Span { from: position, to: position + len as u64 }, (at + HEAD_BYTES) as u64))
                }
                RELEASE => release(&mut pieces, position),
                _ => journal.has_end = true,
            }
            journal.received = journal.received.max(position + len as u64);
            at += HEAD_BYTES + len;
        }
        file.set_len(at as u64)?;
        pieces.iter().for_each(|&(span, _)| journal.held.push(span));
        Ok((DiskStore { file, end: at as u64, pieces }, journal))
    }

    fn append(&mut self, kind: u8, position: u64, data: &[u8]) -> io::Result<()> {
        let mut record = vec![kind];
        record.extend(position.to_be_bytes());
        record.extend((data.len() as u32).to_be_bytes());
        record.extend(data);
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&record)?;
        self.file.sync_data()?;
        self.end += record.len() as u64;
        Ok(())
    }
}

/// Releases pieces, and the front of one.
fn release(pieces: &mut VecDeque<(Span, u64)>, position: u64) {
    while pieces.front().is_some_and(|(span, _)| span.to <= position) {
        pieces.pop_front();
    }
    if let Some((span, at)) = pieces.front_mut()
        && span.from < position
    {
        *at += position - span.from;
        span.from = position;
    }
}

impl Store for DiskStore {
    type Data = Bytes;
    type Error = io::Error;

    fn put(&mut self, position: u64, data: Bytes) -> io::Result<()> {
        let at = self.end + HEAD_BYTES as u64;
        self.append(DATA, position, &data)?;
        self.pieces.push_back((Span { from: position, to: position + data.len() as u64 }, at));
        Ok(())
    }

    fn put_end(&mut self, position: u64) -> io::Result<()> {
        self.append(END, position, &[])
    }

    fn get(&mut self, span: Span) -> io::Result<Bytes> {
        let index = self.pieces.partition_point(|(piece, _)| piece.from <= span.from) - 1;
        let (piece, at) = self.pieces[index];
        let mut data = vec![0; (piece.to.min(span.to) - span.from) as usize];
        self.file.seek(SeekFrom::Start(at + span.from - piece.from))?;
        self.file.read_exact(&mut data)?;
        Ok(data.into())
    }

    fn release(&mut self, position: u64) -> io::Result<()> {
        self.append(RELEASE, position, &[])?;
        release(&mut self.pieces, position);
        Ok(())
    }
}
