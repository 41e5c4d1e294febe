//! Receiving side of a seal: keys, replay window, and the steps from a datagram to a segment.

use bytes::Bytes;

use crate::endpoint::Integrity;
use crate::protocol::aerotp::Flags;
use crate::time::Time;
use crate::wire::WirePayload;
use crate::wire::aerotp::parity::{self, Mended};
use crate::wire::aerotp::{Arrived, Refusal, read};

use super::clear::{self, Content};
use super::keys::{Candidate, Keys};
use super::outer::associated;
use super::{
    Cover, KeyPhase, Kind, MOST_NUMBER, OUTER_BYTES, OuterPacket, PacketKey, ReplayWindow, Stale, TAG_BYTES, code,
    expand, is_message, nonce,
};

/// Why a packet with a right outer header gave no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NotOpened {
    /// It is of another kind than the keys are for.
    Kind,
    /// It belongs to another connection.
    Connection,
    /// A packet with its number has opened. `[O9]`
    Repeated,
    /// Its number lies before the replay window. `[O9]`
    Old,
    /// No key of its phase may have sealed its number. `[O13]`
    Phase,
    /// The parity does not correct it, or its tag is wrong: damaged on the way, or forged. `[O19]`
    Damaged,
    /// So many packets had a wrong tag that nothing is opened any more. `[O11]`
    Exhausted,
    /// It opened, and the segment inside is not usable.
    Segment(Refusal),
}

impl From<Stale> for NotOpened {
    fn from(stale: Stale) -> Self {
        match stale {
            Stale::Repeated => NotOpened::Repeated,
            Stale::Old => NotOpened::Old,
        }
    }
}

/// Content of a packet that was sealed or in the clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    content: Bytes,
    cover: Cover,
    is_message: bool,
    integrity: Integrity,
    parity_words: u16,
    is_newest: bool,
}

impl Opened {
    /// A message of the session, if it is none of a connection. `[O24]`
    pub fn message(&self) -> Option<&[u8]> {
        self.is_message.then_some(&self.content)
    }

    /// Whether it arrived as it was sent: always under a seal. In the clear what is behind its first 13 bytes, or behind the header of its
    /// segment, may be damaged. `[O26]`
    pub fn is_damaged(&self) -> bool {
        self.integrity == Integrity::PayloadDamaged
    }

    /// Whether no packet with a higher number has opened before.
    pub fn is_newest(&self) -> bool {
        self.is_newest
    }

    /// The segment.
    ///
    /// Its `header_bytes` include outer header and tag, so that its length is the packet's, and its words of parity are the
    /// packet's. Under a seal it is intact, or mended; never damaged. Its ECN bits are those that its sender wrote: marks of routers are in the
    /// IP header. `[O20]`
    ///
    /// # Errors
    /// If it is no usable one.
    pub fn segment<D: WirePayload>(&self) -> Result<Arrived<D>, NotOpened> {
        let mut arrived = read::<D>(&self.content, self.cover.form()).map_err(NotOpened::Segment)?;
        if arrived.integrity != Integrity::PayloadDamaged {
            arrived.integrity = self.integrity;
        }
        arrived.segment.header_bytes += (OUTER_BYTES + self.cover.tag_bytes()) as u16;
        arrived.segment.fec_words = self.parity_words;
        if self.parity_words > 0 {
            arrived.segment.flags = arrived.segment.flags.with(Flags::FEC);
        }
        Ok(arrived)
    }
}

/// Opens the sealed segments of one direction of a connection.
#[derive(Debug)]
pub struct Unsealer<K> {
    kind: Kind,
    cover: Cover,
    connection_id: u32,
    keys: Keys<K>,
    window: ReplayWindow,
    /// Packets whose tag was wrong, over all keys.
    refused: u64,
}

impl<K: PacketKey> Unsealer<K> {
    /// For packets of a connection id that this side has chosen, in key phase 0. `keep` is how long the earlier key may
    /// still open packets after a change: the connection's `give_up_after_s`. `[O5]`, `[O13]`
    pub fn new(key: K, connection_id: u32, keep: Time) -> Self {
        Self::starting_in(KeyPhase::default(), Kind::Sealed, key, connection_id, keep)
    }

    /// Begins with another kind or phase.
    ///
    /// # Panics
    /// If the kind is not one of segments.
    pub fn starting_in(phase: KeyPhase, kind: Kind, key: K, connection_id: u32, keep: Time) -> Self {
        assert!(kind.is_segment(), "{kind:?} is not a kind of segments");
        let (keys, window) = (Keys::new(key, phase, keep), ReplayWindow::default());
        Unsealer { kind, cover: Cover::Seal, connection_id, keys, window, refused: 0 }
    }

    /// Protection of the packets. In the clear no key is used; which packet is the newest and which is repeated is known all the same.
    #[must_use]
    pub fn covered_by(mut self, cover: Cover) -> Self {
        self.cover = cover;
        self
    }

    /// Opens a packet with a segment in place. Payloads of [`Bytes`](bytes::Bytes) are slices of the datagram. Never panics.
    ///
    /// # Errors
    /// As [`open_content`](Self::open_content), or if what opened is no usable segment.
    pub fn open<D: WirePayload>(&mut self, packet: OuterPacket, now: Time) -> Result<Arrived<D>, NotOpened> {
        self.open_content(packet, now)?.segment()
    }

    /// Opens a packet in place, whatever it holds. Never panics.
    ///
    /// The steps: kind and connection id, replay window, choice of the key, correction, AEAD. Nothing changes before the AEAD
    /// has opened the packet, but the count of wrong tags. `[O15]`
    ///
    /// # Errors
    /// The reason; a receiver counts and drops such packets.
    pub fn open_content(&mut self, mut packet: OuterPacket, now: Time) -> Result<Opened, NotOpened> {
        let header = *packet.header();
        if header.kind != self.kind {
            return Err(NotOpened::Kind);
        }
        if header.connection_id != self.connection_id {
            return Err(NotOpened::Connection);
        }
        let expected = self.window.expected();
        let number = expand(header.number, expected);
        self.window.check(number)?;
        if number > MOST_NUMBER {
            return Err(NotOpened::Phase);
        }
        if self.cover == Cover::Clear {
            return self.read_clear(packet, number);
        }
        self.keys.expire(now, self.window.start());
        let candidates = self.keys.candidates(header.key_phase, number, expected).ok_or(NotOpened::Phase)?;
        if self.refused >= self.keys.present().algorithm().most_refused() {
            return Err(NotOpened::Exhausted);
        }

        let integrity = mend(&mut packet).ok_or(NotOpened::Damaged)?;
        let Some(candidate) = self.try_keys(&mut packet, candidates, number) else {
            self.refused += 1;
            return Err(NotOpened::Damaged);
        };
        self.window.mark(number);
        self.keys.opened(candidate, number, now);
        let is_newest = number >= expected;
        let content = packet.into_content(TAG_BYTES);
        let is_message = is_message(&content);
        let (cover, parity_words) = (Cover::Seal, header.parity_words);
        Ok(Opened { content, cover, is_message, integrity, parity_words, is_newest })
    }

    /// The steps in the clear: correction, and the checks. `[O26]`
    fn read_clear(&mut self, mut packet: OuterPacket, number: u64) -> Result<Opened, NotOpened> {
        let header = *packet.header();
        let mended = mend(&mut packet);
        let whole = packet.behind().get(..usize::from(header.content_bytes)).unwrap_or_default();
        let (is_message, tag_bytes, integrity) = match clear::check(whole).ok_or(NotOpened::Damaged)? {
            Content::Segment => (false, 0, mended.unwrap_or(Integrity::Intact)),
            Content::Message => (true, TAG_BYTES, mended.unwrap_or(Integrity::Intact)),
            Content::DamagedMessage => (true, TAG_BYTES, Integrity::PayloadDamaged),
        };
        let is_newest = number >= self.window.expected();
        self.window.mark(number);
        let content = packet.into_content(tag_bytes);
        let (cover, parity_words) = (Cover::Clear, header.parity_words);
        Ok(Opened { content, cover, is_message, integrity, parity_words, is_newest })
    }

    /// Takes the key of the next phase from another handshake. Packets under a key that the peer derives from the present one are
    /// opened as well: it may have reached a limit before it knew. `[O25]`
    pub fn agree(&mut self, next: K) {
        self.keys.agree(next);
    }

    /// How many keys of other handshakes have opened a packet.
    pub fn agreed_keys(&self) -> u64 {
        self.keys.agreed_keys()
    }

    /// The phase of the latest key that has opened a packet.
    pub fn key_phase(&self) -> KeyPhase {
        self.keys.phase()
    }

    /// The packet number after the highest that has opened.
    pub fn expected_number(&self) -> u64 {
        self.window.expected()
    }

    /// Opens the packet with the first key that fits.
    fn try_keys(
        &mut self,
        packet: &mut OuterPacket,
        candidates: [Option<Candidate>; 2],
        number: u64,
    ) -> Option<Candidate> {
        let mut left = candidates.into_iter().flatten();
        let (first, second) = (left.next()?, left.next());
        // A key that does not fit leaves nothing of what it was tried on.
        let copy = second.map(|second| (second, packet.clone()));
        if self.open_in_place(packet, first, number) {
            return Some(first);
        }
        let (second, copy) = copy?;
        *packet = copy;
        self.open_in_place(packet, second, number).then_some(second)
    }

    fn open_in_place(&mut self, packet: &mut OuterPacket, candidate: Candidate, number: u64) -> bool {
        let content_bytes = usize::from(packet.header().content_bytes);
        let (Some((header, behind)), Some(key)) = (packet.parts(), self.keys.key(candidate)) else { return false };
        let Some(content) = behind.get_mut(..content_bytes) else { return false };
        let Some((content, tag)) = content.split_last_chunk_mut::<TAG_BYTES>() else { return false };
        key.open(&nonce(key.iv(), number), associated(header), content, tag)
    }
}

/// Corrects ciphertext and tag; `None` if that is not possible. `[F4]`
fn mend(packet: &mut OuterPacket) -> Option<Integrity> {
    let header = *packet.header();
    let (_, behind) = packet.parts()?;
    let mended = parity::mend(&code(usize::from(header.content_bytes), header.parity_words), behind);
    let integrity = mended.integrity()?;
    if let Mended::Now { bytes, .. } = mended {
        behind.copy_from_slice(&bytes);
    }
    Some(integrity)
}

#[cfg(test)]
mod tests {
    use super::super::Algorithm;
    use super::super::tests::{CountingKey, packet, segment};
    use super::*;
    use crate::payload::Virtual;

    /// After so many wrong tags even a right one is not tried. `[O11]`
    #[test]
    fn forgeries_are_counted_up_to_the_limit() {
        let key = CountingKey::new(Algorithm::ChaCha20Poly1305);
        let mut unsealer = Unsealer::new(key, 7, Time::NEVER);
        unsealer.refused = (1 << 36) - 1;
        let open = |unsealer: &mut Unsealer<CountingKey>, packet| unsealer.open::<Virtual>(packet, Time::ZERO);
        let of_other_key = packet(&CountingKey::new(Algorithm::ChaCha20Poly1305).next(), 0);
        let right = || packet(&CountingKey::new(Algorithm::ChaCha20Poly1305), 1);
        assert_eq!(open(&mut unsealer, right()).map(|arrived| arrived.segment.sequence), Ok(segment().sequence));
        assert_eq!(open(&mut unsealer, of_other_key), Err(NotOpened::Damaged));
        let again = packet(&CountingKey::new(Algorithm::ChaCha20Poly1305), 2);
        assert_eq!(open(&mut unsealer, again), Err(NotOpened::Exhausted));
    }

    /// A key of another handshake opens its phase; so does what the peer derived from the present one, if it did not come so far.
    #[test]
    fn an_agreed_key_opens_the_next_phase() {
        let key = || CountingKey::new(Algorithm::Aes256Gcm);
        let agreed = || CountingKey::stranger();
        let open = |unsealer: &mut Unsealer<CountingKey>, packet| {
            unsealer.open::<Virtual>(packet, Time::ZERO).map(|_| unsealer.key_phase().number())
        };
        let packet_of =
            |changes, key: &CountingKey, number| super::super::tests::packet_in(KeyPhase::new(changes), key, number);
        let begun = || {
            let mut unsealer = Unsealer::new(key(), 7, Time::from_secs(60));
            unsealer.agree(agreed());
            assert_eq!(open(&mut unsealer, packet_of(0, &key(), 1)), Ok(0), "the present key goes on");
            unsealer
        };

        let mut unsealer = begun();
        assert_eq!(open(&mut unsealer, packet_of(1, &agreed(), 5)), Ok(1));
        assert_eq!(open(&mut unsealer, packet_of(0, &key(), 4)), Ok(1), "the one before is kept for what is late");
        assert_eq!(
            open(&mut unsealer, packet_of(1, &key().next(), 6)),
            Err(NotOpened::Damaged),
            "derived from the old"
        );
        assert_eq!(open(&mut unsealer, packet_of(2, &agreed().next(), 7)), Ok(2), "derived from the new");

        let mut unsealer = begun();
        assert_eq!(open(&mut unsealer, packet_of(2, &agreed().next(), 5)), Ok(2), "all of the first phase was lost");

        let mut unsealer = begun();
        assert_eq!(open(&mut unsealer, packet_of(1, &key().next(), 5)), Ok(1), "the peer came to a limit first");
        assert_eq!(open(&mut unsealer, packet_of(1, &agreed(), 6)), Err(NotOpened::Damaged), "its phase is past");
        assert_eq!(open(&mut unsealer, packet_of(2, &key().next().next(), 7)), Ok(2));
    }

    /// A forged packet of four phases ahead makes the receiver derive four keys, and further ones none.
    #[test]
    fn forged_phases_cost_four_derivations() {
        let mut unsealer = Unsealer::new(CountingKey::new(Algorithm::Aes256Gcm), 7, Time::NEVER);
        let stranger = CountingKey::stranger();
        let derived = CountingKey::derived();
        for number in 0..100 {
            let forged = super::super::tests::packet_in(KeyPhase::new(4), &stranger, number);
            assert_eq!(unsealer.open::<Virtual>(forged, Time::ZERO), Err(NotOpened::Damaged));
        }
        assert_eq!(CountingKey::derived() - derived, 4);
        assert_eq!(unsealer.key_phase(), KeyPhase::default());
    }
}
