//! Keys of a code that do not fit.

/// A key whose value no code can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Unfit {
    /// The key, as a dotted path within the table of the code; empty for the table as a whole.
    pub key: String,
    /// What is wrong, with the value.
    pub message: String,
    /// How to mend it.
    pub remedy: String,
}

impl Unfit {
    /// A refusal of a key.
    pub fn new(key: &str, message: impl ToString, remedy: impl Into<String>) -> Self {
        Unfit { key: key.into(), message: message.to_string(), remedy: remedy.into() }
    }

    /// The same, seen from an outer table.
    #[must_use]
    pub fn within(self, table: &str) -> Self {
        let key = if self.key.is_empty() { table.to_owned() } else { format!("{table}.{}", self.key) };
        Unfit { key, ..self }
    }
}
