//! IP packets as a path treats them.

use super::Parcel;
use crate::endpoint::Ecn;

/// An IP packet and its class of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket {
    /// The packet from its first header on.
    pub bytes: Vec<u8>,
    /// Its class.
    pub class: u8,
}

impl Parcel for IpPacket {
    fn wire_bytes(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn class(&self) -> usize {
        usize::from(self.class)
    }

    fn mark(&mut self) -> bool {
        mark(&mut self.bytes)
    }

    fn damage(&mut self, bits: &[u32]) -> bool {
        invert(&mut self.bytes, bits.iter().copied());
        is_passed_on(&self.bytes)
    }
}

/// Inverts bits, counted from the first bit of the first byte; none beyond the end.
pub fn invert(bytes: &mut [u8], bits: impl Iterator<Item = u32>) {
    for bit in bits {
        if let Some(byte) = bytes.get_mut(bit as usize / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }
}

/// The codepoint of differentiated services, 0 to 63; 0 if it is no IP packet.
pub fn dscp(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => second >> 2,
        [first, second, ..] if first >> 4 == 6 => (first & 0xf) << 2 | second >> 6,
        _ => 0,
    }
}

/// The byte with the codepoints of differentiated services and of ECN; 0 if it is no IP packet.
pub fn traffic_class(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => *second,
        [first, second, ..] if first >> 4 == 6 => (first & 0xf) << 4 | second >> 4,
        _ => 0,
    }
}

/// The mark within a byte of traffic class.
pub fn ecn_of(traffic_class: u8) -> Ecn {
    match traffic_class & ECN {
        0b00 => Ecn::NotCapable,
        0b01 => Ecn::Capable1,
        0b10 => Ecn::Capable0,
        _ => Ecn::Congestion,
    }
}

/// Whether a router would pass a packet on, by what its header can tell: IPv4 has a checksum of it, IPv6 a version and a length.
fn is_passed_on(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let header_bytes = usize::from(packet[0] & 0xf) * 4;
            header_bytes >= 20 && packet.get(..header_bytes).is_some_and(|header| sum(header) == 0xffff)
        }
        Some(6) => packet.len() >= 40 && usize::from(u16::from_be_bytes([packet[4], packet[5]])) + 40 == packet.len(),
        _ => false,
    }
}

/// The sum that the checksum of IP complements.
fn sum(header: &[u8]) -> u16 {
    let total: u32 = header.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    folded(total)
}

fn folded(total: u32) -> u16 {
    let once = (total & 0xffff) + (total >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// The two bits of ECN.
const ECN: u8 = 0b11;

/// Sets CE in a packet that is ECN-capable; returns whether it was.
pub fn mark(packet: &mut [u8]) -> bool {
    remark(packet, 0b11)
}

/// Gives a packet that is ECN-capable other bits of ECN; returns whether it was.
fn remark(packet: &mut [u8], bits: u8) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let (old, new) = (packet[1], packet[1] & !ECN | bits);
            if old & ECN == 0 {
                return false;
            }
            let sum = updated(u16::from_be_bytes([packet[10], packet[11]]), old.into(), new.into());
            packet[1] = new;
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            true
        }
        // The bits of the traffic class stand across two bytes.
        Some(6) if packet.len() >= 40 => {
            let is_capable = packet[1] >> 4 & ECN != 0;
            if is_capable {
                packet[1] = packet[1] & !(ECN << 4) | bits << 4;
            }
            is_capable
        }
        _ => false,
    }
}

/// Takes a packet out of a datagram with the mark `outer`, the end of a tunnel: the packet gets the mark that it has to have. `false` if it
/// has to be dropped, since a router has marked what its sender did not call capable (RFC 6040, section 4.2, figure 4).
pub fn leave_tunnel(packet: &mut [u8], outer: Ecn) -> bool {
    match (ecn_of(traffic_class(packet)), outer) {
        (Ecn::NotCapable, Ecn::Congestion) => return false,
        (Ecn::Capable0 | Ecn::Capable1, Ecn::Congestion) => {
            mark(packet);
        }
        (Ecn::Capable0, Ecn::Capable1) => {
            remark(packet, 0b01);
        }
        _ => {}
    }
    true
}

/// The checksum after one 16-bit word of the header has changed.
fn updated(sum: u16, old: u16, new: u16) -> u16 {
    //= https://www.rfc-editor.org/rfc/rfc1624#section-3
    //# HC' = ~(~HC + ~m + m')    --    [Eqn. 3]
    !folded(u32::from(!sum) + u32::from(!old) + u32::from(new))
}

#[cfg(test)]
mod tests {
    use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice};
    use proptest::prelude::*;

    use super::*;

    fn packet(payload_bytes: u16, ecn: IpEcn) -> Vec<u8> {
        let mut ip = Ipv4Header::new(payload_bytes, 64, IpNumber::UDP, [198, 18, 0, 2], [198, 18, 1, 2]).unwrap();
        ip.ecn = ecn;
        ip.dscp = IpDscp::EF;
        ip.header_checksum = ip.calc_header_checksum();
        [&ip.to_bytes()[..], &vec![7; payload_bytes.into()]].concat()
    }

    #[test]
    fn a_mark_leaves_the_checksum_right() {
        for ecn in [IpEcn::ONE, IpEcn::TWO, IpEcn::THREE] {
            let mut packet = packet(100, ecn);
            assert!(mark(&mut packet));
            let header = Ipv4HeaderSlice::from_slice(&packet).unwrap().to_header();
            assert_eq!((header.ecn, header.header_checksum), (IpEcn::THREE, header.calc_header_checksum()));
            assert!(is_passed_on(&packet));
        }
        let mut packet = packet(100, IpEcn::ZERO);
        let before = packet.clone();
        assert!(!mark(&mut packet));
        assert_eq!(packet, before, "what is not capable is not marked");
    }

    #[test]
    fn a_mark_stands_in_the_traffic_class_of_ipv6() {
        let mut packet = vec![0; 48];
        (packet[0], packet[1]) = (0x6a, 0xa5);
        assert_eq!(dscp(&packet), 0xaa >> 2);
        assert!(mark(&mut packet));
        assert_eq!((packet[0], packet[1]), (0x6a, 0xb5));
        packet[1] = 0xc5;
        assert!(!mark(&mut packet), "traffic class 0xac, not capable");
    }

    /// The table of RFC 6040, figure 4.
    #[test]
    fn marks_leave_a_tunnel_as_the_table_says() {
        use Ecn::{Capable0, Capable1, Congestion, NotCapable};
        let table = [
            (NotCapable, [Some(NotCapable), Some(NotCapable), Some(NotCapable), None]),
            (Capable0, [Some(Capable0), Some(Capable0), Some(Capable1), Some(Congestion)]),
            (Capable1, [Some(Capable1), Some(Capable1), Some(Capable1), Some(Congestion)]),
            (Congestion, [Some(Congestion), Some(Congestion), Some(Congestion), Some(Congestion)]),
        ];
        let bits = |ecn| match ecn {
            NotCapable => IpEcn::ZERO,
            Capable1 => IpEcn::ONE,
            Capable0 => IpEcn::TWO,
            Congestion => IpEcn::THREE,
        };
        for (inner, row) in table {
            for (outer, wanted) in [NotCapable, Capable0, Capable1, Congestion].into_iter().zip(row) {
                let mut v4 = packet(8, bits(inner));
                let mut v6 = vec![0; 48];
                (v6[0], v6[1]) = (0x6b, 0x80 | bits(inner).value() << 4);
                for packet in [&mut v4, &mut v6] {
                    let is_kept = leave_tunnel(packet, outer);
                    assert_eq!(is_kept.then(|| ecn_of(traffic_class(packet))), wanted, "{inner:?} within {outer:?}");
                    assert_eq!(dscp(packet), 46);
                }
                assert!(is_passed_on(&v4));
            }
        }
    }

    #[test]
    fn the_codepoint_of_ipv4_is_read() {
        assert_eq!(dscp(&packet(4, IpEcn::ONE)), 46);
        assert_eq!(dscp(&[]), 0);
    }

    #[test]
    fn a_wrong_bit_in_the_header_ends_a_packet_and_one_behind_it_does_not() {
        for bit in 0..124 * 8 {
            let mut packet = IpPacket { bytes: packet(104, IpEcn::ONE), class: 0 };
            let before = packet.bytes.clone();
            assert_eq!(packet.damage(&[bit]), bit >= 160, "bit {bit}");
            assert_ne!(packet.bytes, before);
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_no_packet_panics(bytes in prop::collection::vec(any::<u8>(), 0..80), bits in prop::collection::vec(0_u32..1000, 0..9)) {
            let mut packet = IpPacket { bytes, class: 0 };
            dscp(&packet.bytes);
            ecn_of(traffic_class(&packet.bytes));
            leave_tunnel(&mut packet.bytes, Ecn::Congestion);
            packet.mark();
            packet.damage(&bits);
        }
    }
}
