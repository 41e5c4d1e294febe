//! Packets of control protocols (RFC 1661, section 5) and the options in them (section 6).

use bytes::Bytes;

/// Codes of RFC 1661, section 5.
pub mod code {
    /// Configure-Request.
    pub const REQUEST: u8 = 1;
    /// Configure-Ack.
    pub const ACK: u8 = 2;
    /// Configure-Nak.
    pub const NAK: u8 = 3;
    /// Configure-Reject.
    pub const REJECT: u8 = 4;
    /// Terminate-Request.
    pub const TERMINATE_REQUEST: u8 = 5;
    /// Terminate-Ack.
    pub const TERMINATE_ACK: u8 = 6;
    /// Code-Reject.
    pub const CODE_REJECT: u8 = 7;
    /// Protocol-Reject.
    pub const PROTOCOL_REJECT: u8 = 8;
    /// Echo-Request.
    pub const ECHO_REQUEST: u8 = 9;
    /// Echo-Reply.
    pub const ECHO_REPLY: u8 = 10;
    /// Discard-Request.
    pub const DISCARD_REQUEST: u8 = 11;
}

const HEADER_BYTES: usize = 4;

/// A packet of LCP, IPCP, IPV6CP, PAP or CHAP: all have this header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControlPacket {
    /// Its code.
    pub code: u8,
    /// Which request an answer belongs to.
    pub id: u8,
    /// Content behind the header.
    pub data: Bytes,
}

impl ControlPacket {
    /// Reads a packet; padding behind its length is dropped. `None` if it is shorter than its length says.
    pub fn decode(bytes: &Bytes) -> Option<Self> {
        let &[code, id, high, low] = bytes.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        (HEADER_BYTES..=bytes.len()).contains(&length).then(|| ControlPacket {
            code,
            id,
            data: bytes.slice(HEADER_BYTES..length),
        })
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let length = u16::try_from(HEADER_BYTES + self.data.len()).expect("packets are shorter than 64 KiB");
        let [high, low] = length.to_be_bytes();
        [&[self.code, self.id, high, low], &self.data[..]].concat()
    }
}

/// An option of a Configure-Request: its type and its data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// Type of the option.
    pub kind: u8,
    /// Its content.
    pub data: Vec<u8>,
}

impl Choice {
    /// An option.
    pub fn new(kind: u8, data: impl Into<Vec<u8>>) -> Self {
        Choice { kind, data: data.into() }
    }

    /// Its data, if they have the length that its type asks for.
    pub fn exactly<const N: usize>(&self) -> Option<[u8; N]> {
        self.data[..].try_into().ok()
    }
}

/// The options of a packet; `None` if the length of one is impossible.
pub fn decode_choices(mut data: &[u8]) -> Option<Vec<Choice>> {
    let mut choices = Vec::new();
    while let [kind, length, ..] = *data {
        let content = data.get(2..usize::from(length))?;
        choices.push(Choice::new(kind, content));
        data = &data[usize::from(length)..];
    }
    data.is_empty().then_some(choices)
}

/// The bytes of options.
///
/// # Panics
/// If the data of one are longer than 253 bytes.
pub fn encode_choices(choices: &[Choice]) -> Bytes {
    let mut out = Vec::new();
    for choice in choices {
        out.extend([choice.kind, u8::try_from(choice.data.len() + 2).expect("options have at most 253 bytes of data")]);
        out.extend(&choice.data);
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn impossible_lengths_are_refused() {
        for bytes in [&[1, 1][..], &[1, 1, 0, 3], &[1, 1, 0, 5]] {
            assert_eq!(ControlPacket::decode(&Bytes::from_static(bytes)), None, "{bytes:?}");
        }
        for options in [&[1][..], &[1, 0], &[1, 1], &[1, 3], &[1, 2, 1]] {
            assert_eq!(decode_choices(options), None, "{options:?}");
        }
    }

    #[test]
    fn padding_is_dropped() {
        let packet = ControlPacket::decode(&Bytes::from_static(&[9, 7, 0, 5, 1, 0, 0])).unwrap();
        assert_eq!(packet, ControlPacket { code: 9, id: 7, data: Bytes::from_static(&[1]) });
        assert_eq!(packet.encode(), [9, 7, 0, 5, 1]);
    }

    proptest! {
        #[test]
        fn choices_survive(kinds in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..253)), 0..5)) {
            let choices: Vec<Choice> = kinds.into_iter().map(|(kind, data)| Choice { kind, data }).collect();
            prop_assert_eq!(decode_choices(&encode_choices(&choices)), Some(choices));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode_choices(&bytes);
            let _ = ControlPacket::decode(&bytes.into());
        }
    }
}
