//! Messages of a session, sealed like segments. `[Y10]`

use bytes::Bytes;

/// A message of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Shows that the sender has the keys.
    Ping,
    /// Asks whether the peer receives at its address.
    Challenge(u64),
    /// Repeats the number of a challenge or probe.
    Answer(u64),
    /// Asks whether a packet with so many bytes of content comes through; it is filled with zeros. `[Y16]`
    Probe { number: u64, content_bytes: u16 },
    /// Asks for new keys: a message of a handshake. `[Y18]`
    Renew(Bytes),
    /// Answers with the other message of it.
    Renewed(Bytes),
    /// A datagram of an application. `[Y22]`
    Datagram { port: u16, data: Bytes },
}

const PING: u8 = 0;
const CHALLENGE: u8 = 1;
const ANSWER: u8 = 2;
const PROBE: u8 = 3;
const RENEW: u8 = 4;
const RENEWED: u8 = 5;
const DATAGRAM: u8 = 6;
/// A byte that says what it is, and a number.
const NUMBERED_BYTES: usize = 9;
/// Handshakes and datagrams are any bytes: zeros before them keep them from being taken for a segment. `[O24]`
const BEFORE_ANY: usize = 13;
/// Header of a datagram.
pub(super) const DATAGRAM_HEADER_BYTES: usize = BEFORE_ANY;

impl Message {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Message::Ping => 1,
            Message::Challenge(_) | Message::Answer(_) => NUMBERED_BYTES,
            Message::Probe { content_bytes, .. } => usize::from(*content_bytes).max(NUMBERED_BYTES),
            Message::Renew(any) | Message::Renewed(any) | Message::Datagram { data: any, .. } => BEFORE_ANY + any.len(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let numbered = |kind, number: u64| [&[kind][..], &number.to_be_bytes()].concat();
        match self {
            Message::Ping => vec![PING],
            Message::Challenge(number) => numbered(CHALLENGE, *number),
            Message::Answer(number) => numbered(ANSWER, *number),
            Message::Probe { number, .. } => {
                let mut bytes = numbered(PROBE, *number);
                bytes.resize(self.bytes(), 0);
                bytes
            }
            Message::Renew(handshake) => behind_zeros(RENEW, handshake),
            Message::Renewed(handshake) => behind_zeros(RENEWED, handshake),
            Message::Datagram { port, data } => {
                let mut bytes = behind_zeros(DATAGRAM, data);
                bytes[1..3].copy_from_slice(&port.to_be_bytes());
                bytes
            }
        }
    }

    /// `None` for messages of later versions, which are ignored.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let number = || Some(u64::from_be_bytes(rest.try_into().ok()?));
        let any = || Some(Bytes::copy_from_slice(bytes.get(BEFORE_ANY..)?));
        match kind {
            PING => Some(Message::Ping),
            CHALLENGE => Some(Message::Challenge(number()?)),
            ANSWER => Some(Message::Answer(number()?)),
            PROBE => {
                let number = u64::from_be_bytes(*rest.first_chunk()?);
                Some(Message::Probe { number, content_bytes: u16::try_from(bytes.len()).ok()? })
            }
            RENEW => Some(Message::Renew(any()?)),
            RENEWED => Some(Message::Renewed(any()?)),
            DATAGRAM => Some(Message::Datagram { port: u16::from_be_bytes(*rest.first_chunk()?), data: any()? }),
            _ => None,
        }
    }
}

fn behind_zeros(kind: u8, any: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; BEFORE_ANY];
    bytes[0] = kind;
    bytes.extend(any);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_round_trip() {
        let probe = |content_bytes| Message::Probe { number: 7, content_bytes };
        let handshake = Bytes::from_static(&[9; 97]);
        let numbered = [Message::Challenge(7), Message::Answer(u64::MAX), probe(9), probe(8962)];
        let renewing = [Message::Renew(handshake.clone()), Message::Renewed(handshake)];
        let datagrams =
            [&[][..], &[255; 1400]].map(|data| Message::Datagram { port: 0xfffe, data: Bytes::from_static(data) });
        for message in [Message::Ping].into_iter().chain(numbered).chain(renewing).chain(datagrams) {
            let bytes = message.encode();
            assert_eq!((Message::decode(&bytes), bytes.len()), (Some(message.clone()), message.bytes()));
        }
        for bytes in [&[][..], &[1, 2], &[2; 10], &[63], &[6; 12]] {
            assert_eq!(Message::decode(bytes), None);
        }
    }
}
