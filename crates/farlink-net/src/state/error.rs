//! Faults of a file.

use std::path::{Path, PathBuf};

use crate::remedy::remedy_of_shortage;

/// A file of a host cannot be used. Its text names the file, what is wrong and what to do; never a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}; {remedy}", path.display())]
pub struct StateError {
    path: PathBuf,
    what: String,
    remedy: String,
}

impl StateError {
    pub(crate) fn new(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        StateError { path: path.to_owned(), what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        let remedy = remedy_of_shortage(error).unwrap_or("check the permissions");
        Self::new(path, format!("cannot be read: {error}"), remedy)
    }

    pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        let remedy = remedy_of_shortage(error).unwrap_or("check permissions and free space");
        Self::new(path, format!("cannot be written: {error}"), remedy)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
