//! Convolutional codes: encoder, decoders, puncturing, distance spectra and bounds.

pub mod bounds;
mod code;
mod encoder;
mod ending;
mod known;
pub mod parallel;
mod puncture;
mod rcpc;
mod serial;
mod spectrum;
#[cfg(test)]
mod test_codes;
mod trellis;

pub use code::{CONSTRAINT_LENGTHS, Code, CodeError};
pub use encoder::Encoder;
pub use ending::Ending;
pub use known::{KNOWN, KnownCode};
pub use puncture::{Puncturing, PuncturingError};
pub use rcpc::Rcpc;
pub use serial::{DecodeError, Decoded, Stream, Viterbi};
pub use spectrum::{ErrorEvent, Spectrum, Term, events_up_to};
