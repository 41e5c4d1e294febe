//! Packet erasure codes: which packets are lost is known, and what was in them is worked out from the others.

mod cauchy;
mod error;
mod kernel;

pub use cauchy::{Cauchy, Workspace};
pub use error::MdsError;
