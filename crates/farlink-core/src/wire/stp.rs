//! STP packets on the wire: farlink's own layout, in IPv4 under protocol number 253.
//!
//! Henderson and Katz give STP no protocol number that was ever assigned, so it uses one of those for experiments (RFC 3692;
//! number 118, which is called STP there, is another protocol). All numbers are big-endian.
//!
//! ```text
//!  0                   1                   2                   3
//! |  source port                  |  destination port             |   every packet
//! |  kind         |  0            |  checksum                     |
//! |  position                                                     |
//!
//! |  window                       (0 in END and END-ACK)          |   BEGIN, BEGIN-ACK, END, END-ACK
//! |  0                                                            |
//!
//! |  poll number                                                  |   POLL
//! |  clock                                                        |
//!
//! |  poll number                                                  |   STAT
//! |  clock                                                        |
//! |  window                                                       |
//! |  covers: from                                                 |   STAT that lists something, and the same for each
//! |  covers: to                                                   |   missing range behind it
//!
//! |  window                                                       |   USTAT
//! |  missing: from                                                |
//! |  missing: to                                                  |
//! ```
//!
//! Data follows the position. A data packet has 12 bytes of header, a POLL 20, a STAT 24 plus 8 for the covered range and 8 for
//! each missing range, a USTAT 24; IPv4 adds 20 to each. The checksum is TCP's: over a pseudo-header and the whole packet.

use bytes::Bytes;
use etherparse::IpNumber;

use crate::endpoint::Integrity;
use crate::protocol::stp::{Kind, Pdu, Range, Report};

use super::{Codec, Decoded, Envelope, WirePayload, Writer, ipv4, write_parts};

const PROTOCOL: IpNumber = IpNumber(253);
const CHECKSUM: std::ops::Range<usize> = 6..8;
const WORD: usize = 4;
/// Length of ports, kind and checksum.
const FIXED_BYTES: usize = 8;

/// Decoding sets [`Pdu::header_bytes`] to the length of the headers that were present, including IPv4's 20 bytes and the report.
impl<D: WirePayload> Codec for Pdu<D> {
    fn headers_bytes(&self) -> usize {
        usize::from(ipv4::HEADER_BYTES) + FIXED_BYTES + WORD * words(self).count()
    }

    fn wire_length(&self) -> usize {
        self.headers_bytes() + self.payload.len()
    }

    fn write_headers(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        let mut header = Vec::with_capacity(usize::from(self.header_bytes));
        header.extend(envelope.source.port().to_be_bytes());
        header.extend(envelope.destination.port().to_be_bytes());
        header.extend([self.kind as u8, 0, 0, 0]);
        for word in words(self) {
            header.extend(word.to_be_bytes());
        }
        let bytes = header.len() + self.payload.len();
        let checksum = envelope
            .pseudo_header(PROTOCOL, bytes)
            .add_slice(&header)
            .add_slice(self.payload.content().unwrap_or_default())
            .ones_complement();
        header[CHECKSUM].copy_from_slice(&checksum.to_ne_bytes());

        ipv4::write_header(envelope, PROTOCOL, bytes, out);
        out.extend(header);
    }

    fn write_packet(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        write_parts(self, &self.payload, envelope, out);
    }

    fn decode(bytes: Bytes) -> Option<Decoded<Self>> {
        let (mut envelope, bytes) = ipv4::parse(&bytes, PROTOCOL)?;
        if envelope.pseudo_header(PROTOCOL, bytes.len()).add_slice(&bytes).ones_complement() != 0 {
            return None;
        }
        let &[s0, s1, d0, d1, kind, 0, _, _] = bytes.first_chunk::<FIXED_BYTES>()? else { return None };
        envelope.source.set_port(u16::from_be_bytes([s0, s1]));
        envelope.destination.set_port(u16::from_be_bytes([d0, d1]));
        let mut packet: Self = read(Kind::from_number(kind)?, &bytes.slice(FIXED_BYTES..))?;
        let header_bytes = usize::from(ipv4::HEADER_BYTES) + bytes.len() - packet.payload.len();
        packet.header_bytes = u16::try_from(header_bytes).ok()?;
        Some(Decoded { packet, envelope, integrity: Integrity::Intact })
    }
}

/// The fields between the checksum and the payload.
fn words<D>(pdu: &Pdu<D>) -> impl Iterator<Item = u32> {
    let &Pdu { kind, position, poll, clock, window, ref report, .. } = pdu;
    let (fixed, count) = match kind {
        Kind::Data => ([position, 0, 0, 0], 1),
        Kind::Begin | Kind::BeginAck => ([position, window, 0, 0], 3),
        Kind::End | Kind::EndAck => ([position, 0, 0, 0], 3),
        Kind::Poll => ([position, poll, clock, 0], 3),
        Kind::Stat => ([position, poll, clock, window], 4),
        Kind::Ustat => ([position, window, 0, 0], 2),
    };
    // A USTAT covers the range that it reports as missing, and a STAT without a report covers nothing.
    let covers = (kind == Kind::Stat && !report.is_empty()).then_some(report.covers);
    let ranges = covers.into_iter().chain(report.missing.iter().copied());
    fixed.into_iter().take(count).chain(ranges.flat_map(|range| [range.from, range.to]))
}

fn read<D: WirePayload>(kind: Kind, bytes: &Bytes) -> Option<Pdu<D>> {
    if kind == Kind::Data {
        let (position, payload) = bytes.split_first_chunk()?;
        return Some(Pdu {
            kind,
            position: u32::from_be_bytes(*position),
            payload: D::from_wire(bytes.slice_ref(payload)),
            ..Pdu::default()
        });
    }
    let (words, rest) = bytes.as_chunks::<WORD>();
    if !rest.is_empty() {
        return None;
    }
    let words: Vec<u32> = words.iter().map(|word| u32::from_be_bytes(*word)).collect();
    let pdu = Pdu { kind, ..Pdu::default() };
    match (kind, &words[..]) {
        (Kind::Begin | Kind::BeginAck, &[position, window, 0]) => Some(Pdu { position, window, ..pdu }),
        (Kind::End | Kind::EndAck, &[position, 0, 0]) => Some(Pdu { position, ..pdu }),
        (Kind::Poll, &[position, poll, clock]) => Some(Pdu { position, poll, clock, ..pdu }),
        (Kind::Stat, &[position, poll, clock, window, ref ranges @ ..]) => {
            let report = match read_ranges(ranges)?.split_first() {
                Some((&covers, missing)) => Report { covers, missing: missing.to_vec() },
                None => Report::default(),
            };
            Some(Pdu { position, poll, clock, window, report, ..pdu })
        }
        (Kind::Ustat, &[position, window, from, to]) => {
            let covers = Range { from, to };
            Some(Pdu { position, window, report: Report { covers, missing: vec![covers] }, ..pdu })
        }
        _ => None,
    }
}

fn read_ranges(words: &[u32]) -> Option<Vec<Range>> {
    let (pairs, rest) = words.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|&[from, to]| Range { from, to }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    fn encoded(pdu: &Pdu<Virtual>) -> Vec<u8> {
        let mut bytes = Vec::new();
        pdu.encode(&Envelope::simulated(0), &mut bytes).unwrap();
        bytes
    }

    fn range(from: u32, to: u32) -> Range {
        Range { from, to }
    }

    #[test]
    fn a_stat_matches_the_specified_bytes() {
        let report = Report { covers: range(100, 900), missing: vec![range(100, 200), range(400, 500)] };
        let stat =
            Pdu { kind: Kind::Stat, position: 100, poll: 3, clock: 7, window: 0x0102_0304, report, ..Pdu::default() };
        let bytes = encoded(&stat);
        assert_eq!((bytes.len(), bytes[9]), (68, 253));
        assert_eq!(bytes[20..26], [0xc0, 0x00, 0x9c, 0x40, 11, 0], "ports and kind");
        let words = [100, 3, 7, 0x0102_0304, 100, 900, 100, 200, 400, 500_u32];
        assert_eq!(bytes[28..], words.map(u32::to_be_bytes).concat());
    }

    #[test]
    fn lengths_match_the_defaults_of_the_scenario() {
        let config = crate::protocol::stp::StpConfig::default();
        let bytes = |kind, payload, report| {
            encoded(&Pdu { kind, payload: Virtual(payload), report, ..Pdu::default() }).len() as u64
        };
        let gap = Report { covers: range(0, 9), missing: vec![range(0, 9)] };
        assert_eq!(bytes(Kind::Data, 100, Report::default()), config.header_bytes.whole() + 100);
        for kind in [Kind::Begin, Kind::BeginAck, Kind::End, Kind::EndAck, Kind::Poll] {
            assert_eq!(bytes(kind, 0, Report::default()), config.poll_bytes.whole(), "{kind:?}");
        }
        assert_eq!(bytes(Kind::Stat, 0, Report::default()), config.stat_bytes.whole());
        assert_eq!(bytes(Kind::Stat, 0, gap.clone()), config.stat_bytes.whole() + u64::from(gap.stat_bytes()));
        assert_eq!(bytes(Kind::Ustat, 0, gap), config.stat_bytes.whole());
    }

    #[test]
    fn packets_of_wrong_length_or_kind_are_refused() {
        let length = |kind, words: &[u32]| read::<Virtual>(kind, &words.iter().flat_map(|w| w.to_be_bytes()).collect());
        assert!(length(Kind::Poll, &[1, 2]).is_none() && length(Kind::Poll, &[1, 2, 3]).is_some());
        assert!(length(Kind::End, &[1, 0, 9]).is_none(), "reserved bits must be 0");
        assert!(length(Kind::Stat, &[1, 2, 3]).is_none() && length(Kind::Stat, &[1, 2, 3, 4, 5]).is_none());
        assert!(length(Kind::Ustat, &[1, 2, 3]).is_none() && length(Kind::Ustat, &[1, 2, 3, 4, 5, 6]).is_none());
        assert!(read::<Virtual>(Kind::Poll, &Bytes::from_static(&[0; 11])).is_none());
        assert!(read::<Virtual>(Kind::Data, &Bytes::from_static(&[0; 3])).is_none());
    }
}
