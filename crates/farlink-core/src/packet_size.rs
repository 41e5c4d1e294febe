//! The largest length of a packet.

use crate::ConfigError;
use crate::units::Count;

/// A packet has at most 65,535 bytes (the length field of IP).
pub(crate) const LARGEST_PACKET: u64 = 65_535;

/// Checks that a full packet is no longer than [`LARGEST_PACKET`].
pub(crate) fn check(header: Count, payload: Count) -> Result<(), ConfigError> {
    let bytes = header.whole() + payload.whole();
    if bytes <= LARGEST_PACKET {
        return Ok(());
    }
    let what = format!("{} with header_bytes = {} make a packet of {bytes} bytes", payload.get(), header.get());
    Err(ConfigError::new("segment_bytes", what, format!("packets have at most {LARGEST_PACKET} bytes")))
}
