//! Sending side of a seal: key, packet numbers, and the steps from a segment to a datagram.

use crate::protocol::aerotp::Segment;
use crate::wire::aerotp::{Outside, header, parity, wire_bytes, write};
use crate::wire::{EncodeError, WirePayload, Writer, ipv4, within, within_ipv4};

use super::clear;
use super::outer::associated;
use super::{
    Cover, KeyPhase, Kind, MOST_NUMBER, OUTER_BYTES, OuterHeader, PacketKey, TAG_BYTES, code, is_message, nonce,
};

/// Why a segment was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It does not fit.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// All packet numbers are used.
    #[error("packet {MOST_NUMBER} was the last; open another connection")]
    NoNumbers,
}

/// Seals the segments of one direction of a connection.
///
/// It owns the packet numbers, so that none is used twice, and changes the key in time. It cannot be cloned. `[O6]`
#[derive(Debug)]
pub struct Sealer<K> {
    kind: Kind,
    cover: Cover,
    connection_id: u32,
    key: K,
    phase: KeyPhase,
    next: u64,
    /// Packets that the key has sealed, and the longest content among them.
    sealed: u64,
    longest: usize,
}

impl<K: PacketKey> Sealer<K> {
    /// Begins with packet 0, in key phase 0. The connection id is the one that the receiver chose. `[O5]`
    pub fn new(key: K, connection_id: u32) -> Self {
        Self::starting_at(0, Kind::Sealed, key, KeyPhase::default(), connection_id)
    }

    /// Begins with another packet number: for the segments of one kind after those of the other, with another key.
    ///
    /// A key must never seal one number twice, so no sealer begins again where another one was. `[O6]`
    ///
    /// # Panics
    /// If the kind is not one of segments.
    pub fn starting_at(number: u64, kind: Kind, key: K, phase: KeyPhase, connection_id: u32) -> Self {
        assert!(kind.is_segment(), "{kind:?} is not a kind of segments");
        Sealer { kind, cover: Cover::Seal, connection_id, key, phase, next: number, sealed: 0, longest: 0 }
    }

    /// From now on packets have another cover. In the clear, the key seals nothing, and no limit of it changes it.
    #[must_use]
    pub fn covered_by(mut self, cover: Cover) -> Self {
        self.cover = cover;
        self
    }

    /// Protection of packets.
    pub fn cover(&self) -> Cover {
        self.cover
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The key phase of the next packet, unless a limit changes the key before it.
    pub fn key_phase(&self) -> KeyPhase {
        self.phase
    }

    /// Changes the key, for example because time has passed. Only when an answer has shown that the peer has opened a
    /// packet of the present phase; the limits of the AEAD need no call. `[O12]`
    pub fn change_key(&mut self) {
        self.change_key_to(self.key.next());
    }

    /// As [`change_key`](Self::change_key), to a key from another handshake. Only when the peer is known to have it. `[O25]`
    pub fn change_key_to(&mut self, key: K) {
        self.key = key;
        self.phase = self.phase.after(1);
        (self.sealed, self.longest) = (0, 0);
    }

    /// Writes a sealed segment to the start of `out` and returns its length ([`packet_bytes`]). The segment's words of
    /// parity become those of the outer header.
    ///
    /// The steps: the segment in sealed form, then the AEAD, then the parity over ciphertext and tag. The check of the
    /// outer header covers what is known before, so it is there from the start. `[O14]`
    ///
    /// # Errors
    /// If the packet is longer than IPv4 allows or than `out`, which then stays unchanged; if no packet number is left.
    /// Neither takes a number.
    pub fn seal_into<D: WirePayload>(
        &mut self,
        segment: &Segment<D>,
        outside: &Outside,
        out: &mut [u8],
    ) -> Result<usize, SealError> {
        let form = self.cover.form();
        let parts = (wire_bytes(segment, form), self.cover.tag_bytes(), words(segment));
        self.seal(parts, out, |content, _| write(segment, form, outside, &mut Writer::new(content)))
    }

    /// As [`seal_into`](Self::seal_into), for a message of the session. `[O24]`
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// If the message could be taken for a segment: the byte at place 12, if it is as long, is above 63. If it is empty.
    pub fn seal_message(&mut self, message: &[u8], out: &mut [u8]) -> Result<usize, SealError> {
        assert!(is_message(message), "this could be a segment");
        self.seal((message.len(), TAG_BYTES, 0), out, |content, checks| {
            content.copy_from_slice(message);
            clear::write_checks(message, checks);
        })
    }

    /// `write` gets the room for the content and, in the clear, that for what stands in place of a tag.
    fn seal(
        &mut self,
        (plain_bytes, tag_bytes, parity_words): (usize, usize, u16),
        out: &mut [u8],
        write: impl FnOnce(&mut [u8], &mut [u8]),
    ) -> Result<usize, SealError> {
        let content_bytes = plain_bytes + tag_bytes;
        let bytes = OUTER_BYTES + content_bytes + 4 * usize::from(parity_words);
        within_ipv4(bytes + usize::from(ipv4::HEADER_BYTES)).map_err(EncodeError::from)?;
        within(bytes, out)?;
        let number = self.take_number(content_bytes)?;
        let header = OuterHeader {
            kind: self.kind,
            key_phase: self.phase,
            parity_words,
            content_bytes: content_bytes as u16,
            connection_id: self.connection_id,
            number: number as u32,
        }
        .encode();
        out[..OUTER_BYTES].copy_from_slice(&header);
        let behind = &mut out[OUTER_BYTES..bytes];

        let (content, tag_and_parity) = behind.split_at_mut(plain_bytes);
        let (tag, parity) = tag_and_parity.split_at_mut(tag_bytes);
        match self.cover {
            Cover::Seal => {
                write(content, &mut []);
                tag.copy_from_slice(&self.key.seal(&nonce(self.key.iv(), number), associated(&header), content));
            }
            Cover::Clear => write(content, tag),
        }
        parity.fill(0);
        if parity_words > 0 {
            parity::fill(&code(content_bytes, parity_words), behind);
        }
        Ok(bytes)
    }

    /// The next packet number, with another key if the present one has sealed as much as it may. `[O11]`
    fn take_number(&mut self, content_bytes: usize) -> Result<u64, SealError> {
        let number = self.next;
        if number > MOST_NUMBER {
            return Err(SealError::NoNumbers);
        }
        if self.cover == Cover::Seal && self.sealed >= self.key.algorithm().most_sealed(self.longest.max(content_bytes))
        {
            self.change_key();
        }
        self.next += 1;
        self.sealed += 1;
        self.longest = self.longest.max(content_bytes);
        Ok(number)
    }
}

/// Length of a segment when it is sealed: outer header, segment in sealed form, tag and parity. `[O22]`
pub fn sealed_bytes<D: WirePayload>(segment: &Segment<D>) -> usize {
    packet_bytes(segment, Cover::Seal)
}

/// Length of the packet of a segment. In the clear it is shorter. `[O26]`
pub fn packet_bytes<D: WirePayload>(segment: &Segment<D>, cover: Cover) -> usize {
    OUTER_BYTES + wire_bytes(segment, cover.form()) + cover.tag_bytes() + 4 * usize::from(words(segment))
}

/// Words of parity of the packet; no more than the outer header can say. `[O21]`
fn words<D>(segment: &Segment<D>) -> u16 {
    segment.fec_words.min(header::MOST_WORDS)
}

#[cfg(test)]
mod tests {
    use super::super::Algorithm;
    use super::super::tests::{CountingKey, segment};
    use super::*;

    fn seal(sealer: &mut Sealer<CountingKey>, payload_bytes: usize) -> Result<KeyPhase, SealError> {
        let segment = Segment { payload: vec![0; payload_bytes], ..segment() };
        let mut out = vec![0; sealed_bytes(&segment)];
        sealer.seal_into(&segment, &Outside::default(), &mut out)?;
        Ok(OuterHeader::decode(&out).unwrap().key_phase)
    }

    /// Long packets lower the limit, also for those before. `[O11]`
    #[test]
    fn a_limit_changes_the_key_before_the_packet_beyond_it() {
        let [zero, one, two] = [0, 1, 2].map(KeyPhase::new);
        let mut sealer = Sealer::new(CountingKey::new(Algorithm::Aes256Gcm), 7);
        sealer.sealed = (1 << 28) - 1;
        assert_eq!(seal(&mut sealer, 2048 - 16 - 18), Ok(zero));
        assert_eq!(seal(&mut sealer, 10), Ok(one));
        sealer.sealed = 1 << 23;
        assert_eq!(seal(&mut sealer, 2048 - 16 - 18), Ok(one));
        assert_eq!(seal(&mut sealer, 2048 - 16 - 17), Ok(two), "a longer one");
        assert_eq!(sealer.next_number(), 4, "numbers continue");

        let mut sealer = Sealer::new(CountingKey::new(Algorithm::ChaCha20Poly1305), 7);
        sealer.sealed = (1 << 62) - 1;
        assert_eq!(seal(&mut sealer, 5000), Ok(zero));
    }

    #[test]
    fn the_last_number_is_used_once() {
        let key = CountingKey::new(Algorithm::ChaCha20Poly1305);
        let mut sealer = Sealer::starting_at(MOST_NUMBER, Kind::Early, key, KeyPhase::default(), 7);
        assert!(seal(&mut sealer, 1).is_ok());
        assert_eq!(seal(&mut sealer, 1), Err(SealError::NoNumbers));
    }

    #[test]
    #[should_panic(expected = "Reset is not a kind of segments")]
    fn only_segments_are_sealed() {
        let key = CountingKey::new(Algorithm::ChaCha20Poly1305);
        let _ = Sealer::starting_at(0, Kind::Reset, key, KeyPhase::default(), 7);
    }
}
