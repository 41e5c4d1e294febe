//! State of a host in files: its key, the keys that it trusts, and the counters of handshakes.
//!
//! | file in the folder | content |
//! |---|---|
//! | `key` | the private key in base64; readable by its owner only |
//! | `trusted` | a line for each trusted host: public key, name |
//! | `own-counter` | no handshake of this host has had this counter or one above it |
//! | `peer-counters` | a line for each peer: public key, the bound of its counters |

mod counter_files;
mod error;
mod key_file;
mod trusted;
mod whole_file;

use std::path::{Path, PathBuf};

pub use counter_files::CounterFiles;
pub use error::StateError;
pub use trusted::Trusted;

use crate::seal::StaticKey;

/// The folder with the files of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFolder(PathBuf);

impl StateFolder {
    /// This folder, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        StateFolder(path.into())
    }

    /// The usual one: `$XDG_CONFIG_HOME/farlink`, or `~/.config/farlink`.
    ///
    /// # Errors
    /// If neither variable is set.
    pub fn usual() -> Result<Self, StateError> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        config.map(|config| StateFolder(config.join("farlink"))).ok_or_else(|| {
            StateError::new(Path::new("~/.config/farlink"), "HOME is not set", "give the folder of the keys")
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The command that has this host trust another one, whose key it does not know yet.
    pub(crate) fn trust_command(&self, name: &str) -> String {
        let folder = if Self::usual().is_ok_and(|usual| usual == *self) {
            String::new()
        } else {
            format!(" --keys {}", self.0.display())
        };
        format!("farlink trust KEY {name}{folder}")
    }

    /// Makes a key and keeps it in a new file; the folder is made if need be.
    ///
    /// # Errors
    /// If there is a key already, which is never overwritten, or the file cannot be written.
    pub fn generate_key(&self) -> Result<StaticKey, StateError> {
        whole_file::make_folder(&self.0)?;
        key_file::generate(&self.0.join("key"))
    }

    /// The key of this host.
    ///
    /// # Errors
    /// If there is none, others than its owner can read it, or it is no key.
    pub fn key(&self) -> Result<StaticKey, StateError> {
        key_file::read(&self.0.join("key"))
    }

    /// Whom this host trusts: nobody if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line of it is none.
    pub fn trusted(&self) -> Result<Trusted, StateError> {
        Trusted::read(&self.0.join("trusted"))
    }

    /// Keeps whom this host trusts.
    ///
    /// # Errors
    /// If the file cannot be written; it is then unchanged.
    pub fn keep_trusted(&self, trusted: &Trusted) -> Result<(), StateError> {
        whole_file::make_folder(&self.0)?;
        trusted.write(&self.0.join("trusted"))
    }

    /// The counters of handshakes, for a host that only opens sessions.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn counters_to_send(&self) -> Result<CounterFiles, StateError> {
        whole_file::make_folder(&self.0)?;
        CounterFiles::open(&self.0, false)
    }

    /// The counters of handshakes, for a host that answers sessions. Only one process has them at a time: two that answer with one key
    /// would each take what the other has taken.
    ///
    /// # Errors
    /// If another process has them, or a file cannot be read or is damaged.
    pub fn counters_to_answer(&self) -> Result<CounterFiles, StateError> {
        whole_file::make_folder(&self.0)?;
        CounterFiles::open(&self.0, true)
    }
}
