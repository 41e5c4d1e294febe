//! The packet engine of farlink: a discrete-event simulation of the real protocol state machines.
#![forbid(unsafe_code)]

pub mod engine;
pub mod pcap;
