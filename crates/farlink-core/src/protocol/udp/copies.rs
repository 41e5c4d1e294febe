//! Datagrams that are sent several times, because nothing on the way back says which ones were lost (Epple, section 3.1).
//!
//! UDP has no numbers, so that a receiver could not tell a copy from new data. Four bytes in front of the data number the
//! datagrams, as the sequence number of RTP does (RFC 3550, section 5.1).

use std::collections::VecDeque;

use super::Datagram;
use crate::payload::Payload;
use crate::time::Time;

/// Length of the number in front of the data.
pub const NUMBER_BYTES: usize = 4;

/// The copies that are still to be sent, in order of time.
#[derive(Clone, Debug)]
pub(super) struct Copies<D> {
    /// Number of transmissions after the first one.
    more: u32,
    spacing: Time,
    next_number: u32,
    waiting: VecDeque<Copy<D>>,
}

#[derive(Clone, Debug)]
struct Copy<D> {
    due: Time,
    number: u32,
    payload: D,
    /// Number of transmissions, this one included.
    left: u32,
}

impl<D: Payload> Copies<D> {
    /// For so many transmissions of each datagram; `None` if each is sent once.
    pub(super) fn new(transmissions: u64, spacing: Time) -> Option<Self> {
        let more = u32::try_from(transmissions - 1).unwrap_or(u32::MAX);
        (more > 0).then(|| Copies { more, spacing, next_number: 0, waiting: VecDeque::new() })
    }

    /// A datagram is sent for the first time; returns its number.
    pub(super) fn put(&mut self, now: Time, payload: &D) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let copy = Copy { due: now + self.spacing, number, payload: payload.clone(), left: self.more };
        self.waiting.push_back(copy);
        number
    }

    /// The next copy that is due: its number and its data.
    pub(super) fn poll(&mut self, now: Time) -> Option<(u32, D)> {
        if self.waiting.front()?.due > now {
            return None;
        }
        let mut copy = self.waiting.pop_front()?;
        let sent = (copy.number, copy.payload.clone());
        if copy.left > 1 {
            copy.left -= 1;
            copy.due = now + self.spacing;
            self.waiting.push_back(copy);
        }
        Some(sent)
    }

    /// When the next copy is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.waiting.front().map(|copy| copy.due)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The number and the data of a received datagram; `None` if it is too short for a number.
///
/// The simulator's datagrams carry the number beside the data. On the wire it is the beginning of the data, because a decoder of
/// UDP does not know what the data mean.
pub(super) fn numbered<D: Payload>(packet: &Datagram<D>) -> Option<(u32, D)> {
    if let Some(number) = packet.number {
        return Some((number, packet.payload.clone()));
    }
    let number = packet.payload.as_bytes().first_chunk::<NUMBER_BYTES>()?;
    let data = packet.payload.slice(NUMBER_BYTES, packet.payload.len() - NUMBER_BYTES);
    Some((u32::from_be_bytes(*number), data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    #[test]
    fn three_copies_are_the_datagram_and_two_spaced_repetitions() {
        assert!(Copies::<Virtual>::new(1, Time::ZERO).is_none());
        let mut copies = Copies::new(3, Time::from_millis(10)).unwrap();
        assert_eq!((copies.put(Time::ZERO, &Virtual(7)), copies.put(Time::ZERO, &Virtual(8))), (0, 1));
        assert_eq!((copies.poll(Time::from_millis(9)), copies.next()), (None, Some(Time::from_millis(10))));

        let mut sent = Vec::new();
        for ms in 0..50 {
            while let Some((number, Virtual(length))) = copies.poll(Time::from_millis(ms)) {
                sent.push((ms, number, length));
            }
        }
        assert_eq!(sent, [(10, 0, 7), (10, 1, 8), (20, 0, 7), (20, 1, 8)]);
        assert!(copies.is_empty());
    }

    #[test]
    fn without_spacing_copies_follow_at_once() {
        let mut copies = Copies::new(2, Time::ZERO).unwrap();
        copies.put(Time::ZERO, &Virtual(7));
        assert_eq!((copies.poll(Time::ZERO), copies.poll(Time::ZERO)), (Some((0, Virtual(7))), None));
    }

    #[test]
    fn a_decoded_datagram_begins_with_its_number() {
        let received =
            |payload: &[u8]| numbered(&Datagram { header_bytes: 28, number: None, payload: payload.to_vec() });
        assert_eq!(received(&[0, 0, 1, 2, b'a']), Some((258, b"a".to_vec())));
        assert_eq!(received(&[0, 0, 1]), None, "too short for a number");
    }
}
