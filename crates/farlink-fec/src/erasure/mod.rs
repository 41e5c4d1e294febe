//! Packet erasure codes: which packets are lost is known, and what was in them is worked out from the others.
//!
//! * [`Mds`]: k data and m parity blocks, any k of which suffice. It picks [`Cauchy`] (up to 256 blocks, the faster) or
//!   [`Many`] (up to 65,536).
//! * [`RaptorQ`]: as many repair symbols as are wanted; k or slightly more suffice.
//! * [`theory`]: what remains lost, in closed form.

mod cauchy;
mod error;
mod kernel;
mod many;
mod mds;
mod raptorq;
pub mod theory;

pub use cauchy::{Cauchy, Workspace};
pub use error::MdsError;
pub use many::Many;
pub use mds::Mds;
pub use raptorq::{RaptorQ, RaptorQEncoder, RaptorQError};
