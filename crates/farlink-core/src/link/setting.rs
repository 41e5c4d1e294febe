//! The configuration of a link's rate and delay: a number, or a series that is replayed.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::pass::{Overhead, Pass};
use super::series::{Cursor, DelaySeries, Delivery, RateSeries, Steps, Transmitter};
use crate::ConfigError;
use crate::channel::Prepared;
use crate::rng::Rng;
use crate::time::Time;
use crate::trace::{Offset, Trace, TraceError, TraceSource};
use crate::units::{BitRate, Ranged, Seconds};

/// A number, or a table whose `kind` names the source of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Setting<N, K> {
    /// A constant value.
    Constant(N),
    /// A value that changes.
    Varying(K),
}

/// The rate of a link: bit/s, or `{ kind = "rate-trace", file = "..." }`.
pub type RateSetting = Setting<BitRate, RateKind>;

/// The one-way delay of a link: seconds, or `{ kind = "delay-trace", file = "..." }`.
pub type DelaySetting = Setting<Seconds, DelayKind>;

impl<'de, N, K> Deserialize<'de> for Setting<N, K>
where
    N: Ranged,
    K: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor(PhantomData))
    }
}

/// Chooses by the shape of the input, so that an error is about the form that the user meant.
struct SettingVisitor<N, K>(PhantomData<(N, K)>);

impl<'de, N, K> de::Visitor<'de> for SettingVisitor<N, K>
where
    N: Ranged,
    K: Deserialize<'de>,
{
    type Value = Setting<N, K>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}, or a table {{ kind = \"...\", ... }}", N::ALLOWED)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        N::try_from(value).map(Setting::Constant).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        K::deserialize(MapAccessDeserializer::new(map)).map(Setting::Varying)
    }
}

/// A rate that varies.
pub trait RateConfig {
    /// Reads its input, once per scenario.
    ///
    /// # Errors
    /// If a trace is missing or unsuitable.
    fn prepare(&self, traces: &dyn TraceSource) -> Result<PreparedRate, TraceError>;
}

/// A delay that varies.
pub trait DelayConfig {
    /// Reads its input, once per scenario.
    ///
    /// # Errors
    /// If a trace is missing or unsuitable.
    fn prepare(&self, traces: &dyn TraceSource) -> Result<PreparedDelay, TraceError>;

    /// Checks its keys against each other.
    ///
    /// # Errors
    /// If they contradict each other.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The outages that the source of the delay causes, in runs that end after `duration` at the latest.
    fn outages(&self, _duration: Option<Time>) -> Option<Arc<dyn Prepared>> {
        None
    }
}

crate::registry::registry! {
    /// A rate that varies, by its `kind`.
    rates: RateKind as RateConfig {
        Trace = "rate-trace" => RateTrace,
    }
}

crate::registry::registry! {
    /// A delay that varies, by its `kind`.
    delays: DelayKind as DelayConfig {
        Trace = "delay-trace" => DelayTrace,
        Pass = "pass" => Pass,
    }
}

/// A recorded rate, as delivery opportunities or as bit/s over time; at its end the recording is repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateTrace {
    /// A trace file of kind "delivery" or "rate".
    pub file: String,
    /// Where in the recording a run starts: seconds (0 unless set), or "random" for another position in each run.
    #[serde(default = "from_the_start")]
    pub offset_s: Offset<Seconds>,
}

/// A recorded one-way delay; at its end the recording is repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayTrace {
    /// A trace file of kind "delay".
    pub file: String,
    /// Where in the recording a run starts: seconds (0 unless set), or "random" for another position in each run.
    #[serde(default = "from_the_start")]
    pub offset_s: Offset<Seconds>,
}

/// By default a rate and a delay that were recorded together stay synchronous.
fn from_the_start() -> Offset<Seconds> {
    Offset::At(Seconds::new(0.0).expect("zero is allowed"))
}

impl RateSetting {
    /// Reads its input, once per scenario.
    ///
    /// # Errors
    /// If a trace is missing or unsuitable.
    pub fn prepare(&self, traces: &dyn TraceSource) -> Result<PreparedRate, TraceError> {
        match self {
            Setting::Constant(rate) => Ok(PreparedRate(Rates::Constant(*rate))),
            Setting::Varying(kind) => kind.as_dyn().prepare(traces),
        }
    }
}

impl DelaySetting {
    /// Checks rules that the types cannot express.
    ///
    /// # Errors
    /// If its keys contradict each other.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Setting::Constant(_) => Ok(()),
            Setting::Varying(kind) => kind.as_dyn().check(),
        }
    }

    /// See [`DelayConfig::outages`].
    pub fn outages(&self, duration: Option<Time>) -> Option<Arc<dyn Prepared>> {
        match self {
            Setting::Constant(_) => None,
            Setting::Varying(kind) => kind.as_dyn().outages(duration),
        }
    }

    /// Reads its input, once per scenario.
    ///
    /// # Errors
    /// If a trace is missing or unsuitable.
    pub fn prepare(&self, traces: &dyn TraceSource) -> Result<PreparedDelay, TraceError> {
        match self {
            Setting::Constant(delay) => Ok(PreparedDelay(Delays::Constant(delay.time()))),
            Setting::Varying(kind) => kind.as_dyn().prepare(traces),
        }
    }
}

impl RateConfig for RateTrace {
    fn prepare(&self, traces: &dyn TraceSource) -> Result<PreparedRate, TraceError> {
        let trace = traces.load(&self.file)?;
        let start = Start::new(self.offset_s, &trace);
        Ok(PreparedRate(match &*trace {
            Trace::Delivery { opportunity_s, bytes_per_opportunity, duration_s } => Rates::Delivery {
                opportunities: Arc::new(Steps::new(opportunity_s, *duration_s)),
                bytes: *bytes_per_opportunity,
                start,
            },
            Trace::Rate { time_s, rate_bps, duration_s } => Rates::Steps {
                steps: Arc::new(Steps::new(time_s, *duration_s)),
                rate_bps: rate_bps.as_slice().into(),
                start,
            },
            other => return Err(TraceError::wrong_kind(&self.file, other, "delivery or rate")),
        }))
    }
}

impl DelayConfig for DelayTrace {
    fn prepare(&self, traces: &dyn TraceSource) -> Result<PreparedDelay, TraceError> {
        let trace = traces.load(&self.file)?;
        let Trace::Delay { time_s, delay_s, duration_s } = &*trace else {
            return Err(TraceError::wrong_kind(&self.file, &trace, "delay"));
        };
        Ok(PreparedDelay(Delays::Steps {
            steps: Arc::new(Steps::new(time_s, *duration_s)),
            delays: delay_s.iter().map(|&delay| Time::from_secs_f64(delay)).collect(),
            start: Start::new(self.offset_s, &trace),
        }))
    }
}

impl DelayConfig for Pass {
    fn check(&self) -> Result<(), ConfigError> {
        self.passes().map(drop)
    }

    fn prepare(&self, _traces: &dyn TraceSource) -> Result<PreparedDelay, TraceError> {
        let passes =
            self.passes().map_err(|unfit| TraceError::Malformed { file: "pass".into(), reason: unfit.what })?;
        Ok(PreparedDelay(Delays::Pass(Overhead::new(passes, self.step_s.time()))))
    }

    fn outages(&self, duration: Option<Time>) -> Option<Arc<dyn Prepared>> {
        self.passes().ok()?.outages(duration.unwrap_or(Time::NEVER))
    }
}

/// The position in a series at which a run starts.
#[derive(Clone, Copy, Debug)]
struct Start {
    offset: Offset<Seconds>,
    duration: Time,
}

impl Start {
    fn new(offset: Offset<Seconds>, trace: &Trace) -> Self {
        let duration_s = match trace {
            Trace::Delivery { duration_s, .. } | Trace::Rate { duration_s, .. } | Trace::Delay { duration_s, .. } => {
                *duration_s
            }
            _ => 0.0,
        };
        Start { offset, duration: Time::from_secs_f64(duration_s) }
    }

    fn draw(&self, rng: &mut Rng) -> Time {
        match self.offset {
            Offset::Random => Time::from_ps(rng.below(self.duration.as_ps())),
            Offset::At(offset) => offset.time(),
        }
    }
}

/// A rate that is ready to start any number of runs.
#[derive(Clone, Debug)]
pub struct PreparedRate(Rates);

#[derive(Clone, Debug)]
enum Rates {
    Constant(BitRate),
    Steps { steps: Arc<Steps>, rate_bps: Arc<[f64]>, start: Start },
    Delivery { opportunities: Arc<Steps>, bytes: u32, start: Start },
}

impl From<BitRate> for PreparedRate {
    fn from(rate: BitRate) -> Self {
        PreparedRate(Rates::Constant(rate))
    }
}

impl From<Time> for PreparedDelay {
    fn from(delay: Time) -> Self {
        PreparedDelay(Delays::Constant(delay))
    }
}

impl PreparedRate {
    /// Begins a run.
    pub fn start(&self, rng: &mut Rng) -> Transmitter {
        match &self.0 {
            Rates::Constant(rate) => Transmitter::constant(*rate),
            Rates::Steps { start, .. } | Rates::Delivery { start, .. } => self.start_at(start.draw(rng)),
        }
    }

    fn start_at(&self, offset: Time) -> Transmitter {
        match &self.0 {
            Rates::Constant(rate) => Transmitter::constant(*rate),
            Rates::Steps { steps, rate_bps, .. } => {
                Transmitter::Rate(RateSeries::new(Cursor::new(steps.clone(), offset), rate_bps.clone()))
            }
            Rates::Delivery { opportunities, bytes, .. } => {
                Transmitter::Delivery(Delivery::new(opportunities.clone(), *bytes, offset))
            }
        }
    }

    /// The rate, if it is constant.
    pub fn constant(&self) -> Option<BitRate> {
        match self.0 {
            Rates::Constant(rate) => Some(rate),
            _ => None,
        }
    }

    /// The mean rate over the whole series, bit/s, of which goodput is a fraction.
    pub fn mean_bps(&self) -> f64 {
        match self.start_at(Time::ZERO) {
            Transmitter::Constant(byte_time, _) => byte_time.rate_bps(),
            Transmitter::Rate(series) => series.mean_bps(),
            Transmitter::Delivery(series) => series.mean_bps(),
        }
    }
}

/// A delay that is ready to start any number of runs.
#[derive(Clone, Debug)]
pub struct PreparedDelay(Delays);

#[derive(Clone, Debug)]
enum Delays {
    Constant(Time),
    Steps { steps: Arc<Steps>, delays: Arc<[Time]>, start: Start },
    Pass(Overhead),
}

impl PreparedDelay {
    /// The same delay, with `more` in addition.
    #[must_use]
    pub fn later(mut self, more: Time) -> Self {
        match &mut self.0 {
            Delays::Constant(delay) => *delay += more,
            Delays::Steps { delays, .. } => *delays = delays.iter().map(|&delay| delay + more).collect(),
            Delays::Pass(overhead) => overhead.delay_more(more),
        }
        self
    }

    /// Begins a run.
    pub fn start(&self, rng: &mut Rng) -> DelaySeries {
        match &self.0 {
            Delays::Constant(delay) => DelaySeries::Constant(*delay),
            Delays::Pass(overhead) => DelaySeries::Pass(*overhead),
            Delays::Steps { steps, delays, start } => {
                DelaySeries::Steps { cursor: Cursor::new(steps.clone(), start.draw(rng)), delays: delays.clone() }
            }
        }
    }

    /// The delay, if it is constant.
    pub fn constant(&self) -> Option<Time> {
        match self.0 {
            Delays::Constant(delay) => Some(delay),
            Delays::Steps { .. } | Delays::Pass(_) => None,
        }
    }

    /// The longest delay, for which a window must be sufficient.
    pub fn longest(&self) -> Time {
        match &self.0 {
            Delays::Constant(delay) => *delay,
            Delays::Steps { delays, .. } => delays.iter().copied().max().unwrap_or(Time::ZERO),
            Delays::Pass(overhead) => overhead.longest(),
        }
    }

    /// The shortest delay.
    pub fn shortest(&self) -> Time {
        match &self.0 {
            Delays::Constant(delay) => *delay,
            Delays::Steps { delays, .. } => delays.iter().copied().min().unwrap_or(Time::ZERO),
            Delays::Pass(overhead) => overhead.shortest(),
        }
    }
}
