//! Framing of bytes on an asynchronous line (RFC 1662): flags, escapes, and the frame check sequence of 16 bits.

use bytes::Bytes;
use crc::{CRC_16_IBM_SDLC, Crc, Table};

/// Between frames (RFC 1662, section 3.1).
const FLAG: u8 = 0x7e;
/// Before a byte whose bit 5 is inverted (RFC 1662, section 4.2).
const ESCAPE: u8 = 0x7d;
const INVERTED: u8 = 0x20;
/// Ends a frame so that the receiver drops it (RFC 1662, section 4.3).
pub(super) const ABORT: [u8; 2] = [ESCAPE, FLAG];

/// A protocol field of one byte, one byte of information, and the check (RFC 1662, section 4.3, with both compressions).
const SHORTEST: usize = 4;

/// Length of the frame check sequence.
pub(super) const CHECK_BYTES: usize = 2;

static FCS_16: Crc<u16, Table<1>> = Crc::<u16, Table<1>>::new(&CRC_16_IBM_SDLC);

/// Which of the 32 control characters are escaped on the way to a receiver: the Async-Control-Character-Map (RFC 1662, section 7.1).
/// Bit n stands for character n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accm(pub u32);

impl Accm {
    /// All of them, as before any negotiation.
    pub const ALL: Accm = Accm(u32::MAX);
    /// None: the line carries all bytes.
    pub const NONE: Accm = Accm(0);

    /// Whether a byte is a control character of the map.
    pub const fn has(self, byte: u8) -> bool {
        byte < 32 && self.0 >> byte & 1 == 1
    }
}

/// Appends a frame in its flags: `content` from the address or protocol field on, escaped, with its check.
pub fn encode(content: &[u8], map: Accm, out: &mut Vec<u8>) {
    let check = FCS_16.checksum(content).to_le_bytes();
    out.push(FLAG);
    for &byte in content.iter().chain(&check) {
        if byte == FLAG || byte == ESCAPE || map.has(byte) {
            out.extend([ESCAPE, byte ^ INVERTED]);
        } else {
            out.push(byte);
        }
    }
    out.push(FLAG);
}

/// Counts of a [`Decoder`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Frames with a good check.
    pub frames: u64,
    /// Frames with a wrong check.
    pub damaged: u64,
    /// Frames too short for a protocol and a check.
    pub too_short: u64,
    /// Frames longer than the limit.
    pub too_long: u64,
    /// Frames that the sender gave up (RFC 1662, section 4.3: an escape before the flag).
    pub aborted: u64,
}

/// Finds frames in bytes that arrive in any portions. Holds at most one frame, up to its limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decoder {
    frame: Vec<u8>,
    longest: usize,
    /// Control characters of this map that arrive without escape were added on the way, and are removed.
    map: Accm,
    is_escaped: bool,
    is_too_long: bool,
    counts: Counts,
}

impl Decoder {
    /// A decoder of frames with up to `longest` bytes between address and check, without both.
    pub fn new(longest: usize) -> Self {
        Decoder {
            frame: Vec::new(),
            longest: longest + CHECK_BYTES,
            map: Accm::NONE,
            is_escaped: false,
            is_too_long: false,
            counts: Counts::default(),
        }
    }

    /// Sets which control characters are removed.
    pub fn set_map(&mut self, map: Accm) {
        self.map = map;
    }

    /// Counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes bytes off the front of `bytes`, and returns the content of the next frame, from its address or protocol field to the
    /// byte before its check. `None` once `bytes` is empty. Damaged frames are counted and dropped.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<Bytes> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            if byte == FLAG {
                if let Some(frame) = self.end_of_frame() {
                    return Some(frame);
                }
            } else if self.map.has(byte) {
                // Added on the way (RFC 1662, section 4.2).
            } else if byte == ESCAPE && !self.is_escaped {
                self.is_escaped = true;
            } else {
                let inverted = if std::mem::take(&mut self.is_escaped) { INVERTED } else { 0 };
                self.is_too_long |= self.frame.len() >= self.longest;
                if !self.is_too_long {
                    self.frame.push(byte ^ inverted);
                }
            }
        }
        None
    }

    fn end_of_frame(&mut self) -> Option<Bytes> {
        let frame = std::mem::take(&mut self.frame);
        let is_aborted = std::mem::take(&mut self.is_escaped);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        let count = match frame.len() {
            _ if is_aborted => &mut self.counts.aborted,
            _ if is_too_long => &mut self.counts.too_long,
            // One flag may end a frame and begin the next, and flags fill the time between frames.
            0 => return None,
            1..SHORTEST => &mut self.counts.too_short,
            _ => {
                let (content, check) = frame.split_at(frame.len() - CHECK_BYTES);
                if FCS_16.checksum(content).to_le_bytes() == *check {
                    self.counts.frames += 1;
                    let frame = Bytes::from(frame);
                    return Some(frame.slice(..frame.len() - CHECK_BYTES));
                }
                &mut self.counts.damaged
            }
        };
        *count += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(decoder: &mut Decoder, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| decoder.next(&mut bytes)).map(|frame| frame.to_vec()).collect()
    }

    /// The check of "123456789" in the catalogue of parametrised CRCs (CRC-16/IBM-SDLC, also X-25), which RFC 1662 appends lowest byte
    /// first.
    #[test]
    fn the_check_is_that_of_x25() {
        let mut out = Vec::new();
        encode(b"123456789", Accm::NONE, &mut out);
        assert_eq!(out, b"~123456789\x6e\x90~");
    }

    #[test]
    fn flags_escapes_and_mapped_characters_are_escaped() {
        let mut out = Vec::new();
        encode(&[0x7e, 0x7d, 0x11, 0x13, 0x01], Accm(1 << 0x11), &mut out);
        assert_eq!(out[..9], [0x7e, 0x7d, 0x5e, 0x7d, 0x5d, 0x7d, 0x31, 0x13, 0x01]);
    }

    #[test]
    fn what_is_no_frame_is_counted() {
        let mut decoder = Decoder::new(8);
        let mut good = Vec::new();
        encode(b"\xc0\x21good", Accm::ALL, &mut good);
        assert_eq!(decode(&mut decoder, b"OK\r\nCONNECT 9600\r\n"), Vec::<Vec<u8>>::new());
        assert_eq!(decode(&mut decoder, &good), [b"\xc0\x21good"], "a frame begins with a flag that ends garbage");
        assert_eq!(decode(&mut decoder, b"~~~~abcdef~ab~abc\x7d~abcdefghijk~"), Vec::<Vec<u8>>::new());
        let counts = Counts { frames: 1, damaged: 1, too_short: 1, too_long: 2, aborted: 1 };
        assert_eq!(decoder.counts(), counts);
    }

    #[test]
    fn control_characters_added_on_the_way_are_removed() {
        let mut decoder = Decoder::new(100);
        decoder.set_map(Accm(1 << 0x11));
        let mut out = Vec::new();
        encode(&[0xc0, 0x21, 0x11, 0x12], Accm(1 << 0x11), &mut out);
        let noisy: Vec<u8> = out.iter().flat_map(|&byte| [0x11, byte]).collect();
        assert_eq!(decode(&mut decoder, &noisy), [[0xc0, 0x21, 0x11, 0x12]]);
    }

    proptest! {
        #[test]
        fn frames_survive_any_portions(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 2..60), 1..8),
            map in any::<u32>(),
            portion in 1_usize..50,
        ) {
            let mut line = Vec::new();
            frames.iter().for_each(|frame| encode(frame, Accm(map), &mut line));
            let mut decoder = Decoder::new(60);
            decoder.set_map(Accm(map));
            let found: Vec<Vec<u8>> = line.chunks(portion).flat_map(|bytes| decode(&mut decoder, bytes)).collect();
            prop_assert_eq!(found, frames);
        }

        #[test]
        fn any_bytes_are_bounded(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(FLAG), Just(ESCAPE)], 0..2000), map in any::<u32>()) {
            let mut decoder = Decoder::new(100);
            decoder.set_map(Accm(map));
            for portion in bytes.chunks(7) {
                prop_assert!(decode(&mut decoder, portion).iter().all(|frame| frame.len() <= 100));
                prop_assert!(decoder.frame.len() <= 102);
            }
        }
    }
}
