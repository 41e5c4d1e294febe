//! Keys without effect because of the values of others. Such a key is refused and not ignored, because a user who gives
//! it expects an effect.

/// A key that has no effect with the present values of the other keys, whatever its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The key, as a dotted path relative to the transport's table.
    pub key: String,
    /// Why it has no effect.
    pub why: String,
    /// Which setting would give it an effect.
    pub needs: String,
}

impl Idle {
    /// The key, if it has no effect.
    pub(in crate::protocol) fn when(
        is_idle: bool,
        key: &str,
        why: impl Into<String>,
        needs: impl Into<String>,
    ) -> Option<Idle> {
        is_idle.then(|| Idle { key: key.to_owned(), why: why.into(), needs: needs.into() })
    }

    /// The same key, relative to an outer table.
    #[must_use]
    pub(in crate::protocol) fn within(self, table: &str) -> Idle {
        Idle { key: format!("{table}.{}", self.key), ..self }
    }
}
