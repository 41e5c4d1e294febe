//! Why a bundle does not run.

use std::io;
use std::path::Path;

use crate::config_file::ConfigFault;
use crate::privileged::PrivilegedError;
use crate::state::StateError;

/// Why a bundle does not run. The text says what is wrong and what to do, with "; " between.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigFault),
    /// A file of this host cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The network cannot be changed.
    #[error(transparent)]
    Privileged(#[from] PrivilegedError),
    /// The capture or the metrics cannot be had.
    #[error("{what}: {error}; choose another place")]
    Output {
        /// Where.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// The helper or the device is gone while the bundle runs.
    #[error("{0} has ended while the bundle ran; start the bundle again")]
    Ended(&'static str),
    /// The system refuses something that a process needs.
    #[error("the system does not let the bundle run: {0}; close other programs")]
    System(#[from] io::Error),
}

impl BundleError {
    pub(super) fn config(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        BundleError::Config(ConfigFault::new(path, what, remedy))
    }

    /// Exit code of a process: 1 when something has ended, 2 when someone has to change something first.
    pub const fn exit_code(&self) -> u8 {
        match self {
            BundleError::Ended(_) | BundleError::Privileged(PrivilegedError::Gone | PrivilegedError::Silent(_)) => 1,
            _ => 2,
        }
    }
}
