//! The points of a grid as texts, one after the other: what does not vary is read and written once.

use serde_json::{Map, Value};

use super::engine::check_keys;
use super::expand::{Points, check_point, set, settings_at};
use super::read::read;
use super::{Scenario, idle};
use crate::ConfigError;

/// Writes points as [`Point::normalised`](super::Point::normalised) has them.
///
/// Large grids vary a few keys. From one point to the next only the tables at the top that hold one of them are read and written;
/// all rules are checked at every point. The text depends on the point alone, and not on those before.
#[derive(Default)]
pub struct PointTexts {
    last: Option<Last>,
}

/// The last point.
struct Last {
    /// As it was given.
    given: Value,
    scenario: Scenario,
    /// Text for each of [`KEYS`].
    texts: Vec<Option<String>>,
    /// Places in [`KEYS`] of the tables that hold what varies.
    varying: Vec<usize>,
    /// Whether points differ in which keys they have or which of these an engine honours.
    keys_vary: bool,
}

macro_rules! keys {
    ($($key:ident)*) => {
        /// Keys at the top of a scenario without a grid, in the order in which they are written.
        const KEYS: &[&str] = &[$(stringify!($key)),*];

        /// Exchanges what two scenarios have for a key.
        fn swap(key: &str, one: &mut Scenario, other: &mut Scenario) {
            // The compiler refuses this line if a key is missing above.
            let Scenario { grid: _, grid_zip: _, $($key: _),* } = one;
            match key {
                $(stringify!($key) => std::mem::swap(&mut one.$key, &mut other.$key),)*
                _ => unreachable!("a key of KEYS"),
            }
        }

        fn json(key: &str, scenario: &Scenario) -> String {
            let text = match key {
                "transport" => return transports(scenario),
                $(stringify!($key) => serde_json::to_string(&scenario.$key),)*
                _ => unreachable!("a key of KEYS"),
            };
            text.expect("a scenario has only text as keys")
        }
    };
}

keys! { title duration_s give_up_after_s runs seed precision engines unsupported measure limits link path hop transport flow fluid }

/// Transports without their keys that have no effect.
fn transports(scenario: &Scenario) -> String {
    let transports = serde_json::to_value(&scenario.transport).expect("a scenario has only text as keys");
    let mut table = Value::Object(Map::from_iter([("transport".to_owned(), transports)]));
    idle::strip(&mut table, scenario);
    table["transport"].to_string()
}

/// Text for a key, if there is one.
fn written(key: &str, scenario: &Scenario) -> Option<String> {
    let is_left_out = key == "hop" && scenario.hop.is_empty();
    (!is_left_out).then(|| json(key, scenario)).filter(|text| text != "null")
}

impl PointTexts {
    /// The scenario at a point with every default written out that has an effect, as JSON, less the keys `without` at its top.
    ///
    /// `points` must be the same at every call.
    ///
    /// # Errors
    /// As [`Points::point`].
    pub fn normalised(
        &mut self,
        points: &Points,
        number: usize,
        without: &[impl AsRef<str>],
    ) -> Result<String, ConfigError> {
        // A point that is refused is made anew, for an error that names its cause.
        let last = match self.last.take().and_then(|last| last.moved_to(points, number)) {
            Some(last) => last,
            None => Last::anew(points, number)?,
        };
        let mut text = String::with_capacity(2048);
        for (key, value) in KEYS.iter().zip(&last.texts) {
            let Some(value) = value else { continue };
            if without.iter().any(|left_out| left_out.as_ref() == *key) {
                continue;
            }
            text.push(if text.is_empty() { '{' } else { ',' });
            text.extend(["\"", key, "\":", value]);
        }
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        self.last = Some(last);
        Ok(text)
    }
}

impl Last {
    fn anew(points: &Points, number: usize) -> Result<Self, ConfigError> {
        let (point, given) = points.point(number)?;
        let texts = KEYS.iter().map(|key| written(key, &point.scenario)).collect();
        let paths = || points.axes.iter().flat_map(|axis| axis.values.keys());
        // Either is refused beside the other, and the number of runs has a default without a rule.
        let runs_vary = paths().any(|path| matches!(top(path), "runs" | "precision"));
        let varying = (0..KEYS.len())
            .filter(|&at| {
                (runs_vary && matches!(KEYS[at], "runs" | "precision")) || paths().any(|path| top(path) == KEYS[at])
            })
            .collect();
        let has_tables = points.axes.iter().flat_map(|axis| axis.values.values().flatten()).any(Value::is_object);
        let keys_vary = has_tables || paths().any(|path| chooses_keys(path));
        Ok(Last { given, scenario: point.scenario, texts, varying, keys_vary })
    }

    /// The same at another point; `None` if that is refused.
    fn moved_to(mut self, points: &Points, number: usize) -> Option<Self> {
        let index = points.index(number).ok()?;
        // The settings of all points are the same ones, so that none of the last point is left.
        for setting in &settings_at(&points.axes, &index) {
            set(&mut self.given, setting, &mut Vec::new()).ok()?;
        }
        let given = |key: &str| self.given.get(key).map(|value| (key.to_owned(), value.clone()));
        let table = self.varying.iter().filter_map(|&at| given(KEYS[at])).collect();
        let mut here: Scenario = read(&Value::Object(table)).ok()?;
        for &at in &self.varying {
            swap(KEYS[at], &mut here, &mut self.scenario);
        }
        self.scenario.fill_in();
        check_point(&self.scenario, &self.given).ok()?;
        if self.keys_vary {
            for engine in &self.scenario.engines {
                check_keys(engine.engine(), &self.given, self.scenario.unsupported).ok()?;
            }
        }
        for &at in &self.varying {
            self.texts[at] = written(KEYS[at], &self.scenario);
        }
        Some(self)
    }
}

fn top(path: &str) -> &str {
    path.split_once('.').map_or(path, |(top, _)| top)
}

/// Whether it depends on this setting which keys an engine honours.
fn chooses_keys(path: &str) -> bool {
    match top(path) {
        "engines" | "unsupported" => true,
        "transport" => path.ends_with(".kind"),
        "flow" => path.ends_with(".transport"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::from_json;
    use super::*;

    const BASE: &str = r#""title": "t", "duration_s": 20, "link": {"rate_bps": 1e7, "delay_s": 0.05, "channel": {"kind": "loss", "loss": 1e-3}},
        "transport": {"tcp": {"kind": "tcp"}, "udp": {"kind": "udp"}},
        "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}}"#;

    fn points(grid: &str) -> Points {
        Points::new(&from_json(&format!("{{{BASE}, {grid}}}")).expect("JSON")).expect("a grid")
    }

    fn slow(points: &Points, number: usize, without: &[&str]) -> Result<String, ConfigError> {
        let Value::Object(mut table) = points.point(number)?.0.normalised() else { unreachable!("a table") };
        table.retain(|key, _| !without.contains(&key.as_str()));
        Ok(Value::Object(table).to_string())
    }

    #[test]
    fn texts_and_refusals_are_those_of_points_alone_in_any_order() {
        let grids = [
            r#""grid": {"link.channel.loss": [1e-6, 2e-6, 0.5], "link.rate_bps": [1e6, 2e6, 3]}"#,
            r#""grid": {"seed": [1, 2, -3, 4]}, "runs": 7"#,
            r#""grid": {"runs": [1, 2, 3]}"#,
            r#""grid": {"precision": [{"quantity": "goodput_bps", "ci": 0.1}, {"quantity": "goodput_bps", "ci": 0.2}, null]}"#,
            r#""grid": {"precision.ci": [0.1, 0.2], "duration_s": [20, 30]}, "precision": {"quantity": "goodput_bps", "ci": 0.3}"#,
            r#""grid": {"link.channel": [{"kind": "ber", "ber": 1e-7}, {"kind": "none"}, {"kind": "ber"}], "link.delay_s": [0.1, 0.2]}"#,
            r#""grid": {"link.return.rate_bps": [1e3, 1e4], "link.return.delay_s": [0.1, -1, 0.3]}"#,
            r#""grid": {"transport.tcp.variant": ["sack", "reno", "none", "newreno"], "transport.tcp.rto.initial_s": [1, 3]}"#,
            r#""grid": {"transport.tcp.recover_guard": [true, false], "transport.tcp.variant": ["tahoe", "newreno", "sack"]}"#,
            r#""grid": {"flow.bulk.transport": ["tcp", "udp", "sctp"]}"#,
            r#""grid": {"engines": [["packet"], ["fluid"], ["fluid", "packet"]]}"#,
            r#""grid": {"transport.tcp.pacing": [true, false]}, "engines": ["fluid"]"#,
            r#""grid": {"transport.tcp": [{"kind": "tcp"}, {"kind": "tcp", "fin": false}, {"kind": "udp"}]}, "engines": ["fluid"]"#,
            r#""grid_zip": [{"title": ["a", "b"], "flow.bulk.count": [1, 4]}, {"fluid.warmup_s": [1, 2]}], "engines": ["fluid"]"#,
            r#""unsupported": "approximate""#,
        ];
        let mut compared = 0;
        for grid in grids {
            let points = points(grid);
            let count = points.count();
            let mut texts = PointTexts::default();
            // Forwards, backwards, and with steps that visit all.
            let orders = (0..count).chain((0..count).rev()).chain((0..count).map(|at| at * 7 % count));
            for number in orders {
                for without in [&[][..], &["title", "runs", "limits"], KEYS] {
                    assert_eq!(
                        texts.normalised(&points, number, without),
                        slow(&points, number, without),
                        "{grid} {number}"
                    );
                    compared += usize::from(slow(&points, number, without).is_ok());
                }
            }
        }
        assert!(compared > 400, "{compared}");
    }

    #[test]
    fn a_point_that_is_allowed_is_not_made_anew() {
        let points = points(
            r#""grid": {"link.rate_bps": [1e6, 2e6], "transport.tcp.variant": ["sack", "reno"], "seed": [1, 2]}"#,
        );
        let mut last = Last::anew(&points, 0).expect("allowed");

        for number in [1, 5, 7, 2] {
            last = last.moved_to(&points, number).expect("allowed");
        }
    }
}
