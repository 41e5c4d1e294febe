//! The store of one stream: files of records, to which is only appended. `[N2]`, `[N5]`
//!
//! What was put is in the files, but on the disk only after a [`Commit`]; until then it may not be acknowledged. A file of which everything
//! was released is removed. The last one stays until the stream is over.

mod commit;
mod recovery;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use farlink_core::gateway::{Span, Store};

use crate::seal::PublicKey;

use super::medium::{Medium, MediumFile};
use super::record::{self, FileName, Kind, MOST_CONTENT, Stream};
use super::stream::{Label, StreamId};
use super::usage::Usage;

pub(super) use commit::Commit;
#[cfg(any(test, fuzzing))]
pub(super) use recovery::Damage;
pub(super) use recovery::Recovered;

/// A file with so much is followed by another one.
const FILE_BYTES: u64 = if IS_TEST { 1 << 12 } else { 1 << 20 };
/// After so many bytes were released, that is written down.
const RELEASE_BYTES: u64 = if IS_TEST { 1 << 10 } else { 1 << 18 };
/// Tests have several files without much data.
const IS_TEST: bool = cfg!(any(test, fuzzing));
/// Longest file that is read: what a store writes is shorter.
const MOST_FILE_BYTES: u64 = FILE_BYTES + (1 << 18);

/// Content of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Durable {
    pub(super) received: u64,
    pub(super) has_end: bool,
}

#[derive(Debug)]
struct StoreFile {
    number: u64,
    /// Open as long as something of it is not on the disk: thousands of streams must not need a file descriptor each.
    file: Option<Arc<dyn MediumFile>>,
    /// Where the next record goes.
    end: u64,
    /// Content at the last commit.
    synced: u64,
    /// How many times it was cut.
    cuts: u32,
    /// Behind the records that say what the stream is.
    head: u64,
    /// Where a record of what was released stands that may be overwritten, which needs no room on most disks.
    slot: Option<u64>,
    /// How many times it was, and how many of these times were committed.
    overwrites: (u32, u32),
    /// Behind the last byte of the stream that it has.
    data_to: u64,
}

impl StoreFile {
    fn open(&mut self, medium: &dyn Medium, stream: StreamId) -> io::Result<Arc<dyn MediumFile>> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let file = medium.open(&FileName { stream, number: self.number }.text())?;
        Ok(self.file.insert(file).clone())
    }

    fn is_on_disk(&self) -> bool {
        self.synced == self.end && self.overwrites.0 == self.overwrites.1
    }
}

/// Bytes of the stream, and where they are.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Files that are still needed.
    span: Span,
    number: u64,
    /// Where the content of the record is in the file, which position it begins with, and how long it is.
    offset: u64,
    begins: u64,
    bytes: u32,
}

/// The files of one stream.
#[derive(Debug)]
pub(super) struct StreamStore {
    medium: Arc<dyn Medium>,
    usage: Arc<Usage>,
    id: StreamId,
    owner: PublicKey,
    label: Label,
    files: VecDeque<StoreFile>,
    pieces: VecDeque<Piece>,
    /// The file that was read last, with its number.
    reader: Option<(u64, Arc<dyn MediumFile>)>,
    /// Numbers and lengths of files that are not needed any more.
    doomed: Vec<(u64, u64)>,
    next_number: u64,
    has_new_names: bool,
    received: u64,
    released: u64,
    written_released: u64,
    end: Option<u64>,
    is_finished: bool,
    /// Whether the last file does not say what was released, for want of room.
    owes_release: bool,
    durable: Durable,
}

impl StreamStore {
    /// A stream that is new.
    pub(super) fn new(
        medium: Arc<dyn Medium>,
        usage: Arc<Usage>,
        id: StreamId,
        (owner, label): (PublicKey, Label),
    ) -> Self {
        StreamStore {
            medium,
            usage,
            id,
            owner,
            label,
            files: VecDeque::new(),
            pieces: VecDeque::new(),
            reader: None,
            doomed: Vec::new(),
            next_number: 0,
            has_new_names: false,
            received: 0,
            released: 0,
            written_released: 0,
            end: None,
            is_finished: false,
            owes_release: false,
            durable: Durable::default(),
        }
    }

    pub(super) fn owner(&self) -> PublicKey {
        self.owner
    }

    pub(super) fn label(&self) -> &Label {
        &self.label
    }

    /// Position up to which data is on the disk, and may be acknowledged.
    pub(super) fn durable(&self) -> Durable {
        self.durable
    }

    /// Whether there was no room to write down what was released: nothing more is acknowledged until there is.
    pub(super) fn is_short(&self) -> bool {
        self.owes_release
    }

    /// A commit has failed: nobody knows what of it is on the disk. The files are cut to what is there for certain, and have to be
    /// [recovered](Self::recover), which counts them again.
    ///
    /// # Errors
    /// If a file cannot be cut. It may be tried again.
    fn roll_back(&mut self) -> io::Result<()> {
        self.forget_pieces();
        self.usage.free(self.doomed.drain(..).map(|(_, bytes)| bytes).sum());
        while let Some(file) = self.files.front_mut() {
            if file.synced < file.head {
                remove(&*self.medium, &FileName { stream: self.id, number: file.number })?;
            } else if file.synced < file.end {
                file.open(&*self.medium, self.id)?.set_len(file.synced)?;
            }
            self.usage.free(file.end);
            self.files.pop_front();
        }
        Ok(())
    }

    fn forget_pieces(&mut self) {
        self.usage.free_pieces(self.pieces.len());
        self.pieces.clear();
        self.reader = None;
    }

    /// Everything was passed on: one short file remains, which says so.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.released = self.received;
        match self.begin_file(false) {
            Err(error) if is_full(&error) && self.cut() => self.has_new_names = true,
            result => result?,
        }
        self.append(Kind::Released, self.released, &[], false)?;
        self.append(Kind::End, self.released, &[], false)?;
        self.append(Kind::Finished, self.released, &[], false)?;
        self.is_finished = true;
        let last = self.files.pop_back();
        self.doom_all();
        self.files.extend(last);
        Ok(())
    }

    /// The next commit removes everything.
    pub(super) fn remove(&mut self) {
        self.doom_all();
    }

    fn doom_all(&mut self) {
        self.forget_pieces();
        self.doomed.extend(self.files.drain(..).map(|it| (it.number, it.end)));
    }

    /// Begins another file, with what is known of the stream.
    fn begin_file(&mut self, is_limited: bool) -> io::Result<()> {
        let name = FileName { stream: self.id, number: self.next_number };
        let (owner, label) = (self.owner, self.label.clone());
        let stream =
            Stream { owner, label, released: self.released, durable: self.durable.received, end: self.end }.to_bytes();
        let mut head = BytesMut::new();
        // Twice: without it nobody knows where the rest is to go.
        record::put(&name, Kind::Stream, self.received, &stream, &mut head);
        record::put(&name, Kind::Stream, self.received, &stream, &mut head);
        record::put(&name, Kind::Released, self.released, &[], &mut head);
        let bytes = head.len() as u64;
        if is_limited && !self.usage.take(bytes) {
            return Err(full());
        }
        let file = self.medium.create(&name.text()).and_then(|file| {
            self.next_number += 1;
            file.write_at(0, &head).inspect_err(|_| drop(self.medium.remove(&name.text())))?;
            Ok(file)
        });
        let file = file.inspect_err(|_| {
            if is_limited {
                self.usage.free(bytes)
            }
        })?;
        if !is_limited {
            self.usage.add(bytes);
        }
        self.has_new_names = true;
        self.files.push_back(StoreFile {
            number: name.number,
            file: Some(file),
            end: bytes,
            synced: 0,
            cuts: 0,
            head: bytes,
            slot: Some(bytes - record::HEAD_BYTES as u64),
            overwrites: (0, 0),
            data_to: self.received,
        });
        Ok(())
    }

    /// Appends a record to the last file. Returns the number of the file and where the content is.
    fn append(&mut self, kind: Kind, position: u64, content: &[u8], is_limited: bool) -> io::Result<(u64, u64)> {
        if self.files.back().is_none_or(|last| last.end >= FILE_BYTES || last.head == 0) {
            self.begin_file(is_limited)?;
        }
        let last = self.files.back_mut().expect("it was just made");
        let name = FileName { stream: self.id, number: last.number };
        let mut bytes = BytesMut::with_capacity(record::HEAD_BYTES + record::record_bytes(content.len()));
        if self.owes_release && kind != Kind::Released {
            record::put(&name, Kind::Released, self.released, &[], &mut bytes);
        }
        let before = bytes.len();
        record::put(&name, kind, position, content, &mut bytes);
        let count = bytes.len() as u64;
        if is_limited && !self.usage.take(count) {
            return Err(full());
        }
        let written = last.open(&*self.medium, self.id).and_then(|file| {
            // After an error a part may be there.
            file.write_at(last.end, &bytes).inspect_err(|_| drop(file.set_len(last.end)))
        });
        if let Err(error) = written {
            if is_limited {
                self.usage.free(count);
            }
            return Err(error);
        }
        if !is_limited {
            self.usage.add(count);
        }
        self.owes_release = false;
        let offset = last.end + (before + record::HEAD_BYTES) as u64;
        last.end += count;
        Ok((last.number, offset))
    }

    /// Frees what the last file holds in vain, where there is no room for another one. Returns whether there was something.
    ///
    /// If the process ends in the middle of it, less seems to be received than was. The next node has all of that.
    fn compact(&mut self) -> bool {
        let is_needless = self.pieces.is_empty() && self.end.is_none();
        is_needless && self.cut()
    }

    /// Writes down what was released, in the last file, where there may be no room for more.
    fn write_released(&mut self) {
        let written = self.append(Kind::Released, self.released, &[], false).map(drop);
        let written = written.or_else(|_| self.overwrite_released());
        match written {
            Ok(()) => (self.written_released, self.owes_release) = (self.released, false),
            Err(error) => {
                tracing::debug!(stream = %self.id, %error, "a release was not written");
                self.owes_release = true;
            }
        }
    }

    fn overwrite_released(&mut self) -> io::Result<()> {
        let name = |number| FileName { stream: self.id, number };
        let last = self.files.back_mut().and_then(|last| last.slot.map(|slot| (last, slot)));
        let (last, slot) = last.ok_or_else(full)?;
        let mut bytes = BytesMut::new();
        record::put(&name(last.number), Kind::Released, self.released, &[], &mut bytes);
        last.open(&*self.medium, self.id)?.write_at(slot, &bytes)?;
        last.overwrites.0 += 1;
        Ok(())
    }

    /// Cuts the last file to what says what the stream is, if that is less.
    fn cut(&mut self) -> bool {
        let least = 4 * record::HEAD_BYTES as u64;
        let Some(last) = self.files.back_mut().filter(|it| it.head > 0 && it.end > it.head + least) else {
            return false;
        };
        if last.open(&*self.medium, self.id).and_then(|file| file.set_len(last.head)).is_err() {
            return false;
        }
        self.usage.free(last.end - last.head);
        last.cuts += 1;
        (last.end, last.synced) = (last.head, last.head.min(last.synced));
        self.owes_release = self.overwrite_released().is_err();
        true
    }

    fn append_end(&mut self, position: u64) -> io::Result<()> {
        self.skip_to(position)?;
        self.append(Kind::End, position, &[], false).map(drop)
    }

    /// Writes down that nothing comes any more between what was received and a position, if that is so.
    fn skip_to(&mut self, position: u64) -> io::Result<()> {
        if position > self.received {
            self.append(Kind::Gap, position, &self.received.to_be_bytes(), true)?;
        }
        Ok(())
    }

    fn put_piece(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        if !self.usage.has_piece() {
            return Err(full());
        }
        self.skip_to(position)?;
        let (number, offset) = self.append(Kind::Data, position, data, true)?;
        let span = Span { from: position, to: position + data.len() as u64 };
        self.pieces.push_back(Piece { span, number, offset, begins: position, bytes: data.len() as u32 });
        self.usage.add_pieces(1);
        self.received = span.to;
        if let Some(last) = self.files.back_mut() {
            last.data_to = span.to;
        }
        Ok(())
    }
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "the store holds as much as it may")
}

/// Whether an error says that there is no room, which may change.
pub(super) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Releases pieces, and the front of one.
fn release(pieces: &mut VecDeque<Piece>, position: u64) {
    while pieces.front().is_some_and(|piece| piece.span.to <= position) {
        pieces.pop_front();
    }
    if let Some(piece) = pieces.front_mut().filter(|piece| piece.span.from < position) {
        piece.span.from = position;
    }
}

/// Removes a file, which may be gone already.
fn remove(medium: &dyn Medium, name: &FileName) -> io::Result<()> {
    match medium.remove(&name.text()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

impl Store for StreamStore {
    type Data = Bytes;
    type Error = io::Error;

    fn put(&mut self, position: u64, data: Bytes) -> io::Result<()> {
        debug_assert!(data.len() <= MOST_CONTENT, "frames are shorter");
        match self.put_piece(position, &data) {
            Err(error) if is_full(&error) && self.compact() => self.put_piece(position, &data),
            result => result,
        }
    }

    fn put_end(&mut self, position: u64) -> io::Result<()> {
        match self.append_end(position) {
            Err(error) if is_full(&error) && self.compact() => self.append_end(position)?,
            result => result?,
        };
        (self.end, self.received) = (Some(position), position);
        Ok(())
    }

    fn get(&mut self, span: Span) -> io::Result<Bytes> {
        let index = self.pieces.partition_point(|piece| piece.span.from <= span.from);
        let piece = index.checked_sub(1).map(|index| self.pieces[index]).filter(|piece| span.from < piece.span.to);
        let piece = piece.ok_or_else(|| io::Error::other("bytes that the store does not have"))?;
        let name = FileName { stream: self.id, number: piece.number };
        let file = self.files.iter().find(|file| file.number == piece.number);
        let file = file.ok_or_else(|| io::Error::other("bytes of a file that was removed"))?;
        let file = match (&file.file, &self.reader) {
            (Some(file), _) => file.clone(),
            (None, Some((number, file))) if *number == piece.number => file.clone(),
            (None, _) => self.reader.insert((piece.number, self.medium.open(&name.text())?)).1.clone(),
        };
        // They may have been there for days: whole records only, as after a crash.
        let content = record::read_content(&name, &*file, piece.offset, piece.bytes as usize)?;
        let place = |position: u64| (position - piece.begins) as usize;
        Ok(content.slice(place(span.from)..place(piece.span.to.min(span.to))))
    }

    fn release(&mut self, position: u64) -> io::Result<()> {
        let before = self.pieces.len();
        release(&mut self.pieces, position);
        self.usage.free_pieces(before - self.pieces.len());
        self.released = self.released.max(position);
        let is_over = |file: &StoreFile| file.data_to <= position;
        let doomed = self.files.iter().take(self.files.len().saturating_sub(1)).take_while(|it| is_over(it)).count();
        if doomed > 0 || self.released - self.written_released >= RELEASE_BYTES || self.pieces.is_empty() {
            // Without it, after a crash more is sent again, which the next node has.
            self.write_released();
        }
        self.doomed.extend(self.files.drain(..doomed).map(|it| (it.number, it.end)));
        // An open file keeps its room on the disk.
        if self
            .pieces
            .front()
            .is_none_or(|first| self.reader.as_ref().is_some_and(|(number, _)| *number < first.number))
        {
            self.reader = None;
        }
        Ok(())
    }
}
