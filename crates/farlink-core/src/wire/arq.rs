//! ARQ frames on the wire: farlink's own layout, inside IPv4 as protocol 253.
//!
//! All numbers are big-endian. Three separate checks keep the header usable if the payload is damaged:
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | port of the sender, port of the receiver |
//! | 4-5 | flags ([`Flags`]) |
//! | 6-9 | number |
//! | 10-13 | position of the data in the stream |
//! | 14-17 | bytes that were given up |
//! | 18-21 | acknowledged frame |
//! | 22-27 | first missing frame, how many |
//! | 28-29 | length of the payload |
//! | 30-31 | length of the parity behind it |
//! | 32 | which part of the parity it is |
//! | 33-34 | number of blocks |
//! | 35-38 | CRC-32 of payload and parity |
//! | 39-40 | CRC-16 of bytes 0-38 |
//!
//! Then, if the flags or the number of blocks say so: the timestamp (4), the echo (4), the blocks (8 each), and a CRC-16 over
//! these. Then payload and parity.
//!
//! [RFC 3692](https://www.rfc-editor.org/rfc/rfc3692) and the IANA registry assign number 253 to experiments.
//!
//! Parity is written as zeros, because its symbols are not computed here.

use bytes::Bytes;
use etherparse::IpNumber;
use farlink_fec::crc::{crc_16_ibm_3740, crc_32_iso_hdlc};

use crate::endpoint::Integrity;
use crate::payload::Payload;
use crate::protocol::arq::{Block, Blocks, Flags, Frame};

use super::{Codec, Decoded, Envelope, WirePayload, Writer, ipv4, write_parts};

/// Use for experimentation and testing.
const PROTOCOL: IpNumber = IpNumber(253);
const FIXED_BYTES: usize = 41;
const CHECK_BYTES: usize = 2;

/// Decoding sets [`Frame::header_bytes`] to the length of the headers that were present, including IPv4's 20 bytes. A frame with
/// a damaged payload is decoded as [`Integrity::PayloadDamaged`]; only a simulator knows whether its code would correct the
/// errors.
impl<D: WirePayload> Codec for Frame<D> {
    fn headers_bytes(&self) -> usize {
        let blocks = u16::try_from(self.blocks.len()).unwrap_or(u16::MAX);
        usize::from(ipv4::HEADER_BYTES) + FIXED_BYTES + option_bytes(self.flags, blocks)
    }

    fn wire_length(&self) -> usize {
        self.headers_bytes() + self.payload.len() + usize::from(self.parity_bytes)
    }

    fn write_headers(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        let payload = self.payload.len();
        let body = self.wire_length() - usize::from(ipv4::HEADER_BYTES);
        ipv4::write_header(envelope, PROTOCOL, body, out);

        let start = out.position();
        out.extend(envelope.source.port().to_be_bytes());
        out.extend(envelope.destination.port().to_be_bytes());
        out.extend(self.flags.0.to_be_bytes());
        for number in [self.number, self.position, self.skipped_bytes, self.ack, self.nak] {
            out.extend(number.to_be_bytes());
        }
        for short in [self.nak_count, u16::try_from(payload).unwrap_or(0), self.parity_bytes] {
            out.extend(short.to_be_bytes());
        }
        out.extend([self.increment]);
        out.extend(u16::try_from(self.blocks.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend(content_check(self).to_be_bytes());
        let check = crc_16_ibm_3740(out.since(start));
        out.extend(check.to_be_bytes());
        out.extend(encode_options(self));
    }

    fn write_packet(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        write_parts(self, &self.payload, envelope, out);
    }

    fn decode(bytes: Bytes) -> Option<Decoded<Self>> {
        let (mut envelope, bytes) = ipv4::parse(&bytes, PROTOCOL)?;
        let (fixed, rest) = bytes.split_at_checked(FIXED_BYTES)?;
        let mut fields = Fields(checked(fixed)?);
        envelope.source.set_port(fields.short());
        envelope.destination.set_port(fields.short());
        let mut frame = Frame {
            flags: Flags(fields.short()),
            number: fields.word(),
            position: fields.word(),
            skipped_bytes: fields.word(),
            ack: fields.word(),
            nak: fields.word(),
            nak_count: fields.short(),
            ..Frame::default()
        };
        let payload_bytes = usize::from(fields.short());
        frame.parity_bytes = fields.short();
        frame.increment = fields.byte();
        let block_count = fields.short();
        let content_check = fields.word();

        let option_bytes = option_bytes(frame.flags, block_count);
        let (options, content) = rest.split_at_checked(option_bytes)?;
        decode_options(&mut frame, options, block_count)?;
        // The lengths are checked here; a sender writes only frames that agree with them.
        if content.len() != payload_bytes + usize::from(frame.parity_bytes) {
            return None;
        }
        frame.header_bytes = ipv4::HEADER_BYTES + u16::try_from(FIXED_BYTES + option_bytes).ok()?;
        frame.payload = D::from_wire(bytes.slice_ref(&content[..payload_bytes]));
        let is_sound = crc_32_iso_hdlc(content) == content_check;
        let integrity = if is_sound { Integrity::Intact } else { Integrity::PayloadDamaged };
        Some(Decoded { packet: frame, envelope, integrity })
    }
}

/// The check over payload and parity; content that is only a length counts as zeros.
fn content_check<D: WirePayload>(frame: &Frame<D>) -> u32 {
    let parity = usize::from(frame.parity_bytes);
    let mut content = match frame.payload.content() {
        Some(content) if parity == 0 => return crc_32_iso_hdlc(content),
        Some(content) => content.to_vec(),
        None => vec![0; frame.payload.len()],
    };
    content.resize(content.len() + parity, 0);
    crc_32_iso_hdlc(&content)
}

fn option_bytes(flags: Flags, blocks: u16) -> usize {
    let times = 4 * (usize::from(flags.has(Flags::TIMESTAMP)) + usize::from(flags.has(Flags::ECHO)));
    let options = times + 8 * usize::from(blocks);
    if options == 0 { 0 } else { options + CHECK_BYTES }
}

fn encode_options<D: Payload>(frame: &Frame<D>) -> Vec<u8> {
    let mut options = Vec::new();
    if frame.flags.has(Flags::TIMESTAMP) {
        options.extend(frame.timestamp.to_be_bytes());
    }
    if frame.flags.has(Flags::ECHO) {
        options.extend(frame.echo.to_be_bytes());
    }
    for Block { left, right } in frame.blocks.iter() {
        options.extend(left.to_be_bytes());
        options.extend(right.to_be_bytes());
    }
    if !options.is_empty() {
        let check = crc_16_ibm_3740(&options);
        options.extend(check.to_be_bytes());
    }
    options
}

fn decode_options<D>(frame: &mut Frame<D>, options: &[u8], blocks: u16) -> Option<()> {
    if options.is_empty() {
        return Some(());
    }
    let mut fields = Fields(checked(options)?);
    if frame.flags.has(Flags::TIMESTAMP) {
        frame.timestamp = fields.word();
    }
    if frame.flags.has(Flags::ECHO) {
        frame.echo = fields.word();
    }
    let mut list = Blocks::default();
    for _ in 0..blocks {
        list.push(Block { left: fields.word(), right: fields.word() });
    }
    frame.blocks = list;
    Some(())
}

/// The bytes before a CRC-16, if that is correct.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (body, check) = bytes.split_at_checked(bytes.len().checked_sub(CHECK_BYTES)?)?;
    (crc_16_ibm_3740(body).to_be_bytes() == check).then_some(body)
}

/// Reads fields from the start; zeros after the end, which the length checks exclude.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *field
    }

    fn byte(&mut self) -> u8 {
        u8::from_be_bytes(self.take())
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    #[test]
    fn the_layout_matches_the_specification() {
        let frame = Frame {
            flags: Flags::DATA.with(Flags::ACK),
            number: 0x0102_0304,
            position: 5,
            ack: 6,
            parity_bytes: 2,
            payload: b"ab".to_vec(),
            ..Frame::default()
        };
        let mut bytes = Vec::new();
        frame.encode(&Envelope::simulated(0), &mut bytes).unwrap();
        assert_eq!(bytes.len(), 20 + FIXED_BYTES + 4);
        let arq = &bytes[20..];
        assert_eq!(arq[..14], [0xc0, 0x00, 0x9c, 0x40, 0, 3, 1, 2, 3, 4, 0, 0, 0, 5]);
        assert_eq!((arq[21], arq[29], arq[31], &arq[41..]), (6, 2, 2, &b"ab\0\0"[..]));
        assert_eq!(arq[35..39], crc_32_iso_hdlc(b"ab\0\0").to_be_bytes());
        assert_eq!(arq[39..41], crc_16_ibm_3740(&arq[..39]).to_be_bytes());
    }

    #[test]
    fn frames_too_long_for_ipv4_are_refused_and_write_nothing() {
        let frame = Frame { flags: Flags::DATA, parity_bytes: 100, payload: Virtual(65_400), ..Frame::default() };
        let mut bytes = vec![7];
        assert!(frame.encode(&Envelope::simulated(0), &mut bytes).is_err());
        assert_eq!(bytes, [7]);
    }

    #[test]
    fn a_damaged_payload_leaves_the_header_usable() {
        let frame = Frame { flags: Flags::DATA, number: 9, payload: b"abc".to_vec(), ..Frame::default() };
        let mut bytes = Vec::new();
        frame.encode(&Envelope::simulated(0), &mut bytes).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let decoded = Frame::<Vec<u8>>::decode(bytes.clone().into()).unwrap();
        assert_eq!((decoded.integrity, decoded.packet.number), (Integrity::PayloadDamaged, 9));
        bytes[last - 4] ^= 1;
        assert_eq!(Frame::<Vec<u8>>::decode(bytes.into()), None);
    }
}
