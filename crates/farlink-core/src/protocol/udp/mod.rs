//! The User Datagram Protocol (RFC 768): no acknowledgements, no ordering, no rate control.

mod config;
mod heard;
mod numbers;

use std::collections::VecDeque;

use crate::endpoint::{Damage, Endpoint, Integrity, Packet, Rx, Stream, Transmit};
use crate::event::Event;
use crate::payload::Payload;
use crate::protocol::parts::repeats::Repeats;
use crate::time::Time;

use heard::Heard;

pub use config::UdpConfig;
pub use numbers::NUMBER_BYTES;

/// A UDP datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram<D> {
    /// Bytes of headers on the wire (UDP and IP), with the parity of a code around the packet.
    pub header_bytes: u16,
    /// The number in front of the data, if datagrams are sent several times. It counts from 0 and wraps.
    pub number: Option<u32>,
    /// Application data.
    pub payload: D,
}

impl<D: Payload> Packet for Datagram<D> {
    #[inline]
    fn wire_bytes(&self) -> u32 {
        u32::from(self.header_bytes) + self.payload.len() as u32
    }

    #[inline]
    fn payload_bytes(&self) -> u32 {
        self.payload.len() as u32
    }

    fn stream_position(&self) -> Option<u32> {
        None
    }

    #[inline(always)]
    fn is_datagram(&self) -> bool {
        true
    }

    #[inline(always)]
    fn datagram_number(&self) -> Option<u32> {
        self.number
    }

    /// The checksum covers header and payload: a datagram with damage that the code cannot correct is dropped.
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        damage.all_or_nothing(self.wire_bytes())
    }
}

/// One side of a UDP association: each write is sent at once, in datagrams of at most the configured size.
#[derive(Clone, Debug)]
pub struct Socket<D> {
    header_bytes: u16,
    segment_bytes: usize,
    /// If every datagram is sent several times.
    copies: Option<Box<Copies<D>>>,
    outgoing: VecDeque<D>,
    incoming: VecDeque<D>,
    sent_bytes: u64,
    is_closing: bool,
    is_closed: bool,
}

/// State of a side if every datagram is sent several times.
#[derive(Clone, Debug)]
struct Copies<D> {
    /// Numbers and data to be sent again.
    waiting: Repeats<(u32, D)>,
    next_number: u32,
    /// Datagrams that have arrived already.
    heard: Heard,
}

impl<D: Payload> Copies<D> {
    fn new(config: &UdpConfig) -> Option<Self> {
        let transmissions = u32::try_from(config.copies.whole()).unwrap_or(u32::MAX);
        let waiting = Repeats::new(transmissions, config.copy_spacing_s.time())?;
        Some(Copies { waiting, next_number: 0, heard: Heard::default() })
    }

    /// A datagram is sent for the first time; returns its number.
    fn on_sent(&mut self, now: Time, payload: &D) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.waiting.put(now, (number, payload.clone()));
        number
    }
}

impl<D: Payload> Socket<D> {
    /// The two sides.
    pub fn pair(config: &UdpConfig) -> (Self, Self) {
        let side = || Socket {
            header_bytes: u16::try_from(config.overhead_bytes()).unwrap_or(u16::MAX),
            segment_bytes: usize::try_from(config.segment_bytes.whole()).unwrap_or(usize::MAX),
            copies: Copies::new(config).map(Box::new),
            outgoing: VecDeque::new(),
            incoming: VecDeque::new(),
            sent_bytes: 0,
            is_closing: false,
            is_closed: false,
        };
        (side(), side())
    }
}

impl<D: Payload> Endpoint for Socket<D> {
    type Packet = Datagram<D>;

    fn handle_packet(&mut self, _now: Time, packet: &Datagram<D>, rx: Rx) {
        if rx.integrity == Integrity::PayloadDamaged || packet.payload.is_empty() {
            return;
        }
        let Some(copies) = self.copies.as_deref_mut() else {
            self.incoming.push_back(packet.payload.clone());
            return;
        };
        if let Some((number, payload)) = numbers::numbered(packet)
            && copies.heard.is_new(number)
        {
            self.incoming.push_back(payload);
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Datagram<D>>> {
        if let Some(copies) = self.copies.as_deref_mut()
            && let Some((number, payload)) = copies.waiting.poll(now, |_| true)
        {
            let number = Some(number);
            return Some(Transmit::plain(Datagram { header_bytes: self.header_bytes, number, payload }));
        }
        let waiting = self.outgoing.front_mut()?;
        let payload = waiting.split_to(waiting.len().min(self.segment_bytes));
        if waiting.is_empty() {
            self.outgoing.pop_front();
        }
        self.sent_bytes += payload.len() as u64;
        let number = self.copies.as_deref_mut().map(|copies| copies.on_sent(now, &payload));
        Some(Transmit::plain(Datagram { header_bytes: self.header_bytes, number, payload }))
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        let has_copies = self.poll_timeout().is_some();
        if self.is_closing && !self.is_closed && self.outgoing.is_empty() && !has_copies {
            self.is_closed = true;
            return Some(Event::Closed);
        }
        None
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        self.copies.as_deref().and_then(|copies| copies.waiting.next())
    }
}

impl<D: Payload> Stream<D> for Socket<D> {
    fn write(&mut self, _now: Time, data: &mut D) -> usize {
        let n = data.len();
        if n > 0 && !self.is_closing {
            self.outgoing.push_back(std::mem::take(data));
            return n;
        }
        0
    }

    fn read(&mut self) -> Option<D> {
        self.incoming.pop_front()
    }

    fn close(&mut self, _now: Time) {
        self.is_closing = true;
    }

    fn settled_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::payload::Virtual;
    use crate::units::Count;
    use crate::wire::{Codec, Envelope};

    /// Over sockets a datagram's number lies in its payload.
    #[test]
    fn encoded_copies_are_delivered_once() {
        let config = UdpConfig { copies: Count::new(3.0).unwrap(), ..UdpConfig::default() };
        let (mut sender, mut receiver) = Socket::<Bytes>::pair(&config);
        for text in ["one", "two", "two"] {
            sender.write(Time::ZERO, &mut Bytes::from(text));
        }
        let mut sent = 0;
        while let Some(datagram) = sender.poll_transmit(Time::ZERO) {
            let mut bytes = Vec::new();
            datagram.packet.encode(&Envelope::simulated(0), &mut bytes).unwrap();
            assert_eq!(bytes.len() as u32, datagram.packet.wire_bytes());
            let decoded = Datagram::<Bytes>::decode(bytes.into()).unwrap();
            receiver.handle_packet(Time::ZERO, &decoded.packet, Rx::default());
            sent += 1;
        }
        let read: Vec<Bytes> = std::iter::from_fn(|| receiver.read()).collect();
        assert_eq!((sent, read), (9, ["one", "two", "two"].map(Bytes::from).to_vec()));
    }

    #[test]
    fn cuts_a_write_into_datagrams_and_closes_when_they_are_out() {
        let (mut sender, mut receiver) = Socket::pair(&UdpConfig::default());
        assert_eq!(sender.write(Time::ZERO, &mut Virtual(3000)), 3000);
        sender.close(Time::ZERO);
        let mut got = Vec::new();
        while let Some(sent) = sender.poll_transmit(Time::ZERO) {
            receiver.handle_packet(Time::ZERO, &sent.packet, Rx::default());
            got.extend(receiver.read());
        }
        assert_eq!(got, [Virtual(1472), Virtual(1472), Virtual(56)]);
        assert_eq!((sender.poll_event(), sender.poll_event()), (Some(Event::Closed), None));
    }
}
