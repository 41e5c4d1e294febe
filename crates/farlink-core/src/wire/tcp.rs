//! TCP segments on the wire (RFC 9293, section 3.1).

use bytes::Bytes;
use etherparse::{IpNumber, TcpHeader, TcpOptions, TcpSlice};

use crate::endpoint::Integrity;
use crate::payload::Payload;
use crate::protocol::tcp::{
    Flags, SackBlock, SackBlocks, ScpsCapabilities, Segment, SnackReport, SynOptions, Timestamps,
};

use super::{Codec, Decoded, Envelope, WirePayload, Writer, ipv4, write_parts};

const MAX_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const SCPS_CAPABILITIES: u8 = 20;
const SNACK: u8 = 21;
const CORRUPTION_EXPERIENCED: u8 = 23;

const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

const MAX_OPTION_BYTES: usize = 40;
const CHECKSUM: std::ops::Range<usize> = 16..18;
const FLAGS: usize = 13;

/// Options are written in a fixed order, each padded at the front to a multiple of four bytes: maximum segment size, SACK
/// permitted, SCPS capabilities, timestamps, window scale, corruption experienced, SNACK, SACK blocks. Options of a SYN are
/// written and decoded only on a SYN. As many SACK blocks are written as fit into the 40 bytes of options: four, or three with
/// timestamps.
///
/// Decoding sets [`Segment::header_bytes`] to the length of the headers that were present, including IPv4's 20 bytes. It may
/// differ from that of the encoded segment, in which it is the scenario's count and not a length.
impl<D: WirePayload> Codec for Segment<D> {
    fn headers_bytes(&self) -> usize {
        usize::from(ipv4::HEADER_BYTES) + TcpHeader::MIN_LEN + encode_options(self).len()
    }

    fn wire_length(&self) -> usize {
        self.headers_bytes() + self.payload.len()
    }

    fn write_headers(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        let options = TcpOptions::try_from_slice(&encode_options(self)).expect("at most 40 bytes of options");
        let header = TcpHeader {
            acknowledgment_number: self.ack,
            options,
            ..TcpHeader::new(envelope.source.port(), envelope.destination.port(), self.seq, self.window)
        };
        let mut header = header.to_bytes();
        header[FLAGS] = self.flags.0;

        let bytes = header.len() + self.payload.len();
        let checksum = envelope
            .pseudo_header(IpNumber::TCP, bytes)
            .add_slice(&header)
            .add_slice(self.payload.content().unwrap_or_default())
            .ones_complement();
        header[CHECKSUM].copy_from_slice(&checksum.to_ne_bytes());

        ipv4::write_header(envelope, IpNumber::TCP, bytes, out);
        out.extend(header);
    }

    fn write_packet(&self, envelope: &Envelope, out: &mut Writer<'_>) {
        write_parts(self, &self.payload, envelope, out);
    }

    fn decode(bytes: Bytes) -> Option<Decoded<Self>> {
        let (mut envelope, bytes) = ipv4::parse(&bytes, IpNumber::TCP)?;
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.1
        //# The TCP checksum is never optional.  The sender MUST generate it
        //# (MUST-2) and the receiver MUST check it (MUST-3).
        if envelope.pseudo_header(IpNumber::TCP, bytes.len()).add_slice(&bytes).ones_complement() != 0 {
            return None;
        }
        let segment = TcpSlice::from_slice(&bytes).ok()?;
        let flags = Flags(segment.header_slice()[FLAGS]);
        let options = parse_options(segment.options(), flags.has(Flags::SYN))?;

        envelope.source.set_port(segment.source_port());
        envelope.destination.set_port(segment.destination_port());
        let packet = Segment {
            seq: segment.sequence_number(),
            ack: segment.acknowledgment_number(),
            flags,
            header_bytes: ipv4::HEADER_BYTES + segment.header_len() as u16,
            window: segment.window_size(),
            timestamps: options.timestamps,
            syn: options.syn,
            sack: options.sack,
            snack: options.snack,
            corruption_experienced: options.corruption_experienced,
            payload: D::from_wire(bytes.slice_ref(segment.payload())),
        };
        Some(Decoded { packet, envelope, integrity: Integrity::Intact })
    }
}

fn encode_options<D: Payload>(segment: &Segment<D>) -> Vec<u8> {
    let mut options = Vec::with_capacity(MAX_OPTION_BYTES);
    if segment.flags.has(Flags::SYN) {
        let SynOptions { mss, sack_permitted, scps, .. } = segment.syn;
        if mss != 0 {
            options.extend([MAX_SEGMENT_SIZE, 4]);
            options.extend(mss.to_be_bytes());
        }
        if sack_permitted {
            options.extend([NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
        if let Some(ScpsCapabilities { bits, connection_id }) = scps {
            options.extend([SCPS_CAPABILITIES, 4, bits, connection_id]);
        }
    }
    if let Some(Timestamps { value, echo }) = segment.timestamps {
        options.extend([NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    }
    if let (true, Some(shift)) = (segment.flags.has(Flags::SYN), segment.syn.window_shift) {
        options.extend([NO_OPERATION, WINDOW_SCALE, 3, shift]);
    }
    if segment.corruption_experienced {
        options.extend([NO_OPERATION, NO_OPERATION, CORRUPTION_EXPERIENCED, 2]);
    }
    if let Some(snack) = &segment.snack {
        encode_snack(snack, &mut options);
    }
    //= https://www.rfc-editor.org/rfc/rfc2018#section-3
    //# A SACK option that specifies n blocks will have a length of 8*n+2
    //# bytes, so the 40 bytes available for TCP options can specify a
    //# maximum of 4 blocks.
    let room = (MAX_OPTION_BYTES - options.len()).saturating_sub(4) / 8;
    let blocks = &segment.sack.as_slice()[..segment.sack.as_slice().len().min(room)];
    if !blocks.is_empty() {
        options.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            options.extend(block.left.to_be_bytes());
            options.extend(block.right.to_be_bytes());
        }
    }
    options
}

/// Writes as much of the bit vector as fits, and nothing if there is no room for the hole.
fn encode_snack(snack: &SnackReport, options: &mut Vec<u8>) {
    let Some(room) = (MAX_OPTION_BYTES - options.len()).checked_sub(6) else { return };
    let vector = &snack.vector()[..snack.vector().len().min(room)];
    let bytes = 6 + vector.len();
    options.extend(std::iter::repeat_n(NO_OPERATION, bytes.next_multiple_of(4) - bytes));
    options.extend([SNACK, bytes as u8]);
    options.extend(snack.offset.to_be_bytes());
    options.extend(snack.size.to_be_bytes());
    options.extend(vector);
}

#[derive(Default)]
struct Options {
    timestamps: Option<Timestamps>,
    syn: SynOptions,
    sack: SackBlocks,
    snack: Option<SnackReport>,
    corruption_experienced: bool,
}

/// `None` if a length is wrong.
///
/// If an option occurs twice, the last one counts.
fn parse_options(mut options: &[u8], is_syn: bool) -> Option<Options> {
    let mut parsed = Options::default();
    loop {
        let (kind, length) = match *options {
            [] | [END_OF_OPTIONS, ..] => return Some(parsed),
            [NO_OPERATION, ref rest @ ..] => {
                options = rest;
                continue;
            }
            [kind, length, ..] => (kind, usize::from(length)),
            [_] => return None,
        };
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.1
        //# TCP implementations MUST be prepared to handle an illegal option
        //# length (e.g., zero)
        let value = options.get(2..length)?;
        options = &options[length..];

        match kind {
            MAX_SEGMENT_SIZE if is_syn => parsed.syn.mss = u16::from_be_bytes(value.try_into().ok()?),
            WINDOW_SCALE if is_syn => {
                //= https://www.rfc-editor.org/rfc/rfc7323#section-2.3
                //# If a Window Scale option is received with a shift.cnt value larger than
                //# 14, the TCP SHOULD log the error but MUST use 14 instead of the
                //# specified value.
                let [shift] = value.try_into().ok()?;
                parsed.syn.window_shift = Some(u8::min(shift, 14));
            }
            SACK_PERMITTED if is_syn => {
                let [] = value.try_into().ok()?;
                parsed.syn.sack_permitted = true;
            }
            SCPS_CAPABILITIES if is_syn => {
                // A longer option is that of extended capabilities, which are specific to vendors.
                if let [bits, connection_id] = *value {
                    parsed.syn.scps = Some(ScpsCapabilities { bits, connection_id });
                }
            }
            SNACK => parsed.snack = Some(parse_snack(value)?),
            CORRUPTION_EXPERIENCED => {
                let [] = value.try_into().ok()?;
                parsed.corruption_experienced = true;
            }
            TIMESTAMPS => {
                let (clock, echo) = value.split_at_checked(4)?;
                parsed.timestamps = Some(Timestamps { value: word(clock)?, echo: word(echo)? });
            }
            SACK => parsed.sack = parse_sack(value)?,
            //= https://www.rfc-editor.org/rfc/rfc9293#section-3.1
            //# A TCP implementation MUST (MUST-6) ignore without error any TCP
            //# Option it does not implement, assuming that the option has a length
            //# field.
            _ => {}
        }
    }
}

fn parse_sack(value: &[u8]) -> Option<SackBlocks> {
    let mut blocks = SackBlocks::default();
    if value.is_empty() {
        return None;
    }
    for block in value.chunks(8) {
        let (left, right) = block.split_at_checked(4)?;
        // 40 bytes can hold four blocks at most.
        blocks.push(SackBlock { left: word(left)?, right: word(right)? });
    }
    Some(blocks)
}

fn parse_snack(value: &[u8]) -> Option<SnackReport> {
    let (&[o1, o2, s1, s2], vector) = value.split_first_chunk()?;
    let (offset, size) = (u16::from_be_bytes([o1, o2]), u16::from_be_bytes([s1, s2]));
    let mut report = SnackReport::new(offset, size);
    report.set_vector(vector);
    Some(report)
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    #[test]
    fn a_syn_matches_the_bytes_of_the_rfc() {
        let syn = Segment {
            seq: 0x0102_0304,
            flags: Flags::SYN,
            header_bytes: 40,
            window: 0xffff,
            syn: SynOptions { mss: 1460, window_shift: Some(7), sack_permitted: true, scps: None },
            timestamps: Some(Timestamps { value: 5, echo: 0 }),
            payload: Virtual(0),
            ..Segment::default()
        };
        let mut bytes = Vec::new();
        syn.encode(&Envelope::simulated(0), &mut bytes).unwrap();

        let tcp = &bytes[20..];
        assert_eq!(tcp[..4], [0xc0, 0x00, 0x9c, 0x40], "ports 49152 and 40000");
        assert_eq!(tcp[4..12], [1, 2, 3, 4, 0, 0, 0, 0], "sequence and acknowledgement");
        assert_eq!(tcp[12..16], [11 << 4, 0x02, 0xff, 0xff], "eleven words, SYN, window");
        assert_eq!(tcp[20..24], [2, 4, 0x05, 0xb4], "maximum segment size");
        assert_eq!(tcp[24..28], [1, 1, 4, 2], "SACK permitted");
        assert_eq!(tcp[28..40], [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0], "timestamps");
        assert_eq!(tcp[40..], [1, 3, 3, 7], "window scale");
    }

    #[test]
    fn the_last_sack_blocks_give_way_to_timestamps() {
        let mut ack = Segment { flags: Flags::ACK, payload: Virtual(0), ..Segment::default() };
        for left in [10, 30, 50, 70] {
            assert!(ack.sack.push(SackBlock { left, right: left + 10 }));
        }
        assert_eq!(sent_and_received(&ack).sack, ack.sack);

        ack.timestamps = Some(Timestamps { value: 1, echo: 2 });
        assert_eq!(sent_and_received(&ack).sack.as_slice(), &ack.sack.as_slice()[..3]);
    }

    #[test]
    fn unknown_options_are_skipped_and_wrong_lengths_drop_the_segment() {
        let timestamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let fast_open = [34, 4, 9, 9];
        let parsed = parse_options(&[&fast_open[..], &timestamps].concat(), true).unwrap();
        assert_eq!(parsed.timestamps, Some(Timestamps { value: 1, echo: 2 }));
        assert!(parse_options(&[END_OF_OPTIONS, 8, 0], true).is_some(), "nothing counts behind the end");

        for wrong in [
            &[34, 0][..],
            &[34, 1],
            &[34],
            &[34, 3],
            &[8, 9, 0, 0, 0, 1, 0, 0, 0],
            &[5, 2],
            &[5, 6, 0, 0, 0, 1],
            &[3, 2],
        ] {
            assert!(parse_options(wrong, true).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn syn_options_are_ignored_on_other_segments() {
        let options = [3, 3, 15, NO_OPERATION, 2, 4, 0x05, 0xb4, 4, 2];
        let on_syn = SynOptions { mss: 1460, window_shift: Some(14), sack_permitted: true, scps: None };
        assert_eq!(parse_options(&options, true).unwrap().syn, on_syn);
        assert_eq!(parse_options(&options, false).unwrap().syn, SynOptions::default());
    }

    fn sent_and_received(segment: &Segment<Virtual>) -> Segment<Virtual> {
        let mut bytes = Vec::new();
        segment.encode(&Envelope::simulated(0), &mut bytes).unwrap();
        Segment::decode(bytes.into()).unwrap().packet
    }
}
