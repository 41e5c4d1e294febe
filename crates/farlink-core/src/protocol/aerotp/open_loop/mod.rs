//! The modes without acknowledgements: a stream in which what is lost is skipped, and datagrams (`docs/aerotp.md`, section 6).
//!
//! Nothing is sent again but the end of a stream, which is repeated until it is acknowledged: so both sides end surely.

mod adaptive;
mod classes;
mod datagrams;
mod decoder;
mod encoder;
mod erasure;
mod receiver;
mod repeat;
mod sender;
mod strength;

pub use adaptive::AdaptiveFec;
pub(super) use adaptive::Estimate;
pub use classes::Service;
pub(super) use datagrams::{Inbox, Outbox};
pub use erasure::Erasure;
pub(super) use receiver::Receiver;
pub(super) use sender::Sender;
