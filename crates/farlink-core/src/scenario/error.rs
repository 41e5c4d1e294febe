//! What is wrong with a scenario, and how to mend it: two lines for every refusal.

use std::fmt;

use crate::channel::ChannelError;
use crate::coding::EventsError;

/// Why a scenario is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The key, as a dotted path (`link.channel.ber`, `engines[0]`); empty for the scenario as a whole.
    pub path: String,
    /// What is wrong with it; begins with the path.
    pub message: String,
    /// How to mend it.
    pub remedy: String,
}

impl ScenarioError {
    /// A refusal of the key at `path`.
    pub fn new(path: impl Into<String>, what: impl fmt::Display, remedy: impl Into<String>) -> Self {
        let path = path.into();
        let message = if path.is_empty() { what.to_string() } else { format!("{path}: {what}") };
        ScenarioError { path, message, remedy: remedy.into() }
    }

    /// A refusal by a channel whose table stands at `path` (`link.channel`).
    pub fn from_channel(path: &str, error: &ChannelError) -> Self {
        match error {
            ChannelError::Trace(_) => Self::from_trace(&format!("{path}.file"), error),
            ChannelError::Key(unfit) => {
                let unfit = unfit.clone().within(path);
                Self::new(unfit.key, unfit.message, unfit.remedy)
            }
            ChannelError::Events(EventsError::Impossible { message, remedy }) => {
                Self::new(path, message, remedy.clone())
            }
            ChannelError::Events(_) => Self::new(path, error, "run the scenario again"),
            ChannelError::Keys { message, remedy } => Self::new(path, message, remedy.clone()),
        }
    }

    /// A trace that cannot be used, named by the key at `path` (`link.rate_bps.file`).
    pub fn from_trace(path: &str, error: &dyn fmt::Display) -> Self {
        Self::new(
            path,
            error,
            "give a trace made by `farlink trace import`; relative names start at the scenario's folder",
        )
    }

    /// The same, seen from an outer table: `path` and a dot go before its path.
    #[must_use]
    pub fn within(self, path: &str) -> Self {
        let what = self.message.strip_prefix(&format!("{}: ", self.path)).unwrap_or(&self.message).to_owned();
        let path = if self.path.is_empty() { path.to_owned() } else { format!("{path}.{}", self.path) };
        Self::new(path, what, self.remedy)
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

impl std::error::Error for ScenarioError {}

/// The known name that was probably meant; the first of equals.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LEAST: f64 = 0.7;
    let name = name.to_lowercase();
    let mut best = (LEAST, None);
    for candidate in known {
        let likeness = likeness(&name, &candidate.to_lowercase());
        if likeness > best.0 {
            best = (likeness, Some(candidate));
        }
    }
    best.1
}

/// From 0 (nothing in common) to 1 (equal); the unit at the end of a key weighs little.
fn likeness(a: &str, b: &str) -> f64 {
    let stems = strsim::jaro_winkler(stem(a), stem(b));
    strsim::jaro_winkler(a, b).max(0.99 * stems)
}

/// A key without its unit: `rate` of `rate_bps`.
fn stem(key: &str) -> &str {
    const UNITS: &[&str] =
        &["s", "ms", "us", "bps", "kbps", "mbps", "bytes", "bits", "packets", "segments", "db", "hz", "m", "km"];
    key.rsplit_once('_').filter(|(_, unit)| UNITS.contains(unit)).map_or(key, |(stem, _)| stem)
}

/// `did you mean "x"? known: a, b, c`.
pub(crate) fn suggest<'a>(name: &str, what: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let list = known.clone().into_iter().collect::<Vec<_>>().join(", ");
    let list = if list.is_empty() { format!("there are no {what}") } else { format!("{what}: {list}") };
    match nearest(name, known) {
        Some(near) => format!("did you mean \"{near}\"? {list}"),
        None => list,
    }
}
