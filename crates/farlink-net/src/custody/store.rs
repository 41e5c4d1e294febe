//! The store of one stream: files of records, to which is only appended. `[N2]`, `[N5]`
//!
//! What was put is in the files, but on the disk only after a [`Commit`]; until then it may not be acknowledged. A file of which everything
//! was released is removed. The last one stays until the stream is over.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use farlink_core::gateway::{Journal, Span, Store};

use crate::seal::PublicKey;

use super::medium::{Medium, MediumFile};
use super::record::{self, FileName, Kind, MOST_CONTENT, Stream};
use super::stream::{Label, StreamId};
use super::usage::Usage;

/// A file with so much is followed by another one.
const FILE_BYTES: u64 = if IS_TEST { 1 << 12 } else { 1 << 20 };
/// After so many bytes were released, that is written down.
const RELEASE_BYTES: u64 = if IS_TEST { 1 << 10 } else { 1 << 18 };
/// Tests have several files without much data.
const IS_TEST: bool = cfg!(any(test, fuzzing));
/// Longest file that is read: what a store writes is shorter.
const MOST_FILE_BYTES: u64 = FILE_BYTES + (1 << 18);

/// What is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Durable {
    pub(super) received: u64,
    pub(super) has_end: bool,
}

#[derive(Debug)]
struct StoreFile {
    number: u64,
    file: Arc<dyn MediumFile>,
    /// Where the next record goes.
    end: u64,
    /// What was there at the last commit.
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

/// Bytes of the stream, and where they are.
#[derive(Clone, Copy, Debug)]
struct Piece {
    span: Span,
    number: u64,
    offset: u64,
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

/// A stream that was found in the files.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) store: StreamStore,
    pub(super) journal: Journal,
    /// Whether the next node has everything, and this one was about to forget it.
    pub(super) is_finished: bool,
    /// What was not whole, a sentence each.
    pub(super) damage: Vec<Damage>,
}

/// What was not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// Bytes of a file are no whole record.
    File(FileName, std::ops::Range<usize>),
    /// Bytes of the stream are lost.
    Lost(Span),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::File(name, range) => {
                write!(f, "bytes {} to {} of the file {} are no whole record", range.start, range.end, name.text())
            }
            Damage::Lost(Span { from, to }) => write!(f, "bytes {from} to {to} of the stream are lost"),
        }
    }
}

/// Brings to the disk what was put so far. It may run on another thread.
#[derive(Debug)]
pub(super) struct Commit {
    medium: Arc<dyn Medium>,
    files: Vec<Unsynced>,
    has_new_names: bool,
    is_finished: bool,
    doomed: Vec<(FileName, u64)>,
    durable: Durable,
}

#[derive(Debug)]
struct Unsynced {
    number: u64,
    cuts: u32,
    overwrites: u32,
    file: Arc<dyn MediumFile>,
    end: u64,
}

impl Commit {
    /// # Errors
    /// If it is not certain that everything is on the disk.
    pub(super) fn run(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|it| it.file.sync())?;
        if self.has_new_names {
            self.medium.sync_names()?;
        }
        // What makes them needless is on the disk now.
        for (name, _) in &self.doomed {
            if let Err(error) = self.medium.remove(&name.text()) {
                tracing::warn!(file = name.text(), %error, "a file of the store was not removed");
            }
        }
        // Data must not come back without the word that they were passed on.
        if self.is_finished { self.medium.sync_names() } else { Ok(()) }
    }
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

    /// Reads the files of a stream. `known` is what the stream is, if its source has said so; otherwise the files have to say it.
    ///
    /// # Errors
    /// If a file cannot be read or shortened, or nothing says what the stream is.
    pub(super) fn recover(
        medium: Arc<dyn Medium>,
        usage: Arc<Usage>,
        id: StreamId,
        mut numbers: Vec<u64>,
        known: Option<(PublicKey, Label)>,
    ) -> io::Result<Recovered> {
        numbers.sort_unstable();
        let mut damage = Vec::new();
        let mut what = known;
        let (mut files, mut pieces) = (VecDeque::new(), VecDeque::new());
        let (mut received, mut released, mut durable, mut end) = (0, 0, 0, None);
        let mut is_finished = false;
        // Where each record is that a stream cut short would not have.
        let mut places = Vec::new();
        for number in numbers {
            let name = FileName { stream: id, number };
            let file = medium.open(&name.text())?;
            let length = file.len()?;
            let mut content = vec![0; length.min(MOST_FILE_BYTES) as usize];
            file.read_at(0, &mut content)?;
            let scan = record::scan(&name, &content);
            damage.extend(scan.damaged.iter().map(|range| Damage::File(name, range.clone())));
            let end_of_file = content.len() as u64;
            let mut this = StoreFile {
                number,
                file,
                end: end_of_file,
                synced: 0,
                cuts: 0,
                head: 0,
                slot: None,
                overwrites: (0, 0),
                data_to: 0,
            };
            for found in scan.found {
                let to = found.position + found.content.len() as u64;
                if matches!(found.kind, Kind::Stream | Kind::Data | Kind::End) {
                    places.push((found.position, number, found.content.start - record::HEAD_BYTES));
                }
                match found.kind {
                    Kind::Stream => {
                        let Some(stream) = Stream::parse(&content[found.content.clone()]) else {
                            return Err(io::Error::new(io::ErrorKind::Unsupported, "a file of another version"));
                        };
                        what.get_or_insert((stream.owner, stream.label));
                        (released, durable) = (released.max(stream.released), durable.max(stream.durable));
                        end = end.or(stream.end);
                        received = received.max(found.position);
                        this.head = found.content.end as u64 + 4;
                    }
                    // After two crashes some may be there twice.
                    Kind::Data if to <= received => {}
                    Kind::Data => {
                        let from = found.position.max(received);
                        let offset = found.content.start as u64 + (from - found.position);
                        pieces.push_back(Piece { span: Span { from, to }, number, offset });
                        received = to;
                    }
                    Kind::Released => {
                        let start = found.content.start as u64 - record::HEAD_BYTES as u64;
                        if start == this.head && this.slot.is_none() {
                            (this.slot, this.head) = (Some(start), found.content.end as u64);
                        }
                        released = released.max(found.position);
                    }
                    Kind::Durable => durable = durable.max(found.position),
                    Kind::Finished => is_finished = true,
                    Kind::End => {
                        end = Some(found.position);
                        received = received.max(found.position);
                    }
                }
            }
            this.data_to = received;
            if let Some(last) = scan.damaged.last().filter(|last| last.end == content.len()) {
                this.end = last.start as u64;
                this.file.set_len(this.end)?;
            }
            files.push_back(this);
        }
        let Some((owner, label)) = what else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no record says what the stream is"));
        };
        let next_number = files.back().map_or(0, |file: &StoreFile| file.number + 1);
        received = received.max(released);
        release(&mut pieces, released);
        let mut journal = Journal::default();
        let mut behind = released;
        // What was acknowledged is whole or damaged. What came later may have holes, as the disk writes in any order: it counts up to the
        // first one, and its source has the rest.
        let mut is_cut = false;
        for piece in &pieces {
            if piece.span.from > behind {
                is_cut = piece.span.from > durable;
                if is_cut {
                    break;
                }
                damage.push(Damage::Lost(Span { from: behind, to: piece.span.from }));
            }
            behind = piece.span.to;
            journal.held.push(piece.span);
        }
        if received > behind && !is_cut {
            is_cut = received > durable;
            if !is_cut {
                damage.push(Damage::Lost(Span { from: behind, to: received }));
                behind = received;
            }
        }
        if is_cut {
            received = behind;
            end = end.filter(|&end| end <= received);
            while pieces.back().is_some_and(|piece| piece.span.from >= received) {
                pieces.pop_back();
            }
            cut_behind(&*medium, id, received, &mut files, &places)?;
        }
        journal.received = received;
        journal.has_end = end.is_some();
        for file in &mut files {
            file.synced = file.end;
            file.data_to = file.data_to.min(received);
            usage.add(file.end);
        }
        let store = StreamStore {
            medium,
            usage,
            id,
            owner,
            label,
            files,
            pieces,
            doomed: Vec::new(),
            next_number,
            // A name that was new when the process ended may not be on the disk; nor may what was read.
            has_new_names: true,
            received,
            released,
            written_released: released,
            end,
            is_finished,
            // What said so may have been removed.
            owes_release: is_cut,
            durable: Durable::default(),
        };
        Ok(Recovered { store, journal, is_finished, damage })
    }

    pub(super) fn owner(&self) -> PublicKey {
        self.owner
    }

    pub(super) fn label(&self) -> &Label {
        &self.label
    }

    /// What is on the disk, and may be acknowledged.
    pub(super) fn durable(&self) -> Durable {
        self.durable
    }

    /// Whether there was no room to write down what was released: nothing more is acknowledged until there is.
    pub(super) fn is_short(&self) -> bool {
        self.owes_release
    }

    /// What is to be brought to the disk, if anything is.
    pub(super) fn commit(&mut self) -> Option<Commit> {
        if self.owes_release && !self.files.is_empty() {
            self.write_released();
        }
        // As long as it is not written down what was released, what comes behind it may look as if it had a hole before it.
        let durable = match self.owes_release {
            true => self.durable,
            false => Durable { received: self.received, has_end: self.end.is_some() },
        };
        if durable == self.durable && self.doomed.is_empty() && !self.has_new_names {
            return None;
        }
        let stream = self.id;
        let doomed = self.doomed.drain(..).map(|(number, bytes)| (FileName { stream, number }, bytes));
        let doomed: Vec<_> = doomed.collect();
        // After a recovery also what an earlier process may not have brought there.
        let is_first = self.durable == Durable::default();
        let files = self.files.iter().filter(|it| is_first || it.synced < it.end || it.overwrites.0 != it.overwrites.1);
        Some(Commit {
            medium: self.medium.clone(),
            files: files
                .map(|it| Unsynced {
                    number: it.number,
                    cuts: it.cuts,
                    overwrites: it.overwrites.0,
                    file: it.file.clone(),
                    end: it.end,
                })
                .collect(),
            has_new_names: std::mem::take(&mut self.has_new_names),
            is_finished: self.is_finished && !doomed.is_empty(),
            doomed,
            durable,
        })
    }

    /// A commit has succeeded.
    pub(super) fn on_committed(&mut self, commit: &Commit) {
        for synced in &commit.files {
            let is_same = |file: &&mut StoreFile| (file.number, file.cuts) == (synced.number, synced.cuts);
            if let Some(file) = self.files.iter_mut().find(is_same) {
                file.synced = file.synced.max(synced.end);
                file.overwrites.1 = synced.overwrites;
            }
        }
        for (_, bytes) in &commit.doomed {
            self.usage.free(*bytes);
        }
        let has_room = self.files.back().is_some_and(|last| last.head > 0 && last.end < FILE_BYTES);
        if commit.durable.received > self.durable.received && has_room {
            // After a crash it tells damage from what was never there. The next commit brings it to the disk.
            if let Err(error) = self.append(Kind::Durable, commit.durable.received, &[], false) {
                tracing::debug!(stream = %self.id, %error, "a commit was not written down");
            }
        }
        self.durable = commit.durable;
    }

    /// A commit has failed: nobody knows what of it is on the disk. The files are cut to what is there for certain, and have to be
    /// [recovered](Self::recover).
    ///
    /// # Errors
    /// If a file cannot be cut.
    pub(super) fn roll_back(self) -> io::Result<()> {
        for file in &self.files {
            self.usage.free(file.end);
            if file.synced < file.head {
                self.medium.remove(&FileName { stream: self.id, number: file.number }.text())?;
            } else if file.synced < file.end {
                file.file.set_len(file.synced)?;
            }
        }
        Ok(())
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
        self.pieces.clear();
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
            file,
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
        if let Err(error) = last.file.write_at(last.end, &bytes) {
            // A part may be there.
            let _ = last.file.set_len(last.end);
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
        last.file.write_at(slot, &bytes)?;
        last.overwrites.0 += 1;
        Ok(())
    }

    /// Cuts the last file to what says what the stream is, if that is less.
    fn cut(&mut self) -> bool {
        let least = 4 * record::HEAD_BYTES as u64;
        let Some(last) = self.files.back_mut().filter(|it| it.head > 0 && it.end > it.head + least) else {
            return false;
        };
        if last.file.set_len(last.head).is_err() {
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
            self.append(Kind::Durable, position, &[], true)?;
        }
        Ok(())
    }

    fn put_piece(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        self.skip_to(position)?;
        let (number, offset) = self.append(Kind::Data, position, data, true)?;
        let span = Span { from: position, to: position + data.len() as u64 };
        self.pieces.push_back(Piece { span, number, offset });
        self.received = span.to;
        if let Some(last) = self.files.back_mut() {
            last.data_to = span.to;
        }
        Ok(())
    }
}

/// Removes all records behind a position. `places` has those of records with their positions, in the order in which they were written.
fn cut_behind(
    medium: &dyn Medium,
    stream: StreamId,
    position: u64,
    files: &mut VecDeque<StoreFile>,
    places: &[(u64, u64, usize)],
) -> io::Result<()> {
    let Some(&(_, number, start)) = places.iter().find(|&&(at, ..)| at > position) else { return Ok(()) };
    while let Some(last) = files.back_mut().filter(|last| last.number >= number) {
        if last.number == number && start > 0 {
            last.file.set_len(start as u64)?;
            last.end = start as u64;
            break;
        }
        medium.remove(&FileName { stream, number: last.number }.text())?;
        files.pop_back();
    }
    medium.sync_names()
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
        piece.offset += position - piece.span.from;
        piece.span.from = position;
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
        let file = self.files.iter().find(|file| file.number == piece.number);
        let file = file.ok_or_else(|| io::Error::other("bytes of a file that was removed"))?;
        let mut data = vec![0; (piece.span.to.min(span.to) - span.from) as usize];
        file.file.read_at(piece.offset + span.from - piece.span.from, &mut data)?;
        Ok(data.into())
    }

    fn release(&mut self, position: u64) -> io::Result<()> {
        release(&mut self.pieces, position);
        self.released = self.released.max(position);
        let is_over = |file: &StoreFile| file.data_to <= position;
        let doomed = self.files.iter().take(self.files.len().saturating_sub(1)).take_while(|it| is_over(it)).count();
        if doomed > 0 || self.released - self.written_released >= RELEASE_BYTES || self.pieces.is_empty() {
            // Without it, after a crash more is sent again, which the next node has.
            self.write_released();
        }
        self.doomed.extend(self.files.drain(..doomed).map(|it| (it.number, it.end)));
        Ok(())
    }
}
