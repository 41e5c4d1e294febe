//! The User Datagram Protocol (RFC 768): no acknowledgements, no ordering, no rate control.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::correction::Correction;
use crate::endpoint::{Damage, Endpoint, Integrity, Packet, Rx, Stream, Transmit};
use crate::event::Event;
use crate::payload::Payload;
use crate::protocol::Pace;
use crate::time::Time;
use crate::units::Count;

/// A UDP transport.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UdpConfig {
    /// UDP and IP headers on the wire, in bytes.
    #[schemars(extend("maximum" = crate::packet_size::LARGEST_PACKET))]
    pub header_bytes: Count,
    /// Largest payload of a datagram, in bytes; longer writes are cut into several datagrams.
    #[schemars(extend("maximum" = crate::packet_size::LARGEST_PACKET))]
    pub segment_bytes: Count,
    /// A code around each packet that corrects wrong bits. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
}

impl Default for UdpConfig {
    fn default() -> Self {
        let count = |n: u32| Count::new(f64::from(n)).expect("a constant within its range");
        UdpConfig { header_bytes: count(28), segment_bytes: count(1472), correction: None }
    }
}

impl crate::protocol::ProtocolConfig for UdpConfig {
    fn pace(&self) -> Pace {
        Pace { adapts: false, answers: 0.0, ..Pace::unbounded(self.segment_bytes.get(), self.header_bytes.get()) }
    }

    fn longest_packet(&self) -> crate::protocol::LongestPacket {
        crate::protocol::LongestPacket::of_segments(self.header_bytes.whole(), self.segment_bytes, self.correction)
    }

    fn check(&self) -> Result<(), crate::ConfigError> {
        crate::packet_size::check(self.header_bytes, self.segment_bytes)?;
        self.correction.map_or(Ok(()), |correction| {
            correction.check(self.full_bytes()).map_err(|error| error.within("correction"))
        })
    }

    fn correction(&self) -> Option<Correction> {
        self.correction
    }

    fn is_bounded(&self) -> bool {
        false
    }

    fn carries_datagrams(&self) -> bool {
        true
    }
}

impl<D: Payload> crate::protocol::Pairs<D> for UdpConfig {
    type End = Socket<D>;

    fn pair(&self, _seed: u64) -> (Socket<D>, Socket<D>) {
        Socket::pair(self)
    }
}

impl UdpConfig {
    /// A full packet without its code.
    fn full_bytes(&self) -> u64 {
        self.header_bytes.whole() + self.segment_bytes.whole()
    }

    /// Headers of every packet, and the parity of a full one.
    fn overhead_bytes(&self) -> u64 {
        let full = u32::try_from(self.full_bytes()).unwrap_or(u32::MAX);
        self.header_bytes.whole() + self.correction.map_or(0, |correction| u64::from(correction.parity_bytes(full)))
    }
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram<D> {
    /// Bytes of headers on the wire (UDP and IP), with the parity of a code around the packet.
    pub header_bytes: u16,
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
    outgoing: VecDeque<D>,
    incoming: VecDeque<D>,
    sent_bytes: u64,
    is_closing: bool,
    is_closed: bool,
}

impl<D: Payload> Socket<D> {
    /// The two sides.
    pub fn pair(config: &UdpConfig) -> (Self, Self) {
        let side = || Socket {
            header_bytes: u16::try_from(config.overhead_bytes()).unwrap_or(u16::MAX),
            segment_bytes: usize::try_from(config.segment_bytes.whole()).unwrap_or(usize::MAX),
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
        if rx.integrity != Integrity::PayloadDamaged && !packet.payload.is_empty() {
            self.incoming.push_back(packet.payload.clone());
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    #[inline]
    fn poll_transmit(&mut self, _now: Time) -> Option<Transmit<Datagram<D>>> {
        let waiting = self.outgoing.front_mut()?;
        let payload = waiting.split_to(waiting.len().min(self.segment_bytes));
        if waiting.is_empty() {
            self.outgoing.pop_front();
        }
        self.sent_bytes += payload.len() as u64;
        Some(Transmit::plain(Datagram { header_bytes: self.header_bytes, payload }))
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        if self.is_closing && !self.is_closed && self.outgoing.is_empty() {
            self.is_closed = true;
            return Some(Event::Closed);
        }
        None
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        None
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
    use super::*;
    use crate::payload::Virtual;

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
