//! Numbers with a meaning and a range. They are checked when they are read, so that later code need not check them again.

mod or_never;

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error as DeError, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use or_never::OrNever;

/// Defines a checked number: its range is written once, for the check, the error text and the schema.
macro_rules! checked_number {
    ($(#[$doc:meta])* $name:ident, $schema:literal, $allowed:literal, |$value:ident| $is_valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
        #[serde(into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// The allowed values, in words.
            pub const ALLOWED: &'static str = $allowed;

            /// Checks a value.
            ///
            /// # Errors
            /// If the value is outside the range, with the value and the range.
            pub fn new($value: f64) -> Result<Self, OutOfRange> {
                if $is_valid { Ok(Self($value)) } else { Err(OutOfRange { value: $value, allowed: $allowed }) }
            }

            /// The value.
            #[inline]
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl Ranged for $name {
            const ALLOWED: &'static str = $allowed;
        }

        impl TryFrom<f64> for $name {
            type Error = OutOfRange;
            fn try_from(value: f64) -> Result<Self, OutOfRange> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = deserializer.deserialize_f64(Number { allowed: $allowed })?;
                Self::new(value).map_err(|_| D::Error::invalid_value(Unexpected::Float(value), &$allowed))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema: schemars::Schema = serde_json::from_str::<serde_json::Value>($schema)
                    .expect("the schema literal is JSON")
                    .try_into()
                    .expect("the schema literal is an object");
                schema.insert("type".into(), "number".into());
                schema.insert("description".into(), concat!("Allowed: ", $allowed, ".").into());
                schema
            }
        }
    };
}

/// Reads any number; the error for other types quotes the range.
struct Number {
    allowed: &'static str,
}

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.allowed)
    }

    fn visit_f64<E: DeError>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_u64<E: DeError>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_i64<E: DeError>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }
}

/// A number whose range has a description.
pub trait Ranged: TryFrom<f64, Error = OutOfRange> {
    /// The allowed values.
    const ALLOWED: &'static str;
}

/// A number outside its range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{} is not allowed; allowed: {allowed}", shortest(*.value))]
pub struct OutOfRange {
    /// The value that was given.
    pub value: f64,
    /// The allowed values, in words.
    pub allowed: &'static str,
}

checked_number!(
    /// A probability.
    Probability, r#"{"minimum": 0, "maximum": 1}"#, "a number from 0 to 1", |value| (0.0..=1.0).contains(&value)
);
checked_number!(
    /// A rate in bits per second.
    BitRate, r#"{"exclusiveMinimum": 0, "maximum": 1e13}"#, "a rate above 0 and at most 1e13 bit/s",
    |value| value > 0.0 && value <= 1e13
);
checked_number!(
    /// A span of time in seconds; zero is allowed. 1e7 s are 116 days.
    Seconds, r#"{"minimum": 0, "maximum": 1e7}"#, "a number of seconds from 0 to 1e7", |value| (0.0..=1e7).contains(&value)
);
checked_number!(
    /// A span of time in seconds, above zero.
    PositiveSeconds, r#"{"exclusiveMinimum": 0, "maximum": 1e7}"#, "a number of seconds above 0 and at most 1e7",
    |value| value > 0.0 && value <= 1e7
);
checked_number!(
    /// Events per second.
    EventRate, r#"{"exclusiveMinimum": 0, "maximum": 1e9}"#, "a number per second above 0 and at most 1e9",
    |value| value > 0.0 && value <= 1e9
);
checked_number!(
    /// A whole number of at least 1 (written 1000, 1_000 or 1e3).
    Count, r#"{"minimum": 1, "maximum": 1e15}"#, "a whole number from 1 to 1e15",
    |value| (1.0..=1e15).contains(&value) && value.fract() == 0.0
);
checked_number!(
    /// A whole number that may be zero (written 1000, 1_000 or 1e3).
    Whole, r#"{"minimum": 0, "maximum": 1e15}"#, "a whole number from 0 to 1e15",
    |value| (0.0..=1e15).contains(&value) && value.fract() == 0.0
);
checked_number!(
    /// A whole number from 1 to a million, such as a number of runs or flows.
    CountToMillion, r#"{"minimum": 1, "maximum": 1e6}"#, "a whole number from 1 to 1e6",
    |value| (1.0..=1e6).contains(&value) && value.fract() == 0.0
);
checked_number!(
    /// Number of lines of a bundle.
    LineCount, r#"{"minimum": 1, "maximum": 256}"#, "a whole number from 1 to 256",
    |value| (1.0..=256.0).contains(&value) && value.fract() == 0.0
);
checked_number!(
    /// Number of a class of service; lower goes first.
    ClassNumber, r#"{"minimum": 0, "maximum": 7}"#, "a whole number from 0 to 7",
    |value| (0.0..=7.0).contains(&value) && value.fract() == 0.0
);
checked_number!(
    /// A price in any unit.
    Price, r#"{"minimum": 0, "maximum": 1e12}"#, "a number from 0 to 1e12", |value| (0.0..=1e12).contains(&value)
);
checked_number!(
    /// A fraction above 0 and below 1.
    Fraction, r#"{"exclusiveMinimum": 0, "exclusiveMaximum": 1}"#, "a number between 0 and 1, both excluded",
    |value| value > 0.0 && value < 1.0
);
checked_number!(
    /// A factor that another quantity is multiplied by.
    Factor, r#"{"exclusiveMinimum": 0, "maximum": 1000}"#, "a number above 0 and at most 1000",
    |value| value > 0.0 && value <= 1000.0
);
checked_number!(
    /// Shape of a Weibull distribution.
    Shape, r#"{"minimum": 0.1, "maximum": 100}"#, "a number from 0.1 to 100", |value| (0.1..=100.0).contains(&value)
);
checked_number!(
    /// Energy per information bit over noise density, Eb/N0, in dB.
    EnergyToNoise, r#"{"minimum": -10, "maximum": 40}"#, "a number of dB from -10 to 40",
    |value| (-10.0..=40.0).contains(&value)
);
checked_number!(
    /// Height of an orbit above the ground, in m.
    Altitude, r#"{"minimum": 1e5, "maximum": 4e7}"#, "a height from 1e5 to 4e7 m", |value| (1e5..=4e7).contains(&value)
);
checked_number!(
    /// Angle between the planes of an orbit and of the equator, in degrees.
    Inclination, r#"{"minimum": 0, "maximum": 180}"#, "an angle from 0 to 180 degrees",
    |value| (0.0..=180.0).contains(&value)
);
checked_number!(
    /// Angle above the horizon, in degrees.
    Elevation, r#"{"minimum": 0, "maximum": 90}"#, "an angle from 0 to 90 degrees", |value| (0.0..=90.0).contains(&value)
);
checked_number!(
    /// Received optical power, in W.
    Power, r#"{"exclusiveMinimum": 0, "maximum": 1000}"#, "a power above 0 and at most 1000 W",
    |value| value > 0.0 && value <= 1000.0
);
checked_number!(
    /// How much the shot noise of the signal affects a receiver's error rate.
    FormFactor, r#"{"minimum": 0, "maximum": 1e6}"#, "a number from 0 to 1e6", |value| (0.0..=1e6).contains(&value)
);
checked_number!(
    /// A bit error rate, above 0 and below 0.5.
    ErrorRate, r#"{"exclusiveMinimum": 0, "exclusiveMaximum": 0.5}"#, "a number between 0 and 0.5, both excluded",
    |value| value > 0.0 && value < 0.5
);
checked_number!(
    /// Carrier power over noise density, C/N0, in dBHz.
    CarrierToNoise, r#"{"minimum": 0, "maximum": 160}"#, "a number of dBHz from 0 to 160",
    |value| (0.0..=160.0).contains(&value)
);

/// The shortest text of a number.
pub(crate) fn shortest(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) { format!("{value:e}") } else { value.to_string() }
}

impl Default for ClassNumber {
    /// The first class.
    fn default() -> Self {
        ClassNumber(0.0)
    }
}

impl Default for Seconds {
    /// No time.
    fn default() -> Self {
        Seconds(0.0)
    }
}

impl Seconds {
    /// As a span.
    pub fn time(self) -> crate::Time {
        crate::Time::from_secs_f64(self.0)
    }
}

impl PositiveSeconds {
    /// As a span.
    pub fn time(self) -> crate::Time {
        crate::Time::from_secs_f64(self.0)
    }
}

impl CountToMillion {
    /// As an integer.
    pub const fn whole(self) -> u64 {
        self.0 as u64
    }
}

impl LineCount {
    /// Largest number of lines of a bundle, of all kinds together.
    pub const MOST: u64 = 256;

    /// As an integer.
    pub const fn whole(self) -> u64 {
        self.0 as u64
    }
}

impl ClassNumber {
    /// As an integer.
    pub const fn whole(self) -> u8 {
        self.0 as u8
    }
}

impl Count {
    /// As an integer.
    pub const fn whole(self) -> u64 {
        self.0 as u64
    }
}

impl Whole {
    /// As an integer.
    pub const fn whole(self) -> u64 {
        self.0 as u64
    }
}

impl BitRate {
    /// Picoseconds that one byte takes.
    #[inline]
    pub fn ps_per_byte(self) -> f64 {
        8e12 / self.0
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_value_and_range() {
        assert_eq!(Probability::new(1.5).unwrap_err().to_string(), "1.5 is not allowed; allowed: a number from 0 to 1");
        assert!(Probability::new(f64::NAN).is_err());
        assert!(BitRate::new(0.0).is_err() && BitRate::new(-1.0).is_err());
        assert!(Count::new(1.5).is_err() && Count::new(1e6).unwrap().whole() == 1_000_000);
    }
}
