//! Authentication and keys: the handshake, and the keys of packets. Nothing here knows sockets or time.

pub(crate) mod cookie;
pub(crate) mod hello;
mod identity;
pub(crate) mod mac;
mod packet_key;
pub(crate) mod random;
pub(crate) mod renewal;
#[cfg(fuzzing)]
pub(crate) mod repeatable;
pub(crate) mod versions;

pub use identity::{KEY_BYTES, NoKey, PresharedKey, PublicKey, StaticKey};
#[cfg(test)]
pub(crate) use packet_key::nonces;
pub(crate) use packet_key::{SealingKey, Secret};
