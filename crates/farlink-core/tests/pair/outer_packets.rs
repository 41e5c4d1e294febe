//! Bytes as sealed packets, with an AEAD that hides nothing: what a fuzzer and random bytes reach behind an outer
//! header.

use bytes::{Bytes, BytesMut};
use farlink_core::Time;
use farlink_core::endpoint::Integrity;
use farlink_core::protocol::aerotp::{Flags, Segment};
use farlink_core::wire::aerotp::Arrived;
use farlink_core::wire::aerotp::sealed::{
    Algorithm, KeyPhase, Kind, NotOpened, OUTER_BYTES, OuterHeader, OuterPacket, PacketKey, Sealer, TAG_BYTES, Tag,
    Unsealer, sealed_bytes,
};

/// Encrypts nothing and opens every packet.
struct OpensAll;

impl PacketKey for OpensAll {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Aes256Gcm
    }

    fn iv(&self) -> &[u8; 12] {
        &[0; 12]
    }

    fn seal(&self, _nonce: &[u8; 12], _associated: &[u8], _content: &mut [u8]) -> Tag {
        [0; TAG_BYTES]
    }

    fn open(&self, _nonce: &[u8; 12], _associated: &[u8], _content: &mut [u8], _tag: &Tag) -> bool {
        true
    }

    fn next(&self) -> Self {
        OpensAll
    }
}

/// Reads bytes as a datagram of a keyed side. Unless the first byte is odd, lengths and checks are made right. A
/// segment that opens is sealed again, with parity by that byte, and survives a wrong bit that the parity corrects.
pub(crate) fn read_and_seal_again(bytes: &[u8]) {
    let Some((&how, datagram)) = bytes.split_first() else { return };
    let mut datagram = datagram.to_vec();
    if how & 1 == 0 {
        make_plausible(&mut datagram);
    }
    let Ok(packet) = OuterPacket::read(BytesMut::from(&datagram[..])) else { return };
    let header = *packet.header();
    assert_eq!(header.encode(), datagram[..OUTER_BYTES], "what was read is written again");
    let Ok(arrived) = opened(packet, how >> 1 & 7) else { return };

    let words = u16::from(how >> 4) * 17;
    let segment = Segment { fec_words: words, ..arrived.segment };
    let mut again = vec![0; sealed_bytes(&segment)];
    let mut sealer = Sealer::starting_at(0, header.kind, OpensAll, header.key_phase, header.connection_id);
    let bytes = sealer.seal_into(&segment, &arrived.outside, &mut again).expect("it was hardly longer than this");
    assert_eq!(bytes, again.len());
    let wrong_bits = if words > 0 { 1 } else { 0 };
    again[OUTER_BYTES] ^= wrong_bits;
    let packet = OuterPacket::read(BytesMut::from(&again[..])).expect("what was written can be read");
    let again = opened(packet, 0).expect("what was sealed opens");
    let integrity = if words > 0 { Integrity::Mended { bits: 1 } } else { Integrity::Intact };
    // Lengths differ with the parity, and unknown extension fields are not written again.
    let normal = |segment: Segment<Bytes>| {
        let flags = Flags(segment.flags.0 & !(Flags::EXTENDED.0 | Flags::FEC.0));
        Segment { header_bytes: 0, flags, ..segment }
    };
    assert_eq!((again.integrity, again.outside), (integrity, arrived.outside));
    assert_eq!(normal(again.segment), normal(segment));
}

/// By a receiver whose present key is so many phases before the packet's.
fn opened(packet: OuterPacket, phases_before: u8) -> Result<Arrived<Bytes>, NotOpened> {
    let OuterHeader { key_phase, connection_id, kind, .. } = *packet.header();
    let phase = KeyPhase::new(key_phase.number() + 8 - phases_before);
    let kind = if kind.is_segment() { kind } else { Kind::Sealed };
    let mut unsealer = Unsealer::starting_in(phase, kind, OpensAll, connection_id, Time::NEVER);
    let segment = unsealer.open(packet, Time::ZERO);
    let has_counted = unsealer.expected_number() > 0;
    assert_eq!(has_counted, matches!(segment, Ok(_) | Err(NotOpened::Segment(_))), "only what opens changes anything");
    segment
}

/// Gives a datagram the shape of a packet without parity, and of a segment in sealed form if it is of such a kind.
fn make_plausible(datagram: &mut [u8]) -> Option<()> {
    let content_bytes = datagram.len().checked_sub(OUTER_BYTES)?;
    let kind = [Kind::Hello, Kind::Early, Kind::Sealed, Kind::Reset][usize::from(datagram[0] >> 4 & 3)];
    let header = OuterHeader {
        kind,
        key_phase: KeyPhase::new(datagram[0] >> 1),
        parity_words: 0,
        content_bytes: u16::try_from(content_bytes).ok()?,
        connection_id: u32::from_be_bytes(*datagram.get(4..)?.first_chunk()?),
        number: u32::from_be_bytes(*datagram.get(8..)?.first_chunk()?),
    };
    datagram[..OUTER_BYTES].copy_from_slice(&header.encode());

    let segment = datagram.get_mut(OUTER_BYTES..OUTER_BYTES + content_bytes.checked_sub(TAG_BYTES)?)?;
    let kind = segment.get_mut(12)?;
    *kind = 0x60 | *kind & 0x1f;
    let flags = segment.get_mut(13)?;
    *flags &= !Flags::FEC.with(Flags::CRC).0;
    let flags = Flags(*flags);
    let mut header = 18;
    header += if flags.has(Flags::ASYN) { 4 } else { 0 };
    header += if flags.has(Flags::REPAIR) { 16 } else { 0 };
    if flags.has(Flags::EXTENDED) {
        header += 4 * usize::from(*segment.get(header - 2)?);
    }
    let payload = u16::try_from(segment.len().checked_sub(header)?).ok()?;
    segment[14..16].copy_from_slice(&payload.to_be_bytes());
    Some(())
}
