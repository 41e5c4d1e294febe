//! The User Datagram Protocol (RFC 768): one datagram per write, no acknowledgement, no order.

use crate::endpoint::{Damage, Integrity, Packet};
use crate::payload::Payload;

/// A UDP datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram<D> {
    /// Bytes of headers on the wire (UDP and IP).
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

    /// The checksum covers header and payload: any damage loses the datagram.
    fn inspect(&self, damage: &Damage<'_>) -> Option<Integrity> {
        damage.bits.is_empty().then_some(Integrity::Intact)
    }
}

/// A UDP transport.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UdpConfig {
    /// UDP and IP headers on the wire.
    pub header_bytes: crate::units::Count,
    /// Largest payload of one datagram; bulk and file traffic is cut into pieces of this size.
    pub segment_bytes: crate::units::Count,
}

impl Default for UdpConfig {
    fn default() -> Self {
        let count = |n: u32| crate::units::Count::new(f64::from(n)).expect("a constant within its range");
        UdpConfig { header_bytes: count(28), segment_bytes: count(1472) }
    }
}

impl crate::protocol::ProtocolConfig for UdpConfig {
    fn check(&self) -> Result<(), crate::scenario::ScenarioError> {
        crate::protocol::check_packet_size(self.header_bytes, self.segment_bytes)
    }
}
