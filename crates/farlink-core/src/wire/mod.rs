//! Typed packets to bytes and back.
