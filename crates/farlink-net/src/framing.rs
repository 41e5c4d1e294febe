//! How frames stand in streams between gateways and in those of custody: kind, length, content. `[T1]`

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// A frame that cannot be. `[T10]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Kind and length.
pub(crate) const HEADER_BYTES: usize = 3;

/// Kind and length of the content of the frame at the front; `None` if its header is not there yet.
pub(crate) fn header(buffer: &[u8]) -> Option<(u8, usize)> {
    let [kind, high, low, ..] = *buffer else { return None };
    Some((kind, usize::from(u16::from_be_bytes([high, low]))))
}

/// The content of the frame at the front, whose header says that it has `bytes`; `None` if more has to arrive.
pub(crate) fn take_content(buffer: &mut BytesMut, bytes: usize) -> Option<Bytes> {
    if buffer.len() < HEADER_BYTES + bytes {
        return None;
    }
    buffer.advance(HEADER_BYTES);
    Some(buffer.split_to(bytes).freeze())
}

/// Puts a frame behind what there is. `content` puts its content, of `most` bytes at most, and returns its kind.
pub(crate) fn put(into: &mut BytesMut, most: usize, content: impl FnOnce(&mut BytesMut) -> u8) {
    let begins = into.len();
    into.put_bytes(0, HEADER_BYTES);
    into[begins] = content(into);
    let bytes = into.len() - begins - HEADER_BYTES;
    debug_assert!(bytes <= most);
    into[begins + 1..begins + HEADER_BYTES].copy_from_slice(&(bytes as u16).to_be_bytes());
}

/// The meaning of a byte, from a list that begins with the meaning of unknown ones.
pub(crate) fn meaning<T: Copy>(list: &[T], code: u8) -> T {
    list.get(usize::from(code)).copied().unwrap_or(list[0])
}

/// The byte of a meaning.
pub(crate) fn code<T: PartialEq>(list: &[T], meaning: T) -> u8 {
    list.iter().position(|known| *known == meaning).expect("the list has them all") as u8
}

/// Takes all frames of bytes that arrive in pieces of the length that the first byte says. `take` gets each piece, and returns whether
/// more may follow.
#[cfg(fuzzing)]
pub(crate) fn in_pieces(bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) {
    let Some((&piece, rest)) = bytes.split_first() else { return };
    let _ = rest.chunks(usize::from(piece).max(1)).all(|piece| take(piece));
}
