//! Orders a stream that arrives in pieces, in any order, some of them more than once.

use std::collections::VecDeque;

use crate::payload::Payload;

use super::chunks::Chunks;

/// The received data of a stream. Offsets count its bytes from any origin and never wrap.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct Reorder<D> {
    /// Next offset expected in order.
    pub(in crate::protocol) next: u64,
    /// Data in order that the application has not read.
    ready: Chunks<D>,
    pub(in crate::protocol) unread_bytes: u64,
    /// Data out of order: disjoint pieces, ascending; adjacent ones are joined where that costs nothing. On the wire there is one
    /// per segment, and they leave at the front.
    early: VecDeque<(u64, D)>,
    early_bytes: u64,
    pub(in crate::protocol) peak_early_bytes: u64,
}

impl<D: Payload> Reorder<D> {
    /// Takes a piece that ends after `next`; returns `true` if it is stored because data before it is missing.
    pub(in crate::protocol) fn put(&mut self, start: u64, mut payload: D) -> bool {
        let start = if start < self.next {
            payload.split_to((self.next - start) as usize);
            self.next
        } else {
            start
        };
        let is_early = start > self.next;
        if is_early {
            self.store(start, payload);
        } else {
            self.deliver(payload);
        }
        self.deliver_early();
        self.peak_early_bytes = self.peak_early_bytes.max(self.early_bytes);
        is_early
    }

    /// The next data in order.
    #[inline]
    pub(in crate::protocol) fn read(&mut self) -> Option<D> {
        let data = self.ready.pop()?;
        self.unread_bytes -= data.len() as u64;
        Some(data)
    }

    /// The next data in order, at most `most` bytes.
    pub(in crate::protocol) fn read_some(&mut self, most: u64) -> Option<D> {
        if self.ready.front_len() as u64 <= most {
            return self.read();
        }
        let data = self.ready.slice(0, most as usize);
        self.ready.advance(data.len());
        self.unread_bytes -= data.len() as u64;
        (!data.is_empty()).then_some(data)
    }

    /// Whether data that arrived out of order still waits.
    #[inline]
    pub(in crate::protocol) fn has_gaps(&self) -> bool {
        !self.early.is_empty()
    }

    /// Number of pieces that are stored out of order.
    #[inline]
    pub(in crate::protocol) fn piece_count(&self) -> usize {
        self.early.len()
    }

    /// All data stored here, out of order or unread.
    #[inline]
    pub(in crate::protocol) fn held_bytes(&self) -> u64 {
        self.unread_bytes + self.early_bytes
    }

    /// Start of the first block out of order.
    pub(in crate::protocol) fn early_start(&self) -> Option<u64> {
        self.early.front().map(|chunk| chunk.0)
    }

    /// End of all data that arrived out of order; 0 if there is none.
    pub(in crate::protocol) fn early_end(&self) -> u64 {
        self.early.back().map_or(0, |(start, data)| start + data.len() as u64)
    }

    /// The gaps at or above `from` before the end of the received data, in order.
    pub(in crate::protocol) fn holes(&self, from: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut end = self.next;
        self.early.iter().filter_map(move |(start, data)| {
            let hole = (end.max(from), *start);
            end = start + data.len() as u64;
            (hole.0 < hole.1).then_some(hole)
        })
    }

    /// Gives up the missing data below `offset`, where a piece starts or the stream ends.
    pub(in crate::protocol) fn skip_to(&mut self, offset: u64) {
        self.next = offset;
        self.deliver_early();
    }

    /// The contiguous block that holds `offset`.
    pub(in crate::protocol) fn block_around(&self, offset: u64) -> Option<(u64, u64)> {
        let end_of = |(start, data): &(u64, D)| start + data.len() as u64;
        let at = self.early.partition_point(|chunk| end_of(chunk) <= offset);
        let chunk = self.early.get(at).filter(|chunk| chunk.0 <= offset)?;
        let (mut left, mut right) = (chunk.0, end_of(chunk));
        for chunk in self.early.range(..at).rev() {
            if end_of(chunk) != left {
                break;
            }
            left = chunk.0;
        }
        for chunk in self.early.range(at + 1..) {
            if chunk.0 != right {
                break;
            }
            right = end_of(chunk);
        }
        Some((left, right))
    }

    /// Start of the first piece at or after `offset`.
    pub(in crate::protocol) fn start_behind(&self, offset: u64) -> Option<u64> {
        let at = self.early.partition_point(|chunk| chunk.0 < offset);
        self.early.get(at).map(|chunk| chunk.0)
    }

    /// The stored pieces; adjacent ones may be returned as one.
    pub(in crate::protocol) fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        self.early.iter().map(|(start, data)| (*start, start + data.len() as u64))
    }

    /// Appends the next data in order.
    #[inline]
    pub(in crate::protocol) fn deliver(&mut self, payload: D) {
        self.next += payload.len() as u64;
        self.unread_bytes += payload.len() as u64;
        self.ready.push_compact(payload);
    }

    /// Moves data that is now in order.
    fn deliver_early(&mut self) {
        let mut taken = 0;
        for (start, data) in &mut self.early {
            if *start > self.next {
                break;
            }
            let mut data = std::mem::take(data);
            let len = data.len() as u64;
            self.early_bytes -= len;
            taken += 1;
            let known = (self.next - *start).min(len);
            data.split_to(known as usize);
            if !data.is_empty() {
                self.next += data.len() as u64;
                self.unread_bytes += data.len() as u64;
                self.ready.push_compact(data);
            }
        }
        self.early.drain(..taken);
    }

    /// Stores the new parts of an out-of-order payload.
    fn store(&mut self, mut start: u64, mut payload: D) {
        while !payload.is_empty() {
            // The first piece that ends after `start`.
            let at = self.early.partition_point(|(s, d)| s + d.len() as u64 <= start);
            let len = payload.len() as u64;
            match self.early.get(at).map(|(s, d)| (*s, s + d.len() as u64)) {
                Some((chunk_start, chunk_end)) if chunk_start <= start => {
                    let known = (chunk_end - start).min(len);
                    payload.split_to(known as usize);
                    start += known;
                }
                behind => {
                    let fits = behind.map_or(len, |(chunk_start, _)| (chunk_start - start).min(len));
                    self.insert(at, start, payload.split_to(fits as usize));
                    start += fits;
                }
            }
        }
    }

    /// Inserts a piece without overlaps before piece `at`, joined to its neighbours where that costs nothing.
    fn insert(&mut self, at: usize, start: u64, piece: D) {
        let end = start + piece.len() as u64;
        self.early_bytes += piece.len() as u64;
        let mut index = at;
        let mut piece = Some(piece);
        if let Some((before, data)) = at.checked_sub(1).and_then(|i| self.early.get_mut(i))
            && *before + data.len() as u64 == start
        {
            piece = piece.and_then(|piece| data.try_join(piece).err());
            index = if piece.is_none() { at - 1 } else { at };
        }
        if let Some(piece) = piece {
            self.early.insert(at, (start, piece));
        }
        if self.early.get(index + 1).is_some_and(|behind| behind.0 == end)
            && let Some((behind, data)) = self.early.remove(index + 1)
            && let Err(data) = self.early[index].1.try_join(data)
        {
            self.early.insert(index + 1, (behind, data));
        }
    }
}

/// For the shortcuts of the simulator.
#[cfg(feature = "trains")]
impl<D: Payload> Reorder<D> {
    /// The next data in order has arrived and is read at once.
    #[inline]
    pub(in crate::protocol) fn pass(&mut self, bytes: u64) {
        self.next += bytes;
    }

    /// Start and end of the last piece out of order.
    #[inline]
    pub(in crate::protocol) fn last_early(&self) -> Option<(u64, u64)> {
        self.early.back().map(|(start, data)| (*start, start + data.len() as u64))
    }

    /// Whether all data out of order is one piece.
    #[inline]
    pub(in crate::protocol) fn is_one_early(&self) -> bool {
        self.early.len() == 1
    }

    /// Appends to the last piece out of order. Returns `false`, without any effect, if that needs a copy.
    pub(in crate::protocol) fn extend_early(&mut self, more: D) -> bool {
        let bytes = more.len() as u64;
        let is_joined = self.early.back_mut().is_some_and(|(_, data)| data.try_join(more).is_ok());
        if is_joined {
            self.early_bytes += bytes;
            self.peak_early_bytes = self.peak_early_bytes.max(self.early_bytes);
        }
        is_joined
    }
}
