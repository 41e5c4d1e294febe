//! The IPv4 header (RFC 791) and the checksum that it shares with TCP and UDP (RFC 1071).

use std::net::{Ipv4Addr, SocketAddrV4};

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice};

use bytes::Bytes;

use crate::endpoint::Ecn;

use super::Writer;

/// Longest IPv4 packet, header included.
pub const MAX_BYTES: usize = u16::MAX as usize;

/// Length of a header without options, the only kind that farlink writes and accepts.
pub const HEADER_BYTES: u16 = Ipv4Header::MIN_LEN as u16;

const TIME_TO_LIVE: u8 = 64;

/// The host that sends the data in a simulation.
const SIMULATED_SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The host that receives it.
const SIMULATED_RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Port of the receiver of the first flows. It is not registered for a protocol whose dissector would interpret the zeros.
const SIMULATED_SERVICE: u16 = 40_000;
/// First of the dynamic ports (RFC 6335, section 6).
const FIRST_DYNAMIC: u16 = 49_152;
const DYNAMIC_PORTS: u32 = 16_384;

/// The fields of the network header and the ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Address and port of the sender.
    pub source: SocketAddrV4,
    /// Address and port of the receiver.
    pub destination: SocketAddrV4,
    /// Congestion mark.
    pub ecn: Ecn,
}

impl Envelope {
    /// The envelope of the data packets of a simulated flow: from 10.0.0.1 to 10.0.0.2, with its own pair of ports.
    ///
    /// The ports repeat after 2^28 flows.
    pub fn simulated(flow: u32) -> Self {
        let client = FIRST_DYNAMIC + (flow % DYNAMIC_PORTS) as u16;
        let service = SIMULATED_SERVICE.wrapping_add((flow / DYNAMIC_PORTS) as u16);
        Envelope {
            source: SocketAddrV4::new(SIMULATED_SENDER, client),
            destination: SocketAddrV4::new(SIMULATED_RECEIVER, service),
            ecn: Ecn::NotCapable,
        }
    }

    /// The envelope of an answer.
    pub fn reversed(self) -> Self {
        Envelope { source: self.destination, destination: self.source, ..self }
    }

    /// The sum over the pseudo-header of TCP and UDP for `bytes` of transport header and payload.
    pub(super) fn pseudo_header(&self, protocol: IpNumber, bytes: usize) -> Sum16BitWords {
        Sum16BitWords::new()
            .add_4bytes(self.source.ip().octets())
            .add_4bytes(self.destination.ip().octets())
            .add_2bytes([0, protocol.0])
            .add_2bytes((bytes as u16).to_be_bytes())
    }
}

/// Writes the header of a packet that carries `body_bytes` of `protocol`.
pub(super) fn write_header(envelope: &Envelope, protocol: IpNumber, body_bytes: usize, out: &mut Writer<'_>) {
    let total = usize::from(HEADER_BYTES) + body_bytes;
    let mut header = Ipv4Header {
        ecn: to_ip_ecn(envelope.ecn),
        total_len: u16::try_from(total).unwrap_or(0),
        time_to_live: TIME_TO_LIVE,
        protocol,
        source: envelope.source.ip().octets(),
        destination: envelope.destination.ip().octets(),
        // RFC 6864, section 4.1: with this flag the identification may have any value.
        dont_fragment: true,
        ..Ipv4Header::default()
    };
    header.header_checksum = header.calc_header_checksum();
    out.extend(header.to_bytes());
}

/// The envelope (with ports 0) and the body of a packet of `protocol`.
///
/// Headers with options and fragments are refused. A header without options has a fixed length, so that a damaged length field
/// cannot move the range that the header checksum covers.
pub(super) fn parse(bytes: &Bytes, protocol: IpNumber) -> Option<(Envelope, Bytes)> {
    let header = Ipv4HeaderSlice::from_slice(bytes).ok()?;
    //= https://www.rfc-editor.org/rfc/rfc1122#section-3.2.1.2
    //# A host MUST verify the IP header checksum on every received
    //# datagram and silently discard every datagram that has a bad
    //# checksum.
    let is_sound = Sum16BitWords::new().add_slice(header.slice()).ones_complement() == 0;
    if !is_sound || !header.options().is_empty() || header.is_fragmenting_payload() || header.protocol() != protocol {
        return None;
    }
    let envelope = Envelope {
        source: SocketAddrV4::new(header.source_addr(), 0),
        destination: SocketAddrV4::new(header.destination_addr(), 0),
        ecn: from_ip_ecn(header.ecn()),
    };
    let body = usize::from(HEADER_BYTES)..usize::from(header.total_len());
    (body.start <= body.end && body.end <= bytes.len()).then(|| (envelope, bytes.slice(body)))
}

fn to_ip_ecn(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotCapable => IpEcn::NotEct,
        Ecn::Capable0 => IpEcn::Ect0,
        Ecn::Capable1 => IpEcn::Ect1,
        Ecn::Congestion => IpEcn::CongestionExperienced,
    }
}

fn from_ip_ecn(ecn: IpEcn) -> Ecn {
    match ecn {
        IpEcn::NotEct => Ecn::NotCapable,
        IpEcn::Ect0 => Ecn::Capable0,
        IpEcn::Ect1 => Ecn::Capable1,
        IpEcn::CongestionExperienced => Ecn::Congestion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_matches_the_rfc() {
        let mut bytes = [0; 20];
        write_header(&Envelope::simulated(0), IpNumber::TCP, 20, &mut Writer::new(&mut bytes));

        // Version and length, ECN, total length 40, identification 0, "do not fragment", 64 hops, TCP.
        assert_eq!(bytes[..10], [0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6]);
        assert_eq!(bytes[12..], [10, 0, 0, 1, 10, 0, 0, 2]);
        // 0x4500 + 0x0028 + 0x4000 + 0x4006 + 0x0a00 + 0x0001 + 0x0a00 + 0x0002 = 0xd931; its complement:
        assert_eq!(bytes[10..12], [0x26, 0xce]);
    }

    #[test]
    fn flows_have_ports_of_their_own() {
        let mut seen = std::collections::BTreeSet::new();
        for flow in 0..100_000 {
            let envelope = Envelope::simulated(flow);
            assert!(seen.insert((envelope.source.port(), envelope.destination.port())), "flow {flow}");
        }
    }

    #[test]
    fn options_fragments_and_other_protocols_are_refused() {
        let mut bytes = [0; 24];
        write_header(&Envelope::simulated(0), IpNumber::TCP, 4, &mut Writer::new(&mut bytes));
        let parse = |bytes: &[u8], protocol| super::parse(&Bytes::copy_from_slice(bytes), protocol);
        assert_eq!(parse(&bytes, IpNumber::TCP), Some((portless(), Bytes::from_static(&[0; 4]))));
        assert_eq!(parse(&bytes, IpNumber::UDP), None);
        assert_eq!(parse(&bytes[..23], IpNumber::TCP), None, "the end is missing");

        assert_eq!(parse(&altered(&bytes, 0, 0x46), IpNumber::TCP), None, "options");
        assert_eq!(parse(&altered(&bytes, 6, 0x20), IpNumber::TCP), None, "a fragment");
        assert!(parse(&altered(&bytes, 8, 3), IpNumber::TCP).is_some(), "fewer hops are left, which is correct");
    }

    fn portless() -> Envelope {
        let Envelope { source, destination, ecn } = Envelope::simulated(0);
        Envelope {
            source: SocketAddrV4::new(*source.ip(), 0),
            destination: SocketAddrV4::new(*destination.ip(), 0),
            ecn,
        }
    }

    /// The packet with one byte changed and a recomputed header checksum.
    fn altered(bytes: &[u8], at: usize, value: u8) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes[at] = value;
        bytes[10..12].fill(0);
        let header_bytes = usize::from(bytes[0] & 0xf) * 4;
        let checksum = Sum16BitWords::new().add_slice(&bytes[..header_bytes]).ones_complement();
        bytes[10..12].copy_from_slice(&checksum.to_ne_bytes());
        bytes
    }
}
