//! Bytes that a fragment takes on the line, with PPP's framing.

use super::fragment::Numbering;

/// PPP in HDLC-like framing (RFC 1662) with the multilink header (RFC 1990).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Framing {
    /// The form of the multilink header.
    pub numbering: Numbering,
    /// Whether the address and control fields are left out (RFC 1661, section 6.6).
    pub compresses_address: bool,
    /// Whether protocol numbers below 256 take one byte (RFC 1661, section 6.5), as those of multilink (0x3d) and IP (0x21) then
    /// do.
    pub compresses_protocol: bool,
    /// Share of the bytes that are escaped, i.e. sent as two bytes, so that none looks like a flag. For random bytes it is 2 in
    /// 256 if control characters need no escape, and 34 in 256 if all of them do.
    pub escaped_share: f64,
}

impl Default for Framing {
    /// The options that two Linux hosts negotiate on a line that carries all bytes: long numbers and both compressions.
    fn default() -> Self {
        Framing {
            numbering: Numbering::Long,
            compresses_address: true,
            compresses_protocol: true,
            escaped_share: 2.0 / 256.0,
        }
    }
}

/// A flag between frames, and the frame check sequence of 16 bits.
const FLAG_BYTES: u32 = 1;
const CHECK_BYTES: u32 = 2;

impl Framing {
    /// Bytes on the line of a fragment with `packet_bytes` bytes of a packet, rounded up: the flag, and the bytes between flags
    /// with their escapes. The first fragment of a packet also carries the packet's protocol field.
    pub fn line_bytes(&self, packet_bytes: u32, is_beginning: bool) -> u32 {
        let between = self.overhead_bytes(is_beginning) - FLAG_BYTES + packet_bytes;
        FLAG_BYTES + libm::ceil(f64::from(between) * (1.0 + self.escaped_share)) as u32
    }

    /// Bytes on the line of a packet without a multilink header.
    pub fn plain_line_bytes(&self, packet_bytes: u32) -> u32 {
        let multilink = if self.compresses_protocol { 1 } else { 2 } + self.numbering.header_bytes();
        let between = self.overhead_bytes(true) - multilink - FLAG_BYTES + packet_bytes;
        FLAG_BYTES + libm::ceil(f64::from(between) * (1.0 + self.escaped_share)) as u32
    }

    /// Bytes of framing and headers, without escapes.
    pub const fn overhead_bytes(&self, is_beginning: bool) -> u32 {
        let address = if self.compresses_address { 0 } else { 2 };
        let protocol = if self.compresses_protocol { 1 } else { 2 };
        let inner = if is_beginning { protocol } else { 0 };
        FLAG_BYTES + address + protocol + self.numbering.header_bytes() + inner + CHECK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_1500_bytes_costs_less_than_one_percent_and_one_of_100_a_tenth() {
        let framing = Framing { escaped_share: 0.0, ..Framing::default() };
        assert_eq!(framing.line_bytes(1500, true), 1500 + 1 + 1 + 4 + 1 + 2);
        assert_eq!(framing.line_bytes(100, false), 100 + 1 + 1 + 4 + 2);
        let plain = Framing { compresses_address: false, compresses_protocol: false, ..framing };
        assert_eq!(plain.line_bytes(100, true), 100 + 1 + 2 + 2 + 4 + 2 + 2);
        let short = Framing { numbering: Numbering::Short, ..framing };
        assert_eq!(short.line_bytes(100, false), 100 + 1 + 1 + 2 + 2);
    }

    #[test]
    fn escapes_lengthen_fragments_by_their_share() {
        let line = Framing { escaped_share: 34.0 / 256.0, ..Framing::default() };
        assert_eq!(line.line_bytes(1500, true), 1 + (1508.0_f64 * (1.0 + 34.0 / 256.0)).ceil() as u32);
    }
}
