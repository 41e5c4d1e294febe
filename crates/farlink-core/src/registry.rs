//! Registries: one line makes a configuration type known to the scenario parser, the schema, the error messages and the tests.

use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess};
use serde_json::Value;

/// Declares a family of configuration types that are chosen by `kind`, each in a file of its own.
///
/// Generates an enum with one variant per line, which is parsed from a table with a `kind` key, its JSON Schema, the list of
/// names (`KINDS`), and `as_dyn`, which returns the trait object that all of them implement. The other keys of the table are
/// those of the configuration type, which denies unknown ones.
macro_rules! registry {
    (
        $(#[$doc:meta])*
        $family:ident: $enum:ident as $trait:ident {
            $($variant:ident = $kind:literal => $config:path,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        pub enum $enum {
            $(
                #[allow(missing_docs, reason = "the schema takes the words of the configuration type")]
                #[serde(rename = $kind)]
                $variant($config),
            )+
        }

        impl $enum {
            /// Every known kind.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// Its name in a scenario.
            pub fn kind(&self) -> &'static str {
                match self { $($enum::$variant(_) => $kind,)+ }
            }

            /// The configuration as a trait object.
            pub fn as_dyn(&self) -> &dyn $trait {
                match self { $($enum::$variant(config) => config,)+ }
            }
        }

        impl<'de> serde::Deserialize<'de> for $enum {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                /// The same names without their configurations.
                #[derive(serde::Deserialize)]
                enum Kind {
                    $(#[serde(rename = $kind)] $variant,)+
                }

                struct Visitor;

                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $enum;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a table { kind = \"...\", ... }")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, table: A) -> Result<$enum, A::Error> {
                        let (kind, rest) = $crate::registry::split_kind(table, $enum::KINDS)?;
                        let rest = serde::de::value::MapAccessDeserializer::new(rest);
                        match kind {
                            $(Kind::$variant => serde::Deserialize::deserialize(rest).map($enum::$variant),)+
                        }
                    }
                }

                deserializer.deserialize_map(Visitor)
            }
        }
    };
}
pub(crate) use registry;

/// Reads `kind` and returns the other entries of the table.
///
/// The scenario reader puts `kind` first, so that the other entries are read in place and errors keep their path. For other
/// formats, the entries before `kind` are buffered.
pub(crate) fn split_kind<'de, A: MapAccess<'de>, K: serde::Deserialize<'de>>(
    mut table: A,
    kinds: &'static [&'static str],
) -> Result<(K, Rest<A>), A::Error> {
    let mut before = Vec::new();
    while let Some(key) = table.next_key::<String>()? {
        if key == "kind" {
            let kind = table.next_value()?;
            return Ok((kind, Rest { before: before.into_iter(), value: None, after: table }));
        }
        before.push((key, table.next_value()?));
    }
    // An empty name means that `kind` is missing, because serde's error for a missing key could not list the known kinds.
    Err(serde::de::Error::unknown_variant("", kinds))
}

/// The entries of a table without its `kind`.
pub(crate) struct Rest<A> {
    before: std::vec::IntoIter<(String, Value)>,
    value: Option<Value>,
    after: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.before.next() {
            Some((key, value)) => {
                self.value = Some(value);
                seed.deserialize(key.into_deserializer()).map(Some)
            }
            None => self.after.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(serde::de::Error::custom),
            None => self.after.next_value_seed(seed),
        }
    }
}
