//! The modes without acknowledgements: a stream in which lost data is skipped, and datagrams (`docs/aerotp.md`, section 6).
//!
//! Only the end of a stream is retransmitted, until it is acknowledged, so that both sides are certain to end.

mod adaptive;
mod classes;
mod datagrams;
mod decoder;
mod encoder;
mod erasure;
mod flight;
mod receiver;
mod repeat;
mod reports;
mod sender;
mod strength;

pub use adaptive::AdaptiveFec;
pub(super) use adaptive::Estimate;
pub use classes::Service;
pub(super) use datagrams::{Inbox, Outbox};
pub use erasure::Erasure;
pub(super) use receiver::Receiver;
pub(super) use sender::Sender;
