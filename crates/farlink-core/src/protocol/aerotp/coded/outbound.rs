//! A block as its sender has it.

use farlink_fec::erasure::{RaptorQ, RaptorQEncoder};

use crate::payload::Payload;
use crate::time::Time;

use super::super::segment::Repair;

/// Blocks of so few symbols are described by every one of them, larger ones by every so manieth: the receiver has to know what a
/// block is before it can say how many symbols it wants. `[K3]`
const ALL_DESCRIBE: u64 = 32;
const EVERY_DESCRIBES: u64 = 8;

/// Data that is coded together, until all of it has arrived.
#[derive(Clone, Debug)]
pub(super) struct Outbound {
    pub(super) start: u64,
    /// Data in it; more may come while it is open.
    pub(super) bytes: u64,
    pub(super) symbol_bytes: u32,
    pub(super) most_bytes: u64,
    /// So much of it went out as it is.
    pub(super) sent_bytes: u64,
    /// When it was begun.
    pub(super) opened: Time,
    /// No more data comes.
    pub(super) is_closed: bool,
    /// The stream ends behind it, and every symbol that says so is part of it.
    pub(super) is_end: bool,
    /// Symbols sent of which nothing is known.
    pub(super) in_flight: u32,
    /// Symbols that have arrived or are lost, but what the receiver said about the block last is older.
    pub(super) unreported: u32,
    /// When one was sent last, in ticks.
    pub(super) last_sent: u64,
    /// Symbols that the receiver wants, as far as it has said.
    pub(super) told: Option<u32>,
    /// Symbols to send before anything else is known.
    pub(super) owed: u32,
    /// Nothing was heard of it although all that was sent of it has been answered, or should have been.
    pub(super) is_unheard: bool,
    /// What it is owed was decided before.
    pub(super) is_again: bool,
    /// What it is owed completes it with this probability.
    pub(super) completion: f64,
    /// The data, where there is more than a length, until all of it went out and there is a code.
    content: Vec<u8>,
    encoder: Option<RaptorQEncoder>,
    next_repair: u32,
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
            is_unheard: false,
            is_again: false,
            completion: 0.0,
            content: Vec::new(),
            encoder: None,
            next_repair: 0,
        }
    }

    /// The end of the stream by itself.
    pub(super) fn end_only(start: u64, now: Time) -> Self {
        Outbound { is_closed: true, is_end: true, ..Outbound::new(start, 1, 0, now) }
    }

    /// Behind its last number; the end of the stream takes one.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes + u64::from(self.is_end)
    }

    /// Whether data of it has never been sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.sent_bytes < self.bytes
    }

    /// Source symbols; the end by itself is one.
    pub(super) fn symbols(&self) -> u32 {
        (self.bytes.div_ceil(u64::from(self.symbol_bytes)) as u32).max(1)
    }

    /// Symbols that the receiver wants.
    pub(super) fn missing(&self) -> u32 {
        self.told.unwrap_or_else(|| self.symbols())
    }

    pub(super) fn append<D: Payload>(&mut self, data: &D) {
        self.bytes += data.len() as u64;
        self.content.extend_from_slice(data.as_bytes());
    }

    /// The next symbol as it is, its position, and what describes the block if it should be described again.
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
