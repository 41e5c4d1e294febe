//! Packet erasure codes.
