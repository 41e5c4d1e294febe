//! The transport protocol of the Space Communications Protocol Specification (SCPS-TP, CCSDS 714.0-B-2; Durst, Miller and
//! Travis, "TCP extensions for space communications", Wireless Networks 3, 1997).
//!
//! SCPS-TP is TCP with options, and interoperates with any TCP. Its endpoint is [`TcpConnection`](super::tcp::TcpConnection), and
//! this module has only its configuration.

mod config;

pub use config::ScpsConfig;
