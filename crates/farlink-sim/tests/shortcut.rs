//! Handling trains of packets in one step, and data in order where it arrives, changes nothing: a run that handles every packet
//! separately gives the same result.

use crate::common;
use crate::common::random::{
    ack_timeout, aerotp, arq, bbr, controls, cubic, scenarios, scenarios_over, stp, tcp, tcp_of, without_idle_keys,
};
use crate::common::{once, setup};
use farlink_core::endpoint::Probe;
use farlink_core::{Ecn, Packet, Time};
use farlink_sim::engine::{RunResult, Setup, Tracer, simulate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Makes the engine use the long way for every packet, as for a capture, and ignores them.
struct EveryPacket;

impl Tracer for EveryPacket {
    fn packet<P: Packet + 'static>(&mut self, _now: Time, _direction: usize, _flow: u32, _packet: &P, _ecn: Ecn) {}
    fn probe(&mut self, _now: Time, _flow: u32, _probe: impl FnOnce() -> Probe) {}
}

fn packet_by_packet(setup: &Setup, seed: u64) -> RunResult {
    simulate(setup, seed, 0, &mut EveryPacket, &|| false).expect("the run is not stopped")
}

fn check(scenario: &Value, seed: u64) -> Result<(), TestCaseError> {
    let setup = setup(scenario);
    let (short, long) = (once(&setup, seed), packet_by_packet(&setup, seed));
    prop_assert_eq!(short.end, long.end);
    prop_assert_eq!(short.return_bytes, long.return_bytes);
    prop_assert_eq!(short.peak_queue_bytes, long.peak_queue_bytes);
    prop_assert_eq!(short.flows.len(), long.flows.len());
    for (short, long) in short.flows.iter().zip(&long.flows) {
        // Every counter, delay and bucket of the histogram.
        prop_assert_eq!(format!("{short:?}"), format!("{long:?}"));
    }
    Ok(())
}

/// Settings with long trains: few flows, few errors, queues that seldom overflow.
fn calm() -> impl Strategy<Value = Value> {
    let link = (
        5.0..7.5_f64,
        0.0..0.3_f64,
        proptest::option::of(5_u64..400),
        5.0..9.0_f64,
        proptest::option::of(4.0..6.0_f64),
    );
    let traffic = prop_oneof![
        3 => Just(json!({ "kind": "bulk" })),
        1 => (4.0..6.5_f64).prop_map(|exponent| json!({ "kind": "file", "bytes": 10_f64.powf(exponent).round() })),
    ];
    let marks = proptest::option::of(1_u64..60);
    let switches = (any::<[bool; 3]>(), ack_timeout());
    (link, tcp(), traffic, 1_u64..3, switches, select(&[0.0, 0.0, 1.5][..]), marks).prop_map(
        |(
            (rate, delay_s, queue, errors, back),
            mut transport,
            traffic,
            count,
            ([delayed_ack, handshake, is_back_lossy], ack_timeout),
            warmup_s,
            marks,
        )| {
            transport["delayed_ack"] = delayed_ack.into();
            transport["delayed_ack_timeout_s"] = ack_timeout;
            transport["handshake"] = handshake.into();
            transport["timestamps"] = false.into();
            transport["receive_window_segments"] = Value::Null;
            transport.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            let transport = without_idle_keys(transport);
            let errors = json!({ "kind": "ber", "ber": 10_f64.powf(-errors) });
            let mut link =
                json!({ "rate_bps": 10_f64.powf(rate), "delay_s": delay_s, "channel": errors.clone(), "return": {} });
            if let Some(packets) = queue {
                link["queue_packets"] = packets.into();
            }
            if let Some(threshold) = marks.filter(|&threshold| queue.is_none_or(|queue| threshold < queue)) {
                link["ecn_threshold_packets"] = threshold.into();
            }
            if let Some(rate) = back {
                link["return"]["rate_bps"] = 10_f64.powf(rate).into();
            }
            if is_back_lossy {
                link["return"]["channel"] = errors;
            }
            json!({
                "duration_s": 20,
                "measure": { "warmup_s": warmup_s },
                "link": link,
                "transport": { "tcp": transport },
                "flow": { "data": { "transport": "tcp", "traffic": traffic, "count": count, "start_spread_s": 0.5 } },
            })
        },
    )
}

/// Settings with long trains of reports: single losses and bursts, with many segments behind them; lost reports, marks,
/// pacing, and pauses between transfers of whole segments.
fn repairs() -> impl Strategy<Value = Value> {
    let errors = prop_oneof![
        2 => (5.0..6.5_f64).prop_map(|exponent| json!({ "kind": "ber", "ber": 10_f64.powf(-exponent) })),
        1 => (1e-3..1e-2_f64, 0.3..1.0_f64).prop_map(|(leave, back)| {
            json!({ "kind": "gilbert-elliott", "p_good_to_bad": leave, "p_bad_to_good": back, "loss_bad": 1.0 })
        }),
    ];
    let reports = proptest::option::of(0.0..0.2_f64);
    let queue = proptest::option::of((5_u64..200, proptest::option::of(0.0..1.0_f64)));
    let link = (5.0..7.0_f64, 0.05..0.3_f64, errors, reports, queue);
    let transport =
        (select(&["reno", "cubic", "none"][..]), 8_u64..200, 1_u64..6, any::<[bool; 4]>(), 0_u32..4, ack_timeout());
    let transfers = vec((0.0..20.0_f64, 1_u64..400), 2..30).prop_map(|list| {
        let one = |(at_s, segments)| json!({ "at_s": at_s, "bytes": 1460 * segments });
        json!({ "kind": "transfers", "list": list.into_iter().map(one).collect::<Vec<Value>>() })
    });
    let traffic =
        prop_oneof![Just(json!({ "kind": "file", "bytes": 3e6 })), Just(json!({ "kind": "bulk" })), transfers,];
    (link, transport, traffic).prop_map(
        |(
            (rate, delay_s, errors, reports, queue),
            (control, window, threshold, [prr, dsack, delayed_ack, limited], pacing, ack_timeout),
            traffic,
        )| {
            let mut link = json!({ "rate_bps": 10_f64.powf(rate), "delay_s": delay_s, "channel": errors });
            if let Some(loss) = reports {
                link["return"] = json!({ "channel": { "kind": "loss", "loss": loss } });
            }
            if let Some((packets, mark)) = queue {
                link["queue_packets"] = packets.into();
                if let Some(part) = mark {
                    link["ecn_threshold_packets"] = (part * (packets - 1) as f64).max(1.0).floor().into();
                }
            }
            let sack = json!({
                "kind": "tcp",
                "variant": "sack",
                "congestion_control": control,
                "max_window_segments": window,
                "duplicate_ack_threshold": threshold,
                "prr": prr && control != "none",
                "dsack": dsack,
                "delayed_ack": delayed_ack,
                "delayed_ack_timeout_s": ack_timeout,
                "limited_transmit": limited,
                "ecn": control != "none" && queue.is_some_and(|(_, mark)| mark.is_some()),
                "pacing": pacing == 0,
            });
            json!({
                "duration_s": 100,
                "link": link,
                "transport": { "sack": without_idle_keys(sack) },
                "flow": { "data": { "transport": "sack", "traffic": traffic } },
            })
        },
    )
}

/// AeroTP over one link, mostly with data in order, which endpoints absorb.
fn telemetry() -> impl Strategy<Value = Value> {
    let errors = prop_oneof![
        3 => (4.5..8.0_f64).prop_map(|exponent| json!({ "kind": "ber", "ber": 10_f64.powf(-exponent) })),
        1 => (0.0..0.05_f64).prop_map(|loss| json!({ "kind": "loss", "loss": loss })),
    ];
    let link = (5.0..6.3_f64, 0.0..0.3_f64, errors, proptest::option::of(0.0..0.1_f64));
    let traffic = prop_oneof![
        (4.0..6.0_f64).prop_map(|exponent| json!({ "kind": "file", "bytes": 10_f64.powf(exponent).round() })),
        (4.0..5.5_f64, 100_u64..2000).prop_map(|(exponent, payload_bytes)| {
            json!({ "kind": "cbr", "rate_bps": 10_f64.powf(exponent), "payload_bytes": payload_bytes })
        }),
    ];
    (link, aerotp(), traffic, 1_u64..3, select(&[0.0, 0.0, 1.5][..])).prop_map(
        |((rate, delay_s, errors, reports), transport, traffic, count, warmup_s)| {
            let mut link = json!({ "rate_bps": 10_f64.powf(rate), "delay_s": delay_s, "channel": errors });
            if let Some(loss) = reports {
                link["return"] = json!({ "channel": { "kind": "loss", "loss": loss } });
            }
            json!({
                "duration_s": 20,
                "measure": { "warmup_s": warmup_s },
                "link": link,
                "transport": { "aerotp": transport },
                "flow": { "data": { "transport": "aerotp", "traffic": traffic, "count": count, "start_spread_s": 0.5 } },
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::cases(400)))]

    #[test]
    fn trains_change_nothing_over_calm_links(scenario in calm(), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn trains_change_nothing_while_losses_are_repaired(scenario in repairs(), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn absorbed_data_changes_nothing(scenario in telemetry(), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn trains_change_nothing_in_any_scenario(scenario in scenarios(), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn trains_change_nothing_with_rack(scenario in scenarios_over(tcp_of(&["rack"], controls())), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn trains_change_nothing_with_cubic(
        scenario in scenarios_over(tcp_of(&["newreno", "sack", "rack"], cubic())), seed in 0_u64..1000,
    ) {
        check(&scenario, seed)?;
    }

    #[test]
    fn trains_change_nothing_with_bbr(scenario in scenarios_over(tcp_of(&["sack", "rack"], bbr())), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn absorbing_changes_nothing_over_aerotp(scenario in scenarios_over(aerotp()), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn a_capture_changes_nothing_over_arq(scenario in scenarios_over(arq()), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }

    #[test]
    fn a_capture_changes_nothing_over_stp(scenario in scenarios_over(stp()), seed in 0_u64..1000) {
        check(&scenario, seed)?;
    }
}
