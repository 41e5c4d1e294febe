//! AeroTP over UDP, sealed: the state machines of `farlink-core` between real hosts.
//!
//! [`seal`] has keys and handshake, [`mux`] sessions and connections without a socket, [`files`] what sends files over a stream.

pub mod files;
pub mod mux;
pub mod seal;
