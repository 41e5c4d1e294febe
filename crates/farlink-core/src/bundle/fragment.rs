//! Fragments of packets and their sequence numbers.

use crate::payload::Payload;

/// A packet or a part of one, as sent over one member of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragment<D> {
    /// Sequence number, reduced to the bits of the header.
    pub number: u32,
    /// Whether it is the first fragment of a packet.
    pub is_beginning: bool,
    /// Whether it is the last fragment of a packet.
    pub is_end: bool,
    /// The part of the packet that it carries.
    pub payload: D,
}

/// Which of the two headers fragments have (RFC 1990, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Numbers of 24 bits in 4 bytes, the default of RFC 1990.
    #[default]
    Long,
    /// Numbers of 12 bits in 2 bytes, used if the peer asked for them.
    Short,
}

impl Numbering {
    /// Length of the header, in bytes.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Numbering::Long => 4,
            Numbering::Short => 2,
        }
    }

    /// How many numbers there are before they wrap.
    pub const fn round(self) -> u64 {
        match self {
            Numbering::Long => 1 << 24,
            Numbering::Short => 1 << 12,
        }
    }

    /// The sequence number in the header for a count of fragments.
    pub const fn number(self, count: u64) -> u32 {
        (count % self.round()) as u32
    }

    /// The count with this sequence number that is nearest to `expected`; `None` if that would be before the first fragment.
    pub const fn count_near(self, expected: u64, number: u32) -> Option<u64> {
        let (round, half) = (self.round(), self.round() / 2);
        let ahead = (number as u64 % round + round - expected % round) % round;
        if ahead < half { Some(expected + ahead) } else { (expected + ahead).checked_sub(round) }
    }
}

/// Cuts packets into numbered fragments.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    numbering: Numbering,
    /// Number of fragments made so far.
    count: u64,
}

impl Splitter {
    /// A splitter whose first fragment has the number 0 (RFC 1990, section 3).
    pub fn new(numbering: Numbering) -> Self {
        Splitter { numbering, count: 0 }
    }

    /// Cuts the next fragment off a packet: its first `bytes` bytes, or all that is left if that is less.
    ///
    /// `is_beginning` marks the first fragment of the packet. The rest stays in `packet`, which is empty after the last fragment.
    pub fn cut<D: Payload>(&mut self, packet: &mut D, bytes: usize, is_beginning: bool) -> Fragment<D> {
        let payload = packet.split_to(bytes.min(packet.len()));
        let number = self.numbering.number(self.count);
        self.count += 1;
        Fragment { number, is_beginning, is_end: packet.is_empty(), payload }
    }

    /// Number of fragments made so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    #[test]
    fn wrapped_numbers_are_unwrapped() {
        for numbering in [Numbering::Long, Numbering::Short] {
            let round = numbering.round();
            for expected in [0, 1, round / 2, round - 1, round, 5 * round + 3] {
                for ahead in [0, 1, round / 2 - 1] {
                    let number = numbering.number(expected + ahead);
                    assert_eq!(numbering.count_near(expected, number), Some(expected + ahead));
                }
                for behind in [1, round / 2] {
                    let count = expected.checked_sub(behind);
                    let number = numbering.number((expected + round - behind) % round);
                    assert_eq!(numbering.count_near(expected, number), count, "{numbering:?} {expected} - {behind}");
                }
            }
        }
    }

    #[test]
    fn fragments_of_a_packet_follow_each_other() {
        let mut splitter = Splitter::new(Numbering::Short);
        let mut packet = Virtual(1000);
        let first = splitter.cut(&mut packet, 600, true);
        let last = splitter.cut(&mut packet, 600, false);
        assert_eq!(first, Fragment { number: 0, is_beginning: true, is_end: false, payload: Virtual(600) });
        assert_eq!(last, Fragment { number: 1, is_beginning: false, is_end: true, payload: Virtual(400) });
        let whole = splitter.cut(&mut Virtual(40), 1500, true);
        assert_eq!(whole, Fragment { number: 2, is_beginning: true, is_end: true, payload: Virtual(40) });
    }
}
