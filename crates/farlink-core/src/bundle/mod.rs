//! A bundle of links that carries packets as one: PPP Multilink (RFC 1990) without a socket or a clock.
//!
//! Packets are cut into [`Fragment`]s by [`Splitter`], which go over the members of the bundle by [`shares`] and come back
//! together in a [`Reassembler`]; [`linux`] has the rules of Linux for both. Each member delivers in order; the bundle does not.
//! [`Framing`] says what all of this costs on a line, [`wire::mp`](crate::wire::mp) how it looks there. [`Multilink`] is one
//! direction of a whole bundle in virtual time, with the [`Calls`] of its lines.

mod arq;
mod availability;
mod calls;
mod config;
mod fragment;
mod framing;
mod line;
mod line_config;
pub mod linux;
mod multilink;
mod piece;
mod reassembly;
mod receiver;
mod schedule;
pub mod shares;

pub use arq::LinkArq;
pub use availability::Availability;
pub use calls::{CallState, Calls, CallsConfig, Change, Primary};
pub use config::{BundleConfig, Cut, Header, Member, OnDrop, Peer, ReceiverRule};
pub use fragment::{Fragment, Numbering, Splitter};
pub use framing::Framing;
pub use line_config::LineConfig;
pub use multilink::{Counts, Multilink, Outcome};
pub use reassembly::{Counts as ReceiverCounts, Reassembler};
pub use schedule::Scheduler;
