//! Header of a datagram, before its sealed content. `[J1]`
//!
//! | bytes | field |
//! |---|---|
//! | 0 | [`Kind`] (2 bits), zero (2 bits), number of the path (4 bits) |
//! | 1 | of a hello: version; 0 in an answer to another version |
//! | 1-4, of a hello 2-5 | connection id of the addressee; 0 in an initiation |
//! | 5-8 | of a sealed datagram: its number on this path, low 32 bits |
//! | 6-13 | of a hello: zero |
//! | then | hello: the content of `seal::hello`; sealed: ciphertext and tag; reset: token |

use crate::seal::mac::{MAC_BYTES, Mac};
use crate::seal::versions::VERSION;

/// Bytes before the ciphertext of a sealed datagram.
pub(super) const HEADER_BYTES: usize = 9;
/// Bytes that a seal adds to its content.
pub const SEAL_BYTES: usize = HEADER_BYTES + 16;
// The simulator counts them too.
const _: () = assert!(SEAL_BYTES == farlink_core::paths::SEAL_BYTES as usize);
/// Bytes before the content of a hello. What follows stands where `seal::versions` expects it.
pub(super) const HELLO_BYTES: usize = 14;
pub(super) const RESET_BYTES: usize = 5 + MAC_BYTES;
/// Numbers of paths are below.
pub const MOST_PATHS: usize = 16;

const HELLO: u8 = 0;
const DATA: u8 = 1;
const CONTROL: u8 = 2;
const RESET: u8 = 3;

/// Content of a sealed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A packet of the bundle.
    Data,
    /// Messages of the session.
    Control,
}

/// A datagram that has come, as far as anybody can read it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outer<'a> {
    Hello { path: u8, version: u8, to: u32, content: &'a [u8] },
    Sealed { kind: Kind, path: u8, to: u32, number: u32 },
    Reset { to: u32, token: &'a Mac },
}

impl<'a> Outer<'a> {
    pub(super) fn read(datagram: &'a [u8]) -> Option<Self> {
        let (&first, rest) = datagram.split_first()?;
        let path = first & 0x0f;
        if first & 0x30 != 0 {
            return None;
        }
        if first >> 6 == HELLO {
            let (&version, rest) = rest.split_first()?;
            let to = rest.first_chunk().copied().map(u32::from_be_bytes)?;
            return Some(Outer::Hello { path, version, to, content: datagram.get(HELLO_BYTES..)? });
        }
        let (to, rest) = rest.split_first_chunk()?;
        let to = u32::from_be_bytes(*to);
        let kind = match first >> 6 {
            DATA => Kind::Data,
            CONTROL => Kind::Control,
            _ => return Some(Outer::Reset { to, token: rest.try_into().ok()? }),
        };
        let number = u32::from_be_bytes(*rest.first_chunk()?);
        (datagram.len() >= SEAL_BYTES).then_some(Outer::Sealed { kind, path, to, number })
    }
}

pub(super) fn hello(path: u8, version: u8, to: u32, content: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(HELLO_BYTES + content.len());
    datagram.extend([HELLO << 6 | path, version]);
    datagram.extend(to.to_be_bytes());
    datagram.resize(HELLO_BYTES, 0);
    datagram.extend(content);
    datagram
}

pub(super) fn own_hello(path: u8, to: u32, content: &[u8]) -> Vec<u8> {
    hello(path, VERSION, to, content)
}

pub(super) fn sealed_header(kind: Kind, path: u8, to: u32, number: u64) -> [u8; HEADER_BYTES] {
    let kind = if kind == Kind::Data { DATA } else { CONTROL };
    let mut header = [0; HEADER_BYTES];
    header[0] = kind << 6 | path;
    header[1..5].copy_from_slice(&to.to_be_bytes());
    header[5..].copy_from_slice(&(number as u32).to_be_bytes());
    header
}

pub(super) fn reset(to: u32, token: &Mac) -> Vec<u8> {
    [&[RESET << 6][..], &to.to_be_bytes(), token].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let written = hello(3, 1, 77, b"content");
        assert_eq!(Outer::read(&written), Some(Outer::Hello { path: 3, version: 1, to: 77, content: b"content" }));
        for kind in [Kind::Data, Kind::Control] {
            let written = [&sealed_header(kind, 15, 0x0102_0304, 0xffff_0000_0005)[..], &[0; 16]].concat();
            let number = 0x0000_0005;
            assert_eq!(Outer::read(&written), Some(Outer::Sealed { kind, path: 15, to: 0x0102_0304, number }));
            assert_eq!(Outer::read(&written[..SEAL_BYTES - 1]), None);
        }
        let written = reset(5, &[9; 16]);
        assert_eq!(written.len(), RESET_BYTES);
        assert_eq!(Outer::read(&written), Some(Outer::Reset { to: 5, token: &[9; 16] }));
        assert_eq!(Outer::read(&written[..RESET_BYTES - 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Outer::read(&bytes);
        }
    }
}
