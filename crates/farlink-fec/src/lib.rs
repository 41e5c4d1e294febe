//! Modulations and error-correcting codes: encoders, fast decoders, error rates, and the error bursts after decoding.
//!
//! This is the only crate of farlink with SIMD and `unsafe`. Every fast path has a portable one that gives the same bits
//! ([`simd`]). Conventions:
//!
//! * Data and coded bits are packed into bytes, first bit in the most significant position ([`bits`]).
//! * A received symbol of a binary code is an `i8` ([`Soft`]): positive for a 0, negative for a 1, its size the
//!   confidence, and 0 for no knowledge at all (a punctured bit). Hard decisions are +1 and -1.

pub mod awgn;
pub mod bch;
pub mod bits;
pub mod convolutional;
pub mod crc;
pub mod erasure;
pub mod events;
pub mod gf256;
pub mod interleave;
pub mod modulation;
pub mod monte_carlo;
pub mod reed_solomon;
pub mod scheme;
pub mod simd;

/// A received binary symbol: positive for a 0, negative for a 1, 0 if nothing is known. Full scale is ±127.
pub type Soft = i8;
