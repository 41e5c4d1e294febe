//! What a scenario says about an AeroTP transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::payload::Payload;
use crate::protocol::{LARGEST_PACKET, Pairs};
use crate::scenario::ScenarioError;
use crate::time::Time;
use crate::units::{BitRate, Count, CountToMillion, PositiveSeconds};

use super::clock::LONGEST_HELD;
use super::connection::Connection;
use super::mode::Mode;
use super::segment::{CRC_BYTES, OPENING_BYTES};

/// Copies of a segment, at most.
const MOST_COPIES: u64 = 16;
/// Positions are told apart over half of their numbers.
pub(super) const LARGEST_BUFFER: u64 = 1 << 30;

/// Which side opens the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Opens {
    /// The side that has data to send; the other one listens.
    #[default]
    Sender,
    /// Both sides, at the same time.
    Both,
}

/// AeroTP: opens with its first data, paced, in five modes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AerotpConfig {
    /// What the connection guarantees.
    pub mode: Mode,
    /// The largest packet on the wire: headers, payload, parity and check.
    pub packet_bytes: Count,
    /// Headers on the wire: those below AeroTP and its own 20 bytes, before optional fields.
    pub header_bytes: Count,
    /// Send no faster than this, headers included; unless given, all that the receiver's buffer takes goes out at once.
    pub rate_bps: Option<BitRate>,
    /// Segments that an acknowledgement (MACK) waits for; from the rate at which they arrive unless given.
    pub acks_per_mack: Option<CountToMillion>,
    /// So long an acknowledgement waits at most.
    pub mack_timeout_s: PositiveSeconds,
    /// How often each segment is sent, copies included.
    pub copies: Count,
    /// What a receiver keeps, in order and out of order; as much may be under way.
    pub receive_buffer_bytes: Count,
    /// Until the round-trip time is known, the first segments are sent again after so long, then twice as long, ...
    pub initial_rto_s: PositiveSeconds,
    /// A connection is given up if nothing is heard from the peer for so long although something awaits its answer.
    pub give_up_after_s: PositiveSeconds,
    /// When nothing was sent or heard for so long, the peer is asked whether it is still there; never unless given.
    pub keep_alive_s: Option<PositiveSeconds>,
    /// A connection is given up if so long after the end of its own stream not both have ended; never unless given.
    pub close_timeout_s: Option<PositiveSeconds>,
    /// So long a connection that is over answers a peer that does not know that yet; `give_up_after_s` unless given.
    pub listen_timeout_s: Option<PositiveSeconds>,
    /// So much is taken of a peer before it has shown that it hears the answers; `receive_buffer_bytes` unless given.
    pub half_open_bytes: Option<Count>,
    /// Which side opens the connection.
    pub opens: Opens,
}

impl Default for AerotpConfig {
    fn default() -> Self {
        let count = |n: u32| Count::new(f64::from(n)).expect("a constant within its range");
        let seconds = |s| PositiveSeconds::new(s).expect("a constant within its range");
        AerotpConfig {
            mode: Mode::default(),
            packet_bytes: count(1500),
            header_bytes: count(40),
            rate_bps: None,
            acks_per_mack: None,
            mack_timeout_s: seconds(0.05),
            copies: count(1),
            receive_buffer_bytes: count(16 << 20),
            initial_rto_s: seconds(1.0),
            give_up_after_s: seconds(3600.0),
            keep_alive_s: None,
            close_timeout_s: None,
            listen_timeout_s: None,
            half_open_bytes: None,
            opens: Opens::default(),
        }
    }
}

impl crate::protocol::ProtocolConfig for AerotpConfig {
    fn check(&self) -> Result<(), ScenarioError> {
        self.check_sizes()?;
        if self.copies.whole() > MOST_COPIES {
            let what = format!("{} copies of each segment are not sent", self.copies.get());
            return Err(ScenarioError::new("copies", what, format!("give at most {MOST_COPIES}")));
        }
        if self.receive_buffer_bytes.whole() > LARGEST_BUFFER {
            let what = format!("{} bytes are more than sequence numbers tell apart", self.receive_buffer_bytes.get());
            return Err(ScenarioError::new("receive_buffer_bytes", what, format!("give at most {LARGEST_BUFFER}")));
        }
        if self.receive_buffer_bytes.whole() < self.packet_bytes.whole() {
            let what =
                format!("{} bytes hold no packet of {}", self.receive_buffer_bytes.get(), self.packet_bytes.get());
            return Err(ScenarioError::new("receive_buffer_bytes", what, "give at least packet_bytes"));
        }
        if let Some(half_open) = self.half_open_bytes
            && !(self.packet_bytes.whole()..=self.receive_buffer_bytes.whole()).contains(&half_open.whole())
        {
            let what = format!("{} bytes are not between a packet and the receive buffer", half_open.get());
            let remedy = "give at least packet_bytes and at most receive_buffer_bytes";
            return Err(ScenarioError::new("half_open_bytes", what, remedy));
        }
        if self.mack_timeout_s.time() >= LONGEST_HELD {
            let what = format!("{} s are longer than a MACK can say", self.mack_timeout_s.get());
            return Err(ScenarioError::new("mack_timeout_s", what, "give less than 1073 s"));
        }
        Ok(())
    }
}

impl<D: Payload> Pairs<D> for AerotpConfig {
    type End = Connection<D>;

    fn pair(&self, seed: u64) -> (Connection<D>, Connection<D>) {
        let server = match self.opens {
            Opens::Sender => Connection::listening(self, seed.wrapping_add(1)),
            Opens::Both => Connection::connecting(self, seed.wrapping_add(1)),
        };
        (Connection::connecting(self, seed), server)
    }
}

impl AerotpConfig {
    /// Payload of a full segment that opens a connection: the smallest full one.
    pub(super) fn payload_bytes(&self) -> u64 {
        let overhead = self.header_bytes.whole() + u64::from(OPENING_BYTES) + u64::from(CRC_BYTES);
        self.packet_bytes.whole().saturating_sub(overhead)
    }

    /// What is taken of a peer that is not known to hear.
    pub(super) fn half_open(&self) -> u64 {
        self.half_open_bytes.unwrap_or(self.receive_buffer_bytes).whole()
    }

    pub(super) fn listen_timeout(&self) -> Time {
        self.listen_timeout_s.unwrap_or(self.give_up_after_s).time()
    }

    fn check_sizes(&self) -> Result<(), ScenarioError> {
        if self.packet_bytes.whole() > LARGEST_PACKET {
            let what = format!("packets have at most {LARGEST_PACKET} bytes, not {}", self.packet_bytes.get());
            return Err(ScenarioError::new("packet_bytes", what, format!("give at most {LARGEST_PACKET}")));
        }
        if self.payload_bytes() == 0 {
            let what = format!(
                "{} leave no room for data behind {} bytes of headers and {} of checks",
                self.packet_bytes.get(),
                self.header_bytes.get(),
                u64::from(OPENING_BYTES) + u64::from(CRC_BYTES)
            );
            return Err(ScenarioError::new("packet_bytes", what, "give longer packets"));
        }
        Ok(())
    }
}
