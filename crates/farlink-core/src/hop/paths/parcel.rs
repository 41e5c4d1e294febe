//! A packet without bytes in a bundle of paths, and what becomes of it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::payload::Payload;

/// The slots of packets of which no copy is left.
#[derive(Clone, Debug, Default)]
pub(super) struct Gone(Arc<Mutex<Vec<u32>>>);

impl Gone {
    /// Moves them to `slots`.
    pub(super) fn take(&self, slots: &mut Vec<u32>) {
        slots.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// State that all copies and pieces of a packet share; its end is the packet's.
#[derive(Debug)]
struct Origin {
    slot: u32,
    gone: Gone,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.gone.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}

/// A packet, or a piece of one: a length, and whose it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Parcel {
    origin: Option<Arc<Origin>>,
    bytes: u32,
}

impl Parcel {
    pub(super) fn new(slot: u32, bytes: u32, gone: &Gone) -> Self {
        Parcel { origin: Some(Arc::new(Origin { slot, gone: gone.clone() })), bytes }
    }

    /// The slot of its packet.
    pub(super) fn slot(&self) -> Option<u32> {
        self.origin.as_ref().map(|origin| origin.slot)
    }
}

impl Payload for Parcel {
    fn len(&self) -> usize {
        self.bytes as usize
    }

    fn split_to(&mut self, n: usize) -> Self {
        let taken =
            u32::try_from(n).ok().filter(|&n| n <= self.bytes).expect("cannot split beyond the payload's length");
        self.bytes -= taken;
        Parcel { origin: self.origin.clone(), bytes: taken }
    }

    fn try_join(&mut self, next: Self) -> Result<(), Self> {
        match self.bytes.checked_add(next.bytes) {
            Some(sum) if self.slot() == next.slot() => {
                self.bytes = sum;
                Ok(())
            }
            _ => Err(next),
        }
    }

    const HAS_CONTENT: bool = false;

    fn as_bytes(&self) -> &[u8] {
        &[]
    }

    fn with_content(len: usize, _content: impl FnOnce() -> Vec<u8>) -> Self {
        Parcel { origin: None, bytes: u32::try_from(len).expect("no payload is that long") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_gone_with_its_last_piece() {
        let (gone, mut slots) = (Gone::default(), Vec::new());
        let mut whole = Parcel::new(7, 1000, &gone);
        let copy = whole.clone();
        let mut piece = whole.split_to(300);
        assert_eq!((piece.len(), whole.len()), (300, 700));
        assert!(piece.try_join(whole).is_ok());
        assert_eq!(piece.len(), 1000);
        assert!(piece.try_join(Parcel::new(8, 1, &gone)).is_err());
        drop(piece);
        gone.take(&mut slots);
        assert_eq!(slots, [8]);
        drop(copy);
        gone.take(&mut slots);
        assert_eq!(slots, [8, 7]);
    }
}
