//! The grid: which settings vary, and with which values.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Settings that vary: dotted paths, each with a list of values.
///
/// In TOML a path without quotes makes nested tables; both forms mean the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Grid(pub IndexMap<String, Vec<Value>>);

impl Grid {
    /// Whether nothing varies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add<E: Error>(&mut self, path: String, value: Value) -> Result<(), E> {
        match value {
            Value::Array(values) if values.is_empty() => {
                Err(E::custom(format_args!("{path:?} has no values: give a list of at least one")))
            }
            Value::Array(values) => match self.0.insert(path.clone(), values) {
                None => Ok(()),
                Some(_) => Err(E::custom(format_args!("{path:?} is given twice"))),
            },
            Value::Object(table) if !table.is_empty() => {
                table.into_iter().try_for_each(|(key, value)| self.add(format!("{path}.{key}"), value))
            }
            other => Err(E::custom(format_args!(
                "{path:?} is {}, not a list of values: write [ ... ]",
                super::read::show(&other)
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for Grid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Paths;

        impl<'de> Visitor<'de> for Paths {
            type Value = Grid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of dotted paths, each with a list of values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Grid, A::Error> {
                let mut grid = Grid::default();
                while let Some((path, value)) = table.next_entry::<String, Value>()? {
                    grid.add(path, value)?;
                }
                Ok(grid)
            }
        }

        deserializer.deserialize_map(Paths)
    }
}

impl JsonSchema for Grid {
    fn schema_name() -> Cow<'static, str> {
        "Grid".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Settings that vary: dotted paths, each with a list of values.",
            "additionalProperties": { "type": ["array", "object"], "minItems": 1 },
        })
    }
}
