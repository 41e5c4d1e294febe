//! A back-off factor, or none at all.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::Count;

const NEVER: &str = "never";
const ALLOWED: &str = "a whole number from 1 to 1e15, or \"never\"";

/// Above which back-off factor an estimate is forgotten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forget {
    /// Above this one.
    Above(Count),
    /// It is kept, whatever happens (`"never"` in a scenario).
    Never,
}

impl Serialize for Forget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Forget::Above(factor) => factor.serialize(serializer),
            Forget::Never => serializer.serialize_str(NEVER),
        }
    }
}

impl<'de> Deserialize<'de> for Forget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrNever)
    }
}

struct NumberOrNever;

impl Visitor<'_> for NumberOrNever {
    type Value = Forget;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALLOWED)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Forget, E> {
        Count::new(value).map(Forget::Above).map_err(|_| E::invalid_value(Unexpected::Float(value), &ALLOWED))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Forget, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Forget, E> {
        self.visit_f64(value as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Forget, E> {
        if text == NEVER { Ok(Forget::Never) } else { Err(E::invalid_value(Unexpected::Str(text), &ALLOWED)) }
    }
}

impl JsonSchema for Forget {
    fn schema_name() -> Cow<'static, str> {
        "Forget".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<Count>(), { "const": NEVER }] })
    }
}
