//! The transport protocol of the Space Communications Protocol Specification (SCPS-TP, CCSDS 714.0-B-2; Durst, Miller and
//! Travis, "TCP extensions for space communications", Wireless Networks 3, 1997).
//!
//! SCPS-TP is TCP with options, and speaks to any TCP: so its endpoint is [`TcpConnection`](super::tcp::TcpConnection), and
//! this module only says what a scenario may ask of it.

mod config;

pub use config::ScpsConfig;
