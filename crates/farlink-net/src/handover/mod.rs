//! Streams handed to the custody of a gateway, and received at the far end: an endpoint, the keys of the host, and a file or a pipe, put
//! together.

mod error;
mod place;
mod receive;
mod send;

pub use error::HandoverError;
pub use receive::{Outcome, ReceiveSettings, Received, Target, receive};
pub use send::{SendSettings, Sending, Sent, send};

use std::time::Duration;

/// At the end, last acknowledgements are waited for this long.
const LAST_WORDS: Duration = Duration::from_secs(10);
