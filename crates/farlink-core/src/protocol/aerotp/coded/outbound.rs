//! A coded block at its sender.

use farlink_fec::erasure::{RaptorQ, RaptorQEncoder};

use crate::origin::instants;
use crate::payload::Payload;
use crate::time::Time;

use super::super::segment::Repair;

/// In blocks of up to this many symbols every symbol carries the description, in larger ones one symbol in `EVERY_DESCRIBES`:
/// the receiver must know a block before it can report how many symbols it needs. `[K3]`
const ALL_DESCRIBE: u64 = 32;
const EVERY_DESCRIBES: u64 = 8;

/// A block of data that is coded together, kept until all of it has arrived.
#[derive(Clone, Debug)]
pub(super) struct Outbound {
    pub(super) start: u64,
    /// Bytes of data in it; more may be added while it is open.
    pub(super) bytes: u64,
    pub(super) symbol_bytes: u32,
    pub(super) most_bytes: u64,
    /// Bytes of its data that were sent.
    pub(super) sent_bytes: u64,
    /// When it was opened.
    pub(super) opened: Time,
    /// Whether no more data is added.
    pub(super) is_closed: bool,
    /// Whether the stream ends after it; the end is a part of the block.
    pub(super) is_end: bool,
    /// Number of symbols that were sent and are unanswered.
    pub(super) in_flight: u32,
    /// Number of symbols that have arrived or are lost since the receiver's last report on the block.
    pub(super) unreported: u32,
    /// When its last symbol was sent, in ticks.
    pub(super) last_sent: u64,
    /// Number of symbols that the receiver needs, by its last report.
    pub(super) told: Option<u32>,
    /// Number of symbols to send before the next report.
    pub(super) owed: u32,
    /// Whether the receiver has never reported on it, although all its symbols were answered or should have been.
    pub(super) is_unreported: bool,
    /// Whether the number of symbols owed was decided before.
    pub(super) is_again: bool,
    /// Probability that the symbols owed complete it.
    pub(super) completion: f64,
    /// The data, if the payload has content, until the whole block was sent and the encoder exists.
    content: Vec<u8>,
    encoder: Option<RaptorQEncoder>,
    next_repair: u32,
}

instants! {
    Outbound: opened;
    ticks: last_sent;
    fixed: start, bytes, symbol_bytes, most_bytes, sent_bytes, is_closed, is_end, in_flight, unreported, told, owed, is_unreported,
    is_again, completion, content, encoder, next_repair
}

impl Outbound {
    pub(super) fn new(start: u64, symbol_bytes: u32, most_symbols: u64, now: Time) -> Self {
        Outbound {
            start,
            bytes: 0,
            symbol_bytes,
            most_bytes: most_symbols * u64::from(symbol_bytes),
            sent_bytes: 0,
            opened: now,
            is_closed: false,
            is_end: false,
            in_flight: 0,
            unreported: 0,
            last_sent: 0,
            told: None,
            owed: 0,
            is_unreported: false,
            is_again: false,
            completion: 0.0,
            content: Vec::new(),
            encoder: None,
            next_repair: 0,
        }
    }

    /// A block that consists of the end of the stream only.
    pub(super) fn end_only(start: u64, now: Time) -> Self {
        Outbound { is_closed: true, is_end: true, ..Outbound::new(start, 1, 0, now) }
    }

    /// Position after its last byte; the end of the stream takes one.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes + u64::from(self.is_end)
    }

    /// Whether it has unsent data.
    pub(super) fn has_unsent(&self) -> bool {
        self.sent_bytes < self.bytes
    }

    /// Bytes at its start that the receiver may have: those that were sent, or all once a repair symbol was, since it is made of all.
    /// In silence one is sent before the rest of the data. `[K11]`
    pub(super) fn possibly_arrived_bytes(&self) -> u64 {
        if self.next_repair > 0 { self.bytes } else { self.sent_bytes }
    }

    /// Number of source symbols; the end of the stream alone counts as one.
    pub(super) fn symbols(&self) -> u32 {
        (self.bytes.div_ceil(u64::from(self.symbol_bytes)) as u32).max(1)
    }

    /// Number of symbols that the receiver needs.
    pub(super) fn missing(&self) -> u32 {
        self.told.unwrap_or_else(|| self.symbols())
    }

    pub(super) fn append<D: Payload>(&mut self, data: &D) {
        self.bytes += data.len() as u64;
        self.content.extend_from_slice(data.as_bytes());
    }

    /// The next source symbol, its position, and the description of the block if it is due again.
    pub(super) fn next_source<D: Payload>(&mut self) -> (u64, D, Option<Repair>) {
        let (from, index) = (self.sent_bytes, self.sent_bytes / u64::from(self.symbol_bytes));
        let len = (self.bytes - from).min(u64::from(self.symbol_bytes));
        self.sent_bytes += len;
        let range = from as usize..(from + len) as usize;
        let payload = D::with_content(len as usize, || self.content[range].to_vec());
        let is_last = !self.has_unsent();
        let symbols = u64::from(self.symbols());
        let describes = symbols <= ALL_DESCRIBE || is_last || index % EVERY_DESCRIBES == EVERY_DESCRIBES - 1;
        (self.start + from, payload, (self.is_closed && describes).then(|| self.describe(index as u32)))
    }

    /// The next repair symbol.
    pub(super) fn next_repair<D: Payload>(&mut self) -> (D, Repair) {
        let symbols = self.symbols();
        let index = symbols + self.next_repair;
        self.next_repair = (self.next_repair + 1) % (RaptorQ::ID_END - symbols);
        let len = self.symbol_bytes as usize;
        let payload = D::with_content(len, || {
            let encoder = match &mut self.encoder {
                Some(encoder) => encoder,
                none => {
                    let mut content = self.content.clone();
                    content.resize(symbols as usize * len, 0);
                    let code = RaptorQ::new(symbols as usize, len).expect("blocks are within the code's bounds");
                    none.insert(code.encoder(&content).expect("it was filled up to that"))
                }
            };
            encoder.repair(index..index + 1).expect("repair symbols begin behind the source symbols")
        });
        if !self.has_unsent() {
            self.content = Vec::new(); // the encoder has it
        }
        (payload, self.describe(index))
    }

    fn describe(&self, index: u32) -> Repair {
        Repair {
            start: self.start as u32,
            bytes: self.bytes as u32,
            symbol_bytes: self.symbol_bytes as u16,
            symbols: self.symbols() as u16,
            index,
        }
    }
}
