//! Bytes from the network: a packet or nothing, and a packet survives the way there and back.
#![no_main]

use farlink_core::protocol::aerotp;
use farlink_core::protocol::tcp::Segment;
use farlink_core::protocol::udp::Datagram;
use farlink_core::wire::Codec;
use farlink_core::wire::aerotp::{Outside, decode_segment, encode_segment};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(decoded) = Segment::<Vec<u8>>::decode(bytes) {
        let mut again = Vec::new();
        decoded.packet.encode(&decoded.envelope, &mut again).expect("it was no longer than this");
        let again = Segment::<Vec<u8>>::decode(&again).expect("what was written can be read");
        assert_eq!((again.packet.seq, &again.packet.payload), (decoded.packet.seq, &decoded.packet.payload));
    }
    drop(Datagram::<Vec<u8>>::decode(bytes));
    drop(aerotp::Segment::<Vec<u8>>::decode(bytes));
    aerotp_segment(bytes);
});

/// As the payload of a datagram. Bytes from a fuzzer seldom pass a check, so one byte says how long the header is, and its check
/// is made right.
fn aerotp_segment(bytes: &[u8]) {
    let Some((&header, segment)) = bytes.split_first() else { return };
    let mut segment = segment.to_vec();
    let check = usize::from(header % 64);
    if segment.len() >= check + 2 {
        let right = farlink_fec::crc::crc_16_ibm_3740(&segment[..check]).to_be_bytes();
        segment[check..check + 2].copy_from_slice(&right);
    }
    let Ok(arrived) = decode_segment::<Vec<u8>>(&segment) else { return };
    let mut again = Vec::new();
    encode_segment(&arrived.segment, &Outside::default(), &mut again).expect("it was no longer than this");
    let again = decode_segment::<Vec<u8>>(&again).expect("what was written can be read").segment;
    assert_eq!((again.mack, &again.payload), (arrived.segment.mack, &arrived.segment.payload));
    assert_eq!((again.forward, again.skipped), (arrived.segment.forward, arrived.segment.skipped));
}
