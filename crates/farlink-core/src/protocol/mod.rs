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

/// The configuration of a transport.
pub trait ProtocolConfig {
    /// Checks rules that the types cannot express; paths are relative to the transport's table.
    ///
    /// # Errors
    /// If keys contradict each other.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Keys without effect because of the others. If the user gives one, it is refused.
    fn idle(&self) -> Vec<Idle> {
        Vec::new()
    }

    /// Checks rules that depend on the duration of a run; paths are relative to the transport's table.
    ///
    /// # Errors
    /// If something would only happen after the end of the run.
    fn check_duration(&self, _duration: PositiveSeconds) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The code around each of its packets.
    fn correction(&self) -> Option<Correction> {
        None
    }

    /// The longest time for which its retransmission timer ever waits; `None` if it has no such timer.
    fn longest_timeout(&self) -> Option<LongestTimeout> {
        None
    }

    /// The largest window and its acknowledgements; `None` if no window limits the sender.
    fn flight(&self) -> Option<Flight> {
        None
    }

    /// Whether each write is a separate datagram, so that there is no stream that a gateway could pass on.
    fn carries_datagrams(&self) -> bool {
        false
    }

    /// Its longest packet with data, without rare options.
    fn longest_packet(&self) -> LongestPacket;

    /// The largest load of one connection.
    fn pace(&self) -> Pace;

    /// Whether a window or a rate limits the sender, so that it may have more to send than a path carries.
    fn is_bounded(&self) -> bool {
        true
    }
}

/// Length of the longest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestPacket {
    /// The key that limits its data, relative to the transport's table.
    pub key: &'static str,
    /// The largest data, from `key`.
    pub data_bytes: u64,
    /// Headers and checks around the data that `key` does not include.
    pub overhead_bytes: u64,
}

impl LongestPacket {
    /// A packet with `header_bytes` around `segment_bytes`, and the parity of a code around both.
    fn of_segments(header_bytes: u64, segment_bytes: Count, correction: Option<Correction>) -> Self {
        let data_bytes = segment_bytes.whole();
        let bytes = u32::try_from(header_bytes + data_bytes).unwrap_or(u32::MAX);
        let parity_bytes = correction.map_or(0, |correction| u64::from(correction.parity_bytes(bytes)));
        LongestPacket { key: "segment_bytes", data_bytes, overhead_bytes: header_bytes + parity_bytes }
    }
}

/// The longest time for which a retransmission timer waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongestTimeout {
    /// The key that sets it, relative to the transport's table.
    pub key: String,
    /// The value of `key`.
    pub value: Time,
    /// The first timeout.
    pub first: Time,
    /// The longest timeout of all.
    pub ever: Time,
    /// The longest timeout before the first answer.
    pub unanswered: Time,
    /// The consequence if no answer can arrive within that time.
    pub otherwise: &'static str,
}

impl LongestTimeout {
    fn within(self, table: &str) -> Self {
        LongestTimeout { key: format!("{table}.{}", self.key), ..self }
    }
}

/// A transport that can make both its sides.
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
