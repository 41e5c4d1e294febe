//! Random scenarios with every kind of hop, channel, traffic, transport and option.

use farlink_core::protocol::TransportConfig;
use farlink_core::protocol::tcp::CongestionControl;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::{bit_errors, losses, series};

/// Some seconds of one to three hops with one to five flows over any transports.
pub(crate) fn scenarios() -> impl Strategy<Value = Value> {
    scenarios_over(transports())
}

/// The same over these transports.
pub(crate) fn scenarios_over(transports: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (vec(hops(), 1..4), vec((transports, flows()), 1..6), 1.0..15.0_f64, select(&[0.0, 0.0, 0.5][..])).prop_map(
        |(mut hops, flows, duration_s, warmup_s)| {
            let hears = |config: &Value| config["kind"] == "tcp" || config["kind"] == "scps-tp";
            for hop in hops.iter_mut().filter(|hop| hop["bundle"]["on_drop"] == "duplicate-acks") {
                if !flows.iter().any(|(config, _)| hears(config)) {
                    hop["bundle"]["on_drop"] = "lose".into();
                }
            }
            let names: Vec<String> = (0..hops.len()).map(|i| format!("h{i}")).collect();
            let mut transport = Map::new();
            let mut flow = Map::new();
            for (i, (config, mut table)) in flows.into_iter().enumerate() {
                // Endless data needs a transport with a rate of its own, and datagrams have none.
                let parsed: TransportConfig = serde_json::from_value(config.clone()).unwrap();
                if !parsed.as_dyn().is_bounded() && table["traffic"]["kind"] == "bulk" {
                    table["traffic"] = json!({ "kind": "cbr", "rate_bps": 1e5, "payload_bytes": 700 });
                }
                table["transport"] = format!("t{i}").into();
                transport.insert(format!("t{i}"), config);
                flow.insert(format!("f{i}"), table);
            }
            json!({
                "duration_s": duration_s,
                "measure": { "warmup_s": warmup_s },
                "path": names,
                "hop": names.iter().cloned().zip(hops).collect::<Map<_, _>>(),
                "transport": transport,
                "flow": flow,
            })
        },
    )
}

fn hops() -> impl Strategy<Value = Value> {
    prop_oneof![6 => links(), 1 => bundles()]
}

/// Several lines that replace a link.
fn bundles() -> impl Strategy<Value = Value> {
    let schedulers = ["round-robin", "shortest-queue", "earliest-delivery", "redundant", "drop-aware", "linux"];
    let on_drop = select(&["lose", "requeue", "duplicate-acks"][..]);
    let shape = (1_u64..6, select(schedulers.to_vec()), any::<[bool; 3]>(), on_drop, 1_u64..5);
    let primary = select(&["none", "ends-bundle", "stays-lost"][..]);
    let calls = (0.2..20.0_f64, 0.1..5.0_f64, 0.0..0.5_f64, primary, proptest::option::of(0.1..5.0_f64));
    let queue = proptest::option::of(1_u64..60);
    (4.0..6.0_f64, 0.0..0.3_f64, shape, calls, queue, proptest::option::of((20_u64..300, 0.0..0.2_f64))).prop_map(
        |(exponent, delay_s, (lines, scheduler, [is_cut, is_short, has_kinds], on_drop, room), calls, queue, arq)| {
            let is_cut = is_cut && scheduler != "redundant";
            let (up, redial, failure, primary, late) = calls;
            let random_duration = |mean_s: f64| json!({ "distribution": "exponential", "mean_s": mean_s });
            let mut bundle = json!({
                "mrru_bytes": 65_535,
                "scheduler": scheduler, "packets": if is_cut { "fragmented" } else { "whole" },
                "header": if is_short { "short" } else { "long" }, "line_packets": room,
                "on_drop": on_drop,
                "calls": { "up": random_duration(up), "redial": random_duration(redial), "failure": failure, "retry_s": 1, "primary": primary },
            });
            if has_kinds {
                let fast = json!({ "rate_bps": 1e6, "return_rate_bps": 3e5, "delay_s": delay_s + 0.05, "modem_bytes": 3000, "up": random_duration(1.0) });
                bundle["members"] = json!([{ "count": lines }, fast]);
            } else {
                bundle["lines"] = lines.into();
            }
            if let Some(mean_s) = late {
                bundle["calls"]["detection"] = random_duration(mean_s);
                if mean_s > 2.5 {
                    bundle["calls"]["ppp"] = json!({ "connect_delay_s": redial, "lcp_restart_s": up, "far_is_silent": is_short });
                    bundle["calls"]["echo"] = json!({ "interval_s": mean_s, "failures": room });
                }
            }
            if let Some((frame_bytes, loss)) = arq {
                bundle["arq"] = json!({ "frame_bytes": frame_bytes, "window_frames": 3, "loss": loss });
            }
            if scheduler == "linux" {
                let keys = bundle.as_object_mut().expect("a table");
                keys.retain(|key, _| !["packets", "line_packets"].contains(&key.as_str()));
                if has_kinds {
                    bundle["members"][1] =
                        json!({ "rate_bps": 1e6, "delay_s": delay_s + 0.05, "serial_bps": 2e6, "up": random_duration(1.0) });
                }
                bundle["tty_bytes"] = (512 * room).into();
                bundle["on_drop"] = if on_drop == "requeue" { "lose" } else { on_drop }.into();
                bundle["calls"]["detection_far"] = random_duration(up);
            }
            let mut hop = json!({ "rate_bps": 10_f64.powf(exponent), "delay_s": delay_s, "bundle": bundle });
            if let Some(packets) = queue {
                hop["queue_packets"] = packets.into();
            }
            hop
        },
    )
}

fn links() -> impl Strategy<Value = Value> {
    let rate = prop_oneof![
        5 => (4.0..6.7_f64).prop_map(|exponent| json!(10_f64.powf(exponent))),
        1 => Just(json!({ "kind": "rate-trace", "file": a_rate() })),
    ];
    let delay = prop_oneof![
        5 => (0.0..0.3_f64).prop_map(|s| json!(s)),
        1 => Just(json!({ "kind": "delay-trace", "file": a_delay() })),
    ];
    let queue = || {
        prop_oneof![
            Just(("unlimited", 0)),
            (1_u64..100_000).prop_map(|n| ("queue_bytes", n)),
            (1_u64..60).prop_map(|n| ("queue_packets", n)),
        ]
    };
    let back = (proptest::option::of(4.0..6.7_f64), queue(), channels());
    // The marking threshold, as a share of the queue.
    let marks = || proptest::option::of(0.0..1.0_f64);
    // The burst holds any packet.
    let policer = proptest::option::of((4.0..6.7_f64, 65_535_u64..200_000));
    let ends = (back, [marks(), marks()], [services(), services()]);
    (rate, delay, (queue(), policer), select(&["fifo", "overtake"][..]), channels(), ends).prop_map(
        |(
            rate,
            delay,
            (queue, policer),
            ordering,
            channel,
            ((back_rate, back_queue, back_channel), marks, services),
        )| {
            let mut back = json!({ "channel": back_channel });
            if let Some(exponent) = back_rate {
                back["rate_bps"] = json!(10_f64.powf(exponent));
            }
            let mut hop = json!({
                "rate_bps": rate, "delay_s": delay, "ordering": ordering, "channel": channel, "return": null,
            });
            for (table, (key, limit), part, is_forward) in
                [(&mut hop, queue, marks[0], true), (&mut back, back_queue, marks[1], false)]
            {
                if limit > 0 {
                    table[key] = limit.into();
                }
                match part.map(|part| (part * limit as f64).max(1.0).floor() as u64) {
                    Some(threshold) if threshold < limit => {
                        table[key.replace("queue", "ecn_threshold")] = threshold.into();
                    }
                    Some(_) if limit == 0 && is_forward => table["ecn_threshold_packets"] = 5.into(),
                    _ => {}
                }
            }
            if let Some((exponent, burst_bytes)) = policer {
                hop["policer"] = json!({ "rate_bps": 10_f64.powf(exponent), "burst_bytes": burst_bytes });
            }
            let [service, back_service] = services;
            back["service"] = back_service;
            hop["service"] = service;
            hop["return"] = back;
            hop
        },
    )
}

/// Every way to serve classes.
fn services() -> impl Strategy<Value = Value> {
    let weight = prop_oneof![1 => Just(json!("strict")), 3 => (0.001..1000.0_f64).prop_map(|weight| json!(weight))];
    prop_oneof![
        2 => Just(json!("fifo")),
        1 => Just(json!("strict")),
        1 => vec(weight, 8).prop_map(|weights| json!({ "weights": weights })),
    ]
}

/// Every kind of channel; half of the links have no errors.
pub(crate) fn channels() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        (0.0..0.3_f64).prop_map(|loss| json!({ "kind": "loss", "loss": loss })),
        (3.5..7.0_f64).prop_map(|exponent| json!({ "kind": "ber", "ber": 10_f64.powf(-exponent) })),
        (0.0..0.1_f64, 0.1..1.0_f64, 0.0..1.0_f64).prop_map(|(leave, back, loss)| json!({
            "kind": "gilbert-elliott", "p_good_to_bad": leave, "p_bad_to_good": back, "loss_bad": loss,
        })),
        (0.0..1e-5_f64, 1e-4..1e-2_f64, 0.0..0.01_f64).prop_map(|(leave, back, ber)| json!({
            "kind": "gilbert-elliott", "per": "bit", "p_good_to_bad": leave, "p_bad_to_good": back, "ber_bad": ber,
        })),
        (0.0..0.1_f64, 0.01..1.0_f64)
            .prop_map(|(loss, round_s)| json!({ "kind": "round-loss", "loss": loss, "round_s": round_s })),
        (1.0..5.0_f64, 0.01..0.9_f64)
            .prop_map(|(period_s, down_s)| json!({ "kind": "outage", "period_s": period_s, "down_s": down_s })),
        (0.1..1.0_f64, 0.01..0.9_f64)
            .prop_map(|(rate_per_s, down_s)| json!({ "kind": "outage", "rate_per_s": rate_per_s, "down_s": down_s })),
        Just(json!({ "kind": "outage", "schedule": [[0.0, 0.2], [1.0, 2.0]] })),
        Just(json!({ "kind": "packet-trace", "file": some_losses() })),
        Just(json!({ "kind": "bit-trace", "file": some_bit_errors(), "offset": 0 })),
    ];
    let chain = vec(simple, 1..3).prop_map(|stages| match &stages[..] {
        [only] => only.clone(),
        _ => json!({ "kind": "chain", "stages": stages }),
    });
    prop_oneof![Just(json!({ "kind": "none" })), chain]
}

/// Each kind of transport with any option.
pub(crate) fn transports() -> impl Strategy<Value = Value> {
    let udp = (100_u64..1500, 1_u64..4, 0_u64..300).prop_map(|(bytes, copies, spacing_ms)| {
        let mut config = json!({ "kind": "udp", "segment_bytes": bytes, "copies": copies });
        if copies > 1 {
            config["copy_spacing_s"] = (spacing_ms as f64 / 1000.0).into();
        }
        config
    });
    let most = proptest::option::of(1_u64..9);
    let mortal = (tcp(), most).prop_map(|(mut tcp, most)| {
        if let Some(most) = most {
            tcp["max_retransmissions"] = most.into();
        }
        tcp
    });
    prop_oneof![4 => mortal, 2 => stp(), 2 => scps(), 1 => udp, 2 => aerotp(), 1 => arq()]
}

/// ARQ of each mode, with any of its acknowledgements, and hybrids.
pub(crate) fn arq() -> impl Strategy<Value = Value> {
    let modes = prop_oneof![Just("stop-and-wait"), Just("go-back-n"), Just("selective-repeat")];
    let flags = any::<[bool; 5]>();
    let hybrid = prop_oneof![
        2 => Just(json!({})),
        1 => Just(json!({ "correction": { "symbols": 2 } })),
        1 => Just(json!({ "nak": true, "incremental": { "parity_bytes": 16, "increments": 4 } })),
    ];
    (modes, flags, 1_u64..40, 1_u64..1200, hybrid, proptest::option::of(0_u64..6)).prop_map(
        |(mode, [single, timestamps, nak, paced, rides], window, segment, hybrid, blocks)| {
            let mut transport = json!({
                "kind": "arq", "mode": mode, "segment_bytes": segment, "timestamps": timestamps, "nak": nak,
                "ack": if single { "per-packet" } else { "cumulative" },
            });
            let keys = transport.as_object_mut().unwrap();
            if mode != "stop-and-wait" {
                keys.insert("window_frames".into(), window.into());
            }
            if mode == "selective-repeat" && !single {
                keys.extend(blocks.map(|blocks| ("sack_blocks".into(), blocks.into())));
            }
            if paced {
                keys.insert("rate_bps".into(), json!(1e6));
            }
            if rides {
                keys.insert("piggyback_timeout_s".into(), json!(0.02));
            }
            if nak && !single {
                keys.insert("timer".into(), "receiver".into());
            }
            keys.extend(hybrid.as_object().unwrap().clone());
            transport
        },
    )
}

pub(crate) fn stp() -> impl Strategy<Value = Value> {
    let windows = (1_u64..20, proptest::option::of(1_u64..50), 1_u64..200, proptest::option::of(1_u64..100));
    let rate = proptest::option::of(4.0..6.7_f64);
    let code = select(&[("bits", 0), ("bits", 0), ("bits", 1), ("symbols", 2)][..]);
    (windows, rate, any::<[bool; 2]>(), 40_u64..1460, 1_u64..20, 0.01..0.9_f64, code).prop_map(
        |(windows, rate, [ustat, handshake], bytes, ranges, interval_s, (code, t))| {
            let mut config = json!({
                "kind": "stp",
                "segment_bytes": bytes,
                "stat_ranges": ranges,
                "poll_interval_s": interval_s,
                "poll_every_segments": 1 + ranges,
                "ustat": ustat,
                "handshake": handshake,
                "initial_window_segments": windows.0,
                "max_window_segments": windows.2,
            });
            for (key, value) in [("initial_ssthresh_segments", windows.1), ("receive_window_segments", windows.3)] {
                if let Some(value) = value {
                    config[key] = value.into();
                }
            }
            if let Some(exponent) = rate {
                config["congestion"] = "rate".into();
                config["rate_bps"] = 10_f64.powf(exponent).into();
            }
            if t > 0 {
                config["correction"] = json!({ code: t });
            }
            without_idle_keys(config)
        },
    )
}

pub(crate) fn tcp() -> impl Strategy<Value = Value> {
    tcp_of(&["tahoe", "reno", "newreno", "sack", "snack", "none", "rack", "rack"], controls())
}

/// TCP of one of these versions with one of these congestion controls.
pub(crate) fn tcp_of(
    variants: &'static [&'static str],
    controls: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Value> {
    (versions(variants), controls, any::<bool>()).prop_map(|(mut config, control, pacing)| {
        config.as_object_mut().unwrap().extend(control.as_object().unwrap().clone());
        // Controls that measure rates need selective acknowledgements and pacing. Those that do not react to marks
        // cannot use ECN.
        if control["congestion_control"] == "none" {
            config["ecn"] = false.into();
        }
        if matches!(control["congestion_control"].as_str(), Some("bbr" | "bbr3")) {
            if config["variant"] != "rack" {
                config["variant"] = "sack".into();
            }
        } else {
            config["pacing"] = pacing.into();
        }
        without_idle_keys(config)
    })
}

/// The same transport without keys that have no effect and would be refused.
pub(crate) fn without_idle_keys(mut config: Value) -> Value {
    let transport: TransportConfig = serde_json::from_value(config.clone()).unwrap();
    for idle in transport.as_dyn().idle() {
        let (table, key) = idle.key.rsplit_once('.').unwrap_or(("", &idle.key));
        let table = if table.is_empty() { String::new() } else { format!("/{table}") };
        if let Some(Value::Object(table)) = config.pointer_mut(&table) {
            table.remove(key);
        }
    }
    config
}

/// Every congestion control with any of its settings.
pub(crate) fn controls() -> impl Strategy<Value = Value> {
    let any_one = select(CongestionControl::ALL).prop_map(|control| json!({ "congestion_control": control.name() }));
    let hybla =
        (0.005..0.5_f64).prop_map(|rtt0_s| json!({ "congestion_control": "hybla", "hybla": { "rtt0_s": rtt0_s } }));
    let vegas = (1_u64..10, 0_u64..10, 1_u64..10).prop_map(|(alpha, more, gamma)| {
        let vegas = json!({ "alpha_segments": alpha, "beta_segments": alpha + more, "gamma_segments": gamma });
        json!({ "congestion_control": "vegas", "vegas": vegas })
    });
    let reno = any::<bool>().prop_map(|hystart| json!({ "congestion_control": "reno", "hystart": hystart }));
    prop_oneof![3 => any_one, 2 => cubic(), 1 => hybla, 1 => vegas, 1 => reno, 1 => bbr()]
}

/// CUBIC with any of its settings.
pub(crate) fn cubic() -> impl Strategy<Value = Value> {
    (0.2..0.9_f64, 0.01..10.0_f64, any::<[bool; 3]>()).prop_map(|(beta, c, [fast, friendly, hystart])| {
        let cubic = json!({ "beta": beta, "c": c, "fast_convergence": fast, "reno_friendly": friendly });
        json!({ "congestion_control": "cubic", "cubic": cubic, "hystart": hystart })
    })
}

/// Both versions of BBR with any of their settings.
pub(crate) fn bbr() -> impl Strategy<Value = Value> {
    (select(&["bbr", "bbr3"][..]), 0.5..20.0_f64, 0.01..1.0_f64, 0.0..0.1_f64).prop_map(
        |(control, window_s, probe_s, margin)| {
            let bbr = json!({ "min_rtt_window_s": window_s, "probe_rtt_s": probe_s, "pacing_margin": margin });
            json!({ "congestion_control": control, "bbr": bbr })
        },
    )
}

/// Timers of delayed acknowledgements: constant or drawn, short and long.
pub(crate) fn ack_timeout() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => Just(json!(0.2)),
        1 => (-4.0..0.0_f64).prop_map(|exponent| json!(10_f64.powf(exponent))),
        1 => Just(json!([0, 0.2])),
        1 => Just(json!([0.1, 0.2])),
        1 => (-4.0..-0.3_f64, 0.0..0.99_f64).prop_map(|(exponent, part)| {
            let most_s = 10_f64.powf(exponent).min(0.5);
            json!([part * most_s, most_s])
        }),
    ]
}

/// Every version with any option.
fn versions(variants: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let variant = select(variants);
    let switches = any::<[bool; 9]>();
    let windows = (1_u64..20, proptest::option::of(1_u64..50), 1_u64..200, proptest::option::of(1_u64..100));
    let timers = (select(&[0.0, 0.2, 1.0][..]), select(&[0.0, 0.001, 0.1, 0.5][..]), 1_u64..64, ack_timeout());
    let recovery = any::<[Option<bool>; 4]>();
    let code = select(&[("bits", 0), ("bits", 0), ("bits", 1), ("bits", 3), ("symbols", 2)][..]);
    (variant, (switches, recovery), windows, timers, 40_u64..1460, 1_u64..6, 40_u64..80, code).prop_map(
        |(
            variant,
            (switches, [prr, dsack, f_rto, probe]),
            windows,
            (minimum_s, granularity_s, backoff_limit, ack_timeout),
            bytes,
            threshold,
            header,
            (code, t),
        )| {
            let mut config = json!({
                "kind": "tcp",
                "delayed_ack_timeout_s": ack_timeout,
                "variant": variant,
                "segment_bytes": bytes,
                "header_bytes": header,
                "initial_window_segments": windows.0,
                "max_window_segments": windows.2,
                "duplicate_ack_threshold": threshold,
                "rto": { "minimum_s": minimum_s, "granularity_s": granularity_s, "backoff_limit": backoff_limit },
            });
            for (key, window) in [("initial_ssthresh_segments", windows.1), ("receive_window_segments", windows.3)] {
                if let Some(window) = window {
                    config[key] = window.into();
                }
            }
            // Not all options can be combined.
            let has_sack = variant == "sack" || variant == "rack";
            for (key, switch, may) in [
                ("prr", prr, has_sack),
                ("dsack", dsack, has_sack),
                ("f_rto", f_rto, true),
                ("tail_loss_probe", probe, variant == "rack"),
            ] {
                if let Some(switch) = switch.filter(|_| may) {
                    config[key] = switch.into();
                }
            }
            if t > 0 {
                config["correction"] = json!({ code: t });
            }
            let names = [
                "limited_transmit",
                "delayed_ack",
                "handshake",
                "fin",
                "timestamps",
                "recover_guard",
                "restart_after_idle",
            ];
            // A window that exceeds its field needs scaling.
            let largest = windows.2.max(windows.3.unwrap_or(0)) * bytes;
            config["window_scaling"] = (switches[7] || largest > 65_535).into();
            config["ecn"] = switches[8].into();
            config["timestamp_echo"] = if bytes % 2 == 0 { "oldest" } else { "latest" }.into();
            for (key, switch) in names.into_iter().zip(switches) {
                config[key] = switch.into();
            }
            config
        },
    )
}

/// SCPS-TP with any extension.
pub(crate) fn scps() -> impl Strategy<Value = Value> {
    let versions = (
        select(&["snack", "snack", "sack", "newreno"][..]),
        select(&["reno", "vegas", "cubic", "bbr", "none"][..]),
        select(&["congestion", "corruption", "signalled"][..]),
    );
    let sizes = (1_u64..200, proptest::option::of(1_u64..100), 40_u64..1460, proptest::option::of(4.0..6.5_f64));
    let acks = (proptest::option::of(1_u64..40), proptest::option::of(0.01..0.5_f64));
    let best_effort = proptest::option::of((proptest::option::of(1_u64..5), 0.05..3.0_f64));
    let copies = prop_oneof![3 => Just((1_u64, 0.0)), 1 => (2_u64..4, 0.0..0.1_f64)];
    (versions, sizes, acks, best_effort, copies, any::<[bool; 4]>()).prop_map(
        |(
            (variant, control, means),
            (window, receive, bytes, rate),
            (every, interval_s),
            best_effort,
            copies,
            switches,
        )| {
            let [handshake, timestamps, header_compression, ecn] = switches;
            let mut config = json!({
                "kind": "scps-tp",
                "variant": if control == "bbr" { "sack" } else { variant },
                "congestion_control": control,
                "loss_means": means,
                "max_window_segments": window,
                "segment_bytes": bytes,
                "copies": copies.0,
                "copy_spacing_s": copies.1,
                "handshake": handshake,
                "timestamps": timestamps,
                "header_compression": header_compression,
                "ecn": ecn && control != "none",
            });
            let rate = rate.filter(|_| control != "bbr").map(|exponent| json!(10_f64.powf(exponent)));
            let given = [
                ("rate_bps", rate),
                ("receive_window_segments", receive.map(Value::from)),
                ("ack_every_segments", every.map(Value::from)),
                ("ack_interval_s", interval_s.map(Value::from)),
                ("hold_time_s", best_effort.map(|(_, hold_s)| hold_s.into())),
                ("max_transmissions", best_effort.and_then(|(most, _)| most).map(Value::from)),
            ];
            for (key, value) in given {
                if let Some(value) = value {
                    config[key] = value;
                }
            }
            without_idle_keys(config)
        },
    )
}

/// AeroTP in any mode.
pub(crate) fn aerotp() -> impl Strategy<Value = Value> {
    let mode = select(&["reliable", "near-reliable", "quasi-reliable", "unreliable", "datagram"][..]);
    let rate = proptest::option::of(4.0..6.7_f64);
    let sizes = (200_u64..1500, 1_u64..6, 0_u64..20, proptest::option::of(1_u64..40));
    (mode, rate, sizes, any::<bool>(), 0.0..0.2_f64, 0.01..0.5_f64).prop_map(
        |(mode, rate, (bytes, copies, words, acks), both, hold_s, timeout_s)| {
            let parity = if words % 3 == 2 { "fec_share" } else { "fec_words" };
            let amount = if words % 3 == 2 { json!(f64::from(words as u32) / 25.0) } else { json!(words) };
            let mut config = json!({
                "kind": "aerotp",
                "mode": mode,
                "packet_bytes": bytes,
                "copies": 1 + copies / 4,
                "mack_timeout_s": timeout_s,
                parity: amount,
                "hold_time_s": if both { hold_s } else { 0.0 },
                "opens": if both { "both" } else { "sender" },
                // Without a rate, everything is sent at once, and a link with overtaking handles each packet
                // separately.
                "receive_buffer_bytes": 200_000,
            });
            if let Some(exponent) = rate {
                config["rate_bps"] = 10_f64.powf(exponent).into();
            }
            if bytes % 3 == 0 && ["quasi-reliable", "unreliable"].contains(&mode) {
                let other = if mode == "unreliable" { "quasi-reliable" } else { "unreliable" };
                config["mode_changes"] =
                    json!([{ "at_s": hold_s * 10.0, "mode": other }, { "at_s": hold_s * 10.0 + 1.0, "mode": mode }]);
            }
            if bytes % 4 == 1 && mode != "datagram" {
                config["rate_control"] = json!(if bytes % 8 == 1 { "learnt" } else { "friendly" });
            }
            if words % 4 == 1 {
                config["mack_parity"] = (words % 8 == 1).into();
            }
            if let Some(acks) = acks {
                config["acks_per_mack"] = acks.into();
            }
            without_idle_keys(config)
        },
    )
}

fn flows() -> impl Strategy<Value = Value> {
    let bytes = || (0.0..5.5_f64).prop_map(|exponent| 10_f64.powf(exponent).round());
    let traffic = prop_oneof![
        Just(json!({ "kind": "bulk" })),
        bytes().prop_map(|bytes| json!({ "kind": "file", "bytes": bytes })),
        (3.0..6.0_f64, 50_u64..3000, proptest::option::of(bytes())).prop_map(|(exponent, payload_bytes, bytes)| {
            let mut cbr = json!({ "kind": "cbr", "rate_bps": 10_f64.powf(exponent), "payload_bytes": payload_bytes });
            if let Some(bytes) = bytes {
                cbr["bytes"] = bytes.into();
            }
            cbr
        }),
        vec((0.0..5.0_f64, bytes()), 1..4).prop_map(|list| {
            let list: Vec<Value> = list.iter().map(|(at_s, bytes)| json!({ "at_s": at_s, "bytes": bytes })).collect();
            json!({ "kind": "transfers", "list": list })
        }),
        (0.1..3.0_f64, bytes())
            .prop_map(|(rate_per_s, bytes)| json!({ "kind": "transfers", "rate_per_s": rate_per_s, "bytes": bytes })),
    ];
    (traffic, 1_u64..4, 0.0..0.9_f64, 0.0..1.0_f64, 0_u64..8).prop_map(|(traffic, count, start_s, start_spread_s, class)| {
        json!({ "traffic": traffic, "count": count, "start_s": start_s, "start_spread_s": start_spread_s, "class": class })
    })
}

/// Least delay of [`a_delay`].
pub(crate) const LEAST_DELAY_S: f64 = 0.02;

fn a_rate() -> String {
    series("a-rate", "rate", "rate_bps", &[(0.0, 1e6), (0.5, 0.0), (0.7, 3e5), (2.0, 2e6)], 3.0)
}

fn a_delay() -> String {
    series("a-delay", "delay", "delay_s", &[(0.0, 0.2), (0.4, LEAST_DELAY_S), (1.1, 0.1), (1.2, 0.05)], 1.5)
}

fn some_losses() -> String {
    let lost: Vec<bool> = (0..500_u32).map(|i| i % 17 == 3 || (i / 10) % 20 == 7).collect();
    losses("some-losses", &lost)
}

fn some_bit_errors() -> String {
    let position: Vec<u64> = (0..400_u64).map(|i| i * 30_011 + i * i % 97).collect();
    bit_errors("some-bit-errors", &position, 12_100_000)
}
