//! Why a stream was not handed over, or not received.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use farlink_core::ConfigError;

use crate::custody::{SourceError, StreamId};
use crate::io::BindError;
use crate::state::StateError;

/// Why nothing goes on. The text says what is wrong and what to do, with "; " between.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// A file of this host cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A setting is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The source of the data cannot be read.
    #[error("after {bytes} bytes the input cannot be read: {error}; read it again, and go on with --stream {stream}")]
    Input {
        /// How much was read before.
        bytes: u64,
        /// Why not more.
        error: io::Error,
        /// The stream that was begun.
        stream: StreamId,
    },
    /// The gateway does not take the stream.
    #[error("{at}: {why}")]
    Refused {
        /// The gateway.
        at: SocketAddr,
        /// Why.
        why: SourceError,
    },
    /// Nothing was kept for too long.
    #[error(
        "{at}: the gateway has kept nothing for {within_s} s, {kept} bytes before; check address, keys and firewall, and whether its \
         store is full, then go on with --stream {stream}"
    )]
    NothingKept {
        /// The gateway.
        at: SocketAddr,
        /// How long.
        within_s: f64,
        /// Bytes that it has kept.
        kept: u64,
        /// The stream that was begun.
        stream: StreamId,
    },
    /// A folder or an output cannot be written.
    #[error("{}: {what}: {error}; {remedy}", path.display())]
    Output {
        /// Which one.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// Why.
        error: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// A stream that goes to standard output lacks bytes.
    #[error("the stream {stream} goes on at byte {to}, and {from} is where this output ends; receive it into a folder")]
    Lost {
        /// Which one.
        stream: StreamId,
        /// Where the output ends, in bytes.
        from: u64,
        /// The next byte that there is.
        to: u64,
    },
    /// The socket cannot be used any more.
    #[error("the socket cannot be used any more; look for what closed the network, and run the same command again")]
    SocketFailed,
}

impl HandoverError {
    pub(super) fn output(path: &Path, what: &'static str, error: io::Error) -> Self {
        let remedy = crate::remedy::remedy_of_shortage(&error).unwrap_or("check permissions and free space");
        HandoverError::Output { path: path.to_owned(), what, error, remedy }
    }

    /// Exit code of a process: 1 when the network or a gateway failed, 2 when someone has to change something first.
    pub const fn exit_code(&self) -> u8 {
        use HandoverError::{Lost, NothingKept, Refused, SocketFailed};
        match self {
            Refused { .. } | NothingKept { .. } | Lost { .. } | SocketFailed => 1,
            _ => 2,
        }
    }
}
