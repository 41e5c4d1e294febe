//! A bundle of links that carries packets as one: PPP Multilink (RFC 1990) without a socket or a clock.
//!
//! A [`Sender`] has the queue and gives packets, whole or cut into [`Fragment`]s, to [`Lines`]: emulated ones, or the
//! modems of a real bundle. A [`Reassembler`] at the far end puts the packets together again; the module [`linux`] has
//! the rules of Linux for both. Each line delivers in order; the bundle as a whole does not. Packets are any
//! [`Payload`](crate::Payload): bytes or lengths.
//!
//! A [`Dialler`] decides when each line is dialled; [`PppConfig`] and [`EchoConfig`] say how PPP sets a line up and how it finds out
//! that a call has dropped. The dialler's driver reports what happens to calls: an operator of real
//! modems, or [`Calls`], which draws it at random. [`EmulatedBundle`] is one direction of a whole bundle in virtual
//! time: a sender, emulated lines with their calls, and the receiver. [`Framing`] computes the bytes that a fragment
//! takes on a line, [`wire::mp`](crate::wire::mp) encodes its header, and [`shares`] computes how many bytes of a
//! packet each line carries.

mod arq;
mod calls;
mod calls_config;
mod config;
mod dialler;
mod emulated;
mod fragment;
mod framing;
mod line_config;
mod lines;
pub mod linux;
mod piece;
mod ppp;
mod reassembly;
mod receiver;
mod schedule;
mod sender;
pub mod shares;

pub use arq::{ArqChange, LinkArq};
pub use calls::Calls;
pub use calls_config::{CallsConfig, Primary};
pub use config::{BundleConfig, BundleReturn, Confirmation, Cut, Header, Member, OnDrop, Peer, ReceiverRule};
pub use dialler::{
    Action, Alert, Budget, BundleBudget, BundleEvent, CallState, Change, Dialler, DiallerConfig, Limits, LineEvent,
    LineRules, LineStatus, NotATime, OperatedDialler, Order, PrimaryRule, Reaction, Reason, Role, Spent,
};
pub use emulated::{Availability, EmulatedBundle};
pub use fragment::{Fragment, Numbering, Splitter};
pub use framing::Framing;
pub use line_config::LineConfig;
pub use lines::Lines;
pub use piece::Piece;
pub use ppp::{Authentication, EchoConfig, PppConfig};
pub use reassembly::{Counts as ReceiverCounts, Reassembler};
pub use schedule::Scheduler;
pub use sender::{Counts, Outcome, Sender};
