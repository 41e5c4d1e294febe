//! How a queue serves classes of service.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ConfigError;
use crate::turns::CLASSES;
use crate::units::{Factor, Ranged};

/// Order in which waiting packets of several classes are sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Service {
    /// In the order of arrival.
    #[default]
    Fifo,
    /// The lowest class first.
    Strict,
    /// Classes share the link.
    Weighted(Weights),
}

/// The names that `service` allows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ServiceName")]
enum Name {
    /// In the order of arrival, whatever the class.
    Fifo,
    /// Strict priority: packets of a class are sent only while none of a lower class waits.
    Strict,
}

/// Classes share a link by weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Weight of each class, from class 0 on. Classes with a backlog share the link's capacity in proportion to their weights by
    /// deficit round robin (Shreedhar and Varghese, 1996). A class with `"strict"` instead of a number goes before all classes
    /// with numbers; of several strict ones the lowest goes first.
    #[schemars(length(min = 1, max = 8))]
    pub weights: Vec<Weight>,
}

/// Weight of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weight {
    /// `"strict"`: it goes before all classes with shares, and before strict classes of higher numbers.
    Strict,
    /// Its share, relative to the shares of other classes.
    Share(Factor),
}

impl Service {
    /// The weight of each class, `None` for a strict one. The result as a whole is `None` if classes make no difference.
    pub fn weights(&self) -> Option<[Option<f64>; CLASSES]> {
        let mut weights = [None; CLASSES];
        match self {
            Service::Fifo => return None,
            Service::Strict => {}
            Service::Weighted(given) => {
                for (weight, given) in weights.iter_mut().zip(&given.weights) {
                    *weight = match given {
                        Weight::Strict => None,
                        Weight::Share(share) => Some(share.get()),
                    };
                }
            }
        }
        Some(weights)
    }

    /// Number of classes that it serves, from 0 on.
    pub(crate) fn classes(&self) -> usize {
        match self {
            Service::Fifo | Service::Strict => CLASSES,
            Service::Weighted(given) => given.weights.len(),
        }
    }

    pub(super) fn is_fifo(&self) -> bool {
        *self == Service::Fifo
    }

    /// Checks the rules between keys that the types of single keys cannot express; the path is relative to the hop or its return
    /// direction.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Service::Weighted(Weights { weights }) = self else { return Ok(()) };
        if (1..=CLASSES).contains(&weights.len()) {
            return Ok(());
        }
        let what = format!("there are {} weights; allowed are 1 to {CLASSES}, one for each class", weights.len());
        let remedy = format!("give a weight for each class from 0 on, at most {CLASSES}: weights = [3, 1]");
        Err(ConfigError::new("service.weights", what, remedy))
    }
}

impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Service::Fifo => Name::Fifo.serialize(serializer),
            Service::Strict => Name::Strict.serialize(serializer),
            Service::Weighted(weights) => weights.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Service {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;

        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Service;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"fifo\", \"strict\", or a table with weights: { weights = [3, 1] }")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Service, E> {
                match name {
                    "fifo" => Ok(Service::Fifo),
                    "strict" => Ok(Service::Strict),
                    _ => Err(E::invalid_value(Unexpected::Str(name), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Service, A::Error> {
                Weights::deserialize(MapAccessDeserializer::new(table)).map(Service::Weighted)
            }
        }

        deserializer.deserialize_any(NameOrTable)
    }
}

impl JsonSchema for Service {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Service".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (name, table) = (generator.subschema_for::<Name>(), generator.subschema_for::<Weights>());
        schemars::json_schema!({ "anyOf": [name, table] })
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Weight::Strict => serializer.serialize_str("strict"),
            Weight::Share(share) => share.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrStrict;

        impl Visitor<'_> for NumberOrStrict {
            type Value = Weight;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or \"strict\"", <Factor as Ranged>::ALLOWED)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Weight, E> {
                if word == "strict" { Ok(Weight::Strict) } else { Err(E::invalid_value(Unexpected::Str(word), &self)) }
            }

            fn visit_f64<E: Error>(self, share: f64) -> Result<Weight, E> {
                Factor::new(share).map(Weight::Share).map_err(|_| E::invalid_value(Unexpected::Float(share), &self))
            }

            fn visit_u64<E: Error>(self, share: u64) -> Result<Weight, E> {
                self.visit_f64(share as f64)
            }

            fn visit_i64<E: Error>(self, share: i64) -> Result<Weight, E> {
                self.visit_f64(share as f64)
            }
        }

        deserializer.deserialize_any(NumberOrStrict)
    }
}

impl JsonSchema for Weight {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Weight".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "anyOf": [{ "const": "strict" }, generator.subschema_for::<Factor>()] })
    }
}
