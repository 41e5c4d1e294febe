//! The reliable modes: selective repeat with acknowledgements that cover many segments each (`docs/aerotp.md`, section 5).

mod abandon;
#[cfg(feature = "trains")]
mod absorb;
mod flight;
mod receiver;
mod report;
mod sender;
mod spare_copies;

pub(super) use receiver::{Pace, Receiver};
pub(super) use sender::Sender;
