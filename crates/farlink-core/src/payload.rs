//! The content of a packet: bytes on the wire, a length in the simulator.

use bytes::{Bytes, BytesMut};

/// Application data, which protocols cut and join.
pub trait Payload: Clone + Default {
    /// Length in bytes.
    fn len(&self) -> usize;

    /// Removes and returns the first `n` bytes.
    ///
    /// # Panics
    /// If `n` is larger than [`Payload::len`].
    fn split_to(&mut self, n: usize) -> Self;

    /// A copy of `n` bytes from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    fn slice(&self, offset: usize, n: usize) -> Self {
        let mut copy = self.clone();
        if offset > 0 {
            copy.split_to(offset);
        }
        copy.split_to(n)
    }

    /// Appends `next` if that needs no copy; returns it otherwise.
    ///
    /// Joining lengths is free, so the simulator has one chunk where the wire has one per segment.
    fn try_join(&mut self, next: Self) -> Result<(), Self>;

    /// Appends a short `next` by copying it, unless this chunk is already long; returns it otherwise. Copying saves an
    /// entry in a queue, which takes much more memory than a few bytes.
    #[inline]
    fn try_copy(&mut self, next: Self) -> Result<(), Self> {
        Err(next)
    }

    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it holds bytes, not only a length.
    const HAS_CONTENT: bool;

    /// The bytes; empty if it has only a length.
    fn as_bytes(&self) -> &[u8];

    /// A payload of `len` bytes; `content` is called only if bytes are needed.
    ///
    /// # Panics
    /// If the length of the content is not `len`.
    fn with_content(len: usize, content: impl FnOnce() -> Vec<u8>) -> Self;
}

/// Data up to this length is copied, to a chunk of at most `LONG_BYTES`.
const SHORT_BYTES: usize = 64;
const LONG_BYTES: usize = 4096;

/// The payload of sockets: copies share the bytes, and cutting costs nothing.
impl Payload for Bytes {
    fn len(&self) -> usize {
        Bytes::len(self)
    }

    fn split_to(&mut self, n: usize) -> Self {
        Bytes::split_to(self, n)
    }

    fn try_join(&mut self, next: Self) -> Result<(), Self> {
        Err(next)
    }

    fn try_copy(&mut self, next: Self) -> Result<(), Self> {
        if next.len() > SHORT_BYTES || self.len() >= LONG_BYTES {
            return Err(next);
        }
        let mut joined = std::mem::take(self).try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        joined.extend_from_slice(&next);
        *self = joined.freeze();
        Ok(())
    }

    const HAS_CONTENT: bool = true;

    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn with_content(len: usize, content: impl FnOnce() -> Vec<u8>) -> Self {
        Vec::with_content(len, content).into()
    }
}

/// A payload without content, for the simulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Virtual(pub u32);

impl Payload for Virtual {
    #[inline]
    fn len(&self) -> usize {
        self.0 as usize
    }

    #[inline]
    fn split_to(&mut self, n: usize) -> Self {
        let taken = u32::try_from(n).ok().filter(|&n| n <= self.0).expect("cannot split beyond the payload's length");
        self.0 -= taken;
        Virtual(taken)
    }

    #[inline]
    fn try_join(&mut self, next: Self) -> Result<(), Self> {
        match self.0.checked_add(next.0) {
            Some(sum) => {
                self.0 = sum;
                Ok(())
            }
            None => Err(next),
        }
    }

    const HAS_CONTENT: bool = false;

    fn as_bytes(&self) -> &[u8] {
        &[]
    }

    fn with_content(len: usize, _content: impl FnOnce() -> Vec<u8>) -> Self {
        Virtual(u32::try_from(len).expect("no payload is that long"))
    }
}

impl Payload for Vec<u8> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn split_to(&mut self, n: usize) -> Self {
        let tail = self.split_off(n);
        std::mem::replace(self, tail)
    }

    /// Copies only these bytes.
    fn slice(&self, offset: usize, n: usize) -> Self {
        self[offset..offset + n].to_vec()
    }

    fn try_join(&mut self, next: Self) -> Result<(), Self> {
        Err(next)
    }

    fn try_copy(&mut self, next: Self) -> Result<(), Self> {
        if next.len() > SHORT_BYTES || self.len() >= LONG_BYTES {
            return Err(next);
        }
        self.extend_from_slice(&next);
        Ok(())
    }

    const HAS_CONTENT: bool = true;

    fn as_bytes(&self) -> &[u8] {
        self
    }

    fn with_content(len: usize, content: impl FnOnce() -> Vec<u8>) -> Self {
        let content = content();
        assert_eq!(content.len(), len, "content of another length");
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_conserves_bytes() {
        let mut lengths = Virtual(10);
        assert_eq!((lengths.split_to(4), lengths), (Virtual(4), Virtual(6)));

        let mut bytes = b"abcdef".to_vec();
        assert_eq!((bytes.split_to(2), bytes), (b"ab".to_vec(), b"cdef".to_vec()));

        let mut shared = Bytes::from_static(b"abcdef");
        let first = Payload::split_to(&mut shared, 2);
        assert_eq!((&first[..], &shared[..]), (&b"ab"[..], &b"cdef"[..]));
        assert_eq!(shared.try_join(first.clone()), Err(first), "no copy is made");
    }

    #[test]
    fn slices_are_copies() {
        assert_eq!(b"abcdef".to_vec().slice(1, 3), b"bcd");
        assert_eq!(&Payload::slice(&Bytes::from_static(b"abcdef"), 1, 3)[..], b"bcd");
        assert_eq!(Virtual(6).slice(1, 3), Virtual(3));
    }

    #[test]
    fn payloads_without_content_do_not_compute_it() {
        assert_eq!(Virtual::with_content(3, || unreachable!()), Virtual(3));
        assert_eq!(Vec::<u8>::with_content(3, || b"abc".to_vec()).as_bytes(), b"abc");
        assert_eq!(Virtual(3).as_bytes(), b"");
    }

    #[test]
    fn joining_lengths_refuses_to_overflow() {
        let mut lengths = Virtual(u32::MAX);
        assert_eq!(lengths.try_join(Virtual(1)), Err(Virtual(1)));
    }
}
