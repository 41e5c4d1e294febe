//! The keys of a UDP transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Socket;
use super::numbers::NUMBER_BYTES;
use crate::correction::Correction;
use crate::payload::Payload;
use crate::protocol::{Idle, Pace};
use crate::units::{Count, PositiveSeconds, Seconds};

/// Largest number of copies of a datagram; more would leave no capacity for other data.
const MOST_COPIES: u64 = 100;

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
    /// Number of transmissions of every datagram, for links without a way back. The receiver passes the first one that arrives on
    /// to the application. With 2 or more, each datagram has a number of 4 bytes in front of its data, and the second and later
    /// ones count as retransmitted.
    #[schemars(extend("maximum" = MOST_COPIES))]
    pub copies: Count,
    /// Time between two copies of a datagram, in seconds; longer than an outage, for copies that survive it.
    pub copy_spacing_s: Seconds,
    /// A code around each packet that corrects wrong bits. None by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
}

impl Default for UdpConfig {
    fn default() -> Self {
        let count = |n: u32| Count::new(f64::from(n)).expect("a constant within its range");
        UdpConfig {
            header_bytes: count(28),
            segment_bytes: count(1472),
            copies: count(1),
            copy_spacing_s: Seconds::new(0.0).expect("a constant within its range"),
            correction: None,
        }
    }
}

impl crate::protocol::ProtocolConfig for UdpConfig {
    fn pace(&self) -> Pace {
        let headers = self.header_bytes.get() + self.number_bytes() as f64;
        let copies = self.copies.get();
        Pace { adapts: false, answers: 0.0, copies, ..Pace::unbounded(self.segment_bytes.get(), headers) }
    }

    fn longest_packet(&self) -> crate::protocol::LongestPacket {
        let headers = self.header_bytes.whole() + self.number_bytes();
        crate::protocol::LongestPacket::of_segments(headers, self.segment_bytes, self.correction)
    }

    fn check(&self) -> Result<(), crate::ConfigError> {
        crate::packet_size::check(self.header_bytes, self.segment_bytes)?;
        if self.copies.whole() > MOST_COPIES {
            let what = format!("{} copies of each datagram leave no capacity for anything else", self.copies.get());
            return Err(crate::ConfigError::new("copies", what, format!("give at most {MOST_COPIES}")));
        }
        if self.full_bytes() > crate::packet_size::LARGEST_PACKET {
            let what = format!("packets have {} bytes with the numbers that copies need", self.full_bytes());
            let remedy = format!("packets have at most {} bytes; shorten them", crate::packet_size::LARGEST_PACKET);
            return Err(crate::ConfigError::new("segment_bytes", what, remedy));
        }
        self.correction.map_or(Ok(()), |correction| {
            correction.check(self.full_bytes()).map_err(|error| error.within("correction"))
        })
    }

    fn check_duration(&self, duration: PositiveSeconds) -> Result<(), crate::ConfigError> {
        let (spacing_s, duration_s) = (self.copy_spacing_s.get(), duration.get());
        if spacing_s < duration_s {
            return Ok(());
        }
        let what =
            format!("{spacing_s} s is no shorter than the run (duration_s = {duration_s}), so that no copy is sent");
        Err(crate::ConfigError::new("copy_spacing_s", what, "space copies closer, or run for longer"))
    }

    fn idle(&self) -> Vec<Idle> {
        let is_sent_once = self.copies.whole() == 1;
        Idle::when(is_sent_once, "copy_spacing_s", "every datagram is sent once", "copies = 2").into_iter().collect()
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
    /// Length of the number that tells copies from new data.
    fn number_bytes(&self) -> u64 {
        if self.copies.whole() > 1 { NUMBER_BYTES as u64 } else { 0 }
    }

    /// A full packet without its code.
    fn full_bytes(&self) -> u64 {
        self.header_bytes.whole() + self.number_bytes() + self.segment_bytes.whole()
    }

    /// Headers of every packet, and the parity of a full one.
    pub(super) fn overhead_bytes(&self) -> u64 {
        let full = u32::try_from(self.full_bytes()).unwrap_or(u32::MAX);
        let parity = self.correction.map_or(0, |correction| u64::from(correction.parity_bytes(full)));
        self.header_bytes.whole() + self.number_bytes() + parity
    }
}
