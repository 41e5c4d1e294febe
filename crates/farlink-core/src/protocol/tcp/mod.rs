//! The Transmission Control Protocol (RFC 9293) as a sans-IO state machine.

mod chunks;
mod config;
mod connection;
mod events;
mod express;
mod reassembly;
mod rto;
mod segment;
pub mod variant;
mod window;

pub use config::{RtoConfig, TcpConfig};
pub use connection::Connection;
pub use segment::{Flags, PlainSegment, SackBlock, SackBlocks, Segment, SynOptions, Timestamps};
pub use variant::Variant;
