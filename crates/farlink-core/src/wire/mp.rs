//! The multilink header of PPP (RFC 1990, section 3), which follows protocol number 0x3d.
//!
//! ```text
//! |B|E|0|0|0|0|0|0|  sequence number, 24 bits                    |   long
//! |B|E|0|0|  sequence number, 12 bits     |                          short
//! ```
//!
//! The rest of the frame is a fragment of the packet; the first fragment begins with the packet's own protocol number.

use bytes::Bytes;

use crate::bundle::{Fragment, Numbering};

use super::WirePayload;

/// The protocol number of PPP Multilink.
pub const PROTOCOL: u16 = 0x003d;

const BEGINNING: u32 = 0b10;
const END: u32 = 0b01;

/// Appends a fragment: its header and its part of the packet.
pub fn encode<D: WirePayload>(fragment: &Fragment<D>, numbering: Numbering, out: &mut Vec<u8>) {
    let flags = if fragment.is_beginning { BEGINNING } else { 0 } | if fragment.is_end { END } else { 0 };
    let number = numbering.number(u64::from(fragment.number));
    match numbering {
        Numbering::Long => out.extend((flags << 30 | number).to_be_bytes()),
        Numbering::Short => out.extend(((flags << 14 | number) as u16).to_be_bytes()),
    }
    out.extend_from_slice(fragment.payload.content().unwrap_or_default());
}

/// Decodes the fragment in the information field of a frame; `None` if it is shorter than its header, or sets bits that have to
/// be zero.
pub fn decode<D: WirePayload>(bytes: &Bytes, numbering: Numbering) -> Option<Fragment<D>> {
    let (flags, number, payload) = match numbering {
        Numbering::Long => {
            let (header, payload) = bytes.split_first_chunk()?;
            let header = u32::from_be_bytes(*header);
            (header >> 30, header & 0x3fff_ffff, payload)
        }
        Numbering::Short => {
            let (header, payload) = bytes.split_first_chunk()?;
            let header = u32::from(u16::from_be_bytes(*header));
            (header >> 14, header & 0x3fff, payload)
        }
    };
    (u64::from(number) < numbering.round()).then(|| Fragment {
        number,
        is_beginning: flags & BEGINNING != 0,
        is_end: flags & END != 0,
        payload: D::from_wire(bytes.slice_ref(payload)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_match_the_rfc() {
        let fragment =
            Fragment { number: 0x12_3456, is_beginning: true, is_end: false, payload: vec![0x21, 0x45, 0x00] };
        let mut long = Vec::new();
        encode(&fragment, Numbering::Long, &mut long);
        assert_eq!(long, [0x80, 0x12, 0x34, 0x56, 0x21, 0x45, 0x00]);
        assert_eq!(decode(&Bytes::from(long), Numbering::Long), Some(fragment.clone()));

        let fragment = Fragment { number: 0x456, is_beginning: false, is_end: true, ..fragment };
        let mut short = Vec::new();
        encode(&fragment, Numbering::Short, &mut short);
        assert_eq!(short, [0x44, 0x56, 0x21, 0x45, 0x00]);
        assert_eq!(decode(&Bytes::from(short), Numbering::Short), Some(fragment));
    }

    #[test]
    fn short_frames_and_reserved_bits_are_refused() {
        for bytes in [&[][..], &[0x80], &[0xc0, 0, 1], &[0xc1, 0, 0, 1]] {
            assert_eq!(decode::<Vec<u8>>(&Bytes::from_static(bytes), Numbering::Long), None, "{bytes:x?}");
        }
        for bytes in [&[][..], &[0xc0], &[0xd0, 1]] {
            assert_eq!(decode::<Vec<u8>>(&Bytes::from_static(bytes), Numbering::Short), None, "{bytes:x?}");
        }
    }
}
