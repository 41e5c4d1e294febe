//! What can be wrong with a bundle of lines.

use std::io;
use std::path::PathBuf;

/// Why a bundle of lines cannot run.
#[derive(Debug, thiserror::Error)]
pub enum TtyError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is no configuration.
    #[error("{}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its place.
        message: String,
    },
    /// A value is out of its range.
    #[error("{key} = {value}: {rule}")]
    Value {
        /// Name of the key.
        key: &'static str,
        /// What it was.
        value: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// Others may read a secret.
    #[error("{} may be read by others than its owner (mode {mode:o}): chmod 600 it", path.display())]
    Shared {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// There is no TUN device.
    #[error("cannot open the TUN device {name}: {error} (it needs CAP_NET_ADMIN and /dev/net/tun)")]
    Tun {
        /// Its name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// The system refuses something while the bundle runs.
    #[error("the bundle cannot go on: {0}")]
    Run(#[from] io::Error),
}
