//! Packet erasure codes: the receiver knows which packets are lost, and recovers their content from the others.
//!
//! * [`Mds`]: k data and m parity blocks, any k of which suffice. It picks [`Cauchy`] (up to 256 blocks, the faster) or
//!   [`Many`] (up to 65,536).
//! * [`RaptorQ`]: any number of repair symbols; k symbols or slightly more suffice.
//! * [`theory`]: the residual loss in closed form.

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
