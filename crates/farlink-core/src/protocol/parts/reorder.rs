//! Puts a stream in order that arrives in pieces, in any order, some of them twice.

use std::collections::VecDeque;

use crate::payload::Payload;

use super::chunks::Chunks;

/// What has arrived of a stream. Offsets count its bytes from anywhere; they never wrap.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct Reorder<D> {
    /// Next offset expected in order.
    pub(in crate::protocol) next: u64,
    /// In order, not yet read by the application.
    ready: Chunks<D>,
    pub(in crate::protocol) unread_bytes: u64,
    /// Out of order: disjoint, ascending; adjacent ones joined where that is free. On the wire that is one for each segment, and
    /// they leave at the front.
    early: VecDeque<(u64, D)>,
    early_bytes: u64,
    pub(in crate::protocol) peak_early_bytes: u64,
}

impl<D: Payload> Reorder<D> {
    /// Takes a piece that ends behind `next`; `true` if it was put aside, since something before it is missing.
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

    /// The next data in order, of at most so many bytes.
    pub(in crate::protocol) fn read_some(&mut self, most: u64) -> Option<D> {
        if self.ready.front_len() as u64 <= most {
            return self.read();
        }
        let data = self.ready.slice(0, most as usize);
        self.ready.advance(data.len());
        self.unread_bytes -= data.len() as u64;
        (!data.is_empty()).then_some(data)
    }

    /// Whether something arrived out of order and still waits.
    #[inline]
    pub(in crate::protocol) fn has_gaps(&self) -> bool {
        !self.early.is_empty()
    }

    /// Pieces that are kept out of order.
    #[inline]
    pub(in crate::protocol) fn piece_count(&self) -> usize {
        self.early.len()
    }

    /// Everything that waits here: for its turn, or to be read.
    #[inline]
    pub(in crate::protocol) fn held_bytes(&self) -> u64 {
        self.unread_bytes + self.early_bytes
    }

    /// Where the first block out of order begins.
    pub(in crate::protocol) fn early_start(&self) -> Option<u64> {
        self.early.front().map(|chunk| chunk.0)
    }

    /// Behind everything that has arrived out of order; 0 if nothing has.
    pub(in crate::protocol) fn early_end(&self) -> u64 {
        self.early.back().map_or(0, |(start, data)| start + data.len() as u64)
    }

    /// The last piece out of order: where it begins and ends.
    #[inline]
    pub(in crate::protocol) fn last_early(&self) -> Option<(u64, u64)> {
        self.early.back().map(|(start, data)| (*start, start + data.len() as u64))
    }

    /// Whether all that arrived out of order is one piece.
    #[inline]
    pub(in crate::protocol) fn is_one_early(&self) -> bool {
        self.early.len() == 1
    }

    /// Appends to the last piece out of order; `false` if that is not free, and nothing was done.
    pub(in crate::protocol) fn extend_early(&mut self, more: D) -> bool {
        let bytes = more.len() as u64;
        let is_joined = self.early.back_mut().is_some_and(|(_, data)| data.try_join(more).is_ok());
        if is_joined {
            self.early_bytes += bytes;
            self.peak_early_bytes = self.peak_early_bytes.max(self.early_bytes);
        }
        is_joined
    }

    /// What is missing at or above `from` of what comes before the end of everything that has arrived, in order.
    pub(in crate::protocol) fn holes(&self, from: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut end = self.next;
        self.early.iter().filter_map(move |(start, data)| {
            let hole = (end.max(from), *start);
            end = start + data.len() as u64;
            (hole.0 < hole.1).then_some(hole)
        })
    }

    /// Gives up what is missing below `offset`, where something waits or the stream ends.
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

    /// Where the first piece behind `offset` begins.
    pub(in crate::protocol) fn start_behind(&self, offset: u64) -> Option<u64> {
        let at = self.early.partition_point(|chunk| chunk.0 < offset);
        self.early.get(at).map(|chunk| chunk.0)
    }

    /// What is put aside, piece by piece; pieces that adjoin may come as one.
    pub(in crate::protocol) fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        self.early.iter().map(|(start, data)| (*start, start + data.len() as u64))
    }

    /// Appends what is next in order.
    #[inline]
    pub(in crate::protocol) fn deliver(&mut self, payload: D) {
        self.next += payload.len() as u64;
        self.unread_bytes += payload.len() as u64;
        self.ready.push_compact(payload);
    }

    /// Moves what has become in order.
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

    /// Stores what is new of an out-of-order payload.
    fn store(&mut self, mut start: u64, mut payload: D) {
        while !payload.is_empty() {
            // The first chunk that ends behind `start`.
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

    /// Inserts a piece that overlaps nothing before chunk `at`, joined to its neighbours where that is free.
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
