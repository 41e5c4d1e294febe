//! Finds a stream in the files that an earlier process has left. `[N5]`

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use farlink_core::gateway::{Journal, Span};

use crate::seal::PublicKey;

use super::super::medium::Medium;
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
    /// What was not whole, a sentence each.
    pub(in super::super) damage: Vec<Damage>,
}

/// What was not whole.
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
    /// Reads the files of a stream. `known` is what the stream is, if its source has said so; otherwise the files have to say it.
    ///
    /// # Errors
    /// If a file cannot be read or shortened, or nothing says what the stream is.
    pub(in super::super) fn recover(
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
