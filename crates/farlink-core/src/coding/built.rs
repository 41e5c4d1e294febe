//! Stand-in.

/// A code.
#[derive(Clone, Debug)]
pub enum Built {
    /// None.
    Uncoded,
    /// Convolutional.
    Convolutional,
}
