//! The timer of delayed acknowledgements: a constant, or drawn for each acknowledgement.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Time;
use crate::units::{PositiveSeconds, Seconds};

/// Upper bound of a drawn delay (RFC 9293, section 3.8.6.3), in seconds.
const MOST_S: f64 = 0.5;

/// How long an acknowledgement is delayed at most: a number of seconds, or `[least, most]` for a delay drawn for each
/// acknowledgement, uniformly between the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AckTimeout {
    /// The same for every acknowledgement.
    Fixed(PositiveSeconds),
    /// Drawn for each acknowledgement.
    Uniform(UniformSeconds),
}

/// A duration that is uniformly distributed, at most 0.5 s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniformSeconds {
    least_s: f64,
    most_s: f64,
}

impl UniformSeconds {
    /// The allowed values, in words.
    const ALLOWED: &'static str = "[least, most] with 0 <= least < most <= 0.5";

    /// Uniform from `least_s` to `most_s`; `None` unless 0 <= least < most <= 0.5.
    pub fn new(least_s: f64, most_s: f64) -> Option<Self> {
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.8.6.3
        //# in particular, the delay MUST be less than 0.5 seconds
        (0.0 <= least_s && least_s < most_s && most_s <= MOST_S).then_some(UniformSeconds { least_s, most_s })
    }

    /// The bounds: a delay is at least the first, and less than the second.
    pub(in crate::protocol::tcp) fn bounds(self) -> [Time; 2] {
        [self.least_s, self.most_s].map(Time::from_secs_f64)
    }
}

impl AckTimeout {
    /// The longest delay.
    pub fn longest(self) -> Time {
        match self {
            AckTimeout::Fixed(fixed) => fixed.time(),
            AckTimeout::Uniform(drawn) => drawn.bounds()[1],
        }
    }
}

impl Serialize for AckTimeout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AckTimeout::Fixed(fixed) => fixed.serialize(serializer),
            AckTimeout::Uniform(UniformSeconds { least_s, most_s }) => [least_s, most_s].serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AckTimeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrRange)
    }
}

struct NumberOrRange;

impl<'de> Visitor<'de> for NumberOrRange {
    type Value = AckTimeout;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or {}", PositiveSeconds::ALLOWED, UniformSeconds::ALLOWED)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<AckTimeout, E> {
        let fixed = PositiveSeconds::new(value).map(AckTimeout::Fixed);
        fixed.map_err(|_| E::invalid_value(serde::de::Unexpected::Float(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<AckTimeout, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<AckTimeout, E> {
        self.visit_f64(value as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AckTimeout, A::Error> {
        let mut bounds: Vec<f64> = Vec::new();
        while let Some(bound) = list.next_element()? {
            bounds.push(bound);
        }
        let range = match bounds[..] {
            [least_s, most_s] => UniformSeconds::new(least_s, most_s),
            _ => None,
        };
        let (given, allowed) = (format!("{bounds:?}"), UniformSeconds::ALLOWED);
        range.map(AckTimeout::Uniform).ok_or_else(|| {
            let why = match bounds[..] {
                [_, most_s] if most_s > MOST_S => " (RFC 9293 limits the delay to 0.5 s)",
                [least_s, most_s] if least_s == most_s => " (for a constant delay give one number)",
                _ => "",
            };
            A::Error::custom(format_args!("{given} is not allowed; allowed: {allowed}{why}"))
        })
    }
}

impl JsonSchema for AckTimeout {
    fn schema_name() -> Cow<'static, str> {
        "AckTimeout".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut bound = generator.subschema_for::<Seconds>();
        bound.insert("maximum".to_owned(), MOST_S.into());
        json_schema!({ "anyOf": [
            generator.subschema_for::<PositiveSeconds>(),
            { "type": "array", "items": bound, "minItems": 2, "maxItems": 2 },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_range_is_read_and_written_alike() {
        for text in ["0.2", "[0.0,0.2]", "[0.1,0.2]", "[0.0,0.5]", "7.0"] {
            let read: AckTimeout = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
        let longest = |text| serde_json::from_str::<AckTimeout>(text).unwrap().longest();
        assert_eq!([longest("[0, 0.3]"), longest("0.4")], [Time::from_millis(300), Time::from_millis(400)]);
    }

    #[test]
    fn other_ranges_are_refused() {
        let texts =
            ["[0.2,0.1]", "[-0.1,0.2]", "[0.1,0.6]", "[0.1,0.1]", "[0.1]", "[0.1,0.2,0.3]", "[]", "[0.1,\"a\"]"];
        for text in texts.into_iter().chain(["0", "-1", "\"0.1\"", "true", "{}"]) {
            let error = serde_json::from_str::<AckTimeout>(text).expect_err(text).to_string();
            assert!(!error.is_empty(), "{text}");
        }
        let said = serde_json::from_str::<AckTimeout>("[0.1,0.6]").unwrap_err().to_string();
        assert!(said.contains("[0.1, 0.6]") && said.contains("most <= 0.5") && said.contains("RFC 9293"), "{said}");
    }
}
