//! Bundles in virtual time: whatever happens to lines, every packet is delivered once or reported as lost, in order if
//! it has a number, and no faster than the lines can carry it.

use farlink_core::bundle::{BundleConfig, EmulatedBundle, LineConfig, Numbering, OnDrop, Outcome};
use farlink_core::link::QueueLimit;
use farlink_core::{Rng, Time, Virtual};
use serde_json::{Value, json};

mod random;

/// Outcomes of packets: time, packet, and whether it was delivered.
type Log = Vec<(Time, usize, Outcome)>;

/// Lines of a rate in bit/s and a delay in s.
fn lines(config: &BundleConfig, of: &[(f64, f64)]) -> Vec<LineConfig> {
    let mut config = config.clone();
    config.lines = None;
    let member = |&(rate, delay): &(f64, f64)| json!({ "rate_bps": rate, "delay_s": delay });
    config.members = serde_json::from_value(of.iter().map(member).collect()).unwrap();
    let (rate, delay) = (serde_json::from_value(json!(1)).unwrap(), serde_json::from_value(json!(0)).unwrap());
    config.resolve([&rate; 2], &delay).unwrap()
}

fn bundle(config: &Value, of: &[(f64, f64)], limit: QueueLimit, seed: u64) -> EmulatedBundle<Virtual> {
    let config: BundleConfig = serde_json::from_value(config.clone()).unwrap();
    let lines = lines(&config, of);
    config.check(&lines).unwrap();
    let hop = Rng::for_component(seed, 0, "hop");
    EmulatedBundle::new(&config, &lines, limit, Rng::for_component(seed, 0, "hop.forward"), &hop)
}

/// Sends packets of this length at these times (in ms) and runs to the end. Packets that found no room are missing.
fn carry(bundle: &mut EmulatedBundle<Virtual>, packets: &[(u64, u32)], until: Time) -> Log {
    let mut log = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    let mut poll = |bundle: &mut EmulatedBundle<Virtual>, places: &[usize], now: Time| {
        while let Some((place, outcome)) = bundle.poll() {
            log.push((now, places[place as usize], outcome));
        }
    };
    for (number, &(ms, bytes)) in packets.iter().enumerate() {
        let now = Time::from_millis(ms);
        while bundle.poll_timeout() <= now {
            let at = bundle.poll_timeout();
            bundle.handle_timeout(at);
            poll(bundle, &places, at);
        }
        bundle.handle_timeout(now);
        poll(bundle, &places, now);
        if let Some(place) = bundle.send(now, Virtual(bytes)) {
            let place = place as usize;
            places.resize(places.len().max(place + 1), usize::MAX);
            places[place] = number;
        }
    }
    while bundle.poll_timeout() < until {
        let at = bundle.poll_timeout();
        bundle.handle_timeout(at);
        poll(bundle, &places, at);
    }
    log
}

/// A packet of 1000 bytes takes 1 s on a line of 8 kb/s, and a little more for the headers.
const LINE: (f64, f64) = (8e3, 0.5);

fn delivered(log: &Log) -> Vec<usize> {
    log.iter().filter(|entry| entry.2 == Outcome::Delivered).map(|entry| entry.1).collect()
}

/// Packets lost with a call.
fn cut(log: &Log) -> Vec<usize> {
    log.iter().filter(|entry| entry.2 == Outcome::Cut).map(|entry| entry.1).collect()
}

fn last(log: &Log) -> f64 {
    log.last().expect("something arrived").0.as_secs_f64()
}

#[test]
fn eight_lines_carry_eight_times_as_much() {
    let packets = [(0, 1000); 80];
    for (config, header_s) in [
        (json!({ "lines": 8 }), 0.02),
        (json!({ "lines": 8, "header": "none" }), 0.02),
        (json!({ "lines": 8, "packets": "fragmented" }), 0.13),
        (json!({ "lines": 8, "packets": "fragmented", "scheduler": "earliest-delivery" }), 0.13),
    ] {
        let mut one = bundle(&config, &[LINE; 1], QueueLimit::Unlimited, 1);
        let mut eight = bundle(&config, &[LINE; 8], QueueLimit::Unlimited, 1);
        let alone = last(&carry(&mut one, &packets, Time::NEVER));
        let together = last(&carry(&mut eight, &packets, Time::NEVER));
        assert!(alone > 80.5 && alone < 80.5 + 80.0 * header_s, "{config}: {alone}");
        assert!(together > 10.5 && together < 10.5 + 10.0 * header_s, "{config}: {together}");
    }
}

/// A dropped call loses a number, and the reconnected line has delivered none. Packets behind the gap are delivered
/// after the delay of a line and twice its time for the longest packet, unless the scenario sets another time.
#[test]
fn the_wait_for_a_number_lost_with_a_call_is_limited() {
    let waited_s = |more: Value, mrru_bytes: f64| {
        let calls = json!({ "schedule": [[[1.0, 1.5]], []] });
        let mut config = json!({ "lines": 2, "mrru_bytes": mrru_bytes, "calls": calls, "on_drop": "lose" });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let log = carry(&mut bundle(&config, &[LINE; 2], QueueLimit::Unlimited, 1), &[(0, 1000); 2], Time::NEVER);
        assert!(delivered(&log).len() <= 1 && cut(&log) == [0]);
        log.iter().find(|entry| entry.2 == Outcome::Delivered).map(|entry| entry.0.as_secs_f64() - 1.52)
    };
    let is_near =
        |wait_s: Option<f64>, expected_s: f64| wait_s.is_some_and(|wait_s| (wait_s - expected_s).abs() < 0.05);
    assert!(is_near(waited_s(json!({}), 1500.0), 0.5 + 2.0 * 1.5), "{:?}", waited_s(json!({}), 1500.0));
    assert!(is_near(waited_s(json!({}), 3000.0), 0.5 + 2.0 * 3.0));
    let arq = json!({ "arq": { "frame_bytes": 100, "window_frames": 10, "loss": 0, "loss_again": 0.5 } });
    // 11 frames arrive 0.08 s later than the packet alone; the longest packet has 16 frames.
    assert!(is_near(waited_s(arq, 1500.0), 0.08 + 0.5 + 2.0 * 1.6));
    assert!(is_near(waited_s(json!({ "reorder_timeout_s": 7 }), 1500.0), 7.0));
    assert_eq!(waited_s(json!({ "reorder_timeout_s": "never" }), 1500.0), None);
}

/// One packet in fragments takes an eighth of the time to send.
#[test]
fn fragments_shorten_the_delay_of_one_packet() {
    let time = |config: &Value| {
        last(&carry(&mut bundle(config, &[LINE; 8], QueueLimit::Unlimited, 1), &[(0, 1000)], Time::NEVER))
    };
    let whole = time(&json!({ "lines": 8 }));
    let cut = time(&json!({ "lines": 8, "packets": "fragmented" }));
    assert!(whole > 1.5 && whole < 1.53, "{whole}");
    assert!(cut > 0.625 && cut < 0.64, "{cut}");
}

/// A fast line and a slow one: numbered packets are delivered in order, others as they arrive.
#[test]
fn numbers_keep_the_order() {
    let of = [(80e3, 0.1), (8e3, 1.0)];
    let packets: Vec<(u64, u32)> = (0..20).map(|n| (n * 100, 1000)).collect();
    let in_order: Vec<usize> = (0..20).collect();
    let mut numbered = bundle(&json!({ "lines": 2 }), &of, QueueLimit::Unlimited, 1);
    assert_eq!(delivered(&carry(&mut numbered, &packets, Time::NEVER)), in_order);
    assert!(numbered.counts().out_of_order > 0);
    let mut bare = bundle(&json!({ "lines": 2, "header": "none" }), &of, QueueLimit::Unlimited, 1);
    let out = delivered(&carry(&mut bare, &packets, Time::NEVER));
    assert!(out.len() == 20 && out != in_order && bare.counts().out_of_order > 0, "{out:?}");
}

/// Round robin waits for the slow line's packets; the scheduler that looks ahead hardly uses that line.
#[test]
fn earliest_delivery_does_not_use_a_slow_line() {
    let of = [(80e3, 0.1), (8e3, 2.0)];
    let packets: Vec<(u64, u32)> = (0..50).map(|n| (n * 90, 1000)).collect();
    let mean_wait = |scheduler: &str| {
        let mut bundle = bundle(&json!({ "lines": 2, "scheduler": scheduler }), &of, QueueLimit::Unlimited, 1);
        let log = carry(&mut bundle, &packets, Time::NEVER);
        log.iter().map(|&(at, number, _)| at.as_secs_f64() - packets[number].0 as f64 / 1e3).sum::<f64>() / 50.0
    };
    let (turns, shortest, earliest) =
        (mean_wait("round-robin"), mean_wait("shortest-queue"), mean_wait("earliest-delivery"));
    assert!(earliest < 0.5 && earliest < shortest && earliest < turns, "{turns} {shortest} {earliest}");
}

/// Linux cannot send packets again, and without numbers the missing ones are unknown.
#[test]
fn packets_of_a_dropped_line_are_sent_again_if_both_ends_can() {
    let calls = json!({ "calls": { "schedule": [[], []] } });
    let cases = [
        (json!({}), OnDrop::Lose),
        (calls.clone(), OnDrop::Requeue),
        (json!({ "header": "short" }), OnDrop::Requeue),
        (json!({ "peer": "rfc1990" }), OnDrop::Requeue),
        (json!({ "header": "none" }), OnDrop::Lose),
        (json!({ "scheduler": "linux" }), OnDrop::Lose),
        (json!({ "receiver": "linux" }), OnDrop::Lose),
        (json!({ "on_drop": "duplicate-acks" }), OnDrop::DuplicateAcks),
    ];
    for (place, (keys, expected)) in cases.into_iter().enumerate() {
        let mut config = json!({ "lines": 2 });
        let calls = if place == 0 { json!({}) } else { calls.clone() };
        for part in [calls, keys] {
            config.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        }
        let read: BundleConfig = serde_json::from_value(config.clone()).unwrap();
        read.check(&lines(&read, &[LINE; 2])).unwrap();
        assert_eq!(read.what_on_drop(), expected, "{config}");
    }
}

/// Line 0 drops at 2.2 s. It holds three packets, including the one being sent, and one more is in flight: these are
/// lost.
#[test]
fn a_drop_loses_or_requeues_the_packets_of_its_line() {
    let calls = json!({ "schedule": [[[2.2, 100]], []] });
    let packets = [(0, 1000); 12];
    let mut loses =
        bundle(&json!({ "lines": 2, "calls": calls, "on_drop": "lose" }), &[LINE; 2], QueueLimit::Unlimited, 1);
    let log = carry(&mut loses, &packets, Time::from_secs(90));
    // The line held packets 2 (sent, and arriving at 2.54 s), 4, 6 and 8.
    assert_eq!(cut(&log), [2, 4, 6, 8]);
    assert!(delivered(&log).windows(2).all(|two| two[0] < two[1]));
    let mut requeues =
        bundle(&json!({ "lines": 2, "calls": calls, "on_drop": "requeue" }), &[LINE; 2], QueueLimit::Unlimited, 1);
    let log = carry(&mut requeues, &packets, Time::from_secs(90));
    let mut out = delivered(&log);
    out.sort_unstable();
    assert_eq!(out, (0..12).collect::<Vec<_>>());
    assert_eq!(requeues.counts().requeued, 4);
}

/// After many drops, the queue accepts as many packets as before.
#[test]
fn requeued_packets_free_their_room_in_the_queue() {
    let drops: Vec<[f64; 2]> = (0..10).map(|n| [10.0 * f64::from(n) + 2.2, 10.0 * f64::from(n) + 4.0]).collect();
    let of = |config: Value| bundle(&config, &[LINE; 2], QueueLimit::Bytes(10_000), 1);
    let calls = json!({ "schedule": [drops, []] });
    let mut bundle = of(json!({ "lines": 2, "calls": calls, "on_drop": "requeue", "peer": "farlink" }));
    let burst = [(200_000, 1000); 40];
    let before: Vec<(u64, u32)> = (0..140).map(|n| (750 * n, 1000)).collect();
    let log = carry(&mut bundle, &[&before[..], &burst].concat(), Time::from_secs(400));
    assert!(bundle.counts().requeued >= 10, "{:?}", bundle.counts());
    let taken = carry(&mut of(json!({ "lines": 2 })), &burst, Time::NEVER).len();
    assert!((12..40).contains(&taken), "{taken}");
    assert_eq!(delivered(&log).len(), before.len() + taken);
}

/// A line accepts packets for 4 s after its call has dropped, a packet a second. These are lost as well, or sent again
/// later over other lines.
#[test]
fn until_a_drop_is_noticed_more_packets_are_lost() {
    let duration = |value_s: f64| json!({ "distribution": "constant", "value_s": value_s });
    let calls = json!({ "up": duration(2.2), "redial": duration(500.0), "detection": duration(4.0) });
    let packets: Vec<(u64, u32)> = (0..12).map(|n| (500 * n, 1000)).collect();
    let config = |on_drop: &str| json!({ "lines": 1, "calls": calls, "on_drop": on_drop });
    let mut loses = bundle(&config("lose"), &[LINE], QueueLimit::Unlimited, 1);
    let log = carry(&mut loses, &packets, Time::from_secs(400));
    // One packet has arrived at 1.5 s. At 6.2 s six have been sent and three are held; three wait for a line that is
    // up.
    assert_eq!(delivered(&log), [0]);
    assert_eq!(cut(&log), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(log[1..].iter().all(|entry| entry.0 == Time::from_millis(6_200)), "{log:?}");
    let availability = loses.availability(Time::from_secs(400));
    assert_eq!((availability.any_s, availability.drops), (2.2, 1));
    let mut requeues = bundle(&config("requeue"), &[LINE], QueueLimit::Unlimited, 1);
    let log = carry(&mut requeues, &packets, Time::from_secs(400));
    assert_eq!((delivered(&log), requeues.counts().requeued), (vec![0], 8));
}

/// The receiver waits for a packet of a slow line while no more fragments wait than it can hold.
#[test]
fn a_full_receiver_gives_up_missing_fragments() {
    let of = [(800.0, 0.5), (80e3, 0.5)];
    let lost = |fragments: u64| {
        let config = json!({ "lines": 2, "line_packets": 50, "reorder_fragments": fragments });
        let mut bundle = bundle(&config, &of, QueueLimit::Unlimited, 1);
        let log = carry(&mut bundle, &[(0, 1000); 40], Time::from_secs(1000));
        log.iter().filter(|entry| entry.2 == Outcome::Lost).count()
    };
    assert!(lost(5) > 0);
    assert_eq!(lost(100), 0);
}

/// Kinds of lines have modems and calls of their own: lines of the first kind hold one packet and drop every 2 s, the
/// second is always up.
/// A member's own return rate comes first, then its rate, then the hop's return rate. Each direction sends at its own.
#[test]
fn lines_have_a_rate_in_each_direction() {
    let config: BundleConfig = serde_json::from_value(json!({
        "members": [{}, { "rate_bps": 16e3 }, { "return_rate_bps": 1e3 }, { "rate_bps": 32e3, "return_rate_bps": 8e3 }],
    }))
    .unwrap();
    let [there, back] = [json!(2e3), json!(4e3)].map(|rate| serde_json::from_value(rate).unwrap());
    let delay = serde_json::from_value(json!(0.5)).unwrap();
    let lines = config.resolve([&there, &back], &delay).unwrap();
    let rates: Vec<_> = lines.iter().map(|line| [line.rate.get(), line.return_rate.get()]).collect();
    assert_eq!(rates, [[2e3, 4e3], [16e3, 16e3], [2e3, 1e3], [32e3, 8e3]]);
    let reversed: Vec<LineConfig> = lines.iter().map(|line| line.reversed()).collect();
    assert!(
        reversed
            .iter()
            .zip(&rates)
            .all(|(line, [there, back])| [line.rate.get(), line.return_rate.get()] == [*back, *there])
    );
    for (lines, longest_s) in [(&lines, 0.5 + 8.0 * 1010.0 / 2e3), (&reversed, 0.5 + 8.0 * 1010.0 / 1e3)] {
        let hop = Rng::for_component(1, 0, "hop");
        let rng = Rng::for_component(1, 0, "bundle");
        let mut bundle = EmulatedBundle::<Virtual>::new(&config, lines, QueueLimit::Unlimited, rng, &hop);
        for _ in lines {
            bundle.send(Time::ZERO, Virtual(1000)).unwrap();
        }
        let mut last = Time::ZERO;
        while bundle.poll_timeout() < Time::NEVER {
            last = bundle.poll_timeout();
            bundle.handle_timeout(last);
            while bundle.poll().is_some() {}
        }
        assert!((last.as_secs_f64() - longest_s).abs() < 0.1, "{last:?} {longest_s}");
    }
}

#[test]
fn members_have_settings_of_their_own() {
    let duration = |value_s: f64| json!({ "distribution": "constant", "value_s": value_s });
    let config: BundleConfig = serde_json::from_value(json!({
        "members": [{ "count": 2, "modem_bytes": 1100, "up": duration(2.0) }, { "rate_bps": 16e3 }],
        "calls": { "up": duration(1e6), "redial": duration(3.0) },
        "on_drop": "lose",
    }))
    .unwrap();
    let rate = serde_json::from_value(json!(8e3)).unwrap();
    let lines = config.resolve([&rate; 2], &serde_json::from_value(json!(0.5)).unwrap()).unwrap();
    config.check(&lines).unwrap();
    let hop = Rng::for_component(1, 0, "hop");
    let mut bundle =
        EmulatedBundle::new(&config, &lines, QueueLimit::Unlimited, Rng::for_component(1, 0, "forward"), &hop);
    let log = carry(&mut bundle, &[(0, 1000); 8], Time::from_secs(4));
    // Each slow line holds one packet, the fast one three; the others wait in the queue. At 2 s four have left the fast
    // line, and one from each slow line is in flight.
    assert_eq!(cut(&log).len(), 2, "{log:?}");
    let availability = bundle.availability(Time::from_secs(4));
    assert_eq!((availability.all_s, availability.any_s, availability.lines_s, availability.drops), (2.0, 4.0, 8.0, 2));
}

/// Four slow lines and a line four times as fast: none may be idle while packets wait. Waiting for the fast line pays
/// only if it would deliver the packets behind as well.
#[test]
fn slow_lines_are_used_while_packets_are_queued() {
    let of = [(8e3, 0.5), (8e3, 0.5), (8e3, 0.5), (8e3, 0.5), (32e3, 0.5)];
    let packets = [(0, 1000); 400];
    for scheduler in ["earliest-delivery", "drop-aware"] {
        for line_packets in 1..4 {
            let calls = json!({ "schedule": [[], [], [], [], []] });
            let config = json!({ "lines": 5, "scheduler": scheduler, "line_packets": line_packets, "calls": calls });
            let mut bundle = bundle(&config, &of, QueueLimit::Unlimited, 1);
            let log = carry(&mut bundle, &packets, Time::NEVER);
            // 400 packets at 8 packets a second, and headers.
            assert!(last(&log) < 53.5, "{scheduler}, {line_packets}: {}", last(&log));
        }
    }
}

/// The same packet is sent over both lines and delivered once, even if one of them drops.
#[test]
fn a_copy_over_another_line_survives_a_drop() {
    let calls = json!({ "schedule": [[[0.7, 100]], []] });
    let config = json!({ "lines": 2, "scheduler": "redundant", "calls": calls });
    let mut copies = bundle(&config, &[LINE; 2], QueueLimit::Unlimited, 1);
    let packets = [(0, 1000); 6];
    assert_eq!(delivered(&carry(&mut copies, &packets, Time::from_secs(90))), (0..6).collect::<Vec<_>>());
    assert_eq!(copies.counts().fragments, 3 * 2 + 3);
}

#[test]
fn a_line_that_drops_often_is_used_less() {
    let drops: Vec<[u64; 2]> = (0..40).map(|n| [10 + 100 * n, 15 + 100 * n]).collect();
    let calls = json!({ "schedule": [drops, []] });
    let packets: Vec<(u64, u32)> = (0..3000).map(|n| (n * 1_100, 1000)).collect();
    let lost = |scheduler: &str| {
        let config = json!({ "lines": 2, "scheduler": scheduler, "calls": calls, "on_drop": "lose" });
        let log = carry(&mut bundle(&config, &[LINE; 2], QueueLimit::Unlimited, 1), &packets, Time::from_secs(5_000));
        cut(&log).len()
    };
    let (turns, aware) = (lost("round-robin"), lost("drop-aware"));
    assert!(turns > 5 && aware * 2 < turns, "{turns} {aware}");
}

/// Lines of 3 packets and a queue of 3: further packets that arrive at once are refused.
#[test]
fn the_queue_has_its_configured_length() {
    let mut bundle = bundle(&json!({ "lines": 2, "line_packets": 3 }), &[LINE; 2], QueueLimit::Packets(3), 1);
    assert_eq!(carry(&mut bundle, &[(0, 1000); 20], Time::NEVER).len(), 9);
    assert_eq!(bundle.counts().peak_waiting_bytes, 3000);
}

/// Section 5.2 of the thesis: a drop loses the packets in the modems and those in flight. Here only one side is
/// modelled.
#[test]
fn buffers_of_modem_and_port_limit_the_packets_on_a_line() {
    let config = json!({ "lines": 1, "line_packets": 100, "modem_bytes": 2048, "serial_bytes": 4096 });
    let mut bundle = bundle(&config, &[LINE; 1], QueueLimit::Packets(1), 1);
    // Six packets of 1,000 bytes with their headers fit into 6,144 bytes less 1,000 for headers and escapes: one is
    // being sent, five wait.
    let log = carry(&mut bundle, &[(0, 1000); 50], Time::NEVER);
    assert_eq!(log.len(), 6 + 1);
}

#[test]
fn packets_longer_than_the_mrru_are_lost() {
    let mut bundle = bundle(&json!({ "lines": 2, "mrru_bytes": 1500 }), &[LINE; 2], QueueLimit::Unlimited, 1);
    let log = carry(&mut bundle, &[(0, 1501), (0, 1500), (0, 1500), (0, 1500)], Time::NEVER);
    assert_eq!(log.iter().filter(|entry| entry.2 == Outcome::Lost).map(|entry| entry.1).collect::<Vec<_>>(), [0]);
    assert_eq!(delivered(&log), [1, 2, 3]);
}

/// Each packet is reported as lost when it arrives, and its slot is reused.
#[test]
fn a_sequence_of_packets_that_are_too_long_frees_every_slot() {
    for cut in ["whole", "fragmented"] {
        let config = json!({ "lines": 2, "mrru_bytes": 1500, "packets": cut });
        let mut bundle = bundle(&config, &[LINE; 2], QueueLimit::Unlimited, 1);
        let packets: Vec<(u64, u32)> = (0..1000).map(|n| (n * 1_000, 1501)).collect();
        let log = carry(&mut bundle, &packets, Time::NEVER);
        assert_eq!((log.len(), delivered(&log).len()), (1000, 0), "{cut}");
        assert_eq!(bundle.poll_timeout(), Time::NEVER);
    }
    // While packets arrive without a pause, no more slots are used than there are packets on lines.
    let mut bundle = bundle(&json!({ "lines": 2, "mrru_bytes": 1000 }), &[LINE; 2], QueueLimit::Unlimited, 1);
    let mut highest = 0;
    for n in 0..1000 {
        let now = Time::from_millis(1_000 * n);
        bundle.handle_timeout(now);
        while bundle.poll().is_some() {}
        highest = highest.max(bundle.send(now, Virtual(1400)).expect("there is room"));
    }
    assert!(highest < 12, "{highest}");
}

/// Line 0 drops with packet 2 in flight, and holds 4, 6 and 8. A farlink peer keeps their places. A peer by RFC 1990 gets new numbers
/// for those that were held, and empty fragments that show that the old ones are lost; nobody knows that packet 2 is. Neither waits
/// for the line, which never comes back.
#[test]
fn requeued_packets_delay_no_others() {
    let calls = json!({ "schedule": [[[2.2, 1e6]], []] });
    let packets = [(0, 1000); 12];
    let of = |peer: &str| {
        let config = json!({ "lines": 2, "calls": calls, "on_drop": "requeue", "peer": peer });
        let mut bundle = bundle(&config, &[LINE; 2], QueueLimit::Unlimited, 1);
        carry(&mut bundle, &packets, Time::from_secs(900))
    };
    let (told, plain) = (of("farlink"), of("rfc1990"));
    assert_eq!(delivered(&told), (0..12).collect::<Vec<_>>());
    assert_eq!((delivered(&plain), cut(&plain)), (vec![0, 1, 3, 5, 7, 9, 4, 6, 8, 10, 11], vec![2]));
    // Twelve packets of a little more than a second each, two of them over the line that has dropped.
    for log in [&told, &plain] {
        assert!(last(log) < 11.9, "{}", last(log));
    }
    // The last packets of a burst arrive without delay although the other lines are silent.
    let calls = json!({ "schedule": [[[1.0, 1e6]], [], []] });
    for peer in ["farlink", "rfc1990"] {
        let config = json!({ "lines": 3, "calls": calls, "on_drop": "requeue", "peer": peer });
        let mut bundle = bundle(&config, &[LINE; 3], QueueLimit::Unlimited, 1);
        let log = carry(&mut bundle, &[(0, 1000), (1, 1000)], Time::from_secs(900));
        assert!(delivered(&log).len() == 2 && last(&log) < 2.7, "{peer}: {log:?}");
    }
}

/// Both ends of a line that carries nothing from 10.7 s to 60 s, and when each notices it. Fragments of the other line wait behind the
/// missing ones until the receiver knows; the sender goes on giving packets to the dead line until it knows.
#[test]
fn each_end_notices_a_drop_in_its_own_time() {
    let packets: Vec<(u64, u32)> = (0..40).map(|n| (1000 * n, 500)).collect();
    let of = |end: &str, on_drop: &str, peer: &str| {
        let mut calls = json!({ "schedule": [[[10.7, 60]], []] });
        calls[format!("detection_{end}")] = json!({ "distribution": "constant", "value_s": 20 });
        let mut config = json!({ "lines": 2, "calls": calls, "on_drop": on_drop, "reorder_timeout_s": "never" });
        if on_drop == "requeue" {
            config["peer"] = peer.into();
        }
        let mut bundle = bundle(&config, &[LINE; 2], QueueLimit::Unlimited, 1);
        let log = carry(&mut bundle, &packets, Time::from_secs(200));
        let times: Vec<f64> =
            log.iter().filter(|end| end.2 == Outcome::Delivered).map(|end| end.0.as_secs_f64()).collect();
        let silence_s = times.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
        (times.len(), silence_s)
    };
    // The far end waits for the line for 20 s; the packet in flight is lost.
    let (delivered, silence_s) = of("far", "lose", "");
    assert!(delivered == 39 && (19.0..21.5).contains(&silence_s), "{delivered} {silence_s}");
    // The near end sends every other packet into the dead line for 20 s.
    let (delivered, silence_s) = of("near", "lose", "");
    assert!((28..31).contains(&delivered) && silence_s < 2.5, "{delivered} {silence_s}");
    // What is not acknowledged in time goes over the other line. Nothing is lost, and nobody waits for the end that is late.
    for end in ["near", "far"] {
        let (delivered, silence_s) = of(end, "requeue", "farlink");
        assert!(delivered == 40 && silence_s < 5.0, "{end}: {delivered} {silence_s}");
    }
    // With PPP what the dead line has taken is lost.
    let (delivered, silence_s) = of("near", "requeue", "rfc1990");
    assert!((28..31).contains(&delivered) && silence_s < 2.5, "{delivered} {silence_s}");
}

/// A bundle whose lines were all down begins anew: what the receiver held is lost, and nothing waits for the old numbers. farlink's
/// own ends go on where they were.
#[test]
fn a_bundle_begins_anew_after_its_last_line() {
    // Packet 0 is on its way over line 0, and 1 waits for it at the receiver, when line 1 and then line 0 drop.
    let of = [(800.0, 0.5), (80e3, 0.5)];
    let calls = json!({ "schedule": [[[5, 20]], [[4, 20]]] });
    let packets = [(0, 1000), (10, 1000), (30_000, 100), (31_000, 100)];
    for (keys, expected) in [
        (json!({ "on_drop": "lose", "reorder_timeout_s": "never" }), vec![2, 3]),
        (json!({ "on_drop": "lose", "receiver": "linux" }), vec![2, 3]),
        (json!({ "on_drop": "requeue", "peer": "rfc1990" }), vec![0, 2, 3]),
        (json!({ "on_drop": "requeue", "peer": "linux" }), vec![0, 2, 3]),
        (json!({ "on_drop": "requeue" }), vec![0, 1, 2, 3]),
    ] {
        let mut config = json!({ "lines": 2, "calls": calls });
        config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        let log = carry(&mut bundle(&config, &of, QueueLimit::Unlimited, 1), &packets, Time::from_secs(500));
        assert_eq!((delivered(&log), log.len()), (expected, 4), "{keys}");
        assert!(last(&log) < 33.0, "{keys}: {log:?}");
    }
}

/// Linux ignores empty fragments: instead of one it gets the first byte of a packet that never ends.
#[test]
fn a_linux_peer_learns_that_old_numbers_are_lost() {
    let calls = json!({ "schedule": [[[2.2, 1e6]], [], []] });
    let after_s = |keys: Value| {
        let mut config = json!({ "lines": 3, "calls": calls, "on_drop": "requeue" });
        config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        let mut bundle = bundle(&config, &[LINE; 3], QueueLimit::Unlimited, 1);
        let log = carry(&mut bundle, &[(0, 1000); 9], Time::from_secs(900));
        (delivered(&log).len(), last(&log))
    };
    // Packet 3 is in flight over line 0, which holds packet 6.
    let (delivered, last_s) = after_s(json!({ "peer": "linux" }));
    assert!(delivered == 8 && last_s < 5.0, "{delivered} {last_s}");
    // Told by empty fragments, Linux waits with the packets behind the gap for the next ones, of which there are none.
    let (delivered, _) = after_s(json!({ "peer": "rfc1990", "receiver": "linux" }));
    assert!(delivered < 8, "{delivered}");
}

/// A copy of packet 1 has arrived and waits for packet 0 when the line of the other copy drops: it is delivered, not lost.
#[test]
fn a_copy_that_waits_at_the_receiver_is_not_lost() {
    // Packet 0 is on line 0, which has no room for packet 1; its copies on the other lines are lost at once.
    let of = [(8e3, 0.5), (80e3, 0.1), (800.0, 0.5)];
    let calls = json!({ "schedule": [[], [[0.05, 0.2]], [[0.01, 0.2], [1.0, 1e6]]] });
    let config = json!({ "lines": 3, "scheduler": "redundant", "line_packets": 1, "on_drop": "lose", "calls": calls });
    let log =
        carry(&mut bundle(&config, &of, QueueLimit::Unlimited, 1), &[(0, 1000), (300, 100)], Time::from_secs(100));
    assert_eq!(delivered(&log), [0, 1], "{log:?}");
}

/// Numbers and MRRU of the two directions are negotiated apart.
#[test]
fn directions_negotiate_apart() {
    let config: BundleConfig =
        serde_json::from_value(json!({ "lines": 1, "return": { "header": "short", "mrru_bytes": 600 } })).unwrap();
    let back = config.reversed();
    assert_eq!((config.framing().numbering, back.framing().numbering), (Numbering::Long, Numbering::Short));
    assert_eq!(back.reversed(), BundleConfig { back: back.reversed().back, ..config.clone() });
    let of = |config: &BundleConfig, bytes: u32| {
        let lines = lines(config, &[(8e3, 0.0)]);
        config.check(&lines).unwrap();
        let hop = Rng::for_component(1, 0, "hop");
        let mut bundle =
            EmulatedBundle::new(config, &lines, QueueLimit::Unlimited, Rng::for_component(1, 0, "b"), &hop);
        carry(&mut bundle, &[(0, bytes)], Time::NEVER)[0]
    };
    let (there, here) = (of(&config, 600), of(&back, 600));
    assert_eq!((there.2, here.2), (Outcome::Delivered, Outcome::Delivered));
    // Two bytes of the header, and their escapes.
    let saved_s = there.0.as_secs_f64() - here.0.as_secs_f64();
    assert!((0.0019..0.0032).contains(&saved_s), "{saved_s}");
    assert_eq!((of(&config, 601).2, of(&back, 601).2), (Outcome::Delivered, Outcome::Lost));
}
