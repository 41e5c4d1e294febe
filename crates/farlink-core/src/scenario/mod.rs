//! The scenario: its links, transports and traffic. The JSON Schema is generated from these types.
//!
//! [`expand`] checks a scenario and its grid, and returns one [`Scenario`] per grid point. All errors are
//! [`ConfigError`](crate::ConfigError)s, which say where the error is, what is wrong and what to do.

mod check;
mod document;
mod engine;
mod expand;
mod flow;
mod fluid;
mod gateway;
mod grid;
mod hop;
mod idle;
mod limits;
mod live;
mod longest_packets;
mod measure;
mod model;
mod near_names;
mod paths;
mod point_texts;
mod precision;
pub mod quantity;
pub(crate) mod read;
mod restart;
mod schema;
mod service;
pub mod traffic;

use std::borrow::Cow;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use document::from_json;
#[cfg(feature = "toml")]
pub use document::from_toml;
pub use engine::{Approximation, ENGINES, Engine, EngineName, HonouredKeys, Unsupported};
pub use expand::{Expanded, MAX_POINTS, MOST_SINGLE_POINTS, Point, Points, expand, expand_some};
pub use flow::Flow;
pub use fluid::Fluid;
pub use gateway::{Custody, Gateway};
pub use grid::Grid;
pub use hop::{Direction, Hop, Ordering, Return};
pub use limits::Limits;
pub use measure::{Measure, SeriesQuantity};
pub use model::Sizes;
pub(crate) use near_names::suggest;
pub use paths::{NoticedBy, PathClass, PathLimits, PathMember, PathReturn, Paths, Unplugged};
pub use point_texts::PointTexts;
pub use precision::Precision;
pub use restart::{Restart, Side};
pub use schema::schema;
pub use service::{Service, Weight, Weights};
pub use traffic::TrafficKind;

use crate::protocol::TransportConfig;
use crate::time::Time;
use crate::units::{CountToMillion, PositiveSeconds, Whole};

/// Hops from sender to receiver, each with its name.
pub type WholePath<'a> = Vec<(&'a str, &'a Hop)>;

/// Default of `give_up_after_s`.
const GIVE_UP_AFTER_S: f64 = 1e5;

/// Default number of runs.
const RUNS: f64 = 10.0;

/// A scenario: links, transports and traffic.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Title of the scenario, for tables and reports.
    pub title: String,
    /// Simulated time, in seconds. By default a run ends when every flow is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<PositiveSeconds>,
    /// Without `duration_s`: a run ends once no flow has delivered anything for this long and no new traffic is to come, in
    /// seconds. Data that is not delivered by then is reported as stalled. Defaults to 1e5 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub give_up_after_s: Option<PositiveSeconds>,
    /// Number of independent runs, each with a seed of its own. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<CountToMillion>,
    /// Seed of every random stream.
    pub seed: Whole,
    /// A stopping rule instead of `runs`: runs are added until a confidence interval is narrow enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Engines that run it.
    pub engines: Vec<EngineName>,
    /// What to do about a key that an engine does not support.
    pub unsupported: Unsupported,
    /// What is measured.
    pub measure: Measure,
    /// Limits of the study's cost.
    pub limits: Limits,
    /// The only hop, for a path of one hop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Hop>,
    /// The path: names of hops from sender to receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// Named hops of the path.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub hop: IndexMap<String, Hop>,
    /// Named transports.
    pub transport: IndexMap<String, TransportConfig>,
    /// Named flows.
    pub flow: IndexMap<String, Flow>,
    /// Options of the engine `fluid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fluid: Option<Fluid>,
    /// Settings that vary: every combination of their values is run.
    #[serde(skip_serializing_if = "Grid::is_empty")]
    pub grid: Grid,
    /// Settings that vary together: the first values of each, the second values of each, ...
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grid_zip: Vec<Grid>,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            title: String::new(),
            duration_s: None,
            give_up_after_s: None,
            runs: None,
            seed: Whole::new(1.0).expect("a constant within its range"),
            precision: None,
            engines: vec![EngineName::default()],
            unsupported: Unsupported::default(),
            measure: Measure::default(),
            limits: Limits::default(),
            link: None,
            path: None,
            hop: IndexMap::new(),
            transport: IndexMap::new(),
            flow: IndexMap::new(),
            fluid: None,
            grid: Grid::default(),
            grid_zip: Vec::new(),
        }
    }
}

impl Scenario {
    /// The transport of a flow.
    ///
    /// # Panics
    /// If no transport has that name; a scenario from [`expand`] always has it.
    pub fn transport_of(&self, flow: &Flow) -> &TransportConfig {
        self.transport.get(&flow.transport).expect("a checked scenario has the transports that its flows name")
    }

    /// The transport of a flow as its class makes it.
    ///
    /// # Panics
    /// As [`transport_of`](Self::transport_of).
    pub fn transport_of_class(&self, flow: &Flow) -> Cow<'_, TransportConfig> {
        match self.transport_of(flow) {
            TransportConfig::Aerotp(config) if !config.mode_by_class.is_empty() => {
                Cow::Owned(TransportConfig::Aerotp(config.for_class(flow.class.whole())))
            }
            config => Cow::Borrowed(config),
        }
    }

    /// How long a run continues without any delivery; for ever if it has a duration.
    pub fn give_up_after(&self) -> Time {
        match (self.duration_s, self.give_up_after_s) {
            (Some(_), _) => Time::NEVER,
            (None, Some(given)) => given.time(),
            (None, None) => Time::from_secs_f64(GIVE_UP_AFTER_S),
        }
    }

    /// Fills in defaults that depend on other keys.
    fn fill_in(&mut self) {
        if self.precision.is_none() && self.runs.is_none() {
            self.runs = Some(CountToMillion::new(RUNS).expect("a constant within its range"));
        }
    }
}
