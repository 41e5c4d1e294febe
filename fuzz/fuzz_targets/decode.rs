//! Bytes from the network: a packet or nothing, and a packet survives the way there and back.
#![no_main]

#[path = "../../crates/farlink-core/tests/pair/outer_packets.rs"]
mod outer_packets;

use bytes::Bytes;
use farlink_core::bundle::Numbering;
use farlink_core::protocol::aerotp::{self, Flags};
use farlink_core::protocol::tcp::Segment;
use farlink_core::protocol::udp::Datagram;
use farlink_core::wire::Codec;
use farlink_core::wire::aerotp::{Outside, decode_segment, encode_segment};
use farlink_core::wire::mp;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let copy = || Bytes::copy_from_slice(bytes);
    if let Some(decoded) = Segment::<Vec<u8>>::decode(copy()) {
        let mut again = Vec::new();
        decoded.packet.encode(&decoded.envelope, &mut again).expect("it was no longer than this");
        let again = Segment::<Vec<u8>>::decode(again.into()).expect("what was written can be read");
        assert_eq!((again.packet.seq, &again.packet.payload), (decoded.packet.seq, &decoded.packet.payload));
    }
    drop(Datagram::<Bytes>::decode(copy()));
    drop(aerotp::Segment::<Bytes>::decode(copy()));
    aerotp_segment(bytes);
    outer_packets::read_and_seal_again(bytes);
    for numbering in [Numbering::Long, Numbering::Short] {
        multilink_fragment(bytes, numbering);
    }
});

fn multilink_fragment(bytes: &[u8], numbering: Numbering) {
    let Some(fragment) = mp::decode::<Bytes>(&Bytes::copy_from_slice(bytes), numbering) else { return };
    let mut again = Vec::new();
    mp::encode(&fragment, numbering, &mut again);
    assert_eq!(again, bytes);
}

/// As the payload of a datagram. Bytes from a fuzzer seldom pass a check or have the length that they claim: unless the first one
/// is odd, the header's length follows from its flags, and its check and the length of the payload are made right.
fn aerotp_segment(bytes: &[u8]) {
    let Some((&kind, segment)) = bytes.split_first() else { return };
    let mut segment = segment.to_vec();
    if kind & 1 == 0 {
        make_plausible(&mut segment);
    }
    let Ok(arrived) = decode_segment::<Bytes>(&segment.into()) else { return };
    let mut again = Vec::new();
    encode_segment(&arrived.segment, &Outside::default(), &mut again).expect("it was no longer than this");
    let again = decode_segment::<Bytes>(&again.into()).expect("what was written can be read").segment;
    assert_eq!((again.mack, &again.payload), (arrived.segment.mack, &arrived.segment.payload));
    let header = |segment: &aerotp::Segment<Bytes>| {
        let aerotp::Segment { repair, tag, class, forward, skipped, overtaken_by, mack_bytes_per_s, .. } = *segment;
        (repair, tag, class, forward, skipped, overtaken_by, mack_bytes_per_s)
    };
    assert_eq!(header(&again), header(&arrived.segment));
}

fn make_plausible(segment: &mut [u8]) -> Option<()> {
    let kind = segment.get_mut(12)?;
    *kind = 0x40 | *kind & 0x1f;
    let flags = Flags(*segment.get(13)?);
    let mut header = 16;
    let mut behind = 0;
    for (flag, bytes) in [(Flags::ASYN, 4), (Flags::FEC, 4), (Flags::REPAIR, 16)] {
        if flags.has(flag) {
            if flag == Flags::FEC {
                let words = segment.get_mut(header..header + 2)?;
                words[0] &= 1;
                behind += 4 * usize::from(u16::from_be_bytes([words[0], words[1]]));
            }
            header += bytes;
        }
    }
    if flags.has(Flags::EXTENDED) {
        header += 4 * usize::from(*segment.get(header)?);
    }
    behind += if flags.has(Flags::CRC) { 4 } else { 0 };
    let payload = segment.len().checked_sub(header + 4 + behind)?;
    segment[14..16].copy_from_slice(&u16::try_from(payload).ok()?.to_be_bytes());
    let check = farlink_fec::crc::crc_16_ibm_3740(&segment[..header + 2]).to_be_bytes();
    segment[header + 2..header + 4].copy_from_slice(&check);
    Some(())
}
