//! Files from one host to another: an endpoint, the keys of the host, and the files, put together.

mod error;
mod receive;
mod send;
mod turn;

pub use error::TransferError;
pub use receive::{ReceiveSettings, Received, receive};
pub use send::{SendSettings, send};

use std::time::Duration;

/// The UDP port at which files are received unless another one is given.
pub const UDP_PORT: u16 = 47_470;
/// The port within a session.
const FILES_PORT: u16 = 1;

/// After a transfer, its last acknowledgements are waited for this long.
const LAST_WORDS: Duration = Duration::from_secs(10);
