//! A part of a packet that remembers which packet it is a part of.

use crate::payload::Payload;

/// A part of a packet on its way through a bundle.
///
/// It tells the sender which packets lose data when a line goes down. Only the payload is sent, so a receiver on a wire
/// reassembles payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece<D> {
    /// The packet's slot in the sender.
    pub(super) packet: u32,
    /// Generation of the slot, which distinguishes the packets that used it.
    pub(super) generation: u32,
    /// The part itself.
    pub payload: D,
}

impl<D: Payload> Piece<D> {
    pub(super) fn bytes(&self) -> u32 {
        u32::try_from(self.payload.len()).expect("no packet is as long")
    }
}

impl<D: Payload> Payload for Piece<D> {
    const HAS_CONTENT: bool = D::HAS_CONTENT;

    fn len(&self) -> usize {
        self.payload.len()
    }

    fn split_to(&mut self, n: usize) -> Self {
        Piece { payload: self.payload.split_to(n), ..*self }
    }

    fn try_join(&mut self, next: Self) -> Result<(), Self> {
        Err(next)
    }

    fn as_bytes(&self) -> &[u8] {
        self.payload.as_bytes()
    }

    fn with_content(len: usize, content: impl FnOnce() -> Vec<u8>) -> Self {
        Piece { payload: D::with_content(len, content), ..Piece::default() }
    }
}
