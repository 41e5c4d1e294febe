//! Keys that do nothing beside the values of others. Who gives one expects something of it: it is refused, not passed over.

/// A key that has no effect as the other keys stand, whatever its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The key, as a dotted path relative to the transport's table.
    pub key: String,
    /// Why it has no effect.
    pub why: String,
    /// What to set for it to have one.
    pub needs: String,
}

impl Idle {
    /// That key, if it has no effect.
    pub(in crate::protocol) fn when(
        is_idle: bool,
        key: &str,
        why: impl Into<String>,
        needs: impl Into<String>,
    ) -> Option<Idle> {
        is_idle.then(|| Idle { key: key.to_owned(), why: why.into(), needs: needs.into() })
    }

    /// The same, seen from an outer table.
    #[must_use]
    pub(in crate::protocol) fn within(self, table: &str) -> Idle {
        Idle { key: format!("{table}.{}", self.key), ..self }
    }
}
