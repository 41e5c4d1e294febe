//! The Transmission Control Protocol (RFC 9293) as a sans-IO state machine.

mod config;
mod segment;
pub mod variant;

pub use config::{RtoConfig, TcpConfig};
pub use segment::{Flags, SackBlock, SackBlocks, Segment, SynOptions, Timestamps};
