//! Packets in the clear: checks against damage in place of a seal. `[O26]`
//!
//! A segment has its own: a CRC-16 over its header and a CRC-32 over the rest. A message has them behind it: CRC-16 over its first 13
//! bytes (2 bytes), CRC-32 over all of it (4), and zeros up to the length of a tag.

use farlink_fec::crc::{crc_16_ibm_3740, crc_32_iso_hdlc};

use crate::payload::Virtual;
use crate::wire::aerotp::{Form, header};

use super::{TAG_BYTES, is_message};

/// Bytes of a message with a check of their own: kind and port, the same as before a datagram.
const HEAD_BYTES: usize = 13;
const CHECKS_BYTES: usize = 6;

/// Content of a packet in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A segment whose header is right.
    Segment,
    Message,
    /// A message whose first bytes are right, and others wrong.
    DamagedMessage,
}

/// Writes what stands behind a message.
pub(super) fn write_checks(message: &[u8], out: &mut [u8]) {
    let Some((checks, zeros)) = out.split_at_mut_checked(CHECKS_BYTES) else { return };
    checks.copy_from_slice(&checks_of(message));
    zeros.fill(0);
}

fn checks_of(message: &[u8]) -> [u8; CHECKS_BYTES] {
    let mut checks = [0; CHECKS_BYTES];
    let head = &message[..message.len().min(HEAD_BYTES)];
    checks[..2].copy_from_slice(&crc_16_ibm_3740(head).to_be_bytes());
    checks[2..].copy_from_slice(&crc_32_iso_hdlc(message).to_be_bytes());
    checks
}

/// Kind of a content; `None` if it is damaged where that matters. A message is never taken for a segment, whose version is not 0, nor a
/// segment for a message, unless damage gives both another version and right checks.
pub(super) fn check(content: &[u8]) -> Option<Content> {
    if header::read::<Virtual>(content, Form::Clear).is_ok() {
        return Some(Content::Segment);
    }
    let (message, checks) = content.split_last_chunk::<TAG_BYTES>()?;
    let right = checks_of(message);
    if !is_message(message) || checks[..2] != right[..2] {
        return None;
    }
    Some(if checks[2..CHECKS_BYTES] == right[2..] { Content::Message } else { Content::DamagedMessage })
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use proptest::prelude::*;

    use super::super::tests::{CountingKey, segment};
    use super::super::{Algorithm, Cover, KeyPhase, NotOpened, OUTER_BYTES, Opened, OuterPacket, Sealer, Unsealer};
    use crate::Time;
    use crate::endpoint::Integrity;
    use crate::protocol::aerotp::Segment;
    use crate::wire::aerotp::Outside;

    fn key() -> CountingKey {
        CountingKey::new(Algorithm::Aes256Gcm)
    }

    fn sealer() -> Sealer<CountingKey> {
        Sealer::new(key(), 7).covered_by(Cover::Clear)
    }

    fn packet_of(segment: &Segment<Vec<u8>>) -> Vec<u8> {
        let mut out = vec![0; super::super::packet_bytes(segment, Cover::Clear)];
        assert_eq!(sealer().seal_into(segment, &Outside::default(), &mut out), Ok(out.len()));
        out
    }

    fn packet_with(message: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 2000];
        let bytes = sealer().seal_message(message, &mut out).unwrap();
        out.truncate(bytes);
        out
    }

    fn read(packet: &[u8]) -> Result<Opened, NotOpened> {
        let mut unsealer = Unsealer::new(key(), 7, Time::NEVER).covered_by(Cover::Clear);
        unsealer.open_content(OuterPacket::read(BytesMut::from(packet)).unwrap(), Time::ZERO)
    }

    #[test]
    fn a_packet_in_the_clear_is_ten_bytes_shorter_and_shows_its_payload() {
        for fec_words in [0, 16] {
            let segment = Segment { fec_words, ..segment() };
            let packet = packet_of(&segment);
            assert_eq!(packet.len() + 10, super::super::sealed_bytes(&segment));
            assert!(packet.windows(7).any(|part| part == b"payload"));
            let arrived = read(&packet).unwrap().segment::<Vec<u8>>().unwrap();
            assert_eq!((arrived.segment.payload, arrived.integrity), (b"payload".to_vec(), Integrity::Intact));
            assert_eq!(arrived.segment.fec_words, fec_words);
        }
    }

    #[test]
    fn a_damaged_payload_is_told_and_a_damaged_header_is_none() {
        let packet = packet_of(&segment());
        let (payload, end) = (packet.len() - 4 - 7, packet.len());
        for place in OUTER_BYTES..end {
            let mut damaged = packet.clone();
            damaged[place] ^= 4;
            let opened = read(&damaged);
            if place < payload {
                assert_eq!(opened, Err(NotOpened::Damaged), "{place}");
                continue;
            }
            let arrived = opened.unwrap().segment::<Vec<u8>>().unwrap();
            assert_eq!(arrived.integrity, Integrity::PayloadDamaged, "{place}");
            let wrong = arrived.segment.payload.iter().zip(b"payload").filter(|(one, other)| one != other).count();
            assert_eq!(wrong, usize::from(place < end - 4));
        }
    }

    /// Parity corrects the header as well, and what is beyond it is told.
    #[test]
    fn parity_corrects_all_of_a_packet() {
        let packet = packet_of(&Segment { fec_words: 1, ..segment() });
        for place in OUTER_BYTES..packet.len() {
            let mut damaged = packet.clone();
            damaged[place] ^= 0xff;
            let arrived = read(&damaged).unwrap().segment::<Vec<u8>>().unwrap();
            assert_eq!(arrived.segment.payload, b"payload");
            assert_eq!(arrived.integrity, Integrity::Mended { bits: 8 });
        }
        let mut beyond = packet.clone();
        let payload = packet.len() - 4 - 4 - 7;
        beyond[payload..payload + 3].copy_from_slice(b"PAY");
        let arrived = read(&beyond).unwrap().segment::<Vec<u8>>().unwrap();
        assert_eq!((&arrived.segment.payload[..], arrived.integrity), (&b"PAYload"[..], Integrity::PayloadDamaged));
        let mut parity = packet.clone();
        let end = packet.len();
        parity[end - 3..].fill(0x55);
        let arrived = read(&parity).unwrap().segment::<Vec<u8>>().unwrap();
        assert_eq!(
            (&arrived.segment.payload[..], arrived.integrity),
            (&b"payload"[..], Integrity::Intact),
            "the check"
        );
    }

    #[test]
    fn messages_have_checks() {
        for message in [&[1][..], &[2; 12], &[0; 13], &[0; 1400]] {
            let packet = packet_with(message);
            let opened = read(&packet).unwrap();
            assert_eq!((opened.message(), opened.is_damaged()), (Some(message), false));
            for place in OUTER_BYTES..packet.len() - 10 {
                let mut damaged = packet.clone();
                damaged[place] ^= 1;
                let (in_head, end) = (place - OUTER_BYTES < message.len().min(13), OUTER_BYTES + message.len());
                match read(&damaged) {
                    Err(NotOpened::Damaged) => assert!(in_head || (end..end + 2).contains(&place), "{place}"),
                    Ok(opened) => assert!(opened.is_damaged() && !in_head, "{place}"),
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn repeated_packets_are_dropped_and_limits_of_keys_mean_nothing() {
        let (mut sealer, mut unsealer) = (sealer(), Unsealer::new(key(), 7, Time::NEVER).covered_by(Cover::Clear));
        let mut out = vec![0; 100];
        let bytes = sealer.seal_message(&[0], &mut out).unwrap();
        let packet = || OuterPacket::read(BytesMut::from(&out[..bytes])).unwrap();
        assert!(unsealer.open_content(packet(), Time::ZERO).is_ok_and(|opened| opened.is_newest()));
        assert_eq!(unsealer.open_content(packet(), Time::ZERO), Err(NotOpened::Repeated));
        assert_eq!((sealer.next_number(), sealer.key_phase()), (1, KeyPhase::default()));
    }

    /// Neither side takes the other's packets.
    #[test]
    fn sealed_packets_are_none_in_the_clear_and_the_other_way_round() {
        let sealed = super::super::tests::packet(&key(), 0);
        let mut clear = Unsealer::new(key(), 7, Time::NEVER).covered_by(Cover::Clear);
        assert_eq!(clear.open_content(sealed, Time::ZERO), Err(NotOpened::Damaged));
        for packet in [packet_of(&segment()), packet_with(&[0; 40])] {
            let mut unsealer = Unsealer::new(key(), 7, Time::NEVER);
            let packet = OuterPacket::read(BytesMut::from(&packet[..])).unwrap();
            assert_eq!(unsealer.open_content(packet, Time::ZERO), Err(NotOpened::Damaged));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(content in proptest::collection::vec(any::<u8>(), 16..200), version in any::<u8>()) {
            let mut content = content;
            content[12] = version;
            let header = super::super::OuterHeader {
                kind: super::super::Kind::Sealed,
                key_phase: KeyPhase::default(),
                parity_words: 0,
                content_bytes: content.len() as u16,
                connection_id: 7,
                number: 0,
            };
            let packet = [&header.encode()[..], &content].concat();
            if let Ok(opened) = read(&packet) {
                let _ = (opened.message(), opened.segment::<Bytes>());
            }
        }
    }
}
