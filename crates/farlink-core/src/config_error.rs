//! Why something that a user wrote is refused, and how to mend it: two lines for every refusal.

use std::fmt;

/// A key whose value cannot be had: which, what is wrong with it, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key, as a dotted path (`link.channel.ber`, `engines[0]`) from the outermost table that it was seen from; empty for that
    /// table as a whole.
    pub path: String,
    /// What is wrong with it, with the value.
    pub what: String,
    /// How to mend it.
    pub remedy: String,
}

impl ConfigError {
    /// A refusal of the key at `path`.
    pub fn new(path: impl Into<String>, what: impl fmt::Display, remedy: impl Into<String>) -> Self {
        ConfigError { path: path.into(), what: what.to_string(), remedy: remedy.into() }
    }

    /// The path and what is wrong, on one line.
    #[must_use]
    pub fn message(&self) -> String {
        if self.path.is_empty() { self.what.clone() } else { format!("{}: {}", self.path, self.what) }
    }

    /// The same, seen from an outer table: `table` and a dot go before its path.
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
