//! Convolutional codes.

mod code;
mod ending;
pub mod parallel;

pub use code::{Code, CodeError};
pub use ending::Ending;
