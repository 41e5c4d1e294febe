//! The error for a refused setting: it gives the fault and the remedy, each on one line.

use std::fmt;

/// A refused setting: the key, the fault, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key, as a dotted path (`link.channel.ber`, `engines[0]`) from the outermost table known so far; empty if the table as
    /// a whole is wrong.
    pub path: String,
    /// The fault, including the value.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl ConfigError {
    /// Refuses the key at `path`.
    pub fn new(path: impl Into<String>, what: impl fmt::Display, remedy: impl Into<String>) -> Self {
        ConfigError { path: path.into(), what: what.to_string(), remedy: remedy.into() }
    }

    /// One line with the path and the fault.
    #[must_use]
    pub fn message(&self) -> String {
        if self.path.is_empty() { self.what.clone() } else { format!("{}: {}", self.path, self.what) }
    }

    /// The same error as seen from an outer table: puts `table` and a dot before the path.
    #[must_use]
    pub fn within(self, table: &str) -> Self {
        let path = if self.path.is_empty() { table.to_owned() } else { format!("{table}.{}", self.path) };
        ConfigError { path, ..self }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message(), self.remedy)
    }
}

impl std::error::Error for ConfigError {}
