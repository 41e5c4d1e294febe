//! The content of a simulated fragment: a count of bytes of a packet.

use crate::payload::Payload;

/// A number of bytes of a packet in a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// The packet's slot.
    pub(super) packet: u32,
    /// Generation of the slot, which tells the packets apart that were in it.
    pub(super) generation: u32,
    pub(super) bytes: u32,
}

impl Payload for Piece {
    const HAS_CONTENT: bool = false;

    fn len(&self) -> usize {
        self.bytes as usize
    }

    fn split_to(&mut self, n: usize) -> Self {
        let n = u32::try_from(n).expect("no packet is as long");
        assert!(n <= self.bytes, "{n} of {} bytes", self.bytes);
        self.bytes -= n;
        Piece { bytes: n, ..*self }
    }

    fn try_join(&mut self, next: Self) -> Result<(), Self> {
        Err(next)
    }

    fn as_bytes(&self) -> &[u8] {
        &[]
    }

    fn with_content(len: usize, _content: impl FnOnce() -> Vec<u8>) -> Self {
        Piece { bytes: u32::try_from(len).expect("no packet is as long"), ..Piece::default() }
    }
}
