//! The Transmission Control Protocol (RFC 9293) as a sans-IO state machine.

mod ack_fields;
mod acknowledgements;
mod config;
pub mod congestion;
mod connection;
mod ecn;
mod extensions;
mod flight;
mod frto;
mod opening;
mod pace;
mod prr;
mod reassembly;
mod reduction;
mod segment;
mod sending;
mod span;
mod tail_loss_probe;
#[cfg(feature = "trains")]
pub mod trains;
pub mod variant;
mod window;

pub(in crate::protocol) use config::LARGEST_HEADER;
pub use config::{AckTimeout, TcpConfig, TimestampEcho, UniformSeconds};
pub use congestion::{CongestionControl, CubicConfig, HyblaConfig, VegasConfig};
pub use connection::TcpConnection;
pub use extensions::LossMeans;
pub(in crate::protocol) use extensions::{BestEffort, Compressed, ExtensionsConfig};
pub use segment::{
    Flags, MOST_SNACK_BYTES, SackBlock, SackBlocks, ScpsCapabilities, Segment, SnackReport, SynOptions, Timestamps,
};
pub use variant::Variant;
