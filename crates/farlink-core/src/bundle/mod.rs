//! A bundle of links that carries packets as one: PPP Multilink (RFC 1990) without a socket or a clock.
//!
//! A [`Splitter`] cuts packets into [`Fragment`]s, [`shares`] says how many bytes of a packet each member of the bundle carries,
//! and a [`Reassembler`] puts the packets together again. The module [`linux`] has the rules of Linux for sender and receiver.
//! Each member delivers in order; the bundle as a whole does not. [`Framing`] computes the bytes that a fragment takes on a line,
//! and [`wire::mp`](crate::wire::mp) encodes its header. [`Multilink`] is one direction of a whole bundle in virtual time, with
//! the [`Calls`] of its lines.

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
