//! What strangers send.
