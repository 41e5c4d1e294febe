//! How long a receiver waits for what is missing: a time, or without end.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Time;
use crate::units::PositiveSeconds;

const NEVER: &str = "never";
const ALLOWED: &str = "a number of seconds above 0 and at most 1e7, or \"never\"";

/// When a missing fragment is given up that others wait behind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReorderTimeout {
    /// After so long.
    After(PositiveSeconds),
    /// Not for want of time (`"never"` in a scenario).
    Never,
}

impl ReorderTimeout {
    /// As a time; none if it is never.
    pub(in crate::bundle) fn time(self) -> Option<Time> {
        match self {
            ReorderTimeout::After(timeout) => Some(timeout.time()),
            ReorderTimeout::Never => None,
        }
    }
}

impl Serialize for ReorderTimeout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ReorderTimeout::After(timeout) => timeout.serialize(serializer),
            ReorderTimeout::Never => serializer.serialize_str(NEVER),
        }
    }
}

impl<'de> Deserialize<'de> for ReorderTimeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrNever)
    }
}

struct NumberOrNever;

impl Visitor<'_> for NumberOrNever {
    type Value = ReorderTimeout;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALLOWED)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<ReorderTimeout, E> {
        PositiveSeconds::new(value)
            .map(ReorderTimeout::After)
            .map_err(|_| E::invalid_value(Unexpected::Float(value), &ALLOWED))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<ReorderTimeout, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<ReorderTimeout, E> {
        self.visit_f64(value as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ReorderTimeout, E> {
        if text == NEVER { Ok(ReorderTimeout::Never) } else { Err(E::invalid_value(Unexpected::Str(text), &ALLOWED)) }
    }
}

impl JsonSchema for ReorderTimeout {
    fn schema_name() -> Cow<'static, str> {
        "ReorderTimeout".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<PositiveSeconds>(), { "const": NEVER }] })
    }
}
