//! Simulators and what they measure: event loop, metrics, captures.
#![forbid(unsafe_code)]

pub mod pcap;
