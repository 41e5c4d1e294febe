//! Packets between the ends of a bundle of paths ([`crate::paths`]), which are sealed before they are sent.
//!
//! ```text
//! | path 8 | from 16 | to 16 | number 24 | sent 24 | frames ...
//!
//! |0|L|F|P|S|class 3| lane 4, sequence 20 | (offset 16 if not whole) | (length 16 unless S) | payload      data
//! |1 0 0 0 0 0 0 0|  path 8 | largest 24 | received 24 | held 24 | n 8 | n counts of 1 or 2 bytes          acknowledgement
//! |1 0 0 0 0 0 0 1|  padding 16 | zeros                                                                   probe
//! |1 0 0 0 0 0 1 0|  ticks 24                                                                             hold
//! |1 0 0 0 0 0 1 1|  path 8                                                                               close
//! ```
//!
//! L: the last piece of a packet; F: the first one; S: the payload extends to the end. P is 0. A count below 128 has one byte, a
//! larger one two, with the highest bit set.

use bytes::{Buf, Bytes};

use super::Writer;
use crate::paths::{Acknowledgement, Data, Frame, LANES, MOST_PATHS, Packet, Ranges, Stamp, Ticks};

const LAST: u8 = 0x40;
const FIRST: u8 = 0x20;
const RESERVED: u8 = 0x10;
const TO_END: u8 = 0x08;
const ACKNOWLEDGEMENT: u8 = 0x80;
const PROBE: u8 = 0x81;
const HOLD: u8 = 0x82;
const CLOSE: u8 = 0x83;

/// Most counts of an acknowledgement.
pub const MOST_COUNTS: usize = 127;

/// Most frames of a packet.
const MOST_FRAMES: usize = 64;

/// Appends a packet, and returns its length in bytes.
pub fn encode_into(packet: &Packet<Bytes>, out: &mut Vec<u8>) -> usize {
    let (start, bytes) = (out.len(), packet.wire_bytes());
    out.resize(start + bytes, 0);
    let written = write(packet, &mut Writer::new(&mut out[start..]));
    debug_assert_eq!(written, bytes);
    bytes
}

/// Writes a packet to the start of a buffer and returns its length in bytes, which may be more than there is room for.
pub fn encode_to(packet: &Packet<Bytes>, out: &mut [u8]) -> usize {
    write(packet, &mut Writer::new(out))
}

fn write(packet: &Packet<Bytes>, out: &mut Writer<'_>) -> usize {
    out.extend([packet.path]);
    out.extend(packet.from.to_be_bytes());
    out.extend(packet.to.to_be_bytes());
    out.extend(three(packet.number));
    out.extend(three(packet.sent.0));
    for (at, frame) in packet.frames.iter().enumerate() {
        match frame {
            Frame::Data(data) => write_data(data, at + 1 == packet.frames.len(), out),
            Frame::Acknowledgement(acknowledgement) => write_acknowledgement(acknowledgement, out),
            Frame::Probe { padding } => {
                out.extend([PROBE]);
                out.extend(padding.to_be_bytes());
                out.zeros_to(out.position() + usize::from(*padding));
            }
            Frame::Hold(ticks) => {
                out.extend([HOLD]);
                out.extend(three(ticks.0));
            }
            Frame::Close { path } => out.extend([CLOSE, *path]),
        }
    }
    out.position()
}

fn three(number: u32) -> [u8; 3] {
    let [_, a, b, c] = number.to_be_bytes();
    [a, b, c]
}

fn write_data(data: &Data<Bytes>, is_to_end: bool, out: &mut Writer<'_>) {
    let flag = |flag, is_set| if is_set { flag } else { 0 };
    out.extend([flag(LAST, data.is_last) | flag(FIRST, data.offset == 0) | flag(TO_END, is_to_end) | data.class & 7]);
    out.extend(three(u32::from(data.lane) << 20 | data.sequence & 0xf_ffff));
    if !data.is_whole() {
        out.extend(data.offset.to_be_bytes());
    }
    if !is_to_end {
        out.extend((data.payload.len() as u16).to_be_bytes());
    }
    out.extend(&data.payload);
}

fn write_acknowledgement(acknowledgement: &Acknowledgement, out: &mut Writer<'_>) {
    out.extend([ACKNOWLEDGEMENT, acknowledgement.path]);
    out.extend(three(acknowledgement.largest));
    out.extend(three(acknowledgement.received.0));
    out.extend(three(acknowledgement.held.0));
    out.extend([acknowledgement.ranges.0.len() as u8]);
    for &count in &acknowledgement.ranges.0 {
        if count < 0x80 {
            out.extend([count as u8]);
        } else {
            out.extend((0x8000 | count).to_be_bytes());
        }
    }
}

/// Decodes a packet; `None` if it is malformed. Never panics. Payloads are slices of `bytes`.
pub fn decode(mut bytes: Bytes) -> Option<Packet<Bytes>> {
    let path = path(&mut bytes)?;
    let (from, to) = (bytes.try_get_u16().ok()?, bytes.try_get_u16().ok()?);
    let (number, sent) = (take_three(&mut bytes)?, Stamp(take_three(&mut bytes)?));
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        if frames.len() == MOST_FRAMES {
            return None;
        }
        frames.push(frame(&mut bytes)?);
    }
    (from != 0).then_some(Packet { path, from, to, number, sent, frames })
}

fn path(bytes: &mut Bytes) -> Option<u8> {
    bytes.try_get_u8().ok().filter(|&path| usize::from(path) < MOST_PATHS)
}

fn take_three(bytes: &mut Bytes) -> Option<u32> {
    (bytes.len() >= 3).then(|| u32::try_from(bytes.get_uint(3)).expect("24 bits"))
}

fn frame(bytes: &mut Bytes) -> Option<Frame<Bytes>> {
    let kind = bytes.try_get_u8().ok()?;
    match kind {
        ACKNOWLEDGEMENT => acknowledgement(bytes).map(Frame::Acknowledgement),
        PROBE => {
            let padding = bytes.try_get_u16().ok()?;
            let zeros = (bytes.len() >= usize::from(padding)).then(|| bytes.split_to(usize::from(padding)))?;
            zeros.iter().all(|&byte| byte == 0).then_some(Frame::Probe { padding })
        }
        HOLD => take_three(bytes).map(|ticks| Frame::Hold(Ticks(ticks))),
        CLOSE => path(bytes).map(|path| Frame::Close { path }),
        _ if kind & (ACKNOWLEDGEMENT | RESERVED) == 0 => data(kind, bytes).map(Frame::Data),
        _ => None,
    }
}

fn acknowledgement(bytes: &mut Bytes) -> Option<Acknowledgement> {
    let path = path(bytes)?;
    let (largest, received, held) = (take_three(bytes)?, Stamp(take_three(bytes)?), Ticks(take_three(bytes)?));
    let counts = usize::from(bytes.try_get_u8().ok()?);
    if counts > MOST_COUNTS || counts > bytes.len() {
        return None;
    }
    let mut ranges = Vec::with_capacity(counts);
    for at in 0..counts {
        let first = bytes.try_get_u8().ok()?;
        let is_short = first < 0x80;
        let count =
            if is_short { u16::from(first) } else { u16::from_be_bytes([first & 0x7f, bytes.try_get_u8().ok()?]) };
        if (at > 0 && count == 0) || is_short != (count < 0x80) {
            return None;
        }
        ranges.push(count);
    }
    Some(Acknowledgement { path, largest, received, held, ranges: Ranges(ranges) })
}

fn data(kind: u8, bytes: &mut Bytes) -> Option<Data<Bytes>> {
    let place = take_three(bytes)?;
    let is_whole = kind & (FIRST | LAST) == FIRST | LAST;
    let offset = if is_whole { 0 } else { bytes.try_get_u16().ok()? };
    if (offset == 0) != (kind & FIRST != 0) {
        return None;
    }
    let length = if kind & TO_END != 0 { bytes.len() } else { usize::from(bytes.try_get_u16().ok()?) };
    let payload = (bytes.len() >= length).then(|| bytes.split_to(length))?;
    let end = usize::from(offset) + payload.len();
    let lane = (place >> 20) as u8;
    (lane < LANES && end <= usize::from(u16::MAX) && !payload.is_empty()).then_some(Data {
        class: kind & 7,
        lane,
        sequence: place & 0xf_ffff,
        offset,
        is_last: kind & LAST != 0,
        payload,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame<Bytes>> {
        let three = 0..1u32 << 24;
        let data =
            (0..8u8, 0..LANES, 0..1u32 << 20, 0..3000u16, any::<bool>(), prop::collection::vec(any::<u8>(), 1..50));
        prop_oneof![
            data.prop_map(|(class, lane, sequence, offset, is_last, payload)| {
                let payload = payload.into();
                Frame::Data(Data { class, lane, sequence, offset, is_last, payload })
            }),
            (0..16u8, three.clone(), three.clone(), three.clone(), prop::collection::vec(1..0x7fffu16, 0..20))
                .prop_map(|(path, largest, received, held, ranges)| Frame::Acknowledgement(Acknowledgement {
                    path,
                    largest,
                    received: Stamp(received),
                    held: Ticks(held),
                    ranges: Ranges(ranges),
                })),
            (0..300u16).prop_map(|padding| Frame::Probe { padding }),
            three.prop_map(|ticks| Frame::Hold(Ticks(ticks))),
            (0..16u8).prop_map(|path| Frame::Close { path }),
        ]
    }

    proptest! {
        #[test]
        fn packets_round_trip(
            path in 0..16u8, from in 1..u16::MAX, to: u16, number in 0..1u32 << 24, sent in 0..1u32 << 24,
            frames in prop::collection::vec(frames(), 0..5),
        ) {
            let packet = Packet { path, from, to, number, sent: Stamp(sent), frames };
            let mut bytes = Vec::new();
            prop_assert_eq!(encode_into(&packet, &mut bytes), packet.wire_bytes());
            prop_assert_eq!(bytes.len(), packet.wire_bytes());
            prop_assert_eq!(decode(bytes.into()), Some(packet));
        }

        #[test]
        fn what_decodes_is_encoded_to_an_equal_packet(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(packet) = decode(bytes.into()) {
                let mut again = Vec::new();
                encode_into(&packet, &mut again);
                prop_assert_eq!(decode(again.into()), Some(packet));
            }
        }
    }

    #[test]
    fn a_small_packet_has_fifteen_bytes_of_header() {
        let payload = Bytes::from_static(b"x");
        let data = Data { class: 2, lane: 5, sequence: 0x12345, offset: 0, is_last: true, payload };
        let packet = Packet {
            path: 3,
            from: 0x0102,
            to: 0x0304,
            number: 0x050607,
            sent: Stamp(0x08090a),
            frames: vec![Frame::Data(data)],
        };
        let mut bytes = Vec::new();
        assert_eq!(encode_into(&packet, &mut bytes), 16);
        assert_eq!(bytes, [3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x6a, 0x51, 0x23, 0x45, b'x']);
    }
}
