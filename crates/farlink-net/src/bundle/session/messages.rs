//! Messages within sealed datagrams of the session. `[J7]`

/// A message of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Asks for the answer with the same bytes, over the same path.
    Challenge([u8; 8]),
    /// The answer.
    Answer([u8; 8]),
    /// Asks whether a datagram of this length arrives; what follows it is padding.
    Probe(u32),
    /// It did.
    Arrived(u32),
    /// This side ends.
    Close,
}

const CHALLENGE: u8 = 1;
const ANSWER: u8 = 2;
const PROBE: u8 = 3;
const ARRIVED: u8 = 4;
const CLOSE: u8 = 5;

impl Message {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Challenge(bytes) => {
                out.push(CHALLENGE);
                out.extend(bytes);
            }
            Message::Answer(bytes) => {
                out.push(ANSWER);
                out.extend(bytes);
            }
            Message::Probe(number) => {
                out.push(PROBE);
                out.extend(number.to_be_bytes());
            }
            Message::Arrived(number) => {
                out.push(ARRIVED);
                out.extend(number.to_be_bytes());
            }
            Message::Close => out.push(CLOSE),
        }
    }

    /// The messages of a datagram, up to the first that is none: a later version may know more.
    pub(super) fn read_all(mut content: &[u8]) -> impl Iterator<Item = Message> + '_ {
        std::iter::from_fn(move || {
            let (&kind, rest) = content.split_first()?;
            let (message, rest) = match kind {
                CHALLENGE | ANSWER => {
                    let (bytes, rest) = rest.split_first_chunk()?;
                    (if kind == CHALLENGE { Message::Challenge(*bytes) } else { Message::Answer(*bytes) }, rest)
                }
                PROBE | ARRIVED => {
                    let (number, rest) = rest.split_first_chunk()?;
                    let number = u32::from_be_bytes(*number);
                    if kind == PROBE { (Message::Probe(number), &[][..]) } else { (Message::Arrived(number), rest) }
                }
                CLOSE => (Message::Close, rest),
                _ => return None,
            };
            content = rest;
            Some(message)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn message() -> impl Strategy<Value = Message> {
        prop_oneof![
            any::<[u8; 8]>().prop_map(Message::Challenge),
            any::<[u8; 8]>().prop_map(Message::Answer),
            any::<u32>().prop_map(Message::Arrived),
            Just(Message::Close),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(messages in vec(message(), 0..5), probe in any::<Option<u32>>()) {
            let messages: Vec<Message> = messages.into_iter().chain(probe.map(Message::Probe)).collect();
            let mut bytes = Vec::new();
            messages.iter().for_each(|message| message.write(&mut bytes));
            prop_assert_eq!(Message::read_all(&bytes).collect::<Vec<_>>(), messages.clone());
            if probe.is_some() {
                bytes.resize(bytes.len() + 100, 1);
                prop_assert_eq!(Message::read_all(&bytes).collect::<Vec<_>>(), messages);
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..60)) {
            prop_assert!(Message::read_all(&bytes).count() <= bytes.len());
        }
    }
}
