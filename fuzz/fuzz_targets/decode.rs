//! Bytes from the network: a packet or nothing, and a packet survives the way there and back.
#![no_main]

use farlink_core::protocol::tcp::Segment;
use farlink_core::protocol::udp::Datagram;
use farlink_core::wire::Codec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(decoded) = Segment::<Vec<u8>>::decode(bytes) {
        let mut again = Vec::new();
        decoded.packet.encode(&decoded.envelope, &mut again).expect("it was no longer than this");
        let again = Segment::<Vec<u8>>::decode(&again).expect("what was written can be read");
        assert_eq!((again.packet.seq, &again.packet.payload), (decoded.packet.seq, &decoded.packet.payload));
    }
    drop(Datagram::<Vec<u8>>::decode(bytes));
});
