//! The keys of a receiver: the present one, the one before, and those ahead.

use crate::time::Time;

use super::PacketKey;

/// How many key changes in a row a receiver may miss every packet of. `[O13]`
pub const MOST_PHASES_AHEAD: usize = 4;

/// How often the key has changed, modulo 8. `[O12]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyPhase(u8);

impl KeyPhase {
    /// How many phases the field tells apart.
    const ROUND: u8 = 8;

    /// From the number of key changes.
    pub const fn new(changes: u8) -> Self {
        KeyPhase(changes % Self::ROUND)
    }

    /// As it is sent, 0 to 7.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The phase this many key changes later.
    #[must_use]
    pub(super) const fn after(self, changes: usize) -> Self {
        KeyPhase((self.0 + (changes % Self::ROUND as usize) as u8) % Self::ROUND)
    }

    /// How many key changes lead from `other` here, 0 to 7.
    const fn since(self, other: KeyPhase) -> usize {
        ((self.0 + Self::ROUND - other.0) % Self::ROUND) as usize
    }
}

/// Which key opens a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    Earlier,
    Present,
    /// That of so many key changes ahead, 1 to [`MOST_PHASES_AHEAD`].
    Ahead(usize),
}

/// The key before the present one.
#[derive(Debug)]
struct Earlier<K> {
    key: K,
    until: Time,
}

/// The keys that may open packets of one direction. `[O13]`
#[derive(Debug)]
pub(super) struct Keys<K> {
    present: K,
    phase: KeyPhase,
    /// The least packet number that the present key has opened.
    first: Option<u64>,
    earlier: Option<Earlier<K>>,
    /// The next keys, as far as a packet has asked for them: a forged packet costs no more derivations than this.
    ahead: Vec<K>,
    /// How long the earlier key is kept.
    keep: Time,
}

impl<K: PacketKey> Keys<K> {
    pub(super) fn new(present: K, phase: KeyPhase, keep: Time) -> Self {
        Keys { present, phase, first: None, earlier: None, ahead: Vec::new(), keep }
    }

    pub(super) fn phase(&self) -> KeyPhase {
        self.phase
    }

    pub(super) fn present(&self) -> &K {
        &self.present
    }

    /// Forgets the earlier key when it is time, or when the replay window, which begins at `window_start`, has passed
    /// all that it may have sealed.
    pub(super) fn expire(&mut self, now: Time, window_start: u64) {
        let is_passed = self.first.is_some_and(|first| first <= window_start);
        if self.earlier.as_ref().is_some_and(|earlier| now >= earlier.until || is_passed) {
            self.earlier = None;
        }
    }

    /// The key for a packet of this phase and number; `None` if there is none. `expected` is one after the highest
    /// number that opened.
    pub(super) fn candidate(&self, phase: KeyPhase, number: u64, expected: u64) -> Option<Candidate> {
        const BEFORE: usize = KeyPhase::ROUND as usize - 1;
        match phase.since(self.phase) {
            0 => Some(Candidate::Present),
            ahead @ 1..=MOST_PHASES_AHEAD if number >= expected => Some(Candidate::Ahead(ahead)),
            BEFORE if self.earlier.is_some() && self.first.is_some_and(|first| number < first) => {
                Some(Candidate::Earlier)
            }
            _ => None,
        }
    }

    /// The key itself; keys ahead are derived on first use. `None` if it is not kept.
    pub(super) fn key(&mut self, candidate: Candidate) -> Option<&K> {
        match candidate {
            Candidate::Present => Some(&self.present),
            Candidate::Earlier => self.earlier.as_ref().map(|earlier| &earlier.key),
            Candidate::Ahead(changes) => {
                while self.ahead.len() < changes.min(MOST_PHASES_AHEAD) {
                    let next = self.ahead.last().unwrap_or(&self.present).next();
                    self.ahead.push(next);
                }
                self.ahead.get(changes.checked_sub(1)?)
            }
        }
    }

    /// A packet has opened: a key ahead becomes the present one.
    pub(super) fn opened(&mut self, candidate: Candidate, number: u64, now: Time) {
        if let Candidate::Ahead(changes) = candidate
            && self.ahead.len() >= changes
        {
            for key in self.ahead.drain(..changes) {
                let key = std::mem::replace(&mut self.present, key);
                self.earlier = Some(Earlier { key, until: now + self.keep });
            }
            self.phase = self.phase.after(changes);
            self.first = None;
        }
        if candidate != Candidate::Earlier {
            self.first = Some(self.first.map_or(number, |first| first.min(number)));
        }
    }
}
