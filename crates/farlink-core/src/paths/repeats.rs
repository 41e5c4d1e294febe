//! Pieces of packets that are sent again, each over whichever path may carry it, under the numbers that they have.

use std::collections::BTreeMap;

use super::packet::Data;
use crate::payload::Payload;
use crate::time::Time;

/// A packet of the user with its number, or a piece of one.
#[derive(Clone, Debug)]
pub(super) struct Chunk<D> {
    pub(super) class: u8,
    pub(super) lane: u8,
    pub(super) sequence: u64,
    pub(super) offset: u16,
    pub(super) is_last: bool,
    pub(super) data: D,
    /// The byte of traffic class of its packet.
    pub(super) traffic_class: u8,
    /// When the packet was taken from the queue.
    pub(super) since: Time,
    /// How often it was lost.
    pub(super) losses: u8,
    /// Whether [`Repeats`] counts copies of it that are on several paths.
    pub(super) has_copies: bool,
}

/// Identity of a piece.
pub(super) type Key = (u8, u8, u64, u16);

impl<D: Payload> Chunk<D> {
    pub(super) fn key(&self) -> Key {
        (self.class, self.lane, self.sequence, self.offset)
    }

    /// Takes the first `bytes` off.
    pub(super) fn cut(&mut self, bytes: usize) -> Chunk<D> {
        let first = self.data.split_to(bytes);
        let cut = Chunk { data: first, is_last: false, ..self.clone_without_data() };
        self.offset += bytes as u16;
        cut
    }

    fn clone_without_data(&self) -> Chunk<D> {
        Chunk { data: D::default(), ..*self }
    }

    /// As it is sent.
    pub(super) fn frame(&self) -> Data<D> {
        Data {
            class: self.class,
            lane: self.lane,
            sequence: super::packet::low(self.sequence, super::packet::SEQUENCE_BITS),
            offset: self.offset,
            is_last: self.is_last,
            payload: self.data.clone(),
        }
    }
}

/// Treatment of a piece that a path lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is sent again.
    Repeated,
    /// A copy of it has arrived or may still arrive.
    NotNeeded,
    /// It is not sent again: its packet is lost.
    Lost,
}

/// Pieces that wait to be sent again, and how many copies of a piece are under way.
#[derive(Clone, Debug)]
pub(super) struct Repeats<D> {
    /// By class, then by the age of the packet.
    waiting: BTreeMap<(u8, Time, u8, u64, u16), Chunk<D>>,
    bytes: usize,
    /// Copies that may still arrive, of pieces with several; a piece that arrived is removed.
    copies: BTreeMap<Key, u8>,
}

impl<D: Payload> Repeats<D> {
    pub(super) fn new() -> Self {
        Repeats { waiting: BTreeMap::new(), bytes: 0, copies: BTreeMap::new() }
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn put(&mut self, chunk: Chunk<D>) {
        self.bytes += chunk.data.len();
        let replaced = self.waiting.insert((chunk.class, chunk.since, chunk.lane, chunk.sequence, chunk.offset), chunk);
        // The same piece waits once; a longer one covers what a shorter one had.
        if let Some(old) = replaced {
            self.bytes -= old.data.len();
        }
    }

    /// A piece is sent as so many copies.
    pub(super) fn copied(&mut self, key: Key, copies: u8) {
        self.copies.insert(key, copies);
    }

    /// A copy arrived: none of the others is needed.
    pub(super) fn arrived(&mut self, key: Key) {
        self.copies.remove(&key);
    }

    /// A piece was lost.
    pub(super) fn lost(&mut self, mut chunk: Chunk<D>, may_repeat: bool) -> Fate {
        chunk.losses = chunk.losses.saturating_add(1);
        if chunk.has_copies {
            match self.copies.get_mut(&chunk.key()) {
                None => return Fate::NotNeeded,
                Some(copies) if *copies > 1 => {
                    *copies -= 1;
                    return Fate::NotNeeded;
                }
                Some(_) => {
                    self.copies.remove(&chunk.key());
                    chunk.has_copies = false;
                }
            }
        }
        if !may_repeat {
            return Fate::Lost;
        }
        self.put(chunk);
        Fate::Repeated
    }

    /// A path holds a piece and may not deliver it: another path gets a copy. Returns whether one is sent.
    pub(super) fn hand_on(&mut self, mut chunk: Chunk<D>) -> bool {
        if chunk.has_copies {
            match self.copies.get_mut(&chunk.key()) {
                None => return false,
                Some(copies) if *copies > 1 => {
                    *copies -= 1;
                    return false;
                }
                Some(_) => {}
            }
        } else {
            self.copies.insert(chunk.key(), 1);
            chunk.has_copies = true;
        }
        self.put(chunk);
        true
    }

    /// The oldest piece of a class that is still needed.
    pub(super) fn first(&mut self, class: u8) -> Option<&Chunk<D>> {
        loop {
            let (&key, chunk) = self.waiting.range((class, Time::ZERO, 0, 0, 0)..).next()?;
            if key.0 != class {
                return None;
            }
            let is_needed = !chunk.has_copies || self.copies.contains_key(&chunk.key());
            if is_needed {
                return self.waiting.get(&key);
            }
            let chunk = self.waiting.remove(&key).expect("it was found");
            self.bytes -= chunk.data.len();
        }
    }

    /// Takes the piece that [`first`](Self::first) returns.
    pub(super) fn pop(&mut self, class: u8) -> Option<Chunk<D>> {
        self.first(class)?;
        let key = *self.waiting.range((class, Time::ZERO, 0, 0, 0)..).next()?.0;
        let chunk = self.waiting.remove(&key)?;
        self.bytes -= chunk.data.len();
        Some(chunk)
    }

    /// Puts back what was left of a piece that had to be cut, or a piece that was not sent after all.
    pub(super) fn put_back(&mut self, chunk: Chunk<D>) {
        self.put(chunk);
    }

    /// A piece that was cut has no copies any more: its parts are told apart from it.
    pub(super) fn forget_copies(&mut self, chunk: &mut Chunk<D>) {
        if std::mem::take(&mut chunk.has_copies) {
            self.copies.remove(&chunk.key());
        }
    }

    /// Removes what is older than `oldest`; returns how many pieces.
    pub(super) fn expire(&mut self, oldest: Time) -> u64 {
        let old: Vec<_> = self.waiting.iter().filter(|(key, _)| key.1 < oldest).map(|(&key, _)| key).collect();
        let mut count = 0;
        for key in old {
            let chunk = self.waiting.remove(&key).expect("it was found");
            self.bytes -= chunk.data.len();
            let was_needed = !chunk.has_copies || self.copies.remove(&chunk.key()).is_some();
            count += u64::from(was_needed);
        }
        count
    }

    /// Takes everything out; returns how many pieces waited.
    pub(super) fn clear(&mut self) -> u64 {
        let count = self.waiting.len() as u64;
        (self.waiting, self.copies, self.bytes) = (BTreeMap::new(), BTreeMap::new(), 0);
        count
    }
}
