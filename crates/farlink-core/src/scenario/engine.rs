//! Engines, and which keys of a scenario each of them supports.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{fluid, live, model};
use crate::ConfigError;

/// An engine that can run scenarios.
#[derive(Debug, PartialEq, Eq)]
pub struct Engine {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The keys that it honours.
    pub honoured: HonouredKeys,
    /// Whether it computes the long-run averages of flows without end, and therefore needs no `duration_s`.
    pub is_of_long_run: bool,
}

/// Which keys an engine honours.
#[derive(Debug, PartialEq, Eq)]
pub enum HonouredKeys {
    /// All keys.
    All,
    /// Keys that match a pattern: a dotted path in which `*` matches one name and a `**` at the end any rest. Patterns of `link` are those of
    /// each hop as well.
    Only(&'static [&'static str]),
    /// The same, for paths in which the kind of a transport stands for its name: keys of two kinds may have one name.
    ByTransport(&'static [&'static str]),
}

/// All engines, one line each.
pub const ENGINES: &[Engine] = &[
    Engine { name: "packet", honoured: HonouredKeys::All, is_of_long_run: false },
    Engine { name: "fluid", honoured: HonouredKeys::Only(fluid::HONOURED), is_of_long_run: true },
    Engine { name: "live", honoured: HonouredKeys::ByTransport(live::HONOURED), is_of_long_run: false },
    Engine { name: "model", honoured: HonouredKeys::ByTransport(model::HONOURED), is_of_long_run: true },
];

const NAMES: [&str; ENGINES.len()] = {
    let mut names = [""; ENGINES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ENGINES[at].name;
        at += 1;
    }
    names
};

impl Engine {
    /// Whether it honours the key at a dotted path of a scenario as it is given.
    pub fn honours(&self, path: &str, given: &Value) -> bool {
        let path = &*as_link(path);
        match self.honoured {
            HonouredKeys::All => true,
            HonouredKeys::Only(patterns) => patterns.iter().any(|pattern| matches(pattern, path)),
            HonouredKeys::ByTransport(patterns) => {
                let path = by_kind(path, given);
                patterns.iter().any(|pattern| matches(pattern, &path))
            }
        }
    }
}

/// A key of a hop as that of `link`, which is the path's only hop.
fn as_link(path: &str) -> Cow<'_, str> {
    let of_hop = path.strip_prefix("hop.").and_then(|rest| rest.split_once('.'));
    of_hop.map_or(path.into(), |(_, key)| format!("link.{key}").into())
}

/// The path with the kind of a transport in place of its name.
fn by_kind<'a>(path: &'a str, given: &Value) -> Cow<'a, str> {
    let of_transport = path.strip_prefix("transport.").and_then(|rest| rest.split_once('.'));
    let Some((name, key)) = of_transport else { return path.into() };
    let kind = given["transport"][name]["kind"].as_str().unwrap_or_default();
    format!("transport.{kind}.{key}").into()
}

/// Whether the path is that of a transport's key, and no flow has the transport.
fn is_unused(path: &str, given: &Value) -> bool {
    let Some((name, _)) = path.strip_prefix("transport.").and_then(|rest| rest.split_once('.')) else { return false };
    let flows = given["flow"].as_object().into_iter().flat_map(serde_json::Map::values);
    !flows.into_iter().any(|flow| flow["transport"].as_str() == Some(name))
}

fn matches(pattern: &str, path: &str) -> bool {
    let mut names = path.split('.');
    for step in pattern.split('.') {
        match (step, names.next()) {
            ("**", Some(_)) => return true,
            (_, None) => return false,
            ("*", Some(_)) => {}
            (step, Some(name)) if step == name => {}
            _ => return false,
        }
    }
    names.next().is_none()
}

/// A reference to an engine, by its name in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineName(&'static Engine);

impl EngineName {
    /// The engine.
    pub fn engine(self) -> &'static Engine {
        self.0
    }
}

impl Default for EngineName {
    fn default() -> Self {
        EngineName(&ENGINES[0])
    }
}

impl Serialize for EngineName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for EngineName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = EngineName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "one of the engines that exist: {}", NAMES.join(", "))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<EngineName, E> {
                match ENGINES.iter().find(|engine| engine.name == name) {
                    Some(engine) => Ok(EngineName(engine)),
                    None => Err(E::unknown_variant(name, &NAMES)),
                }
            }
        }

        deserializer.deserialize_str(Name)
    }
}

impl JsonSchema for EngineName {
    fn schema_name() -> Cow<'static, str> {
        "Engine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "An engine that runs the scenario.", "enum": NAMES })
    }
}

/// What to do about a key that an engine does not support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unsupported {
    /// Refuse the scenario and name the key.
    #[default]
    Refuse,
    /// Run without it and name the key in the result.
    Approximate,
}

/// A key that an engine runs without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approximation {
    /// The engine.
    pub engine: &'static str,
    /// The key's path.
    pub path: String,
}

/// The given keys that `engine` does not honour.
///
/// # Errors
/// If there is one and it is to be refused.
pub(super) fn check_keys(
    engine: &'static Engine,
    given: &Value,
    unsupported: Unsupported,
) -> Result<Vec<Approximation>, ConfigError> {
    if engine.honoured == HonouredKeys::All {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    leaves(given, &mut String::new(), &mut paths);
    paths.retain(|path| !engine.honours(path, given) && !is_unused(path, given));
    match (unsupported, paths.first()) {
        (Unsupported::Refuse, Some(path)) => Err(ConfigError::new(
            path.clone(),
            format_args!("the engine {:?} does not support this key", engine.name),
            "remove the key or the engine, or set unsupported = \"approximate\" to run without it",
        )),
        _ => Ok(paths.into_iter().map(|path| Approximation { engine: engine.name, path }).collect()),
    }
}

/// Collects the dotted paths of all values that are not tables.
fn leaves(value: &Value, path: &mut String, out: &mut Vec<String>) {
    let Value::Object(table) = value else {
        out.push(path.clone());
        return;
    };
    for (key, value) in table {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        leaves(value, path, out);
        path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static NARROW: Engine = Engine {
        name: "narrow",
        honoured: HonouredKeys::Only(&["duration_s", "link.*", "transport.*.variant", "flow.**"]),
        is_of_long_run: false,
    };

    #[test]
    fn patterns_match_whole_paths() {
        for path in ["duration_s", "link.rate_bps", "transport.sack.variant", "flow.bulk.traffic.kind"] {
            assert!(NARROW.honours(path, &Value::Null), "{path}");
        }
        for path in ["link.channel.ber", "transport.sack", "transport.sack.variant.x", "flow", "runs"] {
            assert!(!NARROW.honours(path, &Value::Null), "{path}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_honoured_is_refused_or_named() {
        let given = json!({"duration_s": 1, "link": {"rate_bps": 1, "channel": {"kind": "none"}}});
        let error = check_keys(&NARROW, &given, Unsupported::Refuse).unwrap_err();
        assert_eq!(error.message(), "link.channel.kind: the engine \"narrow\" does not support this key");
        let named = check_keys(&NARROW, &given, Unsupported::Approximate).unwrap();
        assert_eq!(named, [Approximation { engine: "narrow", path: "link.channel.kind".into() }]);
    }

    #[test]
    fn keys_of_a_transport_are_those_of_its_kind() {
        static BY_KIND: Engine = Engine {
            name: "by kind",
            honoured: HonouredKeys::ByTransport(&["transport.arq.mode", "transport.*.kind", "flow.*.transport"]),
            is_of_long_run: false,
        };
        let mut given = json!({
            "transport": {"one": {"kind": "arq", "mode": 1}, "other": {"kind": "aerotp", "mode": 1}},
            "flow": {"a": {"transport": "one"}, "b": {"transport": "other"}},
        });
        let error = check_keys(&BY_KIND, &given, Unsupported::Refuse).unwrap_err();
        assert_eq!(error.path, "transport.other.mode");
        given["flow"]["b"]["transport"] = "one".into();
        check_keys(&BY_KIND, &given, Unsupported::Refuse).expect("a transport that no flow has needs no support");
    }
}
