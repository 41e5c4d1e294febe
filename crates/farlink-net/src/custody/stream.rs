//! Name of a stream in custody: its number, destination and sender.

use std::fmt;
use std::str::FromStr;

use crate::seal::random;

/// The number of a stream, drawn at random by its source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId([u8; 16]);

impl StreamId {
    /// A number that no other stream has.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        random::fill(&mut bytes);
        StreamId(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl From<[u8; 16]> for StreamId {
    fn from(bytes: [u8; 16]) -> Self {
        StreamId(bytes)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for StreamId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(|number| StreamId(number.to_be_bytes()))
    }
}

/// The name of a sink, which says along which gateways a stream goes: 1 to 64 letters, digits, dots, hyphens and underscores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(String);

/// No name of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sink's name has 1 to 64 of the characters a-z, A-Z, 0-9, '.', '-' and '_'; give such a name")]
pub struct NoLabel;

impl Label {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Label {
    type Err = NoLabel;

    fn from_str(text: &str) -> Result<Self, NoLabel> {
        let is_right = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let is_label = (1..=64).contains(&text.len()) && text.bytes().all(is_right);
        is_label.then(|| Label(text.to_owned())).ok_or(NoLabel)
    }
}
