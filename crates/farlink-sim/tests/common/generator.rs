//! Random scenarios from the JSON Schema: a new key is drawn without an edit here.
//!
//! The unit at the end of a key (`_s`, `_bps`, ...) determines the usual part of its range; one draw in fifty is an end
//! of the range itself. Rules that the schema cannot express (keys that exclude each other, traffic that a transport
//! cannot carry) are learnt from the refusal: the key that it names is drawn again or left out.

use std::sync::LazyLock;

use farlink_core::ConfigError;
use farlink_core::Rng;
use farlink_core::scenario::{expand, schema};
use farlink_sim::{Options, RunError};
use serde_json::{Map, Value, json};

use super::{bit_errors, losses, numbers, series};

/// Keys of the scenario that are not drawn, because they do not change one run of one point.
const NOT_DRAWN: [&str; 10] =
    ["title", "runs", "seed", "precision", "engines", "unsupported", "limits", "fluid", "grid", "grid_zip"];

/// Those among them that a scenario may have if it is only read.
const ONLY_READ: [&str; 3] = ["precision", "limits", "fluid"];

/// Keys and kinds that are drawn only if the scenario is not run: the error events of a coding take minutes to collect,
/// and other tests cover them.
const CODINGS: [&str; 2] = ["coding", "coded"];

/// A table that is drawn by `tests/paths.rs` alone: its runs have rows that are no flow's.
const DRAWN_ELSEWHERE: &str = "paths";

/// The bound of a number: lower or upper, inclusive or exclusive.
pub(crate) const BOUNDS: [(&str, bool, bool); 4] = [
    ("minimum", false, false),
    ("exclusiveMinimum", false, true),
    ("maximum", true, false),
    ("exclusiveMaximum", true, true),
];

/// A schema with the bounds that the key itself adds to its type.
pub(crate) fn with_bounds(of_type: &Value, of_key: &Value) -> Value {
    let mut schema = of_type.clone();
    for (name, is_upper, _) in BOUNDS {
        if let Some(bound) = of_key.get(name) {
            let others = BOUNDS.iter().filter(|other| other.1 == is_upper);
            others.for_each(|other| drop(schema.as_object_mut().unwrap().remove(other.0)));
            schema[name] = bound.clone();
        }
    }
    schema
}

/// Number of refusals after which a draw is given up.
const MOST_REPAIRS: usize = 60;

/// Limit of the estimated memory of a scenario.
const MOST_BYTES: f64 = 5e8;

/// A scenario that is accepted and whose estimated CPU time is within the limit; `None` if too many were refused.
pub(crate) fn drawn(seed: u64, most_cpu_s: f64) -> Option<Value> {
    let mut generator = Generator::new(seed);
    for _ in 0..20 {
        let mut scenario = generator.scenario()?;
        match farlink_sim::estimate(&expand(&scenario).ok()?, &Options::default()) {
            Ok(cost) if cost.cpu_s < most_cpu_s && cost.memory_bytes < MOST_BYTES => return Some(scenario),
            Ok(_) => {}
            Err(RunError::Scenario(refusal)) => generator.repair(&mut scenario, &refusal),
            Err(other) => panic!("{other}"),
        }
    }
    None
}

/// Draws scenarios.
pub(crate) struct Generator {
    root: Value,
    rng: Rng,
    transports: Vec<String>,
    is_run: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        static ROOT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(&schema()).unwrap());
        let root = ROOT.clone();
        let rng = Rng::for_component(seed, 0, "scenarios from the schema");
        Generator { root, rng, transports: Vec::new(), is_run: true }
    }

    /// A generator of every key, for scenarios that are only read.
    pub(crate) fn with_all(seed: u64) -> Self {
        Generator { is_run: false, ..Generator::new(seed) }
    }

    /// A scenario that is accepted when it is read; `None` if too many were refused.
    pub(crate) fn scenario(&mut self) -> Option<Value> {
        let mut scenario = self.draft();
        for _ in 0..MOST_REPAIRS {
            match expand(&scenario) {
                Ok(_) => return Some(scenario),
                Err(refusal) => self.repair(&mut scenario, &refusal),
            }
        }
        None
    }

    /// Repairs a scenario after a refusal.
    pub(crate) fn repair(&mut self, scenario: &mut Value, refusal: &ConfigError) {
        let steps: Vec<String> =
            refusal.path.replace('[', ".").replace(']', "").split('.').map(str::to_owned).collect();
        let named = ["hop", "transport", "flow"].contains(&steps[0].as_str()) && steps.len() > 1;
        if steps.len() <= 2 && named || self.rng.chance(0.2) {
            let entry = named.then(|| self.named(&steps[0]));
            match entry {
                Some(entry) if scenario[&steps[0]].get(&steps[1]).is_some() => scenario[&steps[0]][&steps[1]] = entry,
                _ => *scenario = self.draft(),
            }
            return;
        }
        let mut table = &mut *scenario;
        for (depth, step) in steps.iter().enumerate() {
            let is_last = depth + 1 == steps.len();
            table = match table {
                Value::Object(entries) if is_last || !entries.contains_key(step) => {
                    if entries.remove(step).is_none() {
                        *scenario = self.draft(); // a key is missing
                    }
                    return;
                }
                Value::Object(entries) => &mut entries[step],
                Value::Array(items) => match step.parse::<usize>() {
                    Ok(at) if at < items.len() && !is_last => &mut items[at],
                    Ok(at) if at < items.len() => {
                        items.remove(at);
                        return;
                    }
                    _ => return *scenario = self.draft(),
                },
                _ => return *scenario = self.draft(),
            };
        }
    }

    fn draft(&mut self) -> Value {
        let mut scenario = Map::new();
        let names = |letter: &str, count: u64| (0..count).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
        let hops = names("h", 1 + self.rng.below(3));
        self.transports = names("t", 1 + self.rng.below(3));
        let flows = names("f", 1 + self.rng.below(4));
        let keys: Vec<String> = self.root["properties"].as_object().unwrap().keys().cloned().collect();
        for key in keys {
            let value = match key.as_str() {
                key if NOT_DRAWN.contains(&key) && (self.is_run || !ONLY_READ.contains(&key)) => continue,
                "precision" if self.rng.chance(0.7) => continue,
                "link" if hops.len() == 1 => self.named("hop"),
                "path" if hops.len() > 1 => json!(hops),
                "hop" if hops.len() > 1 => self.table("hop", &hops),
                "link" | "path" | "hop" => continue,
                "transport" => self.table("transport", &self.transports.clone()),
                "flow" => self.table("flow", &flows),
                "duration_s" if self.rng.chance(0.9) => json!(self.log_uniform(0.2, 20.0)),
                "give_up_after_s" if self.rng.chance(0.8) => json!(self.log_uniform(1.0, 100.0)),
                "duration_s" | "give_up_after_s" => continue,
                other => {
                    let chance = if other == "measure" { 0.5 } else { 0.2 };
                    if !self.rng.chance(chance) {
                        continue;
                    }
                    let of_key = self.root["properties"][other].clone();
                    self.value(&of_key, other)
                }
            };
            scenario.insert(key, value);
        }
        if scenario.contains_key("duration_s") {
            scenario.remove("give_up_after_s");
        }
        let hops = scenario.iter_mut().filter(|(key, _)| ["link", "hop"].contains(&key.as_str()));
        for (key, value) in hops {
            let tables: Vec<&mut Value> = match value {
                Value::Object(hops) if key == "hop" => hops.values_mut().collect(),
                link => vec![link],
            };
            tables.into_iter().filter_map(Value::as_object_mut).for_each(|hop| self.ease_bundle(hop));
        }
        if !scenario.contains_key("precision") {
            scenario.insert("runs".into(), (1 + self.rng.below(2)).into());
        }
        scenario.insert("seed".into(), self.rng.below(1_000_000).into());
        if let (Some(duration), Some(warmup)) = (
            scenario.get("duration_s").and_then(Value::as_f64),
            scenario.get_mut("measure").and_then(|measure| measure.get_mut("warmup_s")),
        ) {
            *warmup = json!(duration * self.rng.uniform() * if self.rng.chance(0.3) { 0.05 } else { 1.0 });
        }
        Value::Object(scenario)
    }

    /// Makes keys fit a bundle whose refusal would name others than the bundle's own, or the bundle: repairs would remove most
    /// bundles.
    fn ease_bundle(&mut self, hop: &mut Map<String, Value>) {
        let Some(bundle) = hop.get_mut("bundle").and_then(Value::as_object_mut) else { return };
        bundle.insert("mrru_bytes".into(), 65_535.into());
        if bundle.contains_key("lines") == bundle.contains_key("members") {
            bundle.remove("members");
            bundle.insert("lines".into(), (1 + self.rng.below(8)).into());
        }
        for (key, least, most) in [("rate_bps", 1e3, 1e7), ("delay_s", 1e-3, 2.0)] {
            if hop.get(key).is_some_and(Value::is_object) {
                hop.insert(key.into(), json!(self.log_uniform(least, most)));
            }
        }
    }

    fn table(&mut self, of: &str, names: &[String]) -> Value {
        names.iter().map(|name| (name.clone(), self.named(of))).collect::<Map<_, _>>().into()
    }

    /// An entry of a table of named items.
    fn named(&mut self, table: &str) -> Value {
        let schema = self.root["properties"][table]["additionalProperties"].clone();
        self.value(&schema, table)
    }

    fn value(&mut self, schema: &Value, key: &str) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let schema = with_bounds(&self.root["$defs"][reference.rsplit('/').next().unwrap()], schema);
            return self.value(&schema, key);
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(choices) = schema["enum"].as_array() {
            return choices[self.rng.below(choices.len() as u64) as usize].clone();
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[several].as_array() {
                let is_run = self.is_run;
                let is_drawn = |choice: &&Value| {
                    let kind = choice["properties"]["kind"]["const"].as_str();
                    choice["type"] != "null" && !(is_run && kind.is_some_and(|kind| CODINGS.contains(&kind)))
                };
                let choices: Vec<&Value> = choices.iter().filter(is_drawn).collect();
                let drawn = self.rng.below(choices.len() as u64) as usize;
                return self.value(&with_bounds(choices[drawn], schema), key);
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").unwrap().as_str().unwrap(),
            kind => kind.as_str().unwrap_or_else(|| panic!("{key}: {schema}")),
        };
        match kind {
            "boolean" => self.rng.chance(0.5).into(),
            "number" | "integer" => self.number(schema, key),
            "string" => self.text(schema, key),
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(1);
                let most = schema["maxItems"].as_u64().unwrap_or(least + 3).min(least + 8);
                let count = least + self.rng.below(most - least + 1);
                let mut items: Vec<Value> = (0..count).map(|_| self.value(&schema["items"], key)).collect();
                if items.iter().all(Value::is_number) || items.iter().all(Value::is_array) {
                    items.sort_by(|one, other| numbers(one).partial_cmp(&numbers(other)).unwrap()); // mostly instants
                }
                items.into()
            }
            "object" => {
                let mut table = Map::new();
                let required = schema["required"].as_array().cloned().unwrap_or_default();
                let properties = schema["properties"].as_object().cloned().unwrap_or_default();
                let chance = (4.0 / (properties.len() - required.len()).max(1) as f64).min(0.5);
                for (name, property) in properties {
                    if name == DRAWN_ELSEWHERE || self.is_run && CODINGS.contains(&name.as_str()) {
                        continue;
                    }
                    if required.contains(&json!(name)) || self.rng.chance(chance) {
                        table.insert(name.clone(), self.value(&property, &name));
                    }
                }
                table.into()
            }
            other => panic!("{key} is of type {other}, which the generator does not know"),
        }
    }

    fn text(&mut self, schema: &Value, key: &str) -> Value {
        let description = schema["description"].as_str().unwrap_or_default();
        if key.ends_with("transport") {
            return self.transports[self.rng.below(self.transports.len() as u64) as usize].clone().into();
        }
        let of_code = match key {
            "generators" => Some(["171,133", "17,15", "133,145,175"]),
            "puncture" => Some(["101/110", "11/10", "1/1"]),
            "rate" => Some(["2/3", "3/4", "7/8"]),
            "quantity" => Some(["goodput_bps", "delay_mean_s", "loss_fraction"]),
            _ => None,
        };
        if let Some(choices) = of_code {
            return choices[self.rng.below(3) as usize].into();
        }
        // The kinds of traces that a key accepts are quoted in its description.
        let quoted = || description.split('"').skip(1).step_by(2);
        let mut choices: Vec<String> = quoted().filter_map(a_trace).collect();
        if choices.is_empty() {
            choices = quoted().map(str::to_owned).collect();
        }
        assert!(!choices.is_empty(), "{key} is text that the generator cannot draw: {description}");
        choices[self.rng.below(choices.len() as u64) as usize].clone().into()
    }

    fn number(&mut self, schema: &Value, key: &str) -> Value {
        let bound = |names: [&str; 2]| names.iter().find_map(|name| schema[name].as_f64());
        let (least, most) = (bound(["minimum", "exclusiveMinimum"]), bound(["maximum", "exclusiveMaximum"]));
        let (least, most) = (least.unwrap_or(-1e3), most.unwrap_or(1e6));
        let is_whole = schema["description"].as_str().is_some_and(|allowed| allowed.contains("whole number"));
        if self.rng.chance(0.02) {
            return json!(if self.rng.chance(0.5) { least } else { most });
        }
        if key.ends_with("_db") || key.ends_with("_dbhz") || key.ends_with("_deg") || least < 0.0 {
            return json!(least + self.rng.uniform() * (most - least));
        }
        if least == 0.0 && self.rng.chance(0.08) {
            return json!(0);
        }
        let usual = match key {
            _ if key.ends_with("_per_s") => (0.1, 20.0),
            _ if key.ends_with("_bps") => (3e3, 3e6),
            _ if key.ends_with("_s") => (1e-3, 5.0),
            _ if key == "bytes" => (1.0, 1e5),
            _ if key.ends_with("_bytes") => (1.0, 5e3),
            _ if key.starts_with("ber") || key.ends_with("ber") => (1e-8, 1e-3),
            _ if key.ends_with("_w") => (1e-9, 1e-6),
            _ if key.ends_with("_m") => (least, most),
            "count" | "lines" | "copies" => (1.0, 6.0),
            _ if most <= 1.0 => (1e-4, 1.0),
            _ => (1.0, 200.0),
        };
        let (low, high) = (usual.0.clamp(least.max(most * 1e-12), most), usual.1.clamp(least, most));
        let drawn = self.log_uniform(low, high);
        json!(if is_whole { drawn.round().clamp(least, most) } else { drawn })
    }

    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        (low * (high / low).powf(self.rng.uniform())).clamp(low, high.max(low))
    }
}

/// A short trace of a kind, or a synthetic one.
fn a_trace(kind: &str) -> Option<String> {
    let wave = |low: f64, high: f64| (0..300).map(|i| if (i / 40) % 2 == 0 { high } else { low }).collect::<Vec<_>>();
    Some(match kind {
        "rate" => series("any-rate", kind, "rate_bps", &[(0.0, 1e6), (0.5, 0.0), (0.7, 3e5), (2.0, 2e6)], 3.0),
        "delay" => series("any-delay", kind, "delay_s", &[(0.0, 0.2), (0.4, 0.01), (1.1, 0.1), (1.2, 0.05)], 1.5),
        "delivery" => {
            super::deliveries("any-delivery", &(0..500).map(|i| f64::from(i * i) * 1e-5).collect::<Vec<_>>(), 3.0)
        }
        "packet-loss" => losses("any-losses", &(0..500).map(|i| i % 17 == 3 || (i / 10) % 20 == 7).collect::<Vec<_>>()),
        "bit-errors" => {
            bit_errors("any-bit-errors", &(0..400).map(|i| i * 30_011 + i * i % 97).collect::<Vec<_>>(), 12_100_000)
        }
        "power" => super::samples("any-power", kind, "power_w", &wave(2e-8, 2e-6), 3.0),
        "ber" => super::samples("any-ber", kind, "ber", &wave(1e-8, 1e-3), 3.0),
        _ => return None,
    })
}
