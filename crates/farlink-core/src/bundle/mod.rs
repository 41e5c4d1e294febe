//! A bundle of links that carries packets as one: PPP Multilink (RFC 1990) without a socket or a clock.
//!
//! Packets are cut into [`Fragment`]s by [`Splitter`], which go over the members of the bundle by [`shares`] and come back
//! together in a [`Reassembler`]. Each member delivers in order; the bundle does not. [`Framing`] says what all of this costs on a
//! line, [`wire::mp`](crate::wire::mp) how it looks there.

mod fragment;
mod framing;
mod reassembly;
pub mod shares;

pub use fragment::{Fragment, Numbering, Splitter};
pub use framing::Framing;
pub use reassembly::{Counts, Reassembler};
