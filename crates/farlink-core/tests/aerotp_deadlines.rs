//! Deadlines in the reliable modes of AeroTP: expired data is given up, the receiver continues after it, and both
//! applications are informed exactly. The marks name sentences of `docs/aerotp.md`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::aerotp_schedules::wrapping_seeds;
use crate::pair::{Content, Fault, ONE_WAY, Pair};
use crate::random_schedules::schedules;
use farlink_core::protocol::aerotp::{self, AerotpConfig, Flags, Segment};
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::{Endpoint, Event, LinkHint, Packet, Rng, Rx, Stream, Time};
use serde_json::{Value, json};

type Side = aerotp::Side<Vec<u8>>;
type Ends = Pair<Vec<u8>, Side>;

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

fn config(keys: &Value) -> AerotpConfig {
    let mut all = json!({ "packet_bytes": 148, "rate_control": "none", "acks_per_mack": 1 });
    all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let config: AerotpConfig = serde_json::from_value(all).unwrap();
    config.check().unwrap();
    assert!(config.idle().iter().all(|idle| idle.key != "deadline_s"), "a deadline has an effect in every mode");
    config
}

fn ends(keys: &Value) -> Ends {
    Pair::of(Pairs::pair(&config(keys), 1), &[])
}

/// The reliable mode with retransmission and with repair symbols.
fn modes() -> [Value; 2] {
    [json!({ "deadline_s": 2 }), json!({ "deadline_s": 2, "coded": {} })]
}

/// Writes this many further bytes of the stream of side 0.
fn write(pair: &mut Ends, from: usize, bytes: usize) {
    assert_eq!(pair.ends[0].write(pair.now, &mut Content::of_stream(0, from, bytes)), bytes);
    pair.pump(0);
}

/// Bytes that were reported to a side as expired.
fn expired(pair: &Ends, side: usize) -> usize {
    let of = |event: &Event| if let Event::Expired(bytes) = event { *bytes as usize } else { 0 };
    pair.events[side].iter().map(of).sum()
}

/// A connection that has measured its round trip: 100 bytes have arrived, and everything sent from now on is lost.
fn known(keys: &Value) -> Ends {
    let mut pair = ends(keys);
    write(&mut pair, 0, 100);
    pair.wait_until(ms(1000));
    assert_eq!(pair.received[1], 100);
    pair.is_cut[0] = true;
    pair
}

/// Packets of a side in the log, after the first `count` entries, which are of both sides.
fn since(pair: &Ends, side: usize, count: usize) -> Vec<Segment<Vec<u8>>> {
    pair.log[count..].iter().filter(|sent| sent.1 == side).map(|sent| sent.2.clone()).collect()
}

#[test]
fn lost_data_that_has_expired_is_skipped_and_reported_on_both_sides() {
    for keys in modes() {
        let mut pair = known(&keys);
        write(&mut pair, 100, 300);
        pair.wait_until(ms(2999));
        assert!(!pair.events[0].contains(&Event::Expired(300)));
        let before = pair.log.len();
        pair.wait_until(ms(3500));
        let after = since(&pair, 0, before);
        assert!(!after.is_empty() && after.iter().all(|segment| segment.payload.is_empty()), "{keys}: it is too old");
        assert_eq!(expired(&pair, 0), 0, "it may have arrived");
        // The link works again: the receiver continues, and data written since then follows.
        write(&mut pair, 400, 50);
        pair.is_cut[0] = false;
        pair.wait_until(ms(5000));
        assert_eq!((pair.received[1], pair.skipped[1], expired(&pair, 0)), (450, 300, 300), "{keys}");
        assert_eq!(pair.ends[0].dropped(), Default::default());
    }
}

#[test]
fn expired_data_that_was_never_sent_is_reported_at_once() {
    for keys in modes() {
        let mut pair = known(&keys);
        pair.ends[0].handle_link(pair.now, LinkHint::Down);
        write(&mut pair, 100, 300);
        pair.wait_until(ms(2999));
        assert_eq!(expired(&pair, 0), 0);
        pair.wait_until(ms(3000));
        assert_eq!(expired(&pair, 0), 300, "{keys}: also while nothing can be sent");
        let before = pair.log.len();
        write(&mut pair, 400, 20);
        assert_eq!(pair.log.len(), before);
        pair.is_cut[0] = false;
        pair.ends[0].handle_link(pair.now, LinkHint::Up);
        pair.wait_until(ms(3500));
        assert_eq!((pair.received[1], pair.skipped[1], expired(&pair, 0)), (420, 300, 300), "{keys}");
    }
}

/// Half of the data arrives, in pieces. Each piece is delivered in its place, and only the rest is reported as skipped.
#[test]
fn data_after_a_hole_is_delivered() {
    for keys in modes() {
        let mut pair = ends(&keys);
        write(&mut pair, 0, 100);
        pair.wait_until(ms(1000));
        let mut sent = 0;
        pair.delay = Box::new(move |_, side, segment: &Segment<Vec<u8>>| {
            sent += usize::from(side == 0);
            let is_lost = side == 0 && (sent % 2 == 1 || sent > 10) && !segment.payload.is_empty();
            if is_lost { Time::from_secs(1_000_000) } else { ONE_WAY }
        });
        write(&mut pair, 100, 1000);
        pair.wait_until(ms(2900));
        assert_eq!(pair.received[1], 100, "it waits for the missing data");
        pair.wait_until(ms(3100));
        assert_eq!(pair.received[1], 1100, "{keys}");
        assert!((400..700).contains(&pair.skipped[1]), "{keys}: {}", pair.skipped[1]);
        assert_eq!(expired(&pair, 0), pair.skipped[1]);
        let skips = pair.events[1].iter().filter(|event| matches!(event, Event::Skipped(_))).count();
        assert!(skips >= 4, "{keys}: {skips} holes");
    }
}

#[test]
fn the_skip_notice_is_repeated_until_it_is_acknowledged() {
    for keys in modes() {
        let mut pair = known(&keys);
        write(&mut pair, 100, 100);
        pair.wait_until(ms(3000));
        let before = pair.log.len();
        pair.wait_until(ms(4500));
        let told = since(&pair, 0, before);
        let goes_on = told.iter().map(|segment| segment.forward.expect("there is nothing else to say"));
        assert!(goes_on.clone().count() > 5, "{keys}: {told:?}");
        assert!(goes_on.clone().all(|number| number == told[0].sequence.wrapping_add(100)));
        assert_eq!(told[0].wire_bytes(), 48);
        pair.is_cut[0] = false;
        pair.wait_until(ms(6000));
        assert_eq!((pair.received[1], pair.skipped[1]), (200, 100), "{keys}");
        let before = pair.log.len();
        write(&mut pair, 200, 10);
        pair.wait_until(ms(7000));
        assert!(since(&pair, 0, before).iter().all(|segment| segment.forward.is_none()), "{keys}: it is known");
        let macks = since(&pair, 1, before);
        assert!(macks.iter().all(|mack| mack.skipped == Some(100)), "{keys}: what was skipped remains so");
    }
}

/// The peer is silent: the probes carry recent data and say where the stream continues.
#[test]
fn after_an_outage_recent_data_is_sent_first() {
    let mut pair = known(&json!({ "deadline_s": 2 }));
    for second in 1..60 {
        write(&mut pair, 100 * second, 100);
        pair.wait_until(ms(1000 * (second as u64 + 1)));
    }
    pair.is_cut[0] = false;
    let healed = pair.now;
    let before = pair.received[1];
    while pair.received[1] == before {
        assert!(pair.step(healed + ms(200)), "within a round trip and an eighth of a timeout");
    }
    pair.wait_until(healed + ms(300));
    assert_eq!(pair.received[1], 6000);
    assert!((5700..=5800).contains(&pair.skipped[1]), "{}", pair.skipped[1]);
    assert_eq!(expired(&pair, 0), pair.skipped[1]);
}

#[test]
fn the_end_of_the_stream_never_expires() {
    for keys in modes() {
        let mut pair = known(&keys);
        write(&mut pair, 100, 300);
        pair.ends[0].close(pair.now);
        pair.ends[1].close(pair.now);
        pair.pump(0);
        pair.wait_until(ms(10_000));
        pair.is_cut[0] = false;
        pair.run_until(Time::from_secs(10_000));
        pair.assert_done([400, 0]);
        assert_eq!((pair.skipped[1], expired(&pair, 0)), (300, 300), "{keys}");
    }
}

/// Far more data expires than the receiver has room for: the stream continues after all of it within a few round trips.
#[test]
fn a_stream_skips_more_than_the_receive_window() {
    for mut keys in modes() {
        keys["receive_buffer_bytes"] = json!(2000);
        let mut pair = known(&keys);
        for second in 0..10 {
            write(&mut pair, 100 + 10_000 * second, 10_000);
            pair.wait_until(ms(1000 * (second as u64 + 2)));
        }
        pair.wait_until(ms(14_000));
        pair.is_cut[0] = false;
        write(&mut pair, 100_100, 500);
        pair.wait_until(ms(15_000));
        assert_eq!((pair.received[1], pair.skipped[1], expired(&pair, 0)), (100_600, 100_000, 100_000), "{keys}");
        assert_eq!(pair.ends[1].dropped().outside, 0, "{keys}");
    }
}

/// An attacker who cannot see a connection has to guess its tag and its numbers; guesses outside the window have no
/// effect.
#[test]
fn skips_outside_the_window_are_dropped_and_counted() {
    for mut keys in modes() {
        keys["receive_buffer_bytes"] = json!(2000);
        let mut pair = ends(&keys);
        write(&mut pair, 0, 100);
        pair.wait_until(ms(100));
        let first = pair.log[0].2.clone();
        let next = first.sequence.wrapping_add(100);
        let flags = Flags::EXTENDED;
        let question = Segment { flags, sequence: next, payload: vec![], timestamp: 100_000, ..first };
        let tell = |pair: &mut Ends, sequence: u32, forward: u32| {
            let told = Segment { sequence, forward: Some(next.wrapping_add(forward)), ..question.clone() };
            pair.ends[1].handle_packet(pair.now, &told, Rx::default());
            pair.pump(1);
            (pair.received[1], pair.ends[1].dropped().outside)
        };
        assert_eq!(tell(&mut pair, next, (1 << 30) + 1), (100, 1), "{keys}: further than a window");
        assert_eq!(tell(&mut pair, next.wrapping_add(2001), 10), (100, 2), "{keys}: the number is nowhere near");
        assert_eq!(tell(&mut pair, next.wrapping_sub(2001), 10), (100, 3), "{keys}");
        assert_eq!(tell(&mut pair, next, 0), (100, 3), "{keys}: that is past");
        assert_eq!(tell(&mut pair, next, u32::MAX), (100, 3), "{keys}: that as well");
        assert_eq!(tell(&mut pair, next, 10), (110, 3), "{keys}");
        // No data follows the end.
        let flags = Flags::AFIN;
        let end =
            Segment { flags, sequence: next.wrapping_add(50), payload: vec![], timestamp: 100_000, ..question.clone() };
        pair.ends[1].handle_packet(pair.now, &end, Rx::default());
        assert_eq!(tell(&mut pair, next, 51), (110, 4), "{keys}");
        assert_eq!(tell(&mut pair, next, 50), (150, 4), "{keys}");
        assert!(pair.events[1].contains(&Event::Finished), "{keys}: all before the end was skipped");
        let mack = since(&pair, 1, 0).into_iter().rfind(|segment| segment.mack.is_some()).unwrap();
        assert_eq!((mack.sequence, mack.skipped), (next.wrapping_add(51), Some(50)));
    }
}

#[test]
fn an_acknowledgement_of_more_skipped_bytes_than_were_given_up_is_ignored() {
    for keys in modes() {
        let mut pair = known(&keys);
        write(&mut pair, 100, 300);
        pair.wait_until(ms(3500));
        let last = since(&pair, 1, 0).pop().unwrap();
        let sequence = last.sequence.wrapping_add(100);
        for skipped in [301, u32::MAX, 1 << 31] {
            let forged = Segment { sequence, skipped: Some(skipped), flags: Flags::MACK, ..last.clone() };
            pair.ends[0].handle_packet(pair.now, &forged, Rx::default());
            pair.pump(0);
            assert_eq!(expired(&pair, 0), 0, "{keys}: {skipped}");
        }
        let contradictory = Segment { forward: Some(0), flags: Flags::MACK, ..last.clone() };
        pair.ends[0].handle_packet(pair.now, &contradictory, Rx::default());
        assert_eq!(pair.ends[0].dropped().malformed, 1, "an acknowledgement gives nothing up");
        let contradictory = Segment { skipped: Some(0), mack: None, flags: Flags::default(), ..last };
        pair.ends[0].handle_packet(pair.now, &contradictory, Rx::default());
        assert_eq!(pair.ends[0].dropped().malformed, 2, "only an acknowledgement reports skipped bytes");
    }
}

/// A reader that pauses still gets the gaps in their places, and acknowledgements do not depend on it.
#[test]
fn a_slow_reader_gets_data_and_gaps_in_order() {
    for keys in modes() {
        let mut pair = known(&keys);
        pair.is_reader_asleep[1] = true;
        write(&mut pair, 100, 100);
        pair.wait_until(ms(4000));
        pair.is_cut[0] = false;
        write(&mut pair, 200, 100);
        pair.wait_until(ms(5000));
        assert_eq!(expired(&pair, 0), 100, "{keys}");
        pair.is_reader_asleep[1] = false;
        pair.pump(1);
        assert_eq!((pair.received[1], pair.skipped[1]), (300, 100), "{keys}");
    }
}

#[test]
fn copies_of_expired_data_are_not_sent() {
    let mut pair = ends(&json!({ "deadline_s": 0.1, "copies": 16 }));
    write(&mut pair, 0, 100);
    pair.wait_until(ms(1000));
    pair.is_cut[0] = true;
    let before = pair.log.len();
    write(&mut pair, 100, 100);
    pair.wait_until(ms(2000));
    let late = pair.log[before..].iter().filter(|sent| sent.0 >= ms(1100) && !sent.2.payload.is_empty()).count();
    let in_time = pair.log[before..].iter().filter(|sent| sent.0 < ms(1100) && !sent.2.payload.is_empty()).count();
    assert!(in_time > 1 && late == 0, "{in_time} and {late}");
}

/// A network, and an application that writes now and then.
struct Play {
    keys: Value,
    seed: u64,
    faults: Vec<Fault>,
    writes: Vec<(Time, usize, usize)>,
}

impl Play {
    fn random(number: u64, wrapping: &[u64]) -> Play {
        let mut rng = Rng::for_component(number, 0, "deadlines");
        let mut keys =
            json!({ "packet_bytes": 100 + rng.below(200), "deadline_s": 0.005 * (1 + rng.below(400)) as f64 });
        if rng.chance(0.4) {
            let symbols = 1 + rng.below(20);
            keys["coded"] = json!({ "block_symbols": symbols, "expected_loss": 0.3 * rng.uniform() });
        } else if rng.chance(0.3) {
            keys["copies"] = json!(2 + rng.below(3));
        }
        if rng.chance(0.2) {
            keys["adaptive_length"] = json!({ "min_bytes": 10, "memory_s": 0.5 });
        }
        if rng.chance(0.5) {
            keys["rate_bps"] = json!(2e4 + 1e5 * rng.uniform());
        }
        if rng.chance(0.4) {
            keys["receive_buffer_bytes"] = json!(400 + rng.below(1000));
        }
        if rng.chance(0.3) {
            keys["acks_per_mack"] = json!(1 + rng.below(12));
        }
        if rng.chance(0.3) {
            keys["mack_timeout_s"] = json!(0.001 + 0.3 * rng.uniform());
        }
        if rng.chance(0.3) {
            keys["opens"] = json!("both");
        }
        if rng.chance(0.3) {
            keys["mode"] = json!("near-reliable");
        }
        let (lost, twice) = (rng.uniform() * 0.9, rng.uniform() * 0.3);
        let faults = (0..rng.below(150))
            .map(|_| {
                let most = if rng.chance(0.5) { 30 } else { 500 };
                if rng.chance(lost) {
                    Fault::Lose
                } else if rng.chance(twice) {
                    Fault::Twice(1 + rng.below(60), 1 + rng.below(3_000))
                } else {
                    Fault::Delay(1 + rng.below(most))
                }
            })
            .collect();
        let span = 1 + rng.below(4_000);
        let mut writes: Vec<_> = (0..rng.below(40))
            .map(|_| {
                let side = usize::from(rng.chance(0.2));
                let most = if rng.chance(0.1) { 3000 } else { 200 };
                (ms(rng.below(span)), side, 1 + rng.below(most) as usize)
            })
            .collect();
        writes.sort();
        let seed = if rng.chance(0.4) { wrapping[rng.below(8) as usize] } else { rng.below(u64::MAX) };
        Play { keys, seed, faults, writes }
    }

    fn play(&self) {
        let config: AerotpConfig = serde_json::from_value(self.keys.clone()).unwrap();
        config.check().unwrap();
        let mut pair: Ends = Pair::of(Pairs::pair(&config, self.seed), &self.faults);
        let mut written = [0; 2];
        for &(at_time, side, bytes) in &self.writes {
            pair.wait_until(at_time);
            let mut data = Content::of_stream(side, written[side], bytes);
            written[side] += pair.ends[side].write(pair.now, &mut data);
            pair.pump(side);
        }
        for side in [0, 1] {
            pair.ends[side].close(pair.now);
            pair.pump(side);
        }
        pair.run_until(Time::from_secs(1_000_000));
        pair.assert_done(written);
        assert_eq!(
            [expired(&pair, 0), expired(&pair, 1)],
            [pair.skipped[1], pair.skipped[0]],
            "the skipped bytes are reported"
        );
        assert!(pair.log.iter().all(|sent| sent.2.mack.is_some() || sent.2.wire_bytes() <= 300));
        // A coded block may be complete before all of its data was sent.
        let is_coded = config.coded.is_some();
        assert!(is_coded || pair.ends.iter().all(|end| end.dropped().forged == 0));
    }
}

/// In silence a repair symbol is sent before the rest of its block's data, and brings the rest: six bytes of it were reported as expired
/// although they arrived.
#[test]
fn bytes_that_arrived_are_not_reported_as_expired() {
    Play::random(18_339, &wrapping_seeds()).play();
}

/// The reader gets what was written, except for the reported gaps, in order. Delivered and expired bytes add up to all
/// bytes, and both sides end.
#[test]
fn delivered_and_skipped_bytes_add_up_to_the_written_ones() {
    let wrapping = wrapping_seeds();
    let (wanted, next) = (schedules(5_000, 10), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= wanted {
                        break;
                    }
                    let play = Play::random(number, &wrapping);
                    let played = catch_unwind(AssertUnwindSafe(|| play.play()));
                    let Play { keys, seed, writes, faults } = &play;
                    assert!(played.is_ok(), "play {number}: {keys}, seed {seed}, {writes:?}, {faults:?}");
                }
            });
        }
    });
}
