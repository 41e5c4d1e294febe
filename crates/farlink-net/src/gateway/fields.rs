//! Fields of the configuration that several tables have.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::error::GatewayError;

pub(super) fn parsed<'de, D: Deserializer<'de>, T: std::str::FromStr<Err: std::fmt::Display>>(
    from: D,
) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

pub(super) fn parsed_option<'de, D: Deserializer<'de>, T: std::str::FromStr<Err: std::fmt::Display>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    parsed(from).map(Some)
}

pub(super) fn seconds(path: &Path, key: &str, value: f64) -> Result<Duration, GatewayError> {
    let valid = (0.001..=1e7).contains(&value).then(|| Duration::from_secs_f64(value));
    valid.ok_or_else(|| GatewayError::config(path, format!("{key}: {value} s cannot be"), "give seconds, 0.001 to 1e7"))
}
