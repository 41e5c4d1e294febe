//! Recorded series that channels and links replay. This crate reads no files; the caller does.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::ConfigError;
use crate::coding::{EventsError, OperatingPoint};
use crate::units::Ranged;
use farlink_fec::events::ErrorEvents;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A source of traces: files in the engine, memory in tests.
pub trait TraceSource {
    /// Loads the trace of that name. The trace has passed [`Trace::check`], so that code that replays it need not check it again.
    ///
    /// # Errors
    /// If it is missing, unreadable, empty or malformed.
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError>;

    /// The error events at a decoder's output. A source that runs no decoder returns an error.
    ///
    /// # Errors
    /// If they cannot be collected, or this source collects none.
    fn error_events(&self, _point: &OperatingPoint) -> Result<Arc<ErrorEvents>, EventsError> {
        Err(EventsError::NotCollected)
    }
}

/// A recorded series.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Trace {
    /// Instants (delivery opportunities) at which a number of bytes may leave; repeats after `duration_s`.
    Delivery {
        /// Ascending instants, seconds.
        opportunity_s: Vec<f64>,
        /// Bytes that may leave at each instant.
        bytes_per_opportunity: u32,
        /// Duration after which it starts over, seconds.
        duration_s: f64,
    },
    /// A rate that is constant between instants; repeats after `duration_s`.
    Rate {
        /// Ascending instants, seconds; the first is 0.
        time_s: Vec<f64>,
        /// Rate from each instant on, bit/s; 0 is an outage.
        rate_bps: Vec<f64>,
        /// Duration after which it starts over, seconds.
        duration_s: f64,
    },
    /// A one-way delay that is constant between instants; repeats after `duration_s`.
    Delay {
        /// Ascending instants, seconds; the first is 0.
        time_s: Vec<f64>,
        /// Delay from each instant on, seconds.
        delay_s: Vec<f64>,
        /// Duration after which it starts over, seconds.
        duration_s: f64,
    },
    /// Received power in equally spaced samples; repeats after `duration_s`.
    Power {
        /// Power from each sample to the next, W.
        power_w: Vec<f64>,
        /// For each sample, whether the line of sight was blocked or tracking was lost; empty if it never was.
        blocked: Vec<bool>,
        /// Whether the unit of the power is unknown, so that only ratios are meaningful.
        is_relative: bool,
        /// When it starts over, seconds: the sample interval times the number of samples.
        duration_s: f64,
    },
    /// A bit error rate in equally spaced samples; repeats after `duration_s`.
    BitErrorRate {
        /// Bit error rate from each sample to the next.
        ber: Vec<f64>,
        /// When it starts over, seconds: the sample interval times the number of samples.
        duration_s: f64,
    },
    /// Whether each frame was lost; starts over at its end.
    PacketLoss {
        /// One entry per frame.
        lost: Vec<bool>,
    },
    /// Positions of the wrong bits in a bit stream; starts over at its end.
    BitErrors {
        /// Ascending positions.
        position: Vec<u64>,
        /// Length of the stream, bits.
        bits: u64,
    },
}

impl Trace {
    /// The name of its kind in a trace file's metadata.
    pub fn kind(&self) -> &'static str {
        match self {
            Trace::Delivery { .. } => "delivery",
            Trace::Rate { .. } => "rate",
            Trace::Delay { .. } => "delay",
            Trace::Power { .. } => "power",
            Trace::BitErrorRate { .. } => "ber",
            Trace::PacketLoss { .. } => "packet-loss",
            Trace::BitErrors { .. } => "bit-errors",
        }
    }

    /// Checks whether it can be replayed.
    ///
    /// # Errors
    /// If it cannot be replayed; the error says why.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Trace::Delivery { opportunity_s, bytes_per_opportunity, duration_s } => {
                check_series("opportunity_s", opportunity_s, *duration_s, |earlier, later| earlier <= later)?;
                if *bytes_per_opportunity == 0 {
                    return Err("bytes_per_opportunity is 0".into());
                }
            }
            Trace::Rate { time_s, rate_bps, duration_s } => {
                check_steps(time_s, "rate_bps", rate_bps, 1e13, *duration_s)?;
                if rate_bps.iter().all(|&rate| rate == 0.0) {
                    return Err("rate_bps is 0 throughout".into());
                }
            }
            Trace::Delay { time_s, delay_s, duration_s } => {
                check_steps(time_s, "delay_s", delay_s, LONGEST_S, *duration_s)?;
            }
            Trace::Power { power_w, blocked, duration_s, .. } => check_power(power_w, blocked, *duration_s)?,
            Trace::BitErrorRate { ber, duration_s } => check_samples("ber", ber, MOST_BER, "", *duration_s)?,
            Trace::PacketLoss { lost } => {
                if lost.is_empty() {
                    return Err("lost is empty".into());
                }
            }
            Trace::BitErrors { position, bits } => {
                if *bits == 0 {
                    return Err("bits is 0".into());
                }
                if let Some(pair) = position.windows(2).find(|pair| pair[0] >= pair[1]) {
                    return Err(format!("position is not ascending: {} follows {}", pair[1], pair[0]));
                }
                if let Some(last) = position.last().filter(|&last| last >= bits) {
                    return Err(format!("position {last} is not below bits = {bits}"));
                }
            }
        }
        Ok(())
    }
}

const SHORTEST_S: f64 = 1e-6;
const LONGEST_S: f64 = 1e7;
const CLOSEST_SAMPLES_S: f64 = 1e-9;
const MOST_POWER_W: f64 = 1e6;
const MOST_BER: f64 = 0.5;

fn check_series(name: &str, time_s: &[f64], duration_s: f64, is_ascending: fn(f64, f64) -> bool) -> Result<(), String> {
    if !(SHORTEST_S..=LONGEST_S).contains(&duration_s) {
        return Err(format!("duration_s = {duration_s} is not allowed; allowed: {SHORTEST_S} to {LONGEST_S} s"));
    }
    if time_s.is_empty() {
        return Err(format!("{name} is empty"));
    }
    if let Some(time) = time_s.iter().find(|time| !(0.0..=duration_s).contains(*time)) {
        return Err(format!("{name} holds {time}; allowed: 0 to duration_s = {duration_s}"));
    }
    if let Some(pair) = time_s.windows(2).find(|pair| !is_ascending(pair[0], pair[1])) {
        return Err(format!("{name} is not ascending: {} follows {}", pair[1], pair[0]));
    }
    Ok(())
}

fn check_steps(time_s: &[f64], name: &str, values: &[f64], largest: f64, duration_s: f64) -> Result<(), String> {
    check_series("time_s", time_s, duration_s, |earlier, later| earlier < later)?;
    if time_s[0] != 0.0 {
        return Err(format!("time_s starts at {}, not at 0", time_s[0]));
    }
    if time_s.last().is_some_and(|&last| last >= duration_s) {
        return Err(format!("the last of time_s is not below duration_s = {duration_s}"));
    }
    if values.len() != time_s.len() {
        return Err(format!("{name} has {} entries but time_s has {}", values.len(), time_s.len()));
    }
    match values.iter().find(|value| !(0.0..=largest).contains(*value)) {
        Some(value) => Err(format!("{name} holds {value}; allowed: 0 to {largest:e}")),
        None => Ok(()),
    }
}

fn check_power(power_w: &[f64], blocked: &[bool], duration_s: f64) -> Result<(), String> {
    if !blocked.is_empty() && blocked.len() != power_w.len() {
        return Err(format!("blocked has {} entries but power_w has {}", blocked.len(), power_w.len()));
    }
    check_samples("power_w", power_w, MOST_POWER_W, " W", duration_s)
}

/// Checks equally spaced samples with values from 0 to `most`.
fn check_samples(name: &str, values: &[f64], most: f64, unit: &str, duration_s: f64) -> Result<(), String> {
    if !(SHORTEST_S..=LONGEST_S).contains(&duration_s) {
        return Err(format!("duration_s = {duration_s} is not allowed; allowed: {SHORTEST_S} to {LONGEST_S} s"));
    }
    if values.is_empty() {
        return Err(format!("{name} is empty"));
    }
    // Times are whole picoseconds, so samples that are too close would lie at the same instant.
    if duration_s / (values.len() as f64) < CLOSEST_SAMPLES_S {
        return Err(format!("its {} samples are closer than {CLOSEST_SAMPLES_S:e} s", values.len()));
    }
    match values.iter().position(|value| !(0.0..=most).contains(value)) {
        Some(at) => Err(format!("{name}[{at}] is {}; allowed: 0 to {most}{unit}", values[at])),
        None => Ok(()),
    }
}

/// Traces in memory, by name: for tests, and for traces that do not come from files.
#[derive(Clone, Debug, Default)]
pub struct MemoryTraces {
    traces: BTreeMap<String, Arc<Trace>>,
    events: Option<Arc<ErrorEvents>>,
}

impl MemoryTraces {
    /// Adds a trace.
    #[must_use]
    pub fn with(mut self, name: &str, trace: Trace) -> Self {
        self.traces.insert(name.into(), Arc::new(trace));
        self
    }

    /// Sets the error events of every coding.
    #[must_use]
    pub fn with_events(mut self, events: ErrorEvents) -> Self {
        self.events = Some(Arc::new(events));
        self
    }
}

impl TraceSource for MemoryTraces {
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError> {
        let trace = self
            .traces
            .get(file)
            .ok_or_else(|| TraceError::Unreadable { file: file.into(), reason: "there is no such trace".into() })?;
        trace.check().map_err(|reason| TraceError::Malformed { file: file.into(), reason })?;
        Ok(Arc::clone(trace))
    }

    fn error_events(&self, _point: &OperatingPoint) -> Result<Arc<ErrorEvents>, EventsError> {
        self.events.clone().ok_or(EventsError::NotCollected)
    }
}

/// Where a replay starts: at a given position, or at a random one that differs from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offset<T> {
    /// `"random"`: at a position drawn uniformly.
    #[default]
    Random,
    /// At this position (modulo the trace's length).
    At(T),
}

impl<T: Copy + Into<f64>> Serialize for Offset<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Offset::Random => serializer.serialize_str("random"),
            Offset::At(at) => serializer.serialize_f64(at.into()),
        }
    }
}

impl<'de, T: Ranged> Deserialize<'de> for Offset<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);

        impl<T: Ranged> de::Visitor<'_> for Visitor<T> {
            type Value = Offset<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "{}, or \"random\"", T::ALLOWED)
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Self::Value, E> {
                if word == "random" {
                    return Ok(Offset::Random);
                }
                Err(E::invalid_value(de::Unexpected::Str(word), &self))
            }
            fn visit_f64<E: de::Error>(self, at: f64) -> Result<Self::Value, E> {
                T::try_from(at).map(Offset::At).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, at: u64) -> Result<Self::Value, E> {
                self.visit_f64(at as f64)
            }
            fn visit_i64<E: de::Error>(self, at: i64) -> Result<Self::Value, E> {
                self.visit_f64(at as f64)
            }
        }

        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Offset<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Offset_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"anyOf": [{"const": "random"}, generator.subschema_for::<T>()]})
    }
}

/// Why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no such file, or it cannot be opened.
    #[error("cannot read the trace {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The error of the operating system.
        reason: String,
    },
    /// Its content is malformed.
    #[error("the trace {file} is not usable: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// The fault.
        reason: String,
    },
    /// It is of another kind than the one needed here.
    #[error("the trace {file} holds {found} but {wanted} is wanted here")]
    WrongKind {
        /// The file.
        file: String,
        /// The kind of the trace.
        found: &'static str,
        /// The kind that is needed.
        wanted: &'static str,
    },
}

impl TraceError {
    /// The same error for the trace that the key at `path` names (such as `link.rate_bps.file`).
    pub fn at(&self, path: &str) -> ConfigError {
        let remedy = "give a trace made by `farlink trace import`; relative names start at the scenario's folder";
        ConfigError::new(path, self, remedy)
    }
}

impl TraceError {
    /// The error for a trace of another kind than the one needed.
    pub fn wrong_kind(file: &str, found: &Trace, wanted: &'static str) -> Self {
        TraceError::WrongKind { file: file.into(), found: found.kind(), wanted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(trace: Trace) -> String {
        match MemoryTraces::default().with("t", trace).load("t") {
            Err(TraceError::Malformed { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn invalid_traces_are_refused_with_the_reason() {
        let rate = |time_s: &[f64], rate_bps: &[f64], duration_s| {
            reason(Trace::Rate { time_s: time_s.into(), rate_bps: rate_bps.into(), duration_s })
        };
        assert_eq!(rate(&[], &[], 1.0), "time_s is empty");
        assert_eq!(rate(&[0.0], &[1.0], f64::NAN), "duration_s = NaN is not allowed; allowed: 0.000001 to 10000000 s");
        assert_eq!(rate(&[0.0, f64::NAN], &[1.0, 1.0], 1.0), "time_s holds NaN; allowed: 0 to duration_s = 1");
        assert_eq!(rate(&[0.0, 0.5, 0.5], &[1.0; 3], 1.0), "time_s is not ascending: 0.5 follows 0.5");
        assert_eq!(rate(&[0.1], &[1.0], 1.0), "time_s starts at 0.1, not at 0");
        assert_eq!(rate(&[0.0, 1.0], &[1.0; 2], 1.0), "the last of time_s is not below duration_s = 1");
        assert_eq!(rate(&[0.0, 0.5], &[1.0], 1.0), "rate_bps has 1 entries but time_s has 2");
        assert_eq!(rate(&[0.0], &[-1.0], 1.0), "rate_bps holds -1; allowed: 0 to 1e13");
        assert_eq!(rate(&[0.0], &[0.0], 1.0), "rate_bps is 0 throughout");
        assert_eq!(reason(Trace::PacketLoss { lost: vec![] }), "lost is empty");
        assert_eq!(reason(Trace::BitErrors { position: vec![], bits: 0 }), "bits is 0");
        assert_eq!(reason(Trace::BitErrors { position: vec![3], bits: 3 }), "position 3 is not below bits = 3");
        let descending = Trace::BitErrors { position: vec![2, 1], bits: 3 };
        assert_eq!(reason(descending), "position is not ascending: 1 follows 2");
        let power = |power_w: &[f64], blocked: &[bool]| {
            reason(Trace::Power {
                power_w: power_w.into(),
                blocked: blocked.into(),
                is_relative: false,
                duration_s: 1.0,
            })
        };
        assert_eq!(power(&[], &[]), "power_w is empty");
        assert_eq!(power(&[1e-9, -1e-9], &[]), "power_w[1] is -0.000000001; allowed: 0 to 1000000 W");
        assert_eq!(power(&[1e-9, 1.0, f64::NAN], &[]), "power_w[2] is NaN; allowed: 0 to 1000000 W");
        assert_eq!(power(&[1e-9], &[true, false]), "blocked has 2 entries but power_w has 1");
        let empty = Trace::Delivery { opportunity_s: vec![0.0], bytes_per_opportunity: 0, duration_s: 1.0 };
        assert_eq!(reason(empty), "bytes_per_opportunity is 0");
    }

    #[test]
    fn offsets_round_trip_and_refuse_unknown_words() {
        use crate::units::Whole;
        for json in ["\"random\"", "0.0", "12.0"] {
            let offset: Offset<Whole> = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&offset).unwrap(), json);
        }
        for json in ["\"start\"", "-1", "1.5", "true", "[]"] {
            assert!(serde_json::from_str::<Offset<Whole>>(json).is_err(), "{json}");
        }
    }
}
