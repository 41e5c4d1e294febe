//! A number, or the word `never`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Ranged;

const NEVER: &str = "never";

/// A number with its range, or `"never"` in a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OrNever<T> {
    /// A number.
    Value(T),
    /// Never.
    Never,
}

impl<T> OrNever<T> {
    /// The number; `None` if it is never.
    pub fn value(self) -> Option<T> {
        match self {
            OrNever::Value(value) => Some(value),
            OrNever::Never => None,
        }
    }
}

impl<T: Serialize> Serialize for OrNever<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OrNever::Value(value) => value.serialize(serializer),
            OrNever::Never => serializer.serialize_str(NEVER),
        }
    }
}

impl<'de, T: Ranged> Deserialize<'de> for OrNever<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrNever(PhantomData))
    }
}

struct NumberOrNever<T>(PhantomData<T>);

impl<T: Ranged> Visitor<'_> for NumberOrNever<T> {
    type Value = OrNever<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or {NEVER:?}", T::ALLOWED)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<OrNever<T>, E> {
        T::try_from(value).map(OrNever::Value).map_err(|_| E::invalid_value(Unexpected::Float(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<OrNever<T>, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<OrNever<T>, E> {
        self.visit_f64(value as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OrNever<T>, E> {
        if text == NEVER { Ok(OrNever::Never) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }
}

impl<T: JsonSchema> JsonSchema for OrNever<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrNever", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<T>(), { "const": NEVER }] })
    }
}
