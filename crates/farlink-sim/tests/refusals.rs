//! Scenarios that cannot be run are refused before anything runs, with path, fault and remedy.

use crate::common;
use crate::common::{expanded, losses, scenario, set, trace_file, try_run};
use farlink_core::ConfigError;
use farlink_sim::{RunError, trace_run};
use serde_json::{Value, json};

fn refusal(scenario: &Value) -> ConfigError {
    match try_run(scenario, 1) {
        Err(RunError::Scenario(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// A lossy link that replays a file.
fn replay(file: &str) -> Value {
    scenario(&[("link.channel", json!({ "kind": "packet-trace", "file": file }))])
}

#[test]
fn unusable_traces_are_refused_with_their_path() {
    let whole = std::fs::read(losses("whole", &[false, true, false])).unwrap();
    let cases = [
        ("/nowhere/at-all.npz".to_owned(), "no such file"),
        (trace_file("empty", b""), "not"),
        (trace_file("truncated", &whole[..whole.len() / 2]), "not"),
        (trace_file("no-archive", b"lost,0,1,0\n"), "not"),
        (losses("no-frames", &[]), "lost is empty"),
        (env!("CARGO_TARGET_TMPDIR").to_owned(), "it is not a file"),
    ];
    for (file, why) in cases {
        let error = refusal(&replay(&file));
        assert!(error.path.starts_with("link.channel"), "{}: {}", error.path, error);
        let message = error.to_string();
        assert!(message.contains(&file) && message.contains(why), "{message}");
        assert!(!error.remedy.is_empty() && !message.contains('\n') && !error.remedy.contains('\n'));
    }
}

#[test]
fn a_trace_of_another_kind_is_refused() {
    let file = losses("losses-for-a-rate", &[true, false]);
    let error = refusal(&scenario(&[("link.rate_bps", json!({ "kind": "rate-trace", "file": file }))]));
    assert!(error.path.starts_with("link.rate_bps"), "{}", error.path);
    assert!(error.to_string().contains("packet-loss"), "{error}");
}

#[test]
fn a_bad_trace_at_the_last_point_runs_nothing() {
    let mut study = replay(&losses("fine", &[false, true]));
    set(&mut study, "grid", json!({ "link.channel.file": [losses("fine", &[false, true]), "/nowhere.npz"] }));
    let ran = std::sync::atomic::AtomicU64::new(0);
    let note = |done: u64, _: u64| {
        ran.fetch_max(done + 1, std::sync::atomic::Ordering::Relaxed);
        std::ops::ControlFlow::Continue(())
    };
    assert!(farlink_sim::run(&expanded(&study), &Default::default(), &note).is_err());
    assert_eq!(ran.into_inner(), 0, "no progress is reported");
}

#[test]
fn endless_datagrams_are_refused() {
    let error = refusal(&scenario(&[("transport.tcp", json!({ "kind": "udp" }))]));
    assert_eq!(error.path, "flow.bulk.traffic");
    assert!(error.remedy.contains("cbr"), "{}", error.remedy);
}

#[test]
fn points_beyond_the_last_are_refused() {
    let Err(error) = trace_run(&expanded(&scenario(&[])), 1, 0, true, true, &|| false) else {
        panic!("there is one point only")
    };
    assert!(error.to_string().contains("no grid point 1"), "{error}");
}

/// The run ends with a stall, and unknown quantities are null.
#[test]
fn a_dead_link_stalls_and_says_so() {
    let file = json!({ "transport": "tcp", "traffic": { "kind": "file", "bytes": 1000 } });
    let dead = scenario(&[("link.channel", json!({ "kind": "loss", "loss": 1 })), ("flow.file", file)]);
    for duration_s in [json!(30), json!(1e7)] {
        let mut dead = dead.clone();
        set(&mut dead, "duration_s", duration_s);
        let output = common::run(&dead, 1);
        assert!(common::text(&output.rows, "status").iter().all(|status| status == "stalled"));
        assert!(common::text(&output.rows, "reason").iter().all(|reason| !reason.is_empty()));
        assert!(common::real(&output.rows, "delay_mean_s").iter().all(|delay| delay.is_nan()));
        assert!(common::real(&output.rows, "delivered_bytes").iter().all(|bytes| *bytes == 0.0));
    }
    // Without a duration, the end of the clock stops the run.
    let mut forever = dead;
    set(&mut forever, "duration_s", Value::Null);
    set(&mut forever, "flow.bulk", Value::Null);
    assert!(common::text(&common::run(&forever, 1).rows, "status").iter().all(|status| status == "stalled"));
}

/// A timer that expires more than a thousand times per round trip without an answer makes endless runs.
#[test]
fn timers_that_would_expire_for_ever_are_refused() {
    let with = |delay_s: f64, rto: Value| scenario(&[("link.delay_s", json!(delay_s)), ("transport.tcp.rto", rto)]);
    let fixed = |initial_s: f64| json!({ "algorithm": "fixed", "initial_s": initial_s });
    for (rto, waits) in [
        (fixed(4.9e-4), "4.9e-4 s"),
        (json!({ "initial_s": 7e-6 }), "4.48e-4 s"),
        (json!({ "initial_s": 1e-6, "minimum_s": 1e-6, "maximum_s": 1e-5 }), "1e-5 s"),
    ] {
        let error = refusal(&with(0.25, rto));
        assert_eq!(error.path, "transport.tcp.rto.initial_s");
        assert!(error.message().contains(&format!("waits {waits} at most")), "{error}");
    }
    for rto in [fixed(5.1e-4), json!({ "initial_s": 8e-6 })] {
        assert!(common::setup(&with(0.25, rto)).flows.len() == 1, "resolves");
    }
}

/// An optical link of 400 m, whose round trip takes 2.7 us and a packet 8 us, with suitable timers.
#[test]
fn a_short_link_has_short_timers() {
    let mut near = scenario(&[
        ("duration_s", json!(0.01)),
        ("runs", json!(1)),
        ("link.rate_bps", json!(1e9)),
        ("link.delay_s", json!(1.33e-6)),
        ("link.channel", json!({ "kind": "loss", "loss": 0.01 })),
    ]);
    let rto = json!({ "algorithm": "fixed", "initial_s": 2e-5 });
    set(&mut near, "transport.tcp", json!({ "kind": "arq", "mode": "stop-and-wait", "rto": rto }));
    let output = common::run(&near, 1);
    assert_eq!(output.notes, [] as [String; 0]);
    let goodput = *common::real(&output.rows, "goodput_bps").last().unwrap();
    // A packet, its acknowledgement and the propagation both ways: 11 us for 8,000 bits.
    assert!((0.6e9..0.75e9).contains(&goodput), "{goodput}");
}
