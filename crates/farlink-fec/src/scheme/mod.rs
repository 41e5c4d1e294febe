//! Modulation and coding together: what a link does to its bits.
