//! The header with its optional fields.

use farlink_fec::crc::crc_16_ibm_3740;

use crate::endpoint::Ecn;
use crate::payload::Payload;
use crate::protocol::aerotp::{Flags, Mode, Repair, Segment};
use crate::wire::Writer;

use super::{Form, Outside, Refusal};

/// The version of the layout.
const VERSION: u8 = 1;
const SEALED: u8 = 0x20;
/// Length before the optional fields, and of the tag and the check after them.
const FIXED_BYTES: usize = 16;
const TAG_BYTES: usize = 2;
const HEC_BYTES: usize = 2;
/// Largest number of parity words. `[F1]`
pub(super) const MOST_WORDS: u16 = 256;
const MOST_CLASS: u8 = 7;

/// Types of extended fields.
mod extended {
    /// One byte, without length.
    pub(super) const PADDING: u8 = 0;
    /// Class of service (1).
    pub(super) const CLASS: u8 = 1;
    /// The sequence number at which the stream continues after data that its sender gave up (4).
    pub(super) const FORWARD: u8 = 2;
    /// In a MACK: bytes skipped so far (4).
    pub(super) const SKIPPED: u8 = 3;
    /// In a MACK: by how long segments were overtaken, in ticks (4).
    pub(super) const OVERTAKEN: u8 = 4;
    /// Without MACK: bytes of MACKs in a second (4).
    pub(super) const MACK_RATE: u8 = 5;
    /// Fields that are numbers.
    pub(super) const NUMBERS: [u8; 4] = [FORWARD, SKIPPED, OVERTAKEN, MACK_RATE];
    /// A receiver that does not know a type with this bit drops the segment; other unknown types are skipped. `[L6]`
    pub(super) const CRITICAL: u8 = 0x80;
}

/// Fields that a segment inside a seal leaves to the seal. `[O16]`
const LEFT_TO_THE_SEAL: Flags = Flags::FEC.with(Flags::CRC);

/// The flags of a segment, including those that its fields imply. With parity there is always a check, because without one a
/// receiver cannot tell whether decoding succeeded.
pub(super) fn flags<D>(segment: &Segment<D>, form: Form) -> Flags {
    let has_fec = segment.fec_words > 0;
    let implied = [
        (segment.mack.is_some(), Flags::MACK),
        (segment.repair.is_some(), Flags::REPAIR),
        (has_fec, Flags::FEC.with(Flags::CRC)),
        (segment.extended_bytes() > 0, Flags::EXTENDED),
    ];
    let bare = Flags(segment.flags.0 & !(Flags::MACK.0 | Flags::REPAIR.0 | Flags::FEC.0 | Flags::EXTENDED.0));
    let all = implied.into_iter().filter(|(is_set, _)| *is_set).fold(bare, |flags, (_, flag)| flags.with(flag));
    match form {
        Form::Plain => all,
        Form::Sealed => Flags(all.0 & !LEFT_TO_THE_SEAL.0),
        Form::Clear => Flags(all.0 & !Flags::FEC.0).with(Flags::CRC),
    }
}

/// Length of the header.
pub(super) fn bytes<D>(segment: &Segment<D>, form: Form) -> usize {
    let flags = flags(segment, form);
    let optional = [(Flags::ASYN, 4), (Flags::FEC, 4), (Flags::REPAIR, 16)];
    let optional: usize = optional.into_iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, bytes)| bytes).sum();
    let check = if form == Form::Sealed { 0 } else { HEC_BYTES };
    FIXED_BYTES + optional + usize::from(segment.extended_bytes()) + TAG_BYTES + check
}

/// Length of the payload, or of the list of a MACK.
pub(super) fn body_bytes<D: Payload>(segment: &Segment<D>) -> usize {
    segment.mack.as_ref().map_or_else(|| segment.payload.len(), |mack| mack.body_bytes(segment.sequence) as usize)
}

pub(super) fn write<D: Payload>(segment: &Segment<D>, form: Form, outside: &Outside, out: &mut Writer<'_>) {
    let start = out.position();
    out.extend(outside.source.to_be_bytes());
    out.extend(outside.destination.to_be_bytes());
    out.extend(segment.sequence.to_be_bytes());
    out.extend(segment.timestamp.to_be_bytes());
    let flags = flags(segment, form);
    let sealed = if form == Form::Sealed { SEALED } else { 0 };
    out.extend([VERSION << 6 | sealed | segment.mode.number() << 2 | ecn_number(outside.ecn), flags.0]);
    out.extend(u16::try_from(body_bytes(segment)).unwrap_or(0).to_be_bytes());
    if flags.has(Flags::ASYN) {
        out.extend(segment.opening.to_be_bytes());
    }
    if flags.has(Flags::FEC) {
        out.extend(segment.fec_words.to_be_bytes());
        out.extend([0, 0]);
    }
    if let Some(Repair { start, bytes, symbol_bytes, symbols, index }) = segment.repair {
        out.extend(start.to_be_bytes());
        out.extend(bytes.to_be_bytes());
        out.extend(symbol_bytes.to_be_bytes());
        out.extend(symbols.to_be_bytes());
        out.extend(index.to_be_bytes());
    }
    if flags.has(Flags::EXTENDED) {
        write_extended(segment, out);
    }
    out.extend(segment.tag.to_be_bytes());
    if form != Form::Sealed {
        let check = crc_16_ibm_3740(out.since(start));
        out.extend(check.to_be_bytes());
    }
}

fn write_extended<D>(segment: &Segment<D>, out: &mut Writer<'_>) {
    let end = out.position() + usize::from(segment.extended_bytes());
    out.extend([(segment.extended_bytes() / 4) as u8]);
    if segment.class > 0 {
        out.extend([extended::CLASS, 1, segment.class]);
    }
    for (kind, value) in extended::NUMBERS.into_iter().zip(segment.extended_numbers()) {
        if let Some(value) = value {
            out.extend([kind, 4]);
            out.extend(value.to_be_bytes());
        }
    }
    out.zeros_to(end); // padding
}

/// The segment without the content after the header; the other header fields; length of the payload; and the bytes after the
/// header.
type Headed<'a, D> = (Segment<D>, Outside, usize, &'a [u8]);

/// Reads a header.
pub(super) fn read<D: Payload>(bytes: &[u8], form: Form) -> Result<Headed<'_, D>, Refusal> {
    let mut fields = Fields(bytes);
    let mut outside = Outside { source: fields.short()?, destination: fields.short()?, ecn: Ecn::NotCapable };
    let mut segment = Segment { sequence: fields.word()?, timestamp: fields.word()?, ..Segment::default() };
    let kind = fields.byte()?;
    // The layout of another version is unknown, and neither form is taken for the other. `[L2]`, `[L3]`, `[O17]`
    if kind >> 6 != VERSION {
        return Err(Refusal::Version);
    }
    match (form, kind & SEALED != 0) {
        (Form::Plain | Form::Clear, true) => return Err(Refusal::Sealed),
        (Form::Sealed, false) => return Err(Refusal::Plain),
        _ => {}
    }
    segment.flags = Flags(fields.byte()?);
    let is_of_form = match form {
        Form::Plain => true,
        Form::Sealed => !segment.flags.has(LEFT_TO_THE_SEAL),
        Form::Clear => segment.flags.has(Flags::CRC) && !segment.flags.has(Flags::FEC),
    };
    if !is_of_form {
        return Err(Refusal::Field);
    }
    let body_bytes = usize::from(fields.short()?);
    if segment.flags.has(Flags::ASYN) {
        segment.opening = fields.word()?;
    }
    if segment.flags.has(Flags::FEC) {
        segment.fec_words = fields.short()?;
        fields.short()?;
    }
    if segment.flags.has(Flags::REPAIR) {
        segment.repair = Some(Repair {
            start: fields.word()?,
            bytes: fields.word()?,
            symbol_bytes: fields.short()?,
            symbols: fields.short()?,
            index: fields.word()?,
        });
    }
    let more = if segment.flags.has(Flags::EXTENDED) { fields.extended()? } else { &[] };
    segment.tag = fields.short()?;
    let checked = bytes.len() - fields.0.len();
    if form != Form::Sealed && crc_16_ibm_3740(&bytes[..checked]) != fields.short()? {
        return Err(Refusal::Check);
    }
    // From here on, the header is known to be intact. `[L11]`, `[B2]`
    segment.header_bytes = (bytes.len() - fields.0.len()) as u16;
    segment.mode = Mode::from_number(kind >> 2 & 7).ok_or(Refusal::Field)?;
    outside.ecn = ecn_of(kind & 3);
    // Flags only say which fields are present; the fields themselves count. `[L5]`
    let has_fec = segment.flags.has(Flags::FEC);
    if segment.fec_words > MOST_WORDS || (has_fec && segment.fec_words == 0) {
        return Err(Refusal::Field);
    }
    read_extended(&mut segment, more)?;
    Ok((segment, outside, body_bytes, fields.0))
}

fn read_extended<D>(segment: &mut Segment<D>, mut bytes: &[u8]) -> Result<(), Refusal> {
    while let Some((&kind, rest)) = bytes.split_first() {
        if kind == extended::PADDING {
            bytes = rest;
            continue;
        }
        let (&length, rest) = rest.split_first().ok_or(Refusal::Field)?;
        let (value, rest) = rest.split_at_checked(usize::from(length)).ok_or(Refusal::Field)?;
        bytes = rest;
        match (kind, value) {
            (extended::CLASS, &[class]) if class <= MOST_CLASS => segment.class = class,
            (extended::FORWARD, &[a, b, c, d]) => segment.forward = Some(u32::from_be_bytes([a, b, c, d])),
            (extended::SKIPPED, &[a, b, c, d]) => segment.skipped = Some(u32::from_be_bytes([a, b, c, d])),
            (extended::OVERTAKEN, &[a, b, c, d]) => segment.overtaken_by = Some(u32::from_be_bytes([a, b, c, d])),
            (extended::MACK_RATE, &[a, b, c, d]) => segment.mack_bytes_per_s = Some(u32::from_be_bytes([a, b, c, d])),
            (extended::CLASS..=extended::MACK_RATE, _) => {
                return Err(Refusal::Field);
            }
            _ if kind & extended::CRITICAL != 0 => return Err(Refusal::UnknownField),
            _ => {}
        }
    }
    Ok(())
}

/// The two bits of RFC 3168, section 5.
fn ecn_number(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0b00,
        Ecn::Capable1 => 0b01,
        Ecn::Capable0 => 0b10,
        Ecn::Congestion => 0b11,
    }
}

fn ecn_of(number: u8) -> Ecn {
    match number & 0b11 {
        0b00 => Ecn::NotCapable,
        0b01 => Ecn::Capable1,
        0b10 => Ecn::Capable0,
        _ => Ecn::Congestion,
    }
}

/// Reads fields from the start of a header.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Refusal::Length)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Refusal> {
        self.take().map(u8::from_be_bytes)
    }

    pub(super) fn short(&mut self) -> Result<u16, Refusal> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn word(&mut self) -> Result<u32, Refusal> {
        self.take().map(u32::from_be_bytes)
    }

    /// The extended fields, which begin with the number of their words.
    fn extended(&mut self) -> Result<&'a [u8], Refusal> {
        let words = usize::from(*self.0.first().ok_or(Refusal::Length)?);
        let (all, rest) = self.0.split_at_checked(4 * words).ok_or(Refusal::Length)?;
        self.0 = rest;
        all.get(1..).ok_or(Refusal::Field)
    }
}
