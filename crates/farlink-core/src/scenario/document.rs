//! Scenario files.

use serde_json::Value;

use crate::ConfigError;

/// Reads JSON text.
///
/// # Errors
/// If it is not JSON.
pub fn from_json(text: &str) -> Result<Value, ConfigError> {
    serde_json::from_str(text).map_err(|error| {
        ConfigError::new("", format_args!("this is not valid JSON: {error}"), "correct the text there")
    })
}

/// Reads TOML text.
///
/// # Errors
/// If it is not TOML, or holds numbers that are not finite.
#[cfg(feature = "toml")]
pub fn from_toml(text: &str) -> Result<Value, ConfigError> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let what = format!("this is not valid TOML: line {line}: {}", error.message().replace('\n', " "));
        ConfigError::new("", what, "correct that line; text needs quotes")
    })?;
    table_to_json(table, "")
}

#[cfg(feature = "toml")]
fn table_to_json(table: toml::Table, path: &str) -> Result<Value, ConfigError> {
    let entry = |(key, value): (String, toml::Value)| {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        Ok((key, to_json(value, &path)?))
    };
    table.into_iter().map(entry).collect::<Result<_, _>>().map(Value::Object)
}

#[cfg(feature = "toml")]
fn to_json(value: toml::Value, path: &str) -> Result<Value, ConfigError> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) if number.is_finite() => number.into(),
        toml::Value::Float(number) => {
            let remedy = "give a finite number, or leave the key out";
            return Err(ConfigError::new(path, format_args!("{number} is not allowed"), remedy));
        }
        toml::Value::Boolean(value) => value.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => {
            let item = |(at, item)| to_json(item, &format!("{path}[{at}]"));
            items.into_iter().enumerate().map(item).collect::<Result<Vec<_>, _>>()?.into()
        }
        toml::Value::Table(table) => table_to_json(table, path)?,
    })
}
