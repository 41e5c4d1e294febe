//! The numbers of datagrams that are sent several times, because nothing on the way back says which ones were lost (Epple,
//! section 3.1).
//!
//! UDP has no numbers, so that a receiver could not tell a copy from new data. Four bytes in front of the data number the
//! datagrams, as the sequence number of RTP does (RFC 3550, section 5.1).

use super::Datagram;
use crate::payload::Payload;

/// Length of the number in front of the data.
pub const NUMBER_BYTES: usize = 4;

/// The number and the data of a received datagram; `None` if there is no data behind a number.
///
/// The simulator's datagrams carry the number beside the data. On the wire it is the beginning of the data, because a decoder of
/// UDP does not know what the data mean.
pub(super) fn numbered<D: Payload>(packet: &Datagram<D>) -> Option<(u32, D)> {
    if let Some(number) = packet.number {
        return Some((number, packet.payload.clone()));
    }
    let (number, rest) = packet.payload.as_bytes().split_first_chunk::<NUMBER_BYTES>()?;
    let data = packet.payload.slice(NUMBER_BYTES, rest.len());
    (!rest.is_empty()).then_some((u32::from_be_bytes(*number), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_datagram_begins_with_its_number() {
        let received =
            |payload: &[u8]| numbered(&Datagram { header_bytes: 28, number: None, payload: payload.to_vec() });
        assert_eq!(received(&[0, 0, 1, 2, b'a']), Some((258, b"a".to_vec())));
        assert_eq!(received(&[0, 0, 1]), None, "too short for a number");
        assert_eq!(received(&[0, 0, 1, 2]), None, "no data");
    }
}
