//! Repair symbols across packets.

use std::collections::VecDeque;

use farlink_fec::erasure::Cauchy;

use crate::origin::instants;
use crate::payload::Payload;
use crate::time::Time;

use super::super::outgoing::Outgoing;
use super::super::segment::{REPAIR_BYTES, Repair};
use super::erasure::Erasure;

/// Makes repair symbols for blocks of a stream whose data is sent unchanged.
///
/// A block is a contiguous part of the stream, cut into symbols; segments end at the ends of symbols. A block is closed when it
/// is full or has been open for `timeout_s`; its repair symbols are then sent at once, before more data. `[E1]`
#[derive(Clone, Debug)]
pub(super) struct Encoder<D> {
    config: Erasure,
    code: Option<Cauchy>,
    block: Option<Block>,
    /// The data of the open block, if the payload has content.
    data: Vec<u8>,
    repairs: VecDeque<(u64, Repair, D)>,
}

instants! { Encoder<D>: block; fixed: config, code, data, repairs }

#[derive(Clone, Copy, Debug)]
struct Block {
    start: u64,
    bytes: u64,
    symbol_bytes: u32,
    due: Time,
}

instants! { Block: due; fixed: start, bytes, symbol_bytes }

impl<D: Payload> Encoder<D> {
    pub(super) fn new(config: &Erasure) -> Self {
        let code = Cauchy::new(config.source.whole() as usize, config.repair.whole() as usize).ok();
        Encoder { config: *config, code, block: None, data: Vec::new(), repairs: VecDeque::new() }
    }

    /// How much data may be sent in the next segment, given the room in a packet. `[E5]`
    pub(super) fn most_bytes(&mut self, now: Time, position: u64, most_bytes: u32) -> u32 {
        let room = most_bytes.saturating_sub(u32::from(REPAIR_BYTES)).max(1);
        if self.block.is_some_and(|block| block.symbol_bytes > room || block.start + block.bytes != position) {
            self.close();
        }
        let due = now + self.config.timeout_s.time();
        let block = self.block.get_or_insert(Block { start: position, bytes: 0, symbol_bytes: room, due });
        block.symbol_bytes - (block.bytes % u64::from(block.symbol_bytes)) as u32
    }

    /// Adds data that is sent.
    pub(super) fn on_sent(&mut self, payload: &D) {
        let Some(block) = &mut self.block else { return };
        block.bytes += payload.len() as u64;
        self.data.extend_from_slice(payload.as_bytes());
        if block.bytes == self.config.source.whole() * u64::from(block.symbol_bytes) {
            self.close();
        }
    }

    /// Closes the open block.
    pub(super) fn close(&mut self) {
        let Some(Block { start, bytes, symbol_bytes, .. }) = self.block.take().filter(|block| block.bytes > 0) else {
            return;
        };
        let symbols = bytes.div_ceil(u64::from(symbol_bytes));
        let (source, most) = (self.config.source.whole(), self.config.repair.whole());
        // A short block has repair symbols in proportion, and one at least. `[E2]`
        let count = (symbols * most).div_ceil(source);
        let length = symbol_bytes as usize;
        let mut parity = Vec::new();
        if D::HAS_CONTENT
            && let Some(code) = &self.code
        {
            // The missing part of a short block counts as zero, which changes no repair symbol. `[E6]`
            self.data.resize(source as usize * length, 0);
            parity.resize(most as usize * length, 0);
            code.encode(&self.data, length, &mut parity).expect("the lengths are those of the code");
        }
        self.data.clear();
        for i in 0..count {
            let repair = Repair {
                start: start as u32,
                bytes: bytes as u32,
                symbol_bytes: symbol_bytes as u16,
                symbols: symbols as u16,
                index: (symbols + i) as u32,
            };
            let content = || parity[i as usize * length..][..length].to_vec();
            self.repairs.push_back((start, repair, D::with_content(length, content)));
        }
    }

    /// Drops all pending repair symbols.
    pub(super) fn abandon(&mut self) {
        self.block = None;
        self.data.clear();
        self.repairs.clear();
    }

    /// The next repair symbol to send, if one is left that still fits.
    pub(super) fn next(&mut self, now: Time, most_bytes: u32) -> Option<Outgoing<D>> {
        if self.deadline() <= now {
            self.close();
        }
        let room = most_bytes.saturating_sub(u32::from(REPAIR_BYTES)) as usize;
        loop {
            let (position, repair, payload) = self.repairs.pop_front()?;
            if payload.len() <= room {
                return Some(Outgoing { position, payload, is_end: false, repair: Some(repair) });
            }
        }
    }

    /// Whether there are repair symbols to be sent.
    #[inline]
    pub(super) fn has_repairs(&self) -> bool {
        !self.repairs.is_empty()
    }

    /// Whether data is in a block that is not closed.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.block.is_some_and(|block| block.bytes > 0)
    }

    /// When the open block is closed even if it is not full.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.block.filter(|block| block.bytes > 0).map_or(Time::NEVER, |block| block.due)
    }
}
