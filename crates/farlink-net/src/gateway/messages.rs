//! Messages in a stream that may have gaps. `[T13]`

use bytes::{BufMut, Bytes, BytesMut};

/// Stands before and behind each message, and nowhere in it.
const DELIMITER: u8 = 0;
/// The longest run without a delimiter that a byte can count (COBS, Cheshire and Baker 1999).
const LONGEST_RUN: usize = 254;
const CRC_BYTES: usize = 4;
/// Longest datagram of UDP.
pub(super) const LONGEST_DATAGRAM: usize = 65_535;
/// Longest message: a datagram and what stands before it.
const LONGEST: usize = LONGEST_DATAGRAM + 500;

/// A message as it stands in the stream.
pub(super) fn encode(message: &[u8]) -> BytesMut {
    let mut whole = BytesMut::with_capacity(message.len() + CRC_BYTES);
    whole.put_slice(message);
    whole.put_u32(crc32fast::hash(message));
    let mut stream = BytesMut::with_capacity(whole.len() + whole.len() / LONGEST_RUN + 3);
    stream.put_u8(DELIMITER);
    // Each zero gives way to the number of bytes until the next one, with a first number before all; so does each full run.
    let mut count_at = stream.len();
    stream.put_u8(1);
    for byte in whole {
        if byte != DELIMITER {
            stream.put_u8(byte);
            stream[count_at] += 1;
        }
        if byte == DELIMITER || usize::from(stream[count_at]) > LONGEST_RUN {
            count_at = stream.len();
            stream.put_u8(1);
        }
    }
    stream.put_u8(DELIMITER);
    stream
}

/// Finds messages in a stream.
#[derive(Debug, Default)]
pub(super) struct Messages {
    buffer: BytesMut,
    /// The data is too long to be a message.
    is_too_long: bool,
}

impl Messages {
    /// Takes what has arrived; the messages that are whole now. What is not whole, behind a gap, is left out.
    pub(super) fn push(&mut self, arrived: &[u8]) -> Vec<Bytes> {
        let mut found = Vec::new();
        let mut pieces = arrived.split(|&byte| byte == DELIMITER).peekable();
        while let Some(piece) = pieces.next() {
            self.is_too_long |= self.buffer.len() + piece.len() > LONGEST + LONGEST / LONGEST_RUN + 3;
            if !self.is_too_long {
                self.buffer.extend_from_slice(piece);
            }
            if pieces.peek().is_some() {
                found.extend(decode(&self.buffer).filter(|_| !self.is_too_long));
                self.buffer.clear();
                self.is_too_long = false;
            }
        }
        found
    }
}

/// The message between two delimiters.
fn decode(mut runs: &[u8]) -> Option<Bytes> {
    let mut whole = BytesMut::with_capacity(runs.len());
    while let Some((&count, rest)) = runs.split_first() {
        let run = rest.get(..usize::from(count).checked_sub(1)?)?;
        whole.put_slice(run);
        runs = &rest[run.len()..];
        if run.len() < LONGEST_RUN && !runs.is_empty() {
            whole.put_u8(DELIMITER);
        }
    }
    let bytes = whole.len().checked_sub(CRC_BYTES)?;
    let crc = whole.split_off(bytes);
    (crc32fast::hash(&whole).to_be_bytes() == *crc).then(|| whole.freeze())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message() -> impl Strategy<Value = Vec<u8>> {
        let sparse = prop::collection::vec(prop_oneof![4 => Just(0_u8), 1 => any::<u8>()], 0..40);
        let long = (0..1200_usize, any::<u8>()).prop_map(|(bytes, byte)| vec![byte; bytes]);
        prop_oneof![sparse, long, prop::collection::vec(any::<u8>(), 0..1500)]
    }

    proptest! {
        #[test]
        fn messages_come_back_however_they_are_cut(sent in prop::collection::vec(message(), 0..6), piece in 1..400_usize) {
            let stream: Vec<u8> = sent.iter().flat_map(|message| encode(message).to_vec()).collect();
            let mut messages = Messages::default();
            let came: Vec<Bytes> = stream.chunks(piece).flat_map(|piece| messages.push(piece)).collect();
            prop_assert_eq!(came, sent);
        }

        /// A gap takes the messages that it touches, and no other one; what is left of them is not taken for one.
        #[test]
        fn a_gap_takes_what_it_touches(sent in prop::collection::vec(message(), 1..6), at in 0.0..1.0, share in 0.0..1.0) {
            let (mut stream, mut ends) = (Vec::new(), Vec::new());
            for message in &sent {
                let begin = stream.len();
                stream.extend_from_slice(&encode(message));
                ends.push((begin, stream.len()));
            }
            let from = (stream.len() as f64 * at) as usize;
            let to = from + ((stream.len() - from) as f64 * share) as usize;
            stream.drain(from..to);
            let came = Messages::default().push(&stream);
            let is_untouched = |&&(begin, end): &&(usize, usize)| end <= from || begin >= to;
            let kept: Vec<_> = ends.iter().zip(&sent).filter(|(place, _)| is_untouched(place)).map(|(_, it)| it).collect();
            // One whose delimiter alone is lost may still be there.
            prop_assert!(kept.iter().all(|message| came.iter().any(|it| it == *message)));
            prop_assert!(came.iter().all(|message| sent.iter().any(|it| message == it)));
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..600)) {
            Messages::default().push(&noise);
        }
    }

    #[test]
    fn what_has_no_end_takes_no_memory() {
        let mut messages = Messages::default();
        for _ in 0..100 {
            assert!(messages.push(&[7; 10_000]).is_empty());
        }
        assert!(messages.buffer.capacity() < 300_000);
        messages.push(&[DELIMITER]);
        assert_eq!(messages.push(&encode(b"next")), [Bytes::from_static(b"next")]);
    }
}
