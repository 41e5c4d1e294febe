//! Settings that are a number or a recorded series.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::registry::registry;
use crate::units::{BitRate, Seconds};

/// A rate: a number, or a series by its `kind`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum RateSetting {
    /// Always the same.
    Constant(BitRate),
    /// As recorded.
    Series(RateSeries),
}

/// A delay: a number, or a series by its `kind`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum DelaySetting {
    /// Always the same.
    Constant(Seconds),
    /// As recorded.
    Series(DelaySeries),
}

/// A series that a file holds.
pub trait FileSeries {
    /// The file and where replay begins.
    fn source(&self) -> (&str, Offset);
}

registry! {
    /// A rate that changes, by its `kind`.
    rate_series: RateSeries as FileSeries {
        RateTrace = "rate-trace" => RateTrace,
    }
}

registry! {
    /// A delay that changes, by its `kind`.
    delay_series: DelaySeries as FileSeries {
        DelayTrace = "delay-trace" => DelayTrace,
    }
}

/// A recorded rate or delivery trace; starts over at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateTrace {
    /// The trace file.
    pub file: String,
    /// Where replay begins.
    #[serde(default)]
    pub offset: Offset,
}

/// A recorded delay; starts over at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayTrace {
    /// The trace file.
    pub file: String,
    /// Where replay begins.
    #[serde(default)]
    pub offset: Offset,
}

impl FileSeries for RateTrace {
    fn source(&self) -> (&str, Offset) {
        (&self.file, self.offset)
    }
}

impl FileSeries for DelayTrace {
    fn source(&self) -> (&str, Offset) {
        (&self.file, self.offset)
    }
}

/// Where replay begins: seconds into the trace, or `"random"` (a new place in each run).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offset {
    /// So far into the trace.
    At(Seconds),
    /// Anywhere, anew in each run.
    Random,
}

impl Default for Offset {
    fn default() -> Self {
        Offset::At(Seconds::default())
    }
}

impl Serialize for Offset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Offset::At(seconds) => seconds.serialize(serializer),
            Offset::Random => serializer.serialize_str("random"),
        }
    }
}

/// Implements `Deserialize` and `JsonSchema` for an enum of a checked number and something else.
macro_rules! number_or {
    ($name:ident: $constant:path = $number:ty, $wanted:literal, $other_schema:expr, { $($visit_other:item)* }) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct NumberOr;

                impl<'de> Visitor<'de> for NumberOr {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, concat!("{}, or ", $wanted), <$number>::ALLOWED)
                    }

                    fn visit_f64<E: Error>(self, value: f64) -> Result<$name, E> {
                        let number = <$number>::new(value);
                        number.map($constant).map_err(|_| E::invalid_value(Unexpected::Float(value), &self))
                    }

                    fn visit_u64<E: Error>(self, value: u64) -> Result<$name, E> {
                        self.visit_f64(value as f64)
                    }

                    fn visit_i64<E: Error>(self, value: i64) -> Result<$name, E> {
                        self.visit_f64(value as f64)
                    }

                    $($visit_other)*
                }

                deserializer.deserialize_any(NumberOr)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let number = generator.subschema_for::<$number>();
                let other: Schema = ($other_schema)(generator);
                json_schema!({ "anyOf": [number, other] })
            }
        }
    };
}

number_or!(RateSetting: RateSetting::Constant = BitRate, "{{ kind = \"rate-trace\", file = \"...\" }}",
    |generator: &mut SchemaGenerator| generator.subschema_for::<RateSeries>(), {
    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<RateSetting, A::Error> {
        RateSeries::deserialize(MapAccessDeserializer::new(table)).map(RateSetting::Series)
    }
});

number_or!(DelaySetting: DelaySetting::Constant = Seconds, "{{ kind = \"delay-trace\", file = \"...\" }}",
    |generator: &mut SchemaGenerator| generator.subschema_for::<DelaySeries>(), {
    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<DelaySetting, A::Error> {
        DelaySeries::deserialize(MapAccessDeserializer::new(table)).map(DelaySetting::Series)
    }
});

number_or!(Offset: Offset::At = Seconds, "\"random\"",
    |_: &mut SchemaGenerator| json_schema!({ "const": "random" }), {
    fn visit_str<E: Error>(self, text: &str) -> Result<Offset, E> {
        if text == "random" { Ok(Offset::Random) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }
});
