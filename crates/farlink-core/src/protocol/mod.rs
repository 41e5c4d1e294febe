//! Transport protocols, each a sans-IO state machine. A protocol is one module and one line in `protocols`.

pub mod aerotp;
pub mod arq;
mod flight;
mod idle;
mod pace;
pub mod parts;
pub mod scps;
pub mod stp;
pub mod tcp;
pub mod udp;

use crate::ConfigError;
use crate::correction::Correction;
use crate::endpoint::Stream;
use crate::payload::Payload;
use crate::time::Time;
use crate::units::{Count, PositiveSeconds};

pub use flight::{Acknowledgements, Flight};
pub use idle::Idle;
pub use pace::Pace;

/// What a scenario says about a transport.
pub trait ProtocolConfig {
    /// Checks what the types cannot; paths are relative to the transport's table.
    ///
    /// # Errors
    /// If keys contradict each other.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Keys that have no effect beside the others: who gives one is told so.
    fn idle(&self) -> Vec<Idle> {
        Vec::new()
    }

    /// Checks what depends on how long a run lasts; paths are relative to the transport's table.
    ///
    /// # Errors
    /// If something would only happen after the end.
    fn check_duration(&self, _duration: PositiveSeconds) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The code around each of its packets.
    fn correction(&self) -> Option<Correction> {
        None
    }

    /// The longest that its retransmission timer ever waits; `None` if it has no such timer.
    fn longest_timeout(&self) -> Option<LongestTimeout> {
        None
    }

    /// The largest window and what answers it; `None` if no window bounds what is sent.
    fn flight(&self) -> Option<Flight> {
        None
    }

    /// Whether each write is a datagram by itself, and there is no stream that a gateway could pass on.
    fn carries_datagrams(&self) -> bool {
        false
    }

    /// Its longest packet with data, options that come now and then left out.
    fn longest_packet(&self) -> LongestPacket;

    /// Whether a window or a rate bounds what it sends, so that it may have more to send than a path carries.
    fn is_bounded(&self) -> bool {
        true
    }
}

/// How long packets get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestPacket {
    /// The key that bounds its data, relative to the transport's table.
    pub key: &'static str,
    /// See `key`.
    pub data_bytes: u64,
    /// Headers and checks around the data, if `key` does not count them.
    pub overhead_bytes: u64,
}

impl LongestPacket {
    /// With `header_bytes` around `segment_bytes`, and the parity of a code around both.
    fn of_segments(header_bytes: u64, segment_bytes: Count, correction: Option<Correction>) -> Self {
        let data_bytes = segment_bytes.whole();
        let bytes = u32::try_from(header_bytes + data_bytes).unwrap_or(u32::MAX);
        let parity_bytes = correction.map_or(0, |correction| u64::from(correction.parity_bytes(bytes)));
        LongestPacket { key: "segment_bytes", data_bytes, overhead_bytes: header_bytes + parity_bytes }
    }
}

/// How long a retransmission timer waits at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongestTimeout {
    /// The key that says so, relative to the transport's table, and its value.
    pub key: String,
    /// See `key`.
    pub value: Time,
    /// How long it waits the first time.
    pub first: Time,
    /// The longest that the timer ever waits.
    pub ever: Time,
    /// The longest that it waits until something was answered.
    pub unanswered: Time,
    /// What comes of it if no answer can be there so soon.
    pub otherwise: &'static str,
}

impl LongestTimeout {
    fn within(self, table: &str) -> Self {
        LongestTimeout { key: format!("{table}.{}", self.key), ..self }
    }
}

/// A transport whose two sides can be made.
pub trait Pairs<D: Payload>: ProtocolConfig {
    /// One side.
    type End: Stream<D>;

    /// The two sides of one flow, the one that opens it first.
    fn pair(&self, seed: u64) -> (Self::End, Self::End);
}

crate::registry::registry! {
    /// A transport, by its `kind`.
    protocols: TransportConfig as ProtocolConfig {
        Stp = "stp" => stp::StpConfig,
        Tcp = "tcp" => tcp::TcpConfig,
        ScpsTp = "scps-tp" => scps::ScpsConfig,
        Udp = "udp" => udp::UdpConfig,
        Arq = "arq" => arq::ArqConfig,
        Aerotp = "aerotp" => aerotp::AerotpConfig,
    }
}
