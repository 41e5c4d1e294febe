//! For each number of a scenario, the bound in the schema equals the bound of the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use farlink_core::ConfigError;
use farlink_core::coding::EventsError;
use farlink_core::scenario::{expand, schema};
use farlink_core::trace::{Trace, TraceError, TraceSource};
use farlink_sim::{TraceFiles, resolve};
use serde_json::{Value, json};

use crate::common::generator::{BOUNDS, Generator, with_bounds};
use crate::common::scenario;

/// Number of generated scenarios; each holds about thirty numbers.
const SCENARIOS: u64 = 600;

/// Files are not read, and codings not decoded.
struct Undecoded(TraceFiles);

impl TraceSource for Undecoded {
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError> {
        self.0.load(file)
    }
}

/// The reason why a scenario is refused, if it is.
fn refusal(scenario: &Value) -> Option<ConfigError> {
    let expanded = match expand(scenario) {
        Ok(expanded) => expanded,
        Err(refusal) => return Some(refusal),
    };
    let refusal = resolve(&expanded.points[0].scenario, &Undecoded(TraceFiles::new())).err();
    refusal.filter(|refusal| !refusal.message().contains(&EventsError::NotCollected.to_string()))
}

/// A number in a generated scenario: its path, and the schema of its key.
struct Number {
    pointer: String,
    /// `TABLE.key`, the same for all tables of a kind.
    key: String,
    schema: Value,
}

/// All numbers of a value, with their schemas.
fn numbers(root: &Value, of: &Value, value: &Value, place: (&str, &str), found: &mut Vec<Number>) {
    let (pointer, key) = place;
    if let Some(reference) = of["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        let definition = with_bounds(&root["$defs"][name], of);
        let key = if value.is_object() { name } else { key };
        return numbers(root, &definition, value, (pointer, key), found);
    }
    let choices = ["anyOf", "oneOf"].iter().find_map(|several| of[several].as_array());
    for choice in choices.into_iter().flatten() {
        let choice = with_bounds(choice, of);
        if is_of(root, &choice, value) {
            numbers(root, &choice, value, place, found);
        }
    }
    match value {
        Value::Number(_) if of["type"] == "number" => {
            found.push(Number { pointer: pointer.to_owned(), key: key.to_owned(), schema: of.clone() });
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                numbers(root, &of["items"], item, (&format!("{pointer}/{at}"), key), found);
            }
        }
        Value::Object(entries) => {
            for (name, entry) in entries {
                let below = format!("{pointer}/{name}");
                let table = key.split('.').next().unwrap();
                let kind = value["kind"].as_str().or(value["distribution"].as_str()).unwrap_or_default();
                let key = format!("{table}{}{kind}.{name}", if kind.is_empty() { "" } else { "-" });
                let property = if of["properties"][name].is_null() {
                    &of["additionalProperties"]
                } else {
                    &of["properties"][name]
                };
                numbers(root, property, entry, (&below, &key), found);
            }
        }
        _ => {}
    }
}

/// Whether a value may have one of several types.
fn is_of(root: &Value, choice: &Value, value: &Value) -> bool {
    if let Some(reference) = choice["$ref"].as_str() {
        return is_of(root, &root["$defs"][reference.rsplit('/').next().unwrap()], value);
    }
    let tags =
        ["kind", "distribution"].iter().filter_map(|tag| Some((tag, choice["properties"][tag]["const"].as_str()?)));
    let is_kind = tags.into_iter().all(|(tag, kind)| value[tag] == kind);
    let is_nested = ["anyOf", "oneOf"].iter().filter_map(|several| choice[several].as_array());
    let mut nested = is_nested.flatten().peekable();
    if nested.peek().is_some() {
        return nested.any(|choice| is_of(root, choice, value));
    }
    match value {
        Value::Object(_) => choice["type"] == "object" && is_kind,
        Value::Array(_) => choice["type"] == "array",
        Value::Number(_) => choice["type"] == "number",
        _ => false,
    }
}

/// Result for one bound.
#[derive(Default)]
struct Tried {
    /// Number of tries.
    attempts: u32,
    /// Whether it was accepted at least once.
    is_accepted: bool,
    /// Refusals by rules that name no other key.
    refused: Vec<String>,
    /// Number of tries of a value beyond it.
    tries: u32,
    /// Errors in its treatment.
    beyond: Vec<String>,
}

/// The least step beyond a range.
fn beyond(bound: f64, is_upper: bool, is_excluded: bool, is_whole: bool) -> f64 {
    match (is_excluded, is_upper) {
        (true, _) => bound,
        (false, true) if is_whole => bound + 1.0,
        (false, false) if is_whole => bound - 1.0,
        (false, true) => bound.next_up(),
        (false, false) => bound.next_down(),
    }
}

/// The last number within a range.
fn within(bound: f64, is_upper: bool, is_excluded: bool) -> f64 {
    match (is_excluded, is_upper) {
        (false, _) => bound,
        (true, true) => bound.next_down(),
        (true, false) => bound + 1e-9 * bound.abs().max(1e-6),
    }
}

/// A refusal that concerns more than the number itself: it is at another key, or names one.
fn names_another(refusal: &ConfigError, key: &str, all: &[String]) -> bool {
    let own = key.rsplit('.').next().unwrap();
    let is_own = refusal.path.rsplit('.').next().unwrap().split('[').next() == Some(own);
    let text = format!("{} {}", refusal.message().replace(&refusal.path, ""), refusal.remedy);
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    !is_own || words.any(|word| word != own && (all.iter().any(|key| key == word)))
}

/// All names of keys, and the words for parts of packets.
fn names(root: &Value) -> Vec<String> {
    fn walk(of: &Value, found: &mut Vec<String>) {
        if let Some(properties) = of["properties"].as_object() {
            found.extend(properties.keys().cloned());
        }
        match of {
            Value::Object(entries) => entries.values().for_each(|entry| walk(entry, found)),
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let mut found = vec!["headers".to_owned()];
    walk(root, &mut found);
    // Words that occur in every sentence.
    found.retain(|name| !["end", "link", "path", "loss", "runs", "flow", "source", "limits"].contains(&name.as_str()));
    found
}

/// A valid scenario.
fn drawn(seed: u64) -> Option<Value> {
    let mut generator = Generator::with_all(seed);
    let mut scenario = generator.scenario()?;
    for _ in 0..40 {
        match refusal(&scenario) {
            None => return Some(scenario),
            Some(refusal) => generator.repair(&mut scenario, &refusal),
        }
    }
    None
}

/// Scenarios with keys that need other keys, which are seldom drawn together.
fn rare() -> Vec<Value> {
    let transports = json!({
        "bbr": { "kind": "tcp", "congestion_control": "bbr", "bbr": { "pacing_margin": 0.1, "min_rtt_window_s": 9, "probe_rtt_s": 1 } },
        "vegas": { "kind": "tcp", "congestion_control": "vegas", "vegas": { "alpha_segments": 2, "beta_segments": 5, "gamma_segments": 1 } },
        "hybla": { "kind": "tcp", "congestion_control": "hybla", "hybla": { "rtt0_s": 0.1 } },
        "compressed": {
            "kind": "scps-tp", "header_compression": true, "compressed_ack_bytes": 20, "compressed_header_bytes": 30,
            "loss_means": "signalled", "corruption_hold_s": 1,
        },
        "incremental": {
            "kind": "arq", "nak": true, "incremental": { "first_parity_bytes": 2, "parity_bytes": 4, "increments": 3 },
        },
        "cubic": { "kind": "tcp", "congestion_control": "cubic", "cubic": { "c": 0.4 } },
        "words": { "kind": "aerotp", "mode": "quasi-reliable", "fec_words": 16 },
        "share": { "kind": "aerotp", "fec_share": 0.05, "mack_parity": false },
        "changing": {
            "kind": "aerotp", "mode": "unreliable", "mode_changes": [{ "at_s": 10, "mode": "quasi-reliable" }],
        },
        "open-loop": {
            "kind": "aerotp", "mode": "quasi-reliable", "erasure": { "source": 10, "repair": 3, "timeout_s": 1 },
            "adaptive_fec": { "target_loss": 0.01, "report_every_s": 1 },
        },
    });
    let outage = json!({ "kind": "outage", "period_s": 10, "down_s": 1, "offset_s": 2 });
    let calls = json!({
        "up": { "distribution": "constant", "value_s": 10 }, "redial": { "distribution": "constant", "value_s": 10 },
        "failure": 0.5, "retry_s": 1, "idle_s": 2, "attempts": 3, "blocked_s": 100,
    });
    let by_transport = |(name, transport): (&String, &Value)| {
        scenario(&[("transport", json!({ name: transport })), ("flow.bulk.transport", json!(name))])
    };
    let bursts = json!({ "kind": "gilbert-elliott", "ber_good": 1e-7, "ber_bad": 1e-3, "p_good_to_bad": 0.1, "p_bad_to_good": 0.5 });
    let losses = json!({ "kind": "gilbert-elliott", "loss_good": 1e-3, "loss_bad": 0.5, "p_good_to_bad": 0.1, "p_bad_to_good": 0.5 });
    let points = json!({ "kind": "measured", "block_bits": 1000, "points": [[0, 0.1], [9, 0.01]], "wrong_share": 0.2 });
    let length = json!({
        "kind": "arq",
        "adaptive_length": {
            "estimate": "measured", "rule": "optimal", "measurement_delay_s": 0.5, "measurement_interval_s": 0.1,
        },
    });
    let ppp = json!({
        "up": { "distribution": "constant", "value_s": 10 },
        "ppp": {
            "connect_delay_s": 1, "lcp_restart_s": 3, "lcp_max_configure": 10, "lcp_requests": 1, "pap_restart_s": 3,
            "pap_max_authreq": 10, "pap_timeout_s": 30, "ipcp_restart_s": 3, "ipcp_max_configure": 10, "ipcp_requests": 2,
            "frame_bytes": 40,
        },
        "echo": { "interval_s": 30, "failures": 2, "terminate_s": 6 }, "retry_s": 1,
    });
    let linux = json!({ "lines": 2, "scheduler": "linux", "tty_bytes": 4096 });
    let changes = json!([{ "at_s": 2, "loss": 0.1, "loss_again": 0.5, "rate_factor": 0.5 }]);
    let arq = json!({ "frame_bytes": 60, "window_frames": 6, "loss": 0.01, "loss_again": 0.2, "changes": changes });
    let cut = json!({ "lines": 2, "packets": "fragmented", "min_fragment_bytes": 100 });
    let links = [
        scenario(&[("link.channel", outage)]),
        scenario(&[("link.policer", json!({ "rate_bps": 1e6, "burst_bytes": 15_000 }))]),
        scenario(&[("link.channel", bursts)]),
        scenario(&[("link.channel", losses)]),
        scenario(&[("link.coding", json!({ "ebn0_db": 5, "code": points }))]),
        scenario(&[
            ("link.channel", json!({ "kind": "ber", "ber": 1e-5 })),
            ("transport", json!({ "measured": length })),
            ("flow.bulk.transport", json!("measured")),
        ]),
        scenario(&[("link.bundle", json!({ "lines": 2, "calls": calls }))]),
        scenario(&[("link.bundle", json!({ "lines": 2, "calls": ppp }))]),
        scenario(&[("link.bundle", json!({ "lines": 2, "arq": arq }))]),
        scenario(&[("link.bundle", linux)]),
        scenario(&[("link.bundle", cut)]),
    ];
    transports.as_object().unwrap().iter().map(by_transport).chain(links).collect()
}

fn tried(scenarios: u64) -> BTreeMap<(String, &'static str), Tried> {
    let root: Value = serde_json::from_str(&schema()).unwrap();
    let all = names(&root);
    let mut tried: BTreeMap<(String, &str), Tried> = BTreeMap::new();
    for scenario in (0..scenarios).filter_map(drawn).chain(rare()) {
        let mut found = Vec::new();
        numbers(&root, &root, &scenario, ("", "scenario"), &mut found);
        for number in found {
            for (name, is_upper, is_excluded) in BOUNDS {
                let Some(bound) = number.schema[name].as_f64() else { continue };
                let of_bound = tried.entry((number.key.clone(), name)).or_default();
                let is_whole = number.schema["description"].as_str().is_some_and(|words| words.contains("whole"));
                let with = |value: f64| {
                    let mut scenario = scenario.clone();
                    *scenario.pointer_mut(&number.pointer).unwrap() = json!(value);
                    refusal(&scenario)
                };
                if !of_bound.is_accepted && of_bound.attempts < 40 {
                    of_bound.attempts += 1;
                    match with(within(bound, is_upper, is_excluded)) {
                        None => of_bound.is_accepted = true,
                        Some(refusal) if names_another(&refusal, &number.key, &all) => {}
                        Some(refusal) => of_bound.refused.push(refusal.to_string()),
                    }
                }
                if of_bound.tries < 3 {
                    of_bound.tries += 1;
                    let value = beyond(bound, is_upper, is_excluded, is_whole);
                    match with(value) {
                        None => of_bound.beyond.push(format!("{value} is accepted")),
                        Some(refusal) => {
                            let says = texts(value).iter().any(|text| refusal.message().contains(text));
                            if !says && !names_another(&refusal, &number.key, &all) || refusal.remedy.is_empty() {
                                of_bound.beyond.push(format!("{value}: {refusal}"));
                            }
                        }
                    }
                }
            }
        }
    }
    tried
}

/// Names of the keys that hold a number with a bound.
fn bounded(root: &Value, of: &Value) -> BTreeSet<String> {
    let is_number = |property: &Value| {
        let choices = property["anyOf"].as_array().cloned().unwrap_or_else(|| vec![property.clone()]);
        choices
            .iter()
            .filter_map(|choice| choice["$ref"].as_str())
            .any(|reference| root["$defs"][reference.rsplit('/').next().unwrap()]["type"] == "number")
    };
    let own = of["properties"].as_object().into_iter().flatten().filter(|(_, property)| is_number(property));
    let mut found: BTreeSet<String> = own.map(|(name, _)| name.clone()).collect();
    match of {
        Value::Object(entries) => entries.values().for_each(|entry| found.extend(bounded(root, entry))),
        Value::Array(items) => items.iter().for_each(|item| found.extend(bounded(root, item))),
        _ => {}
    }
    found
}

/// Tables of bundles of paths.
const OF_PATHS: [&str; 6] = ["Paths", "PathMember", "PathReturn", "PathClass", "PathLimits", "Unplugged"];

/// The first digits by which a value can be recognised.
fn texts(value: f64) -> [String; 2] {
    [value.to_string(), format!("{value:e}")].map(|text| text.chars().take(6).collect())
}

#[test]
fn the_bounds_of_the_schema_match_the_checks() {
    let tried = tried(SCENARIOS);
    let mut root: Value = serde_json::from_str(&schema()).unwrap();
    // `tests/paths.rs` draws these, whose checks are narrower than the bounds of their types.
    root["$defs"].as_object_mut().unwrap().retain(|name, _| !OF_PATHS.contains(&name.as_str()));
    let met: Vec<&str> = tried.keys().filter_map(|(key, _)| key.rsplit('.').next()).collect();
    let mut wrong: Vec<String> = bounded(&root, &root)
        .into_iter()
        .filter(|name| !met.contains(&name.as_str()))
        .map(|name| format!("{name} was in no scenario"))
        .collect();
    for ((key, bound), of_bound) in &tried {
        if !of_bound.is_accepted && !of_bound.refused.is_empty() {
            wrong.push(format!("{key}, {bound}: never accepted: {}", of_bound.refused[0]));
        }
        wrong.extend(of_bound.beyond.iter().take(1).map(|what| format!("{key}, beyond {bound}: {what}")));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), tried.len(), wrong.join("\n"));
}
