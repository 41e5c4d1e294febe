//! AeroTP segments on the wire, as `docs/aerotp.md` lays them out: inside IPv4 as protocol 254, or as the payload of a UDP
//! datagram.
//!
//! All numbers are big-endian. The header: `[L1]`
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | source port, destination port |
//! | 4-7 | sequence number; of a MACK, ACK number 0 |
//! | 8-11 | timestamp, microseconds |
//! | 12 | version (2 bits, 1), sealed form (1 bit, 0), mode (3 bits), ECN (2 bits) |
//! | 13 | [`Flags`](crate::protocol::aerotp::Flags) |
//! | 14-15 | bytes of the payload; of a MACK, of its list |
//! | then | optional fields, below |
//! | then | tag (2), CRC-16 over everything before it (2) |
//!
//! Optional fields, each if its flag is set, in this order:
//!
//! | flag | fields |
//! |---|---|
//! | ASYN | opening (4) |
//! | FEC | words of parity (2), reserved (2) |
//! | REPAIR | start (4), bytes (4), symbol bytes (2), symbols (2), index (4) |
//! | EXTENDED | 32-bit words of all this (1), then type (1), length (1), value, and so on; type 0 is one byte of padding |
//!
//! Types: 1, class (1); 2, the number at which the stream continues (4); 3, in a MACK, bytes skipped (4); 4, in a MACK, by
//! how long segments were overtaken (4); 5, without MACK, bytes of MACKs in a second (4). `[L6]`
//!
//! After the header: the payload, or the list of a MACK; the parity, over payload and check; the payload's check, a CRC-32. A
//! MACK's list: echo (4); from-start (1 bit), to-end (1 bit), counts symbols (1 bit), has distances (1 bit), microseconds held (28
//! bits); window (4); marked (2), damaged (2); edges (4 each), or the unit and the distances between them (1, 2, 4 or 8 each).
//! `[A11]`
//!
//! The parity in the packet is computed here ([`parity`]), while the simulator only counts wrong bytes.
//!
//! With keys, segments are encrypted and stand behind an outer header: [`sealed`].
//!
//! [RFC 3692](https://www.rfc-editor.org/rfc/rfc3692) and the IANA registry assign number 254 to experiments. `[L13]`

mod header;
mod list;
mod parity;
pub mod sealed;

use std::net::SocketAddrV4;

use bytes::Bytes;
use etherparse::IpNumber;
use farlink_fec::crc::crc_32_iso_hdlc;

use crate::endpoint::{Ecn, Integrity};
use crate::payload::Payload;
use crate::protocol::aerotp::{Fec, Flags, Mack, Segment};

use super::{Codec, Decoded, EncodeError, Envelope, TooLong, WirePayload, Writer, ipv4, within, within_ipv4};

/// Use for experimentation and testing.
const PROTOCOL: IpNumber = IpNumber(254);
const CHECK_BYTES: usize = 4;

/// The header fields that are not part of the [`Segment`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// Congestion mark.
    pub ecn: Ecn,
}

impl Outside {
    fn of(envelope: &Envelope) -> Self {
        Outside { source: envelope.source.port(), destination: envelope.destination.port(), ecn: envelope.ecn }
    }
}

/// A decoded segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived<D> {
    /// The segment; its `header_bytes` are those of AeroTP alone.
    pub segment: Segment<D>,
    /// The other fields of its header.
    pub outside: Outside,
    /// Whether its payload is intact.
    pub integrity: Integrity,
}

/// Why bytes are not a usable segment, or not an outer header of [`sealed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Refusal {
    /// The length differs from that in its header, or is too short for a segment. `[L7]`
    Length,
    /// It belongs to another version of AeroTP.
    Version,
    /// It has the form that segments have inside a seal, and stands outside of one. `[L3]`
    Sealed,
    /// It has the form that segments have outside a seal, and stands inside one. `[O17]`
    Plain,
    /// The check of the header, or of the outer header, fails.
    Check,
    /// A header field has an invalid value.
    Field,
    /// It has an unknown optional field that must not be skipped.
    UnknownField,
}

impl Refusal {
    /// All refusals.
    pub const ALL: [Refusal; 7] = [
        Refusal::Length,
        Refusal::Version,
        Refusal::Sealed,
        Refusal::Plain,
        Refusal::Check,
        Refusal::Field,
        Refusal::UnknownField,
    ];
}

/// Where a segment stands, which decides what it has itself of checks and parity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By itself, with its checks and parity.
    Plain,
    /// Inside a seal, whose tag and parity are also the segment's. `[O16]`
    Sealed,
    /// Behind an outer header, whose parity is also the segment's, without a seal. `[O26]`
    Clear,
}

/// Appends a segment in the form for a UDP datagram.
///
/// # Errors
/// If it is longer than IPv4 allows; `out` then stays unchanged.
pub fn encode_segment<D: WirePayload>(
    segment: &Segment<D>,
    outside: &Outside,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let (start, bytes) = (out.len(), datagram_bytes(segment)?);
    out.resize(start + bytes, 0);
    write(segment, Form::Plain, outside, &mut Writer::new(&mut out[start..]));
    Ok(())
}

/// Writes a segment in the form for a UDP datagram to the start of `out` and returns its length.
///
/// # Errors
/// If it is longer than IPv4 allows or than `out`, which then stays unchanged.
pub fn encode_segment_into<D: WirePayload>(
    segment: &Segment<D>,
    outside: &Outside,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let bytes = within(datagram_bytes(segment)?, out)?;
    write(segment, Form::Plain, outside, &mut Writer::new(out));
    Ok(bytes)
}

/// Length of the segment; it has to fit into a UDP datagram.
fn datagram_bytes<D: Payload>(segment: &Segment<D>) -> Result<usize, TooLong> {
    let headers = usize::from(ipv4::HEADER_BYTES);
    Ok(within_ipv4(wire_bytes(segment, Form::Plain) + headers)? - headers)
}

/// Decodes a segment that is all of `bytes`. Never panics. `[B1]`
///
/// # Errors
/// The reason; a receiver counts and drops such bytes. A segment with an intact header and a damaged rest is not an error but
/// [`Integrity::PayloadDamaged`].
pub fn decode_segment<D: WirePayload>(bytes: &Bytes) -> Result<Arrived<D>, Refusal> {
    read(bytes, Form::Plain)
}

fn read<D: WirePayload>(bytes: &Bytes, form: Form) -> Result<Arrived<D>, Refusal> {
    let (mut segment, outside, body_bytes, behind) = header::read::<D>(bytes, form)?;
    let has_check = segment.flags.has(Flags::CRC);
    let fec = Fec {
        payload_bytes: body_bytes as u32,
        parity_bytes: u32::from(segment.fec_words) * 4,
        check_bytes: if has_check { CHECK_BYTES as u32 } else { 0 },
    };
    let expected = body_bytes + (fec.parity_bytes + fec.check_bytes) as usize;
    if behind.len() != expected {
        return Err(Refusal::Length);
    }
    if segment.fec_words > 0 && !has_check {
        return Err(Refusal::Field);
    }
    let mended = parity::mend(&fec, behind);
    let integrity = mended.integrity();
    let content = mended.content(|| bytes.slice_ref(behind));
    let (body, check) = (content.slice(..body_bytes), &content[expected - fec.check_bytes as usize..]);
    let integrity = match integrity {
        // The decoder's result may be another codeword, which the check reveals. `[L12]`
        Some(integrity) if !has_check || crc_32_iso_hdlc(&body).to_be_bytes() == check => integrity,
        _ => Integrity::PayloadDamaged,
    };
    if segment.flags.has(Flags::MACK) {
        let list = list::read(segment.sequence, &body);
        // Damage may leave no list, and counts all the same.
        let is_damaged = integrity == Integrity::PayloadDamaged;
        segment.mack = Some(Box::new(list.or(is_damaged.then(Mack::default)).ok_or(Refusal::Field)?));
    } else {
        segment.payload = D::from_wire(body);
    }
    Ok(Arrived { segment, outside, integrity })
}

/// Decoding sets [`Segment::header_bytes`] to the length of the headers that were present, including IPv4's 20 bytes.
///
/// Content that is not simulated payload is written with the headers: a MACK is written completely, with its list and its check.
impl<D: WirePayload> Codec for Segment<D> {
    fn headers_bytes(&self) -> usize {
        let written =
            if self.mack.is_some() { wire_bytes(self, Form::Plain) } else { header::bytes(self, Form::Plain) };
        usize::from(ipv4::HEADER_BYTES) + written
    }

    fn wire_length(&self) -> usize {
        usize::from(ipv4::HEADER_BYTES) + wire_bytes(self, Form::Plain)
    }

    fn write_headers(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        ipv4::write_header(envelope, PROTOCOL, wire_bytes(self, Form::Plain), out);
        let outside = Outside::of(envelope);
        if self.mack.is_some() {
            write(self, Form::Plain, &outside, out);
        } else {
            header::write(self, Form::Plain, &outside, out);
        }
    }

    fn write_packet(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        ipv4::write_header(envelope, PROTOCOL, wire_bytes(self, Form::Plain), out);
        write(self, Form::Plain, &Outside::of(envelope), out);
    }

    fn decode(bytes: Bytes) -> Option<Decoded<Self>> {
        let (network, body) = ipv4::parse(&bytes, PROTOCOL)?;
        let Arrived { segment, outside, integrity } = decode_segment::<D>(&body).ok()?;
        let header_bytes = segment.header_bytes + ipv4::HEADER_BYTES;
        // Routers set marks in IPv4's header, gateways in AeroTP's. `[L14]`
        let ecn = if outside.ecn == Ecn::Congestion { outside.ecn } else { network.ecn };
        let envelope = Envelope {
            source: SocketAddrV4::new(*network.source.ip(), outside.source),
            destination: SocketAddrV4::new(*network.destination.ip(), outside.destination),
            ecn,
        };
        Some(Decoded { packet: Segment { header_bytes, ..segment }, envelope, integrity })
    }
}

/// Length of a segment from its first port to its check.
fn wire_bytes<D: Payload>(segment: &Segment<D>, form: Form) -> usize {
    let flags = header::flags(segment, form);
    let parity = if flags.has(Flags::FEC) { 4 * usize::from(segment.fec_words) } else { 0 };
    let check = if flags.has(Flags::CRC) { CHECK_BYTES } else { 0 };
    header::bytes(segment, form) + header::body_bytes(segment) + parity + check
}

fn write<D: WirePayload>(segment: &Segment<D>, form: Form, outside: &Outside, out: &mut Writer<'_>) {
    header::write(segment, form, outside, out);
    let start = out.position();
    match &segment.mack {
        Some(mack) => list::write(segment.sequence, mack, out),
        None => out.extend(segment.payload.content().unwrap_or_default()),
    }
    let body = start + header::body_bytes(segment);
    out.zeros_to(body);
    let flags = header::flags(segment, form);
    if flags.has(Flags::CRC) {
        let check = crc_32_iso_hdlc(out.since(start)).to_be_bytes();
        let words = if flags.has(Flags::FEC) { segment.fec_words } else { 0 };
        let fec = Fec::new((body - start) as u32, words);
        out.zeros_to(body + fec.parity_bytes as usize);
        out.extend(check);
        if words > 0 {
            parity::fill(&fec, out.since(start));
        }
    }
}

#[cfg(test)]
mod tests;
