//! Flows that gateways split: in all cases, every byte is delivered once or accounted for.

use crate::common;
use crate::common::random::{channels, stp, tcp};
use crate::common::{cases, once, real, setup, text};
use farlink_core::endpoint::Probe;
use farlink_core::{Ecn, Packet, Time};
use farlink_sim::engine::{FlowResult, RunResult, Setup, Tracer, simulate};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const FILE_BYTES: u64 = 1_000_000;

/// A slow hop of 0.25 s between two fast ones, and a file; `changes` replace or add keys at dotted paths.
fn chain(changes: &[(&str, Value)]) -> Value {
    let mut scenario = json!({
        "runs": 1,
        "path": ["lan", "space", "ground"],
        "hop": {
            "lan": { "rate_bps": 1e8, "delay_s": 0.001 },
            "space": { "rate_bps": 1e6, "delay_s": 0.25, "gateway": { "edge_transport": "edge" } },
            "ground": { "rate_bps": 1e8, "delay_s": 0.01 },
        },
        "transport": {
            "own": { "kind": "tcp", "segment_bytes": 1000, "initial_ssthresh_segments": 60, "max_window_segments": 60 },
            "edge": { "kind": "tcp", "segment_bytes": 1000, "receive_window_segments": 50 },
        },
        "flow": { "file": { "transport": "own", "traffic": { "kind": "file", "bytes": FILE_BYTES } } },
    });
    for (path, value) in changes {
        common::set(&mut scenario, path, value.clone());
    }
    scenario
}

fn run(changes: &[(&str, Value)]) -> (FlowResult, RunResult) {
    let mut run = once(&setup(&chain(changes)), 1);
    (run.flows.remove(0), run)
}

fn crash(side: &str, at_s: f64) -> Value {
    json!({ "side": side, "at_s": at_s, "down_for_s": 2 })
}

/// Checks that every byte of a file is accounted for.
fn assert_accounted(flow: &FlowResult, asked: u64) {
    let known = flow.delivered_bytes + flow.skipped_bytes + flow.lost_in_custody_bytes + flow.undelivered_bytes;
    assert_eq!(known, asked, "{flow:?}");
    let is_whole = flow.undelivered_bytes + flow.lost_in_custody_bytes == 0;
    assert_eq!(flow.finished.is_some(), is_whole, "{flow:?}");
}

#[test]
fn a_file_is_forwarded_from_hop_to_hop() {
    for (own, custody) in [("tcp", "memory"), ("stp", "memory"), ("arq", "disk"), ("scps-tp", "disk")] {
        let own = json!({ "kind": own, "segment_bytes": 1000, "rto": { "initial_s": 2 } });
        let (flow, run) = run(&[("transport.own", own.clone()), ("hop.space.gateway.custody", custody.into())]);
        assert_accounted(&flow, FILE_BYTES);
        assert_eq!((flow.delivered_bytes, flow.delivered_packets), (FILE_BYTES, 1000), "{own}");
        assert!(!run.was_given_up && flow.finished.unwrap() < Time::from_secs(14), "{own}: {:?}", flow.finished);
        // Counted from the first transmission by the source: all three hops, of which the second takes 8 ms a segment.
        assert!(flow.delay.mean().unwrap() > 0.261 + 0.008, "{own}");
    }
}

/// If the hops before and after the gateways take no time, the result equals that without gateways.
#[test]
fn gateways_with_instant_edges_change_nothing() {
    let cable = json!({ "rate_bps": 1e13, "delay_s": 0 });
    for (own, ber) in [
        (json!({ "kind": "tcp", "segment_bytes": 1000, "initial_window_segments": 2 }), 0.0),
        (json!({ "kind": "tcp", "variant": "newreno", "segment_bytes": 1000 }), 1e-6),
        (json!({ "kind": "arq", "segment_bytes": 1000 }), 1e-5),
        (json!({ "kind": "stp", "segment_bytes": 1000 }), 1e-5),
    ] {
        let changes = |path: Value| {
            vec![
                ("path", path),
                ("hop.lan", cable.clone()),
                ("hop.ground", cable.clone()),
                ("hop.space.channel", json!({ "kind": "ber", "ber": ber })),
                ("transport.own", own.clone()),
                ("transport.edge.receive_window_segments", json!(2000)),
                ("transport.edge.initial_window_segments", json!(2000)),
            ]
        };
        let (split, _) = run(&changes(json!(["lan", "space", "ground"])));
        let mut alone = changes(json!(["space"]));
        alone.push(("hop.space.gateway", json!(false)));
        let (alone, _) = run(&alone);
        let figures = |flow: &FlowResult| {
            [flow.delivered_bytes, flow.sent_packets, flow.sent_bytes, flow.overhead_bytes, flow.retransmitted_bytes]
                .into_iter()
                .chain([flow.lost_packets, flow.timeouts, flow.return_bytes, flow.peak_send_buffer_bytes])
                .collect::<Vec<_>>()
        };
        assert_eq!(figures(&split), figures(&alone), "{own}");
        let late = split.finished.unwrap().as_secs_f64() - alone.finished.unwrap().as_secs_f64();
        assert!((0.0..1e-5).contains(&late), "{own}: {late} s later");
    }
}

#[test]
fn a_full_gateway_stops_reading() {
    let window = 50_000;
    for buffer_bytes in [1, 50_000, 200_000] {
        let (flow, _) = run(&[("hop.space.gateway.buffer_bytes", buffer_bytes.into())]);
        assert_eq!(flow.delivered_bytes, FILE_BYTES);
        let most = buffer_bytes + window;
        assert!((buffer_bytes..=most).contains(&flow.peak_custody_bytes), "{} of {most}", flow.peak_custody_bytes);
    }
    let (unbounded, _) = run(&[("hop.space.gateway.buffer_bytes", json!(1e9))]);
    assert!(unbounded.peak_custody_bytes > 900_000, "the fast hop fills it: {}", unbounded.peak_custody_bytes);
}

#[test]
fn a_crash_loses_data_in_memory_but_not_on_disk() {
    for side in ["sender", "receiver"] {
        // On the receiver's side, data waits for a slow hop behind the gateway.
        let slow = if side == "sender" { 1e8 } else { 5e5 };
        let crashed = |custody: &str| {
            let (flow, run) = run(&[
                ("hop.space.gateway.crash", crash(side, 4.0)),
                ("hop.space.gateway.custody", custody.into()),
                ("hop.ground.rate_bps", slow.into()),
            ]);
            assert_accounted(&flow, FILE_BYTES);
            assert_eq!(flow.undelivered_bytes, 0, "{side}, {custody}: {flow:?}");
            assert!(!run.was_given_up && run.end < Time::from_secs(100), "{:?}", run.end);
            flow
        };
        let (memory, disk) = (crashed("memory"), crashed("disk"));
        assert!(memory.lost_in_custody_bytes > 10_000, "{side}: {}", memory.lost_in_custody_bytes);
        assert_eq!((disk.lost_in_custody_bytes, disk.delivered_bytes), (0, FILE_BYTES), "{side}");
        if side == "sender" {
            assert!(memory.sent_bytes < disk.sent_bytes, "data on disk is sent again");
        }
    }
}

/// The whole file was acknowledged to the source before the gateway lost it: it is not sent again, and its end never
/// arrives.
#[test]
fn data_acknowledged_to_a_finished_source_is_lost_in_a_crash() {
    let (flow, run) = run(&[("hop.space.gateway.crash", crash("sender", 5.0)), ("duration_s", json!(60))]);
    assert_accounted(&flow, FILE_BYTES);
    assert_eq!((flow.finished, flow.undelivered_bytes), (None, 0));
    assert!(flow.lost_in_custody_bytes > 500_000 && flow.delivered_bytes > 100_000, "{flow:?}");
    assert_eq!(flow.measured, run.end);
    let output = common::run(
        &chain(&[("hop.space.gateway.crash", crash("sender", 5.0)), ("duration_s", json!(60)), ("runs", json!(2))]),
        1,
    );
    assert!(text(&output.rows, "status").iter().all(|status| status == "stalled"));
    let reason = &text(&output.rows, "reason")[0];
    assert!(reason.contains("bytes were lost in the custody of a gateway"), "{reason}");
    assert_eq!(real(&output.rows, "lost_in_custody_bytes")[0], flow.lost_in_custody_bytes as f64);
}

/// Such data is neither lost in custody nor late in the account of the whole chain.
#[test]
fn data_that_expires_in_a_gateway_is_skipped() {
    for coded in [Value::Null, json!({})] {
        let own = json!({
            "kind": "aerotp", "mode": "near-reliable", "packet_bytes": 1000, "rate_bps": 9e5, "deadline_s": 2, "coded": coded,
        });
        let loss = json!({ "kind": "loss", "loss": 0.1 });
        let (flow, _) = run(&[("transport.own", own), ("hop.space.channel", loss)]);
        assert_accounted(&flow, FILE_BYTES);
        assert!(flow.skipped_bytes > 0 && flow.delivered_bytes > 100_000 && flow.finished.is_some(), "{flow:?}");
        assert_eq!(flow.lost_in_custody_bytes, 0);
    }
}

#[test]
fn a_write_to_disk_delays_the_acknowledgement() {
    let disk = |write_s: f64| {
        let custody = json!({ "edge_transport": "edge", "custody": "disk", "write_s": write_s });
        // The source sends its window of 50 segments once per round trip and write.
        run(&[("hop.space.gateway", custody), ("hop.space.rate_bps", json!(1e8))]).0.finished.unwrap().as_secs_f64()
    };
    let (fast, slow) = (disk(0.0), disk(0.5));
    assert!(slow - fast > 0.9 * 19.0 * 0.5, "{fast} s, {slow} s");
}

#[test]
fn a_connection_that_gives_up_ends_the_whole_chain() {
    let (flow, run) = run(&[
        ("hop.space.channel", json!({ "kind": "outage", "schedule": [[3, 1000]] })),
        ("transport.own.max_retransmissions", json!(3)),
    ]);
    assert_accounted(&flow, FILE_BYTES);
    assert!(flow.aborted.is_some() && !run.was_given_up, "{flow:?}");
    assert!(flow.lost_in_custody_bytes > 100_000, "the gateway drops its data: {flow:?}");
}

#[test]
fn flows_that_are_not_split_ignore_gateways() {
    let udp = json!({ "transport": "packets", "traffic": { "kind": "cbr", "rate_bps": 2e5, "payload_bytes": 500 } });
    let changes = [
        ("duration_s", json!(30)),
        ("hop.space.channel", json!({ "kind": "ber", "ber": 1e-6 })),
        ("flow.file.split", json!(false)),
        ("flow.packets", udp),
        ("transport.packets", json!({ "kind": "udp" })),
    ];
    let gateways = [json!(false), json!(true), json!({ "custody": "disk", "crash": crash("sender", 2.0) })];
    let [none, memory, disk] = gateways.map(|gateway| {
        let changes: Vec<_> = changes.iter().cloned().chain([("hop.space.gateway", gateway)]).collect();
        format!("{:?}", once(&setup(&chain(&changes)), 7).flows)
    });
    assert!(none == memory && memory == disk);
}

#[test]
fn bulk_and_constant_rate_sources_pass_gateways() {
    let cbr = json!({ "kind": "cbr", "rate_bps": 2e5, "payload_bytes": 1000, "bytes": 200_000 });
    let (steady, run_of_it) = run(&[("flow.file.traffic", cbr)]);
    assert_accounted(&steady, 200_000);
    assert!(steady.delay.mean().unwrap() < 0.5, "nothing waits: {:?}", steady.delay);
    assert!(run_of_it.end < Time::from_secs(10));

    let (bulk, _) = run(&[
        ("flow.file.traffic", json!({ "kind": "bulk" })),
        ("duration_s", json!(60)),
        ("measure", json!({ "warmup_s": 10 })),
    ]);
    let goodput_bps = bulk.delivered_bytes as f64 * 8.0 / 50.0;
    assert!((0.9e6..0.97e6).contains(&goodput_bps), "{goodput_bps}");
}

/// Makes the engine use the long way for every packet.
struct EveryPacket;

impl Tracer for EveryPacket {
    fn packet<P: Packet + 'static>(&mut self, _now: Time, _direction: usize, _flow: u32, _packet: &P, _ecn: Ecn) {}
    fn probe(&mut self, _now: Time, _flow: u32, _probe: impl FnOnce() -> Probe) {}
}

/// A transport that a restarted peer resets: with a handshake, and without giving up by itself.
fn resettable() -> impl Strategy<Value = Value> {
    tcp().prop_map(|mut config| {
        config["handshake"] = true.into();
        config["fin"] = true.into();
        config.as_object_mut().unwrap().remove("max_retransmissions");
        config
    })
}

fn hops() -> impl Strategy<Value = Value> {
    let hop = || {
        (4.5..6.5_f64, 0.0..0.2_f64, channels(), channels(), 2_u64..40).prop_map(
            |(rate, delay_s, there, back, queue)| {
                json!({
                    "rate_bps": 10_f64.powf(rate), "delay_s": delay_s, "channel": there, "queue_packets": queue,
                    "return": { "channel": back },
                })
            },
        )
    };
    (hop(), hop(), hop()).prop_map(|(lan, space, ground)| json!({ "lan": lan, "space": space, "ground": ground }))
}

fn gateways() -> impl Strategy<Value = Value> {
    let crash = (select(&["sender", "receiver"][..]), 0.0..20.0_f64, 0.01..5.0_f64)
        .prop_map(|(side, at_s, down_for_s)| json!({ "side": side, "at_s": at_s, "down_for_s": down_for_s }));
    let custody = prop_oneof![Just(None), (0.0..0.1_f64).prop_map(Some)];
    (0.0..5.0_f64, custody, proptest::option::of(crash)).prop_map(|(buffer, write_s, crash)| {
        let mut gateway = json!({ "edge_transport": "edge", "buffer_bytes": 10_f64.powf(buffer).round() });
        if let Some(write_s) = write_s {
            (gateway["custody"], gateway["write_s"]) = ("disk".into(), write_s.into());
        }
        if let Some(crash) = crash {
            gateway["crash"] = crash;
        }
        gateway
    })
}

fn chains() -> impl Strategy<Value = (Value, u64)> {
    (hops(), gateways(), resettable(), prop_oneof![3 => resettable(), 1 => stp()], 1_u64..40_000).prop_map(
        |(mut hops, gateway, edge, own, bytes)| {
            hops["space"]["gateway"] = gateway;
            let changes = [
                ("hop", hops),
                ("transport", json!({ "own": &own, "edge": edge })),
                ("flow.file.traffic.bytes", bytes.into()),
                // A transport that nothing resets retries for ever, some of them a hundred times a second. With
                // back-off, it may be silent for long.
                ("give_up_after_s", json!(if own["kind"] == "stp" { 1e3 } else { 1e5 })),
            ];
            (chain(&changes), bytes)
        },
    )
}

fn check(setup: &Setup, run: &RunResult, asked: u64) {
    let flow = &run.flows[0];
    assert_accounted(flow, asked);
    assert_eq!(flow.delay.count, flow.delivered_packets);
    let propagation: f64 = setup.forward.iter().filter_map(|hop| hop.delay.constant()).map(Time::as_secs_f64).sum();
    assert!(flow.delay.mean().is_none_or(|mean_s| mean_s >= propagation), "{flow:?}");
    assert!(flow.delivered_bytes + flow.retransmitted_bytes <= flow.sent_bytes - flow.overhead_bytes, "{flow:?}");
    let crashed = setup.gateway.as_ref().and_then(|gateway| gateway.crash);
    let has_disk = setup.gateway.as_ref().is_some_and(|gateway| gateway.spool.is_some());
    if crashed.is_none() || has_disk {
        assert_eq!(flow.lost_in_custody_bytes, 0, "{flow:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(120)))]

    /// Random hops, transports, stores and crashes: bytes are conserved, and the same seed gives the same run, with or
    /// without the shortcut for common packets.
    #[test]
    fn bytes_are_conserved_across_gateways(chain in chains(), seed in 0_u64..1000) {
        let (scenario, asked) = chain;
        let setup = setup(&scenario);
        let run = once(&setup, seed);
        check(&setup, &run, asked);
        let long = simulate(&setup, seed, 0, &mut EveryPacket, &|| false).expect("the run is not stopped");
        prop_assert_eq!(format!("{:?}", run.flows), format!("{:?}", long.flows));
        prop_assert_eq!(run.end, long.end);
        // Connections that are reset are opened again; STP has no reset.
        let has_crash = setup.gateway.as_ref().is_some_and(|gateway| gateway.crash.is_some());
        if scenario["transport"]["own"]["kind"] == "tcp" || !has_crash && !run.was_given_up {
            prop_assert_eq!(run.flows[0].undelivered_bytes, 0);
        }
    }
}
