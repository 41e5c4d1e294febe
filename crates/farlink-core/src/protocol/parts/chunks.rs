//! A queue of payload. In the simulator it has one chunk, on the wire one per segment.

use std::collections::VecDeque;

use crate::payload::Payload;

/// Payload in order. Chunks are joined where that costs nothing, so that the common case never allocates.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct Chunks<D> {
    front: D,
    rest: VecDeque<D>,
}

impl<D: Payload> Chunks<D> {
    /// Appends at the end.
    #[inline]
    pub(in crate::protocol) fn push(&mut self, data: D) {
        if self.rest.is_empty() {
            if self.front.is_empty() {
                self.front = data;
                return;
            }
            if let Err(data) = self.front.try_join(data) {
                self.rest.push_back(data);
            }
        } else {
            self.rest.push_back(data);
        }
    }

    /// Appends at the end. Short data is copied to the data appended before it, so that it takes no more memory than its bytes.
    #[inline]
    pub(in crate::protocol) fn push_compact(&mut self, data: D) {
        let last = self.rest.back_mut().unwrap_or(&mut self.front);
        if let Err(data) = last.try_copy(data) {
            self.push(data);
        }
    }

    /// Removes and returns the first chunk.
    #[inline]
    pub(in crate::protocol) fn pop(&mut self) -> Option<D> {
        if self.front.is_empty() {
            return None;
        }
        let next = if self.rest.is_empty() { D::default() } else { self.rest.pop_front().unwrap_or_default() };
        Some(std::mem::replace(&mut self.front, next))
    }

    /// Bytes up to the end of the first chunk.
    #[inline]
    pub(in crate::protocol) fn front_len(&self) -> usize {
        self.front.len()
    }

    /// Drops the first `n` bytes.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub(in crate::protocol) fn advance(&mut self, mut n: usize) {
        while n > 0 {
            let step = n.min(self.front.len());
            assert!(step > 0, "cannot drop more bytes than are queued");
            self.front.split_to(step);
            n -= step;
            if self.front.is_empty() {
                self.front = self.rest.pop_front().unwrap_or_default();
            }
        }
    }

    /// Removes up to `n` bytes from the front. Where they lie in several chunks they are copied together, so that fewer than `n` are
    /// all that there is.
    #[inline]
    pub(in crate::protocol) fn take(&mut self, n: usize) -> D {
        if n <= self.front.len() || self.rest.is_empty() {
            let data = self.front.slice(0, n.min(self.front.len()));
            self.advance(data.len());
            return data;
        }
        let (mut bytes, mut taken) = (Vec::new(), 0);
        while taken < n && !self.front.is_empty() {
            let piece = self.front.slice(0, (n - taken).min(self.front.len()));
            bytes.extend_from_slice(piece.as_bytes());
            taken += piece.len();
            self.advance(piece.len());
        }
        D::with_content(taken, || bytes)
    }

    /// A copy of `n` bytes from `offset` on, cut short at a chunk's end.
    #[inline]
    pub(in crate::protocol) fn slice(&self, mut offset: usize, n: usize) -> D {
        let mut chunk = &self.front;
        let mut rest = self.rest.iter();
        while offset >= chunk.len() {
            offset -= chunk.len();
            match rest.next() {
                Some(next) => chunk = next,
                None => return D::default(),
            }
        }
        chunk.slice(offset, n.min(chunk.len() - offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    #[test]
    fn slices_and_advances_across_chunks() {
        let mut chunks = Chunks::default();
        chunks.push(b"abc".to_vec());
        chunks.push(b"defg".to_vec());
        assert_eq!(chunks.slice(1, 10), b"bc");
        assert_eq!(chunks.slice(4, 2), b"ef");
        assert_eq!(chunks.slice(7, 2), b"");
        chunks.advance(4);
        assert_eq!(chunks.pop(), Some(b"efg".to_vec()));
        assert_eq!(chunks.pop(), None);
    }

    #[test]
    fn what_is_taken_is_as_long_as_asked_for() {
        let stream: Vec<u8> = (0..100).collect();
        for n in 1..=101 {
            let mut chunks = Chunks::default();
            stream.chunks(7).for_each(|chunk| chunks.push(bytes::Bytes::copy_from_slice(chunk)));
            let taken: Vec<_> = std::iter::from_fn(|| Some(chunks.take(n)).filter(|data| !data.is_empty())).collect();
            assert!(taken.concat() == stream && taken[..taken.len() - 1].iter().all(|data| data.len() == n), "{n}");
        }
        let mut lengths = Chunks::default();
        lengths.push(Virtual(u32::MAX));
        lengths.push(Virtual(5));
        lengths.advance(u32::MAX as usize - 2);
        assert_eq!((lengths.take(4), lengths.take(9), lengths.take(1)), (Virtual(4), Virtual(3), Virtual(0)));
    }

    #[test]
    fn short_chunks_are_copied_together() {
        let mut chunks = Chunks::default();
        let stream: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8).collect();
        for (n, byte) in stream.chunks(3).enumerate() {
            chunks.push_compact(bytes::Bytes::copy_from_slice(byte));
            if n % 1000 == 0 {
                chunks.push_compact(bytes::Bytes::new());
            }
        }
        let pieces: Vec<_> = std::iter::from_fn(|| chunks.pop()).collect();
        assert!(pieces.len() <= 5 && pieces.concat() == stream, "{}", pieces.len());
        chunks.push_compact(vec![1; 1000].into());
        chunks.push_compact(vec![2; 1000].into());
        assert_eq!(chunks.pop().map(|piece| piece.len()), Some(1000), "long data is not copied");
    }

    #[test]
    fn lengths_join() {
        let mut chunks = Chunks::default();
        chunks.push(Virtual(u32::MAX));
        chunks.push(Virtual(5));
        assert_eq!(chunks.slice(u32::MAX as usize, 9), Virtual(5));
        assert_eq!((chunks.pop(), chunks.pop(), chunks.pop()), (Some(Virtual(u32::MAX)), Some(Virtual(5)), None));
    }
}
