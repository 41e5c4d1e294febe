//! Why files were not transferred.

use farlink_core::ConfigError;

use crate::files::FilesError;
use crate::io::BindError;
use crate::mux::OpenError;
use crate::state::StateError;

/// Why a transfer as a whole failed. The text says what is wrong and what to do, with "; " between.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A file of this host cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// There is no session.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A setting is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The transfer failed.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The socket cannot be used any more.
    #[error("the socket cannot be used any more; look for what closed the network, and run the same command again")]
    SocketFailed,
}

impl TransferError {
    /// What a process should exit with: 1 when the network failed, 2 when someone has to change something first.
    pub const fn exit_code(&self) -> u8 {
        match self {
            TransferError::Files(error) => error.exit_code(),
            TransferError::SocketFailed => 1,
            _ => 2,
        }
    }
}
