//! Finds a stream in the files that an earlier process has left. `[N5]`

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use farlink_core::gateway::{Journal, Span};

use crate::seal::PublicKey;

use super::super::folder;
use super::super::medium::{Medium, MediumFile};
use super::super::record::{self, FileName, Kind, Stream};
use super::super::stream::{Label, StreamId};
use super::super::usage::Usage;
use super::{Durable, MOST_FILE_BYTES, Piece, StoreFile, StreamStore, release};

/// A stream that was found in the files.
#[derive(Debug)]
pub(in super::super) struct Recovered {
    pub(in super::super) store: StreamStore,
    pub(in super::super) journal: Journal,
    /// Whether the next node has everything, and this one was about to forget it.
    pub(in super::super) is_finished: bool,
    /// Damages that were found, a sentence each.
    pub(in super::super) damage: Vec<Damage>,
}

/// A damage that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Damage {
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

impl StreamStore {
    /// Goes on from what is on the disk for certain, after a failure.
    ///
    /// # Errors
    /// If that cannot be read. It may be tried again.
    pub(in super::super) fn recover_again(&mut self) -> io::Result<Recovered> {
        self.roll_back()?;
        let numbers = folder::streams(&*self.medium)?.remove(&self.id).unwrap_or_default();
        let known = Some((self.owner, self.label.clone()));
        // That it was brought there may not be there.
        let durable = self.durable.received;
        Self::recover_from(self.medium.clone(), self.usage.clone(), self.id, numbers, known, durable)
    }

    /// Reads the files of a stream. `known` is what the stream is, if its source has said so; otherwise the files have to say it.
    ///
    /// # Errors
    /// If a file cannot be read or shortened, or nothing says what the stream is.
    pub(in super::super) fn recover(
        medium: Arc<dyn Medium>,
        usage: Arc<Usage>,
        id: StreamId,
        numbers: Vec<u64>,
        known: Option<(PublicKey, Label)>,
    ) -> io::Result<Recovered> {
        Self::recover_from(medium, usage, id, numbers, known, 0)
    }

    /// `durable`: what was acknowledged for certain, whatever the files say.
    fn recover_from(
        medium: Arc<dyn Medium>,
        usage: Arc<Usage>,
        id: StreamId,
        mut numbers: Vec<u64>,
        known: Option<(PublicKey, Label)>,
        mut durable: u64,
    ) -> io::Result<Recovered> {
        numbers.sort_unstable();
        let mut damage = Vec::new();
        let mut what = known;
        let (mut files, mut pieces) = (VecDeque::new(), VecDeque::new());
        let (mut received, mut released, mut end) = (0, 0, None);
        let mut is_finished = false;
        // Where each record is that a stream cut short would not have.
        let mut places = Vec::new();
        let mut gaps = Vec::new();
        for number in numbers {
            let name = FileName { stream: id, number };
            let of_file = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", name.text()));
            let file = medium.open(&name.text()).map_err(of_file)?;
            let length = file.len().map_err(of_file)?;
            let (content, is_readable) = read(&*file, length.min(MOST_FILE_BYTES) as usize).map_err(of_file)?;
            let scan = record::scan(&name, &content);
            damage.extend(scan.damaged.iter().map(|range| Damage::File(name, range.clone())));
            if length > MOST_FILE_BYTES {
                damage.push(Damage::File(name, content.len()..usize::try_from(length).unwrap_or(usize::MAX)));
                file.set_len(MOST_FILE_BYTES).map_err(of_file)?;
            }
            let mut this = StoreFile {
                number,
                // Opened again when it is written: there may be thousands.
                file: None,
                end: content.len() as u64,
                synced: 0,
                cuts: 0,
                head: 0,
                slot: None,
                overwrites: (0, 0),
                data_to: 0,
            };
            for found in scan.found {
                let to = found.position + found.content.len() as u64;
                if matches!(found.kind, Kind::Stream | Kind::Data | Kind::Gap | Kind::End) {
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
                        let (offset, bytes) = (found.content.start as u64, found.content.len() as u32);
                        let span = Span { from, to };
                        pieces.push_back(Piece { span, number, offset, begins: found.position, bytes });
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
                    Kind::Gap => {
                        let from = content[found.content.clone()].first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
                        gaps.push(Span { from, to: found.position });
                    }
                    Kind::Finished => is_finished = true,
                    Kind::End => {
                        end = Some(found.position);
                        received = received.max(found.position);
                    }
                }
            }
            this.data_to = received;
            if !is_readable {
                // It may be read some other time: nothing of it is cut, and nothing written behind it.
                (this.head, this.slot, durable) = (0, None, u64::MAX);
            } else if let Some(last) = scan.damaged.last().filter(|last| last.end == content.len()) {
                this.end = last.start as u64;
                file.set_len(this.end).map_err(of_file)?;
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
        // Acknowledged data is whole or damaged. Later data may have holes, as the disk writes in any order: it counts up to the
        // first one, and its source has the rest.
        let mut is_cut = false;
        let is_hole = |from, to| to > durable && !gaps.iter().any(|gap: &Span| gap.from <= from && to <= gap.to);
        for piece in &pieces {
            if piece.span.from > behind {
                is_cut = is_hole(behind, piece.span.from);
                if is_cut {
                    break;
                }
                damage.push(Damage::Lost(Span { from: behind, to: piece.span.from }));
            }
            behind = piece.span.to;
            journal.held.push(piece.span);
        }
        if received > behind && !is_cut {
            is_cut = is_hole(behind, received);
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
        usage.add_pieces(pieces.len());
        let store = StreamStore {
            medium,
            usage,
            id,
            owner,
            label,
            files,
            pieces,
            reader: None,
            doomed: Vec::new(),
            next_number,
            // A name that was new when the process ended may not be on the disk; nor may what was read.
            has_new_names: true,
            received,
            released,
            written_released: released,
            end,
            is_finished,
            // The record that said so may have been removed.
            owes_release: is_cut,
            durable: Durable::default(),
        };
        Ok(Recovered { store, journal, is_finished, damage })
    }
}

/// The content of a file, with zeros for blocks of a disk that cannot read them, and whether it could.
fn read(file: &dyn MediumFile, bytes: usize) -> io::Result<(Vec<u8>, bool)> {
    const BLOCK: usize = 4096;
    let mut content = vec![0; bytes];
    let is_of_disk = |error: &io::Error| error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    match file.read_at(0, &mut content) {
        Err(error) if is_of_disk(&error) => {}
        read => return read.map(|()| (content, true)),
    }
    for (n, block) in content.chunks_mut(BLOCK).enumerate() {
        match file.read_at((n * BLOCK) as u64, block) {
            Err(error) if is_of_disk(&error) => block.fill(0),
            read => read?,
        }
    }
    Ok((content, false))
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
            last.open(medium, stream)?.set_len(start as u64)?;
            last.end = start as u64;
            break;
        }
        medium.remove(&FileName { stream, number: last.number }.text())?;
        files.pop_back();
    }
    medium.sync_names()
}
