//! Random bundles: every packet has one outcome, whatever their lines do.

use proptest::prelude::*;

use super::*;

/// When the last of `packets` packets of 1500 bytes, all queued at the start, is delivered, and the number of
/// fragments.
fn drained(config: &Value, of: &[(f64, f64)], packets: usize) -> (f64, f64) {
    let mut bundle = bundle(config, of, QueueLimit::Unlimited, 1);
    let at = last(&carry(&mut bundle, &vec![(0, 1_500); packets], Time::NEVER));
    (at, bundle.counts().fragments as f64)
}

const SCHEDULERS: &[&str] = &["round-robin", "shortest-queue", "earliest-delivery", "redundant", "drop-aware"];

fn configs() -> impl Strategy<Value = Value> {
    let shape = (proptest::sample::select(SCHEDULERS), any::<bool>(), 0..3_usize, 1_u64..5, any::<bool>());
    let calls = (
        1.0..200.0_f64,
        0.5..50.0_f64,
        0.0..0.5_f64,
        proptest::sample::select(&["none", "ends-bundle", "stays-lost"][..]),
        proptest::option::of((
            0.1..30.0_f64,
            proptest::sample::select(&["detection", "detection_near", "detection_far"][..]),
        )),
    );
    let arq = proptest::option::of((10_u64..200, 1_u64..8, 0.0..0.3_f64, proptest::option::of(1_u64..4)));
    (shape, calls, arq, proptest::option::of(0.1..20.0_f64), any::<bool>()).prop_map(
        |(
            (scheduler, cut, header, line_packets, requeues),
            (up, redial, failure, primary, late),
            arq,
            patience,
            dials,
        )| {
            let header = ["long", "short", "none"][if cut || scheduler == "redundant" { header % 2 } else { header }];
            let mut config = json!({
                "lines": 4, "scheduler": scheduler, "header": header, "line_packets": line_packets,
                "packets": if cut && scheduler != "redundant" { "fragmented" } else { "whole" },
                "on_drop": if requeues { "requeue" } else { "lose" },
                "calls": {
                    "up": { "distribution": "exponential", "mean_s": up },
                    "redial": { "distribution": "exponential", "mean_s": redial },
                    "failure": failure, "retry_s": 1, "attempts": 3, "blocked_s": 60, "primary": primary,
                    "starts_dialling": dials,
                },
            });
            if let Some((value_s, of)) = late {
                config["calls"][of] = json!({ "distribution": "constant", "value_s": value_s });
            }
            if let Some((frame_bytes, window, loss, attempts)) = arq {
                config["arq"] = json!({ "frame_bytes": frame_bytes, "window_frames": window, "loss": loss });
                if let Some(attempts) = attempts {
                    config["arq"]["attempts"] = attempts.into();
                }
            }
            if let Some(patience) = patience.filter(|_| header != "none") {
                config["reorder_timeout_s"] = patience.into();
            }
            config
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_packet_has_exactly_one_outcome(
        config in configs(), seed: u64, lines in proptest::collection::vec((1e3..1e5_f64, 0.0..2.0_f64), 1..6),
        sizes in proptest::collection::vec((0_u64..3_000, 1_u32..1_500), 1..120), queue in 1_u64..20,
    ) {
        let mut at = 0;
        let packets: Vec<(u64, u32)> = sizes.iter().map(|&(gap, bytes)| { at += gap; (at, bytes) }).collect();
        let mut bundle = bundle(&config, &lines, QueueLimit::Packets(queue), seed);
        let end = Time::from_millis(at) + Time::from_secs(5_000);
        let log = carry(&mut bundle, &packets, end);
        let mut seen: Vec<usize> = log.iter().map(|entry| entry.1).collect();
        seen.sort_unstable();
        prop_assert!(seen.windows(2).all(|two| two[0] < two[1]), "twice: {:?}", seen);
        let out = delivered(&log);
        let is_ordered = config["header"] != "none" && config["on_drop"] == "lose";
        prop_assert!(!is_ordered || out.windows(2).all(|two| two[0] < two[1]), "{:?}", out);
        // No packet is faster than the fastest line, and the log is in order of time.
        for &(at, number, outcome) in &log {
            let (ms, bytes) = packets[number];
            let fastest = lines.iter().map(|&(rate, delay)| f64::from(bytes) * 8.0 / rate + delay).fold(f64::INFINITY, f64::min);
            let is_cut = config["packets"] == "fragmented";
            let waited = at.as_secs_f64() - ms as f64 / 1e3;
            prop_assert!(outcome != Outcome::Delivered || is_cut || waited >= fastest - 1e-9, "{} {}", waited, fastest);
        }
        prop_assert!(log.windows(2).all(|two| two[0].0 <= two[1].0));
        // Every accepted packet ends, except for those behind a missing number that the receiver never gives up.
        let availability = bundle.availability(end);
        let total = end.as_secs_f64();
        prop_assert!(availability.all_s <= availability.any_s + 1e-6 && availability.any_s <= total + 1e-6);
        prop_assert!((0.0..=total * lines.len() as f64 + 1e-6).contains(&availability.lines_s));
    }

    /// What lines have not carried is sent again: every accepted packet is delivered once, with old numbers or new ones,
    /// even without a timer. The lines are fast enough for a packet to get through before they drop. Where nothing is acknowledged,
    /// nothing is in flight here when a line drops, and drops are noticed at once; what the receiver holds is lost when the last line
    /// drops.
    #[test]
    fn requeues_lose_nothing(
        config in configs(), seed: u64, is_plain: bool,
        lines in proptest::collection::vec((12e3..1e5_f64, 0.0..0.5_f64), 1..6),
        sizes in proptest::collection::vec((0_u64..3_000, 1_u32..1_500), 1..120),
    ) {
        let mut config = config;
        config["on_drop"] = "requeue".into();
        config["reorder_fragments"] = 100_000.into();
        for key in ["reorder_timeout_s", "arq"] {
            config.as_object_mut().unwrap().remove(key);
        }
        if is_plain && config["header"] != "none" {
            config["peer"] = "rfc1990".into();
        }
        let mut lines = lines;
        if is_plain || config["header"] == "none" {
            lines.iter_mut().for_each(|line| line.1 = 0.0);
            config["calls"].as_object_mut().unwrap().retain(|key, _| !key.starts_with("detection"));
        }
        let mut at = 0;
        let packets: Vec<(u64, u32)> = sizes.iter().map(|&(gap, bytes)| { at += gap; (at, bytes) }).collect();
        let mut bundle = bundle(&config, &lines, QueueLimit::Unlimited, seed);
        let log = carry(&mut bundle, &packets, Time::from_millis(at) + Time::from_secs(20_000));
        let is_ordered = delivered(&log).is_sorted();
        let mut ended: Vec<usize> = log.iter().map(|end| end.1).collect();
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..packets.len()).collect::<Vec<_>>());
        let end = Time::from_millis(at) + Time::from_secs(20_000);
        let is_interrupted = bundle.availability(end).any_s < end.as_secs_f64() - 1e-6;
        let may_lose = is_plain && config["header"] != "none" && is_interrupted;
        let is_lost = |outcome| outcome != Outcome::Delivered && !(may_lose && outcome == Outcome::Lost);
        prop_assert!(!log.iter().any(|end| is_lost(end.2)), "{:?}", log);
        // With old numbers, packets stay in order.
        prop_assert!(is_ordered || is_plain || config["header"] == "none");
    }

    /// Recorded drops that each end notices in its own time, with every scheduler, receiver and peer: each packet ends once at
    /// most, in order if nothing is sent again. What was sent long after the last drop arrives, unless the sender does not know
    /// that the receiver is that of Linux, which may wait for a line that it never uses.
    #[test]
    fn ends_that_notice_late_confuse_nobody(
        (scheduler, rule) in (proptest::sample::select([SCHEDULERS, &["linux"]].concat()), 0..6_usize), seed: u64,
        downs in proptest::collection::vec(proptest::collection::vec((1.0..40.0_f64, 0.5..40.0_f64), 0..5), 2..6),
        late in proptest::array::uniform2(proptest::option::of(0.1..60.0_f64)),
        sizes in proptest::collection::vec((0_u64..3_000, 1_u32..1_400), 1..100),
    ) {
        let mut last_s: f64 = 0.0;
        let schedule: Vec<Vec<[f64; 2]>> = downs.iter().map(|downs| {
            let mut at = 0.0;
            downs.iter().map(|&(up_s, down_s)| { let begin = at + up_s; at = begin + down_s; last_s = last_s.max(at); [begin, at] }).collect()
        }).collect();
        let mut config = json!({ "lines": downs.len(), "scheduler": scheduler, "calls": { "schedule": schedule } });
        for (late, key) in late.iter().zip(["detection_near", "detection_far"]) {
            if let Some(value_s) = late {
                config["calls"][key] = json!({ "distribution": "constant", "value_s": value_s });
            }
        }
        let rules = [("lose", "farlink", "rfc1990"), ("lose", "farlink", "linux"), ("requeue", "farlink", "rfc1990"),
            ("requeue", "rfc1990", "rfc1990"), ("requeue", "rfc1990", "linux"), ("requeue", "linux", "linux")];
        let (on_drop, peer, receiver) = if scheduler == "linux" { rules[rule % 2] } else { rules[rule] };
        for (key, value) in [("on_drop", on_drop), ("peer", peer), ("receiver", receiver)] {
            config[key] = value.into();
        }
        let lines = vec![LINE; downs.len()];
        let mut at = 0;
        let mut packets: Vec<(u64, u32)> = sizes.iter().map(|&(gap, bytes)| { at += gap; (at, bytes) }).collect();
        // A minute after everything, a packet every two seconds.
        let calm = at.max((last_s * 1e3) as u64) + 900_000;
        packets.extend((0..20).map(|n| (calm + 2_000 * n, 800)));
        let mut bundle = bundle(&config, &lines, QueueLimit::Unlimited, seed);
        let log = carry(&mut bundle, &packets, Time::from_millis(calm) + Time::from_secs(3_000));
        let mut seen: Vec<usize> = log.iter().map(|entry| entry.1).collect();
        seen.sort_unstable();
        prop_assert!(seen.windows(2).all(|two| two[0] < two[1]), "twice: {:?}", seen);
        let out = delivered(&log);
        prop_assert!(on_drop == "requeue" || out.is_sorted(), "{:?}", out);
        let is_known = receiver != "linux" || scheduler == "linux" || peer == "linux";
        // The last packets have nothing after them.
        let of_calm = out.iter().filter(|&&number| (sizes.len()..sizes.len() + 10).contains(&number)).count();
        prop_assert!(of_calm == 10 || !is_known, "{}: {:?}", config, log.iter().filter(|entry| entry.1 >= sizes.len()).collect::<Vec<_>>());
    }

    /// Every packet has exactly one outcome soon after traffic ends, whatever rule the receiver uses.
    #[test]
    fn every_packet_ends_soon_after_the_last_arrival(
        config in configs(), seed: u64, is_plain: bool, mrru in 100_u64..1_500, held in 1_u64..40,
        sizes in proptest::collection::vec((0_u64..3_000, 1_u32..1_500), 1..120),
    ) {
        let mut config = config;
        config["mrru_bytes"] = mrru.into();
        config["reorder_fragments"] = held.into();
        if is_plain && config["on_drop"] == "requeue" && config["header"] != "none" {
            config["peer"] = "rfc1990".into();
        }
        if config["header"] != "none" {
            config["reorder_timeout_s"] = 30.into();
        }
        // Requeued packets arrive only if calls last longer than they need, and if the ARQ does not give them up:
        // frames of ten bytes, one at a time, take minutes.
        if config["on_drop"] == "requeue" {
            let up_s = config["calls"]["up"]["mean_s"].as_f64().unwrap();
            config["calls"]["up"]["mean_s"] = up_s.max(1000.0).into();
            if let Some(arq) = config.get_mut("arq") {
                arq.as_object_mut().unwrap().remove("attempts");
            }
        }
        let mut at = 0;
        let packets: Vec<(u64, u32)> = sizes.iter().map(|&(gap, bytes)| { at += gap; (at, bytes) }).collect();
        let mut bundle = bundle(&config, &[LINE; 4], QueueLimit::Unlimited, seed);
        let log = carry(&mut bundle, &packets, Time::from_millis(at) + Time::from_secs(20_000));
        let mut seen: Vec<usize> = log.iter().map(|entry| entry.1).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..packets.len()).collect::<Vec<_>>());
        let is_bounded = config["header"] != "none";
        prop_assert!(delivered(&log).iter().all(|&number| !is_bounded || u64::from(packets[number].1) <= mrru));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Fragments wait for a fast line as whole packets do. Over lines whose rates differ by up to two decades, they are
    /// slower only by their headers and two percent, over enough packets that the end of the last ones, at most half a
    /// second, does not count.
    #[test]
    fn fragments_are_no_slower_than_whole_packets(
        rates in proptest::collection::vec((0.0..2.0_f64, 0.0..2.0_f64), 2..13), least in 1_u64..400, line_packets in 1_u64..11,
        packets in 2_500..3_500_usize,
    ) {
        let of: Vec<(f64, f64)> = rates.iter().map(|&(decades, delay)| (2400.0 * 10_f64.powf(decades), delay)).collect();
        let config = json!({
            "lines": 2, "scheduler": "earliest-delivery", "line_packets": line_packets, "min_fragment_bytes": least,
        });
        let mut fragmented = config.clone();
        fragmented["packets"] = "fragmented".into();
        let ((whole_s, _), (cut_s, fragments)) = (drained(&config, &of, packets), drained(&fragmented, &of, packets));
        // Eight bytes and their escapes for each fragment after the first of a packet.
        let headers = (fragments / packets as f64 - 1.0) * 8.1 / 1_520.0;
        prop_assert!(cut_s <= whole_s * (1.02 + headers), "{} s, whole {} s, headers {}", cut_s, whole_s, headers);
    }
}
