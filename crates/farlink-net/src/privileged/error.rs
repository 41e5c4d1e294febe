//! Why the network was not changed.

use std::io;

/// Why the network was not changed. The text says what is wrong and what to do, with "; " between.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegedError {
    /// The helper did not do what it was asked for.
    #[error("{0}")]
    Refused(String),
    /// This process may not change the network.
    #[error("CAP_NET_ADMIN is missing; run it with sudo, or as a service with AmbientCapabilities=CAP_NET_ADMIN")]
    NotAllowed,
    /// The helper cannot be started.
    #[error("the helper process cannot be started: {0}; look whether farlink is installed as a whole")]
    Start(io::Error),
    /// The helper has ended.
    #[error("the helper process has ended; start the bundle again")]
    Gone,
    /// The helper does not answer.
    #[error("the helper process does not answer: {0}; start the bundle again")]
    Silent(io::Error),
    /// Capabilities are left.
    #[error("capabilities cannot be dropped: {0}; start farlink as a process of its own")]
    Rights(String),
}
