//! AeroTP over UDP, sealed: the state machines of `farlink-core` between real hosts.
//!
//! [`seal`] has keys and handshake, [`files`] what sends files over a stream.

pub mod files;
pub mod seal;
