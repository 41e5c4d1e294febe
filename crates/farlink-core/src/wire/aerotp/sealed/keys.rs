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

    /// The phase after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        self.after(1)
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
    /// That of so many key changes ahead, 1 to [`MOST_PHASES_AHEAD`], derived from the present one.
    Ahead(usize),
    /// The same, if another handshake gave the first of them.
    Agreed(usize),
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
    /// The same from the key that another handshake has given for the next phase. Empty if none has.
    agreed: Vec<K>,
    /// How many handshakes' keys have opened a packet.
    agreed_keys: u64,
    /// How long the earlier key is kept.
    keep: Time,
}

impl<K: PacketKey> Keys<K> {
    pub(super) fn new(present: K, phase: KeyPhase, keep: Time) -> Self {
        Keys { present, phase, first: None, earlier: None, ahead: Vec::new(), agreed: Vec::new(), agreed_keys: 0, keep }
    }

    pub(super) fn phase(&self) -> KeyPhase {
        self.phase
    }

    pub(super) fn agreed_keys(&self) -> u64 {
        self.agreed_keys
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

    /// Takes a key from another handshake for the phase after the present one. `[O25]`
    pub(super) fn agree(&mut self, next: K) {
        self.agreed = vec![next];
    }

    /// The keys that may have sealed a packet of this phase and number, one or two; `None` if there is none. `expected` is
    /// one after the highest number that opened.
    pub(super) fn candidates(&self, phase: KeyPhase, number: u64, expected: u64) -> Option<[Option<Candidate>; 2]> {
        const BEFORE: usize = KeyPhase::ROUND as usize - 1;
        match phase.since(self.phase) {
            0 => Some([Some(Candidate::Present), None]),
            changes @ 1..=MOST_PHASES_AHEAD if number >= expected => {
                let agreed = (!self.agreed.is_empty()).then_some(Candidate::Agreed(changes));
                Some([agreed, Some(Candidate::Ahead(changes))])
            }
            BEFORE if self.earlier.is_some() && self.first.is_some_and(|first| number < first) => {
                Some([Some(Candidate::Earlier), None])
            }
            _ => None,
        }
    }

    /// The key itself; keys ahead are derived on first use. `None` if it is not kept.
    pub(super) fn key(&mut self, candidate: Candidate) -> Option<&K> {
        let (chain, changes) = match candidate {
            Candidate::Present => return Some(&self.present),
            Candidate::Earlier => return self.earlier.as_ref().map(|earlier| &earlier.key),
            Candidate::Ahead(changes) => (&mut self.ahead, changes),
            Candidate::Agreed(changes) => (&mut self.agreed, changes),
        };
        while chain.len() < changes.min(MOST_PHASES_AHEAD) {
            let next = chain.last().unwrap_or(&self.present).next();
            chain.push(next);
        }
        chain.get(changes.checked_sub(1)?)
    }

    /// A packet has opened: a key ahead becomes the present one.
    pub(super) fn opened(&mut self, candidate: Candidate, number: u64, now: Time) {
        if let Candidate::Ahead(changes) | Candidate::Agreed(changes) = candidate {
            let (mut ahead, mut agreed) = (std::mem::take(&mut self.ahead), std::mem::take(&mut self.agreed));
            let is_agreed = matches!(candidate, Candidate::Agreed(_));
            let chain = if is_agreed { &mut agreed } else { &mut ahead };
            for key in chain.drain(..changes.min(chain.len())) {
                let key = std::mem::replace(&mut self.present, key);
                self.earlier = Some(Earlier { key, until: now + self.keep });
            }
            // The chain behind the key that has opened stays; the other chain begins at a key that is past.
            self.ahead = if is_agreed { agreed } else { ahead };
            self.agreed_keys += u64::from(is_agreed);
            self.phase = self.phase.after(changes);
            self.first = None;
        }
        if candidate != Candidate::Earlier {
            self.first = Some(self.first.map_or(number, |first| first.min(number)));
        }
    }
}
