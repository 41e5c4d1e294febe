//! Writes into a buffer of fixed length.

/// Fills a buffer from its start, and counts bytes that do not fit.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    /// Bytes written, including those that did not fit.
    length: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the start of a buffer.
    pub fn new(out: &'a mut [u8]) -> Self {
        Writer { out, length: 0 }
    }

    /// Number of bytes written, including those that did not fit.
    #[inline]
    pub fn position(&self) -> usize {
        self.length
    }

    /// Writes bytes, as many of them as fit.
    #[inline]
    pub fn extend(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let room = self.out.get_mut(self.length..).unwrap_or_default();
        let fits = bytes.len().min(room.len());
        room[..fits].copy_from_slice(&bytes[..fits]);
        self.length += bytes.len();
    }

    /// Writes zeros up to a position; nothing if it is already past.
    pub fn zeros_to(&mut self, position: usize) {
        if position > self.length {
            let end = position.min(self.out.len());
            self.out.get_mut(self.length..end).unwrap_or_default().fill(0);
            self.length = position;
        }
    }

    /// The bytes written since a position.
    pub fn since(&mut self, position: usize) -> &mut [u8] {
        let end = self.length.min(self.out.len());
        self.out.get_mut(position..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_buffer_are_counted_but_not_written() {
        let mut buffer = [9; 5];
        let mut out = Writer::new(&mut buffer);
        out.extend([1, 2, 3]);
        assert_eq!((out.position(), out.since(1)), (3, &mut [2, 3][..]));
        out.extend(b"abc");
        assert_eq!((out.position(), out.since(2)), (6, &mut [3, b'a', b'b'][..]));
        out.extend(b"xyz");
        out.zeros_to(20);
        assert_eq!((out.position(), out.since(7)), (20, &mut [][..]));
        assert_eq!(buffer, [1, 2, 3, b'a', b'b']);
    }

    #[test]
    fn zeros_overwrite_old_bytes() {
        let mut buffer = [9; 5];
        let mut out = Writer::new(&mut buffer);
        out.extend([1]);
        out.zeros_to(3);
        out.zeros_to(2);
        assert_eq!(out.position(), 3);
        assert_eq!(buffer, [1, 0, 0, 9, 9]);
    }
}
