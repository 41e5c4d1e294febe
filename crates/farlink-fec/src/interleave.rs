//! Block interleavers.
