//! For every scenario that the schema allows, the results obey physical laws.
//!
//! The laws apply by the names and the notes of the quantities, so that they cover a new quantity without an edit here.

// A value that is not known breaks a law, too; the clock only limits the test.
#![allow(clippy::disallowed_methods, clippy::neg_cmp_op_on_partial_ord)]

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use farlink_core::Time;
use farlink_core::hop::HopSetup;
use farlink_core::scenario::quantity::QUANTITIES;
use farlink_sim::engine::Setup;
use farlink_sim::{Options, Output, RunError, Table, TraceFiles, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::generator::drawn;
use crate::common::{cases, expanded, real, text};

/// Scenarios that are estimated to take longer are not run.
const MOST_CPU_S: f64 = 0.2;

/// Runs that take longer are stopped and ignored.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a scenario as it is; `None` if it took too long.
fn output(scenario: &Value) -> Result<Option<Output>, RunError> {
    let begin = Instant::now();
    let progress = |_, _| if begin.elapsed() > PATIENCE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let options = Options { threads: Some(1), ..Options::default() };
    let run = if scenario["engines"] == json!(["fluid"]) { farlink_sim::fluid::run } else { farlink_sim::run };
    let output = run(&expanded(scenario), &options, &progress)?;
    Ok((!output.interrupted).then_some(output))
}

/// The minimum delay over some forward hops.
fn least_delay_s(hops: &[HopSetup]) -> f64 {
    let of_hop = |hop: &HopSetup| match &hop.bundle {
        Some(bundle) => bundle.lines.iter().map(|line| line.delay.get()).fold(f64::INFINITY, f64::min),
        None => hop.delay.constant().map_or(0.0, Time::as_secs_f64),
    };
    hops.iter().map(of_hop).sum()
}

/// The rate of the slowest forward hop of constant rate; of a bundle, when its lines are fastest.
fn slowest_bps(setup: &Setup) -> f64 {
    let constant = |hop: &HopSetup| hop.rate.constant().map_or(f64::INFINITY, |_| hop.most_bps());
    setup.forward.iter().map(constant).fold(f64::INFINITY, f64::min)
}

/// Checks that hold for the tables of every engine.
fn impossible_values(rows: &Table, is_fluid: bool, found: &mut Vec<String>) {
    let flows = text(rows, "flow");
    for quantity in QUANTITIES {
        let is_share = quantity.name.ends_with("_fraction");
        for (flow, &value) in flows.iter().zip(real(rows, quantity.name)) {
            let is_allowed = if value.is_nan() {
                // The fluid engine has no packets and no receive buffer.
                !quantity.unknown.is_empty() || is_fluid && !quantity.name.starts_with("goodput")
            } else {
                value.is_finite() && value >= 0.0 && (!is_share || value <= 1.0)
            };
            if !is_allowed {
                found.push(format!("{} of {flow} is {value}", quantity.name));
            }
        }
    }
}

/// Checks that hold for the tables of the packet engine.
fn impossible_rows(setup: &Setup, rows: &Table, found: &mut Vec<String>) {
    let column = |name| real(rows, name);
    let is_measured_whole = setup.warmup == Time::ZERO;
    for (row, flow) in text(rows, "flow").iter().enumerate() {
        let value = |name| column(name)[row];
        let mut law = |holds: bool, what: &str| {
            if !holds {
                found.push(format!("{flow}: {what}"));
            }
        };
        // A comparison with NaN is never true.
        let [median, late] = ["delay_p50_s", "delay_p99_s"].map(value);
        law(!(median > late), &format!("delay_p50_s {median} > delay_p99_s {late}"));
        let whole_s = least_delay_s(&setup.forward);
        // For flows that gateways split, the transport between the gateways counts.
        let split_s =
            setup.gateway.as_ref().map_or(whole_s, |gateway| least_delay_s(&setup.forward[gateway.hop..=gateway.hop]));
        for (name, least_s, tolerance) in [
            ("arrival_delay_mean_s", split_s, 1e-9),
            ("delay_mean_s", whole_s, 1e-9),
            ("delay_p50_s", whole_s, 0.008),
            ("delay_p99_s", whole_s, 0.008),
            ("transfer_time_mean_s", whole_s, 1e-9),
        ] {
            let delay = value(name);
            law(!(delay < least_s * (1.0 - tolerance)), &format!("{name} {delay} < {least_s} of the path"));
        }
        law(value("duration_s") <= setup.duration.as_secs_f64(), "duration_s longer than the run");
        law(value("overhead_bytes") <= value("sent_bytes"), "overhead_bytes > sent_bytes");
        law(value("retransmitted_bytes") <= value("overhead_bytes"), "retransmitted_bytes > overhead_bytes");
        law(
            value("delivered_packets") == 0.0 || value("delivered_bytes") + value("discarded_bytes") > 0.0,
            "packets of nothing",
        );
        law(!(value("all_lines_up_fraction") > value("lines_up_fraction") + 1e-12), "all lines up, but not each");
        law(!(value("lines_up_fraction") > value("any_line_up_fraction") + 1e-12), "lines up, but not any");
        let goodput_bps = value("goodput_bps");
        let [delivered, duration_s] = ["delivered_bytes", "duration_s"].map(value);
        law(
            !((goodput_bps * duration_s / 8.0 - delivered).abs() > 1e-6 * delivered),
            &format!("{goodput_bps} bit/s in {duration_s} s are not {delivered} bytes"),
        );
        // A restarted sender may count from another instant than its receiver.
        let restarts = setup.flows.iter().any(|spec| spec.restart.is_some());
        if is_measured_whole && !restarts {
            let [sent, overhead] = ["sent_bytes", "overhead_bytes"].map(value);
            law(delivered + overhead <= sent, &format!("{delivered} delivered and {overhead} overhead of {sent} sent"));
        }
        if is_measured_whole {
            law(
                !(goodput_bps > slowest_bps(setup) * (1.0 + 1e-6)),
                &format!("goodput {goodput_bps} above the slowest hop's rate {}", slowest_bps(setup)),
            );
        }
        let is_ok = text(rows, "status")[row] == "ok";
        law(is_ok == text(rows, "reason")[row].is_empty(), "a reason without need, or the reverse");
    }
}

/// The laws that a scenario's tables break; `None` if it was refused or took too long.
fn broken_laws(scenario: &Value) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let output = output(scenario).ok()??;
    let is_fluid = scenario["engines"] == json!(["fluid"]);
    impossible_values(&output.rows, is_fluid, &mut found);
    if !is_fluid {
        let setup = resolve(&expanded(scenario).points[0].scenario, &TraceFiles::new()).ok()?;
        impossible_rows(&setup, &output.rows, &mut found);
    }
    Some(found)
}

/// The hops of a generated scenario that the engine `fluid` supports, with long-lived TCP flows over them.
fn for_the_long_run(seed: u64) -> Option<Value> {
    let mut scenario = drawn(seed, MOST_CPU_S)?;
    let variant = ["reno", "newreno", "sack", "rack"][(seed % 4) as usize];
    let transport = json!({ "kind": "tcp", "variant": variant });
    let flow = json!({ "transport": "tcp", "count": 1 + seed % 7, "traffic": { "kind": "bulk" } });
    for (key, value) in [
        ("engines", json!(["fluid"])),
        ("unsupported", json!("approximate")),
        ("fluid", json!({ "max_time_s": 2000 })),
        ("precision", json!({ "quantity": "goodput_bps", "ci": 0.1, "level": 0.9 })),
        ("transport", json!({ "tcp": transport })),
        ("flow", json!({ "bulk": flow })),
    ] {
        scenario[key] = value;
    }
    scenario.as_object_mut()?.remove("runs");
    for _ in 0..20 {
        let read = farlink_core::scenario::expand(&scenario).map_err(RunError::Scenario);
        match read
            .and_then(|points| farlink_sim::fluid::run(&points, &Options::default(), &|_, _| ControlFlow::Break(())))
        {
            Err(RunError::Scenario(refusal)) => leave_out(&mut scenario, &refusal.path)?,
            _ => return Some(scenario),
        }
    }
    None
}

/// Removes the key at a dotted path, or the table in which it is missing.
fn leave_out(scenario: &mut Value, path: &str) -> Option<()> {
    let (table, key) = path.rsplit_once('.')?;
    let pointer = format!("/{}", table.replace('.', "/"));
    let found = scenario.pointer_mut(&pointer).and_then(|table| table.as_object_mut()?.remove(key));
    if found.is_some() { Some(()) } else { leave_out(scenario, table) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(150)))]

    #[test]
    fn figures_are_plausible_for_every_valid_scenario(seed in any::<u64>()) {
        let Some(scenario) = drawn(seed, MOST_CPU_S) else { return Ok(()) };
        let found = broken_laws(&scenario).unwrap_or_default();
        prop_assert!(found.is_empty(), "{:#?}\n{}", found, serde_json::to_string_pretty(&scenario).unwrap());
    }

    #[test]
    fn figures_of_the_fluid_engine_are_plausible(seed in any::<u64>()) {
        let Some(scenario) = for_the_long_run(seed) else { return Ok(()) };
        let found = broken_laws(&scenario).unwrap_or_default();
        prop_assert!(found.is_empty(), "{:#?}\n{}", found, serde_json::to_string_pretty(&scenario).unwrap());
    }
}

/// A generator whose scenarios are all refused would find nothing.
#[test]
fn most_generated_scenarios_are_run() {
    let drawn: Vec<Value> = (0..150).filter_map(|seed| drawn(seed, 0.02)).collect();
    assert!(drawn.len() >= 135, "{} of 150", drawn.len());
    let has_run = |scenario: &&Value| broken_laws(scenario).is_some();
    assert!(drawn.iter().take(12).filter(has_run).count() >= 10);
    let all = drawn.iter().map(Value::to_string).collect::<String>();
    for word in
        ["aerotp", "arq", "scps-tp", "stp", "tcp", "udp", "bundle", "gateway", "warmup_s", "rate-trace", "restart"]
    {
        assert!(all.contains(word), "nothing with {word}");
    }
    let fluid = (0..40).filter_map(for_the_long_run).find(|scenario| broken_laws(scenario).is_some());
    assert!(fluid.is_some(), "the fluid engine has run nothing");
}
