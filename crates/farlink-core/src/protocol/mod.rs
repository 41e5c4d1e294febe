//! Transport protocols, each a sans-IO state machine.

pub mod tcp;
pub mod udp;
