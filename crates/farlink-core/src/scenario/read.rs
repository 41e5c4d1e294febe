//! Reads typed values from JSON. An error records where the value is and what was found there.
//!
//! Serde's own error is a line of text. [`Refusal`] keeps its parts instead, so that the path is right even inside tables that
//! are chosen by their `kind`, and the remedy can name the nearest known word.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde_json::{Map, Value};

use super::near_names::{nearest, suggest};
use crate::ConfigError;
use crate::protocol::tcp::{CongestionControl, Variant};
use crate::units::shortest;

/// Reads a value of type `T`.
pub(crate) fn read<T: de::DeserializeOwned>(value: &Value) -> Result<T, Refusal> {
    T::deserialize(Reader { value })
}

/// A value or key that was refused, and where it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// Steps of the path, from the innermost one outwards.
    steps: Vec<Step>,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    UnknownKey { allowed: &'static [&'static str] },
    UnknownName { name: String, allowed: &'static [&'static str] },
    MissingKey { key: &'static str },
    ConfigError { found: String, wanted: String },
    Other { message: String },
}

impl Refusal {
    /// The path of the refused value, such as `link.channel.ber` or `flow.web.traffic.list[2].bytes`.
    pub(crate) fn path(&self) -> String {
        self.steps.iter().rev().fold(String::new(), |path, step| match step {
            Step::Key(key) if path.is_empty() => key.clone(),
            Step::Key(key) => format!("{path}.{key}"),
            Step::Index(index) => format!("{path}[{index}]"),
        })
    }

    /// For an unknown key, the path with the key that the user probably meant.
    pub(crate) fn nearest_path(&self) -> Option<String> {
        let (What::UnknownKey { allowed }, Some(Step::Key(key))) = (&self.what, self.steps.first()) else {
            return None;
        };
        if meant_elsewhere(key, allowed).is_some() {
            return None;
        }
        let near = nearest(key, allowed.iter().copied())?;
        let path = self.path();
        Some(format!("{}{near}", &path[..path.len() - key.len()]))
    }

    /// Whether a key is missing (rather than wrong).
    pub(crate) fn is_missing_key(&self) -> bool {
        matches!(self.what, What::MissingKey { .. })
            || matches!(&self.what, What::UnknownName { name, .. } if name.is_empty())
    }

    /// Whether the key itself is wrong (rather than its value).
    pub(crate) fn is_unknown_key(&self) -> bool {
        matches!(self.what, What::UnknownKey { .. })
    }

    /// The fault, without the path.
    pub(crate) fn what(&self) -> String {
        match &self.what {
            What::UnknownKey { .. } => "this key is not known".into(),
            What::UnknownName { name, .. } if name.is_empty() => "its kind is missing".into(),
            What::UnknownName { name, .. } => format!("{} is not known", quoted(name)),
            What::MissingKey { key } => format!("{} is missing", quoted(key)),
            What::ConfigError { found, .. } => format!("{found} is not allowed"),
            What::Other { message } => message.clone(),
        }
    }

    /// The remedy.
    pub(crate) fn remedy(&self) -> String {
        match &self.what {
            What::UnknownKey { allowed } => {
                let key = match self.steps.first() {
                    Some(Step::Key(key)) => key,
                    _ => "",
                };
                match meant_elsewhere(key, allowed) {
                    Some(hint) => format!("{hint}; known keys here: {}", allowed.join(", ")),
                    None => suggest(key, "known keys here", allowed.iter().copied()),
                }
            }
            What::UnknownName { name, allowed } if name.is_empty() => {
                format!("add kind = \"...\", one of: {}", allowed.join(", "))
            }
            What::UnknownName { name, allowed } => {
                let known = suggest(name, "known names", allowed.iter().copied());
                self.name_elsewhere(name).map_or(known.clone(), |elsewhere| format!("{elsewhere}; {known}"))
            }
            What::MissingKey { key } => {
                let path = self.path();
                format!(
                    "add {key} = ... to {}",
                    if path.is_empty() { "the scenario".into() } else { format!("[{path}]") }
                )
            }
            What::ConfigError { wanted, .. } => format!("give {wanted}"),
            What::Other { .. } => "see `farlink schema` for what is allowed".into(),
        }
    }

    /// The key of the same table that allows this name, if the name is not allowed here.
    fn name_elsewhere(&self, name: &str) -> Option<String> {
        let Some(Step::Key(key)) = self.steps.first() else { return None };
        let congestion: Vec<&str> = CongestionControl::ALL.iter().map(|known| known.name()).collect();
        let variants: Vec<&str> = Variant::ALL.iter().map(|known| known.name()).collect();
        let (what, elsewhere, names) = match key.as_str() {
            "variant" => ("a congestion control", "congestion_control", congestion),
            "congestion_control" => ("a variant (how losses are repaired)", "variant", variants),
            _ => return None,
        };
        let meant = names.into_iter().find(|known| known.eq_ignore_ascii_case(name))?;
        Some(format!("{meant} is {what}: write {elsewhere} = \"{meant}\""))
    }

    fn at(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn from_what(what: What) -> Self {
        Refusal { steps: Vec::new(), what }
    }
}

impl From<Refusal> for ConfigError {
    fn from(refusal: Refusal) -> Self {
        ConfigError::new(refusal.path(), refusal.what(), refusal.remedy())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ConfigError::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        // The text of `OutOfRange`, from types that check with `TryFrom`.
        Self::from_what(match message.split_once(" is not allowed; allowed: ") {
            Some((found, wanted)) => What::ConfigError { found: found.into(), wanted: wanted.into() },
            None => What::Other { message },
        })
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let found_text = describe(found);
        let mut wanted = plain_words(&wanted.to_string());
        if matches!(found, Unexpected::Str(text) if text.parse::<f64>().is_ok()) {
            wanted += "; numbers stand without quotes";
        }
        Self::from_what(What::ConfigError { found: found_text, wanted })
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::from_what(What::ConfigError { found: describe(found), wanted: plain_words(&wanted.to_string()) })
    }

    fn invalid_length(length: usize, wanted: &dyn Expected) -> Self {
        let entries = if length == 1 { "entry" } else { "entries" };
        Self::from_what(What::ConfigError {
            found: format!("a list of {length} {entries}"),
            wanted: plain_words(&wanted.to_string()),
        })
    }

    fn unknown_variant(name: &str, allowed: &'static [&'static str]) -> Self {
        Self::from_what(What::UnknownName { name: name.to_owned(), allowed })
    }

    fn unknown_field(_key: &str, allowed: &'static [&'static str]) -> Self {
        // The key itself is the last step of the path.
        Self::from_what(What::UnknownKey { allowed })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::from_what(What::MissingKey { key })
    }
}

/// A key that has another name, or belongs to another table, for some kinds.
struct Elsewhere {
    key: &'static str,
    /// Keys that identify the table: one that it has, and one that it does not have.
    beside: (&'static str, &'static str),
    hint: &'static str,
}

const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        key: "rate_bps",
        beside: ("tail_loss_probe", ""),
        hint: "tcp finds its own rate: write pacing = true to spread its window, or take kind = \"scps-tp\" or \"stp\" to send \
               at a given one",
    },
    Elsewhere {
        key: "rate_bps",
        beside: ("segment_bytes", "rto"),
        hint: "udp sends what the flow's traffic says: write traffic = { kind = \"cbr\", rate_bps = ..., ... }",
    },
    Elsewhere { key: "delayed_ack", beside: ("ack_every_segments", ""), hint: "write ack_every_segments = 1 or 2" },
    Elsewhere { key: "delayed_ack_timeout_s", beside: ("ack_interval_s", ""), hint: "write ack_interval_s" },
    Elsewhere {
        key: "congestion_control",
        beside: ("poll_interval_s", ""),
        hint: "write congestion = \"tcp\" or \"rate\"",
    },
    Elsewhere {
        key: "max_retransmissions",
        beside: ("give_up_after_timeouts", ""),
        hint: "write max_transmissions for a frame, give_up_after_timeouts for all",
    },
    Elsewhere { key: "mss", beside: ("segment_bytes", ""), hint: "write segment_bytes" },
    Elsewhere {
        key: "cwnd",
        beside: ("initial_window_segments", ""),
        hint: "write initial_window_segments or max_window_segments",
    },
    Elsewhere { key: "window", beside: ("max_window_segments", ""), hint: "write max_window_segments" },
    Elsewhere { key: "window", beside: ("window_frames", ""), hint: "write window_frames" },
    Elsewhere { key: "timeout_s", beside: ("rto", ""), hint: "write rto = { initial_s = ... }" },
];

/// A hint for a key that is unknown in this table but known elsewhere.
fn meant_elsewhere(key: &str, allowed: &[&str]) -> Option<&'static str> {
    let is_meant = |other: &&Elsewhere| {
        let (has, lacks) = other.beside;
        other.key == key && allowed.contains(&has) && !allowed.contains(&lacks)
    };
    ELSEWHERE.iter().find(is_meant).map(|other| other.hint)
}

/// Describes the value that was found, in the user's words.
fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => shortest(value),
        Unexpected::Str(text) => format!("the text {}", quoted(text)),
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// A JSON value on one line, shortened if it is long.
pub(crate) fn show(value: &Value) -> String {
    let text = match value {
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), shortest),
        other => other.to_string(),
    };
    cut(&text)
}

fn quoted(text: &str) -> String {
    format!("{:?}", cut(text))
}

fn cut(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Describes what serde expects, in the user's words.
fn plain_words(wanted: &str) -> String {
    let first = wanted.split(' ').next().unwrap_or_default();
    match first {
        "struct" | "internally" | "adjacently" => "a table".into(),
        "enum" | "variant" => "a name (text)".into(),
        "f64" | "f32" => "a number".into(),
        "u64" | "u32" | "u16" | "u8" | "usize" => "a whole number that is not negative".into(),
        "i64" | "i32" => "a whole number".into(),
        _ => match wanted {
            "a boolean" => "true or false".into(),
            "a string" | "a borrowed string" => "text in quotes".into(),
            "a sequence" => "a list [ ... ]".into(),
            "a map" => "a table".into(),
            other => other.replace("a tuple of size", "a list of").replace("an array of length", "a list of"),
        },
    }
}

/// Deserializer over a borrowed JSON value. It returns a table's `kind` first, whatever the order in the file, so that types of a
/// [`registry`](crate::registry) can choose by it without a copy of the table.
struct Reader<'a> {
    value: &'a Value,
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (_, Some(value)) => visitor.visit_i64(value),
                _ => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Object(table) => visitor.visit_map(Entries::new(table)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match self.value {
            Value::String(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            other => Err(de::Error::invalid_type(unexpected(other), &"enum")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

struct Items<'a> {
    items: &'a [Value],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Refusal;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refusal> {
        let Some(value) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader { value }).map(Some).map_err(|refusal| refusal.at(Step::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct Entries<'a> {
    kind: Option<(&'a String, &'a Value)>,
    rest: serde_json::map::Iter<'a>,
    /// The entry whose key was read last.
    current: Option<(&'a String, &'a Value)>,
}

impl<'a> Entries<'a> {
    fn new(table: &'a Map<String, Value>) -> Self {
        Entries { kind: table.get_key_value("kind"), rest: table.iter(), current: None }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        // If the table has a `kind`, it was returned first.
        self.current = self.kind.take().or_else(|| self.rest.find(|(key, _)| *key != "kind"));
        let Some((key, _)) = self.current else { return Ok(None) };
        seed.deserialize(key.as_str().into_deserializer())
            .map(Some)
            .map_err(|refusal: Refusal| refusal.at(Step::Key(key.clone())))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Refusal> {
        let (key, value) = self.current.take().expect("serde asks for a value after its key");
        seed.deserialize(Reader { value }).map_err(|refusal| refusal.at(Step::Key(key.clone())))
    }
}
