//! Flow and class of a packet of a TUN device. Packets of a flow stay in order.

use farlink_core::emulator::ip::dscp;

/// Protocols whose first four bytes are ports: TCP, UDP, DCCP, SCTP, UDP-Lite (IANA's list of protocol numbers).
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Class and flow of a packet; `None` if it is no IP packet.
pub(crate) fn of(packet: &[u8], classes: &[u8; 64]) -> Option<(u8, u64)> {
    let (addresses, protocol, payload, is_fragment) = match packet.first()? >> 4 {
        4 if packet.len() >= 20 => {
            let header_bytes = usize::from(packet[0] & 0xf) * 4;
            let is_fragment = packet[6] & 0x3f != 0 || packet[7] != 0;
            (&packet[12..20], packet[9], packet.get(header_bytes..)?, is_fragment)
        }
        // Behind an extension header ports are not looked for: all such packets of two hosts are one flow.
        6 if packet.len() >= 40 => (&packet[8..40], packet[6], &packet[40..], false),
        _ => return None,
    };
    let ports = payload.get(..4).filter(|_| WITH_PORTS.contains(&protocol) && !is_fragment).unwrap_or(&[]);
    let flow = [addresses, &[protocol], ports]
        .into_iter()
        .flatten()
        .fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
    Some((classes[usize::from(dscp(packet) & 63)], flow))
}

/// FNV-1a with 64 bits (draft-eastlake-fnv-21, section 5).
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn udp(ports: [u8; 4], tos: u8, fragment: u8) -> Vec<u8> {
        let header = [0x45, tos, 0, 28, 0, 0, fragment, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&header[..], &ports, &[0; 4]].concat()
    }

    #[test]
    fn ports_and_marks_count_and_fragments_stay_together() {
        let mut classes = [4; 64];
        classes[46] = 0;
        let of = |packet: &[u8]| super::of(packet, &classes);
        let one = of(&udp([1, 2, 3, 4], 0, 0)).unwrap();
        assert_eq!((one.0, of(&udp([1, 2, 3, 4], 46 << 2, 0)).unwrap()), (4, (0, one.1)));
        assert_ne!(one.1, of(&udp([1, 2, 3, 5], 0, 0)).unwrap().1);
        assert_eq!(
            of(&udp([1, 2, 3, 4], 0, 0x20)),
            of(&udp([9, 9, 9, 9], 0, 0x20)),
            "a fragment's first bytes may be data"
        );
        assert_eq!(of(&[0x45; 19]), None);
        assert_eq!(of(&[0x20; 60]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            let _ = super::of(&bytes, &[0; 64]);
        }
    }
}
