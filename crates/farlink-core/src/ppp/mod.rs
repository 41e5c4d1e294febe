//! PPP without a socket, a clock or a thread: a bundle of lines between this end and a peer that speaks PPP.
//!
//! | file | what |
//! |---|---|
//! | [`hdlc`] | frames on an asynchronous line (RFC 1662) |
//! | [`automaton`] | the option negotiation automaton (RFC 1661, section 4) |
//! | [`control`], [`negotiator`] | packets and options of a negotiation, and one end of it |
//! | [`lcp`], [`ipcp`] | options of a line (RFC 1661, 1662, 1990), and of IP (RFC 1332, 5072) |
//! | [`auth`], [`secret`] | PAP (RFC 1334) and CHAP with MD5 (RFC 1994) |
//! | [`echo`] | whether the peer still answers |
//! | [`link`] | one line: all of the above |
//! | [`bundle`] | lines that carry packets as one (RFC 1990) |
//!
//! Compression, Van Jacobson's headers and checks of 32 bits are refused as the RFCs want it: Configure-Reject, Protocol-Reject,
//! Code-Reject. What a peer sends never panics and holds a bounded amount of memory.

pub mod auth;
pub mod automaton;
pub mod bundle;
pub mod control;
pub mod echo;
pub mod hdlc;
pub mod ipcp;
pub mod lcp;
pub mod link;
pub mod negotiator;
mod outbox;
pub mod secret;

pub use bundle::{Bundle, BundleConfig, Event, LineStatus, Properties};
pub use echo::EchoConfig;
pub use hdlc::Accm;
pub use ipcp::Addresses;
pub use lcp::{Discriminator, LcpConfig, Multilink, Proof};
pub use link::{Cause, LinkConfig};
pub use negotiator::Limits;
pub use secret::{Credentials, Identities, Secret};
