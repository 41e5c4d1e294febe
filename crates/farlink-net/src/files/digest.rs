//! SHA-256 of chunks and files.

use std::io::{self, Read};

use ring::digest::{Context, SHA256, digest};

/// Bytes of a digest.
pub(super) const DIGEST_BYTES: usize = 32;

/// A SHA-256 digest (FIPS 180-4).
pub(super) type Digest = [u8; DIGEST_BYTES];

/// Bytes that are read at a time.
pub(super) const READ_BYTES: usize = 1 << 18;

/// SHA-256 of the bytes.
pub(super) fn sha256(bytes: &[u8]) -> Digest {
    array(digest(&SHA256, bytes))
}

/// SHA-256 of bytes that come piece by piece; it can be read at any time.
#[derive(Clone)]
pub(super) struct Hasher(Context);

impl Hasher {
    pub(super) fn new() -> Self {
        Hasher(Context::new(&SHA256))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of what came so far.
    pub(super) fn digest(&self) -> Digest {
        array(self.0.clone().finish())
    }
}

fn array(digest: ring::digest::Digest) -> Digest {
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The hasher behind the first `length` bytes of what is read; `None` when it ends before. `go_on` is asked now and
/// then.
///
/// # Errors
///
/// Reading failed, or `go_on` said no ([`io::ErrorKind::Interrupted`]).
pub(super) fn hash_prefix(mut file: impl Read, length: u64, go_on: &dyn Fn() -> bool) -> io::Result<Option<Hasher>> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; READ_BYTES.min(usize::try_from(length).unwrap_or(READ_BYTES))];
    let mut left = length;
    while left > 0 {
        if !go_on() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = read_full(&mut file, &mut buffer[..wanted])?;
        hasher.update(&buffer[..read]);
        if read < wanted {
            return Ok(None);
        }
        left -= wanted as u64;
    }
    Ok(Some(hasher))
}

/// Reads until the buffer is full or the file ends, and returns how many bytes came.
pub(super) fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_whole_have_the_same_digest() {
        // FIPS 180-4, the example "abc".
        let abc = sha256(b"abc");
        assert_eq!(abc[..4], [0xba, 0x78, 0x16, 0xbf]);

        let mut hasher = hash_prefix(&b"abX"[..], 2, &|| true).unwrap().unwrap();
        hasher.update(b"c");
        assert_eq!(hasher.digest(), abc);
        assert!(hash_prefix(&b"ab"[..], 3, &|| true).unwrap().is_none());
    }
}
