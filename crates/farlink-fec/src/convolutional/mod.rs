//! Convolutional codes: encoder, decoders, puncturing, distance spectra and bounds.

mod code;
mod encoder;
mod ending;
mod known;
pub mod parallel;
mod serial;
#[cfg(test)]
mod test_codes;

pub use code::{Code, CodeError};
pub use encoder::Encoder;
pub use ending::Ending;
pub use known::{KNOWN, KnownCode};
pub use serial::{DecodeError, Decoded, Stream, Viterbi};
