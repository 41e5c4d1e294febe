//! What a relay reads in an IP packet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// Source, destination and protocol of packets. Flows without ports have 0 for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) kind: Kind,
    pub(crate) source: (IpAddr, u16),
    pub(crate) destination: (IpAddr, u16),
}

/// What is above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Tcp,
    Udp,
    Other,
}

impl Flow {
    /// The flow of a packet; `None` if it is no IP packet.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let sliced = SlicedPacket::from_ip(packet).ok()?;
        let (source, destination): (IpAddr, IpAddr) = match sliced.net? {
            NetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            NetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            NetSlice::Arp(_) => return None,
        };
        let (kind, from, to) = match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => (Kind::Tcp, tcp.source_port(), tcp.destination_port()),
            Some(TransportSlice::Udp(udp)) => (Kind::Udp, udp.source_port(), udp.destination_port()),
            _ => (Kind::Other, 0, 0),
        };
        Some(Flow { kind, source: (source, from), destination: (destination, to) })
    }

    /// The flow of what is no IP packet.
    pub(crate) fn unknown(packet: &[u8]) -> Self {
        let nobody: IpAddr = if packet.first().is_some_and(|first| first >> 4 == 6) {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        Flow { kind: Kind::Other, source: (nobody, 0), destination: (nobody, 0) }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Tcp => "tcp",
            Kind::Udp => "udp",
            Kind::Other => "ip",
        };
        let ((source, from), (destination, to)) = (self.source, self.destination);
        write!(f, "{kind} {source} {from} {destination} {to}")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use etherparse::{IpEcn, IpNumber, Ipv4Header, UdpHeader};

    use super::*;

    /// A UDP datagram in IPv4.
    pub(crate) fn datagram(payload_bytes: usize, ecn: IpEcn) -> Vec<u8> {
        let udp_bytes = payload_bytes as u16 + 8;
        let mut ip = Ipv4Header::new(udp_bytes, 64, IpNumber::UDP, [198, 18, 0, 2], [198, 18, 1, 2]).unwrap();
        ip.ecn = ecn;
        ip.header_checksum = ip.calc_header_checksum();
        let udp = UdpHeader { source_port: 5, destination_port: 6, length: udp_bytes, checksum: 0 };
        [&ip.to_bytes()[..], &udp.to_bytes(), &vec![7; payload_bytes]].concat()
    }

    #[test]
    fn a_flow_is_known_by_addresses_and_ports() {
        let packet = datagram(10, IpEcn::ZERO);
        assert_eq!(Flow::of(&packet).unwrap().to_string(), "udp 198.18.0.2 5 198.18.1.2 6");
        assert_eq!(Flow::of(b"nonsense"), None);
        assert_eq!(Flow::unknown(b"nonsense").to_string(), "ip :: 0 :: 0");
    }
}
