//! AeroTP without acknowledgements: settings that may change during a connection, classes and deadlines of messages.

use std::collections::VecDeque;

use farlink_core::event::Abort;
use farlink_core::payload::Virtual;
use farlink_core::protocol::Pairs;
use farlink_core::protocol::aerotp::{AerotpConfig, Flags, Mode, Segment, Service, Side, SwitchError};
use farlink_core::{Ecn, Endpoint, Event, Integrity, Packet, Rx, Stream, Time};
use serde_json::{Value, json};

fn pair(keys: &Value) -> (Side<Virtual>, Side<Virtual>) {
    let config: AerotpConfig = serde_json::from_value(keys.clone()).expect("these are its keys");
    config.pair(1)
}

/// Wire length, class and parity of the next packet.
fn sent(side: &mut Side<Virtual>, now: Time) -> Option<(u32, u8, u16)> {
    let sent = side.poll_transmit(now)?;
    assert_eq!(sent.class.0, sent.packet.class);
    Some((sent.packet.wire_bytes(), sent.packet.class, sent.packet.fec_words))
}

/// `[U9]`: the mode changes with the first segment that is sent from the given time on, at both ends, and back.
#[test]
fn the_mode_changes_at_the_configured_times() {
    let changes = json!([{ "at_s": 10, "mode": "unreliable" }, { "at_s": 20.5, "mode": "quasi-reliable" }]);
    let keys = json!({ "mode": "quasi-reliable", "fec_words": 8, "mode_changes": changes, "erasure": { "source": 8, "repair": 2 } });
    let (mut sender, _) = pair(&keys);
    let mut sent_at = |s: f64| {
        let now = Time::from_secs_f64(s);
        sender.write(now, &mut Virtual(20_000));
        let all: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(now)).map(|sent| sent.packet).collect();
        assert!(all.len() > 13 && all.iter().all(|packet| packet.mode == all[0].mode), "{s}");
        let repairs = all.iter().filter(|packet| packet.repair.is_some()).count();
        (all[0].mode, all.iter().map(|packet| packet.fec_words).max(), repairs > 0)
    };
    let coded = (Mode::QuasiReliable, Some(8), true);
    let plain = (Mode::Unreliable, Some(0), false);
    assert_eq!([9.999, 10.0, 20.4, 20.5, 100.0].map(&mut sent_at), [coded, plain, plain, coded, coded]);

    let late =
        json!({ "mode": "unreliable", "mode_changes": [{ "at_s": 0, "mode": "quasi-reliable" }], "fec_share": 0.1 });
    let (mut sender, mut receiver) = pair(&late);
    sender.write(Time::ZERO, &mut Virtual(10_000));
    let first = sender.poll_transmit(Time::ZERO).unwrap().packet;
    assert_eq!((first.mode, first.wire_bytes(), first.flags.has(Flags::FEC)), (Mode::QuasiReliable, 1500, true));
    receiver.handle_packet(Time::ZERO, &first, Rx::default());
    let answer = receiver.poll_transmit(Time::ZERO).unwrap().packet;
    assert!(answer.mack.is_some() && answer.mode == Mode::QuasiReliable);
}

#[test]
fn codes_are_switched_from_one_segment_to_the_next() {
    let (mut sender, mut receiver) = pair(&json!({ "mode": "quasi-reliable", "fec_words": 8 }));
    sender.write(Time::ZERO, &mut Virtual(10_000));
    assert_eq!(sent(&mut sender, Time::ZERO), Some((1500, 0, 8)));
    sender.connection_mut().set_fec_words(100).unwrap();
    assert_eq!(sent(&mut sender, Time::ZERO), Some((1500, 0, 100)));
    sender.connection_mut().set_mode(Mode::Unreliable).unwrap();
    let plain = sender.poll_transmit(Time::ZERO).unwrap().packet;
    assert_eq!((plain.wire_bytes(), plain.fec_words, plain.flags.has(Flags::FEC)), (1500, 0, false));
    assert_eq!(sender.connection_mut().set_fec_words(8), Err(SwitchError::NoParity(Mode::Unreliable)));
    sender.connection_mut().set_mode(Mode::QuasiReliable).unwrap();
    assert_eq!(sender.connection().fec_words(), 8, "as configured");
    assert_eq!(sender.connection_mut().set_fec_words(257), Err(SwitchError::TooMuchParity { words: 257, most: 256 }));
    // Segments of all modes belong to the same stream.
    receiver.handle_packet(Time::ZERO, &plain, Rx::default());
    assert_eq!(receiver.poll_event(), Some(Event::Connected));
    assert_eq!(receiver.poll_event(), Some(Event::Skipped(u64::from(1416_u32 + 1048))));
}

/// An application without end writes 2^31 bytes at once, and again when it may.
#[test]
fn an_application_without_end_is_asked_for_more() {
    for mode in ["quasi-reliable", "unreliable"] {
        let (mut sender, _) = pair(&json!({ "mode": mode }));
        let mut now = Time::ZERO;
        let (mut written, mut sent) = (0, 0);
        for _ in 0..3 {
            written += sender.write(now, &mut Virtual(1 << 31)) as u64;
            assert!(written > sent, "{mode}: nothing was taken after {sent} bytes");
            while !std::iter::from_fn(|| sender.poll_event()).any(|event| event == Event::Writable) {
                let packet =
                    sender.poll_transmit(now).unwrap_or_else(|| panic!("{mode}: silent after {sent} bytes")).packet;
                sent += u64::from(packet.payload_bytes());
                now += Time::from_ps(10_000_000);
            }
        }
        assert!(sent > 1 << 30, "{mode}");
    }
}

#[test]
fn other_mode_changes_are_refused() {
    for (from, to) in [("reliable", Mode::Unreliable), ("datagram", Mode::Unreliable), ("unreliable", Mode::Reliable)] {
        let (mut side, _) = pair(&json!({ "mode": from }));
        let side = side.connection_mut();
        let before = side.mode();
        assert_eq!(side.set_mode(to), Err(SwitchError::Mode { from: before, to }));
        assert_eq!((side.mode(), side.set_mode(before)), (before, Ok(())));
    }
}

#[test]
fn messages_are_sent_by_class_and_carry_it() {
    let (mut sender, _) = pair(&json!({ "mode": "datagram" }));
    sender.connection_mut().set_service(1, Service { weight: None, deadline: Some(Time::from_secs(1)) }).unwrap();
    for (class, bytes) in [(3, 100), (1, 200), (0, 300)] {
        assert_eq!(sender.connection_mut().write_class(Time::ZERO, class, &mut Virtual(bytes)), Ok(bytes as usize));
    }
    assert_eq!(sent(&mut sender, Time::ZERO), Some((344, 0, 0)));
    assert_eq!(sender.poll_timeout(), Some(Time::ZERO), "more is ready");
    // The class takes an optional field; the message of class 1 has expired by now.
    assert_eq!(sent(&mut sender, Time::from_secs(1)), Some((148, 3, 0)));
    assert_eq!(sender.poll_event(), Some(Event::Expired(200)));
    assert_eq!(sender.connection_mut().write_class(Time::ZERO, 8, &mut Virtual(1)), Err(SwitchError::NoSuchClass(8)));
    let (mut stream, _) = pair(&json!({ "mode": "unreliable" }));
    assert_eq!(
        stream.connection_mut().write_class(Time::ZERO, 1, &mut Virtual(1)),
        Err(SwitchError::NoClasses(Mode::Unreliable))
    );
}

#[test]
fn expired_data_is_skipped_on_both_sides() {
    let (mut sender, mut receiver) = pair(&json!({ "mode": "unreliable", "deadline_s": 2 }));
    sender.write(Time::ZERO, &mut Virtual(500));
    sender.write(Time::from_secs(1), &mut Virtual(70));
    assert_eq!(sender.poll_timeout(), Some(Time::ZERO));
    sender.handle_timeout(Time::from_secs(2));
    assert_eq!(sender.poll_event(), Some(Event::Expired(500)));
    let packet = sender.poll_transmit(Time::from_secs(2)).unwrap().packet;
    assert_eq!((packet.payload_bytes(), packet.stream_start()), (70, Some(packet.opening)));
    receiver.handle_packet(Time::from_secs(2), &packet, Rx::default());
    assert_eq!((receiver.poll_event(), receiver.read()), (Some(Event::Connected), None));
    assert_eq!((receiver.poll_event(), receiver.read()), (Some(Event::Skipped(500)), Some(Virtual(70))));
}

/// `[A2]`: damaged payload that is delivered still counts as damaged.
#[test]
fn damage_is_counted_whether_or_not_it_is_delivered() {
    for is_delivered in [false, true] {
        let (mut sender, mut receiver) = pair(&json!({ "mode": "quasi-reliable", "deliver_damaged": is_delivered }));
        sender.write(Time::ZERO, &mut Virtual(5000));
        for integrity in [Integrity::Intact, Integrity::PayloadDamaged, Integrity::Intact] {
            let packet = sender.poll_transmit(Time::ZERO).unwrap().packet;
            receiver.handle_packet(Time::ZERO, &packet, Rx { integrity, ..Rx::default() });
        }
        let answer = receiver.poll_transmit(Time::ZERO).unwrap().packet;
        assert_eq!(answer.mack.unwrap().damaged, 1);
        assert_eq!(receiver.dropped().damaged, u64::from(!is_delivered));
    }
}

/// `[A2]`: strangers who know no tag can lower neither the rate nor raise the parity.
#[test]
fn marks_and_damage_of_strangers_are_not_counted() {
    for has_right_tag in [false, true] {
        let (mut sender, mut receiver) = pair(&json!({ "acks_per_mack": 1 }));
        sender.write(Time::ZERO, &mut Virtual(5000));
        let own = sender.poll_transmit(Time::ZERO).unwrap().packet;
        receiver.handle_packet(Time::ZERO, &own, Rx::default());
        for n in 0..10 {
            let tag = if has_right_tag { own.tag } else { own.tag.wrapping_add(1 + n) };
            let forged = Segment { tag, ..own.clone() };
            receiver.handle_packet(Time::ZERO, &forged, Rx { ecn: Ecn::Congestion, ..Rx::default() });
            let damaged = Rx { integrity: Integrity::PayloadDamaged, ..Rx::default() };
            receiver.handle_packet(Time::ZERO, &forged, damaged);
        }
        let later = Time::from_secs(1);
        let next = sender.poll_transmit(later).unwrap().packet;
        receiver.handle_packet(later, &next, Rx::default());
        let mack = std::iter::from_fn(|| receiver.poll_transmit(later)).filter_map(|sent| sent.packet.mack).last();
        let counted = mack.map(|mack| (mack.marked, mack.damaged));
        assert_eq!(counted, Some(if has_right_tag { (10, 10) } else { (0, 0) }));
    }
}

/// `[U10]`, `[U7]`: reports count segments with payload, repair symbols included, as long as the rate is learnt.
#[test]
fn reports_count_what_arrives_for_a_learnt_rate() {
    let erasure = json!({ "source": 4, "repair": 2, "timeout_s": 0.01 });
    let keys = json!({ "mode": "quasi-reliable", "fec_words": 2, "erasure": erasure, "acks_per_mack": 4 });
    let mut learnt = keys.clone();
    (learnt["rate_control"], learnt["rate_bps"]) = (json!("friendly"), json!(1e6));
    for keys in [keys, learnt] {
        let (mut sender, mut receiver) = pair(&keys);
        sender.write(Time::ZERO, &mut Virtual(20_000));
        sender.close(Time::ZERO);
        let (mut counted, mut arrived, mut changes) = (Vec::new(), 0, 0);
        for ms in 0..4_000 {
            let now = Time::from_millis(ms);
            sender.handle_timeout(now);
            receiver.handle_timeout(now);
            while let Some(sent) = sender.poll_transmit(now) {
                // The third segment is lost.
                let has_payload = sent.packet.payload_bytes() > 0;
                if changes != 2 {
                    receiver.handle_packet(now, &sent.packet, Rx::default());
                    arrived += u32::from(has_payload);
                }
                changes += 1;
                sender.connection_mut().set_mode([Mode::QuasiReliable, Mode::Unreliable][changes / 8 % 2]).unwrap();
            }
            while let Some(answer) = receiver.poll_transmit(now) {
                if let Some(mack) = &answer.packet.mack {
                    assert_eq!(mack.counts_symbols, keys.get("rate_control").is_some());
                    counted.extend(mack.edges.blocks());
                    assert!(counted.is_empty() || counted.last() == Some(&(arrived, 0)), "{counted:?}, {arrived}");
                }
                sender.handle_packet(now, &answer.packet, Rx::default());
            }
        }
        assert_eq!(sender.dropped().forged + receiver.dropped().outside, 0);
        assert_eq!(counted.len() > 2, keys.get("rate_control").is_some(), "{counted:?}");
    }
}

/// What a sender without end sends over a way of 100 ms whose way back fails from `fails_s` to `works_s`: bytes in each second, and
/// whether it gave up.
fn sent_without_reports(keys: &Value, fails_s: u64, works_s: u64, until_s: u64) -> (Vec<u32>, bool) {
    let (mut sender, mut receiver) = pair(keys);
    let (mut bytes, mut forth, mut back) = (Vec::new(), VecDeque::new(), VecDeque::new());
    let mut has_given_up = false;
    for ms in 0..until_s * 1000 {
        let now = Time::from_millis(ms);
        let later = now + Time::from_millis(100);
        let arrived = |queue: &mut VecDeque<(Time, Segment<Virtual>)>| {
            if queue.front()?.0 <= now { queue.pop_front() } else { None }
        };
        while let Some((_, packet)) = arrived(&mut forth) {
            receiver.handle_packet(now, &packet, Rx::default());
        }
        while let Some((_, packet)) = arrived(&mut back) {
            sender.handle_packet(now, &packet, Rx::default());
        }
        sender.handle_timeout(now);
        receiver.handle_timeout(now);
        sender.write(now, &mut Virtual(100_000));
        bytes.resize(ms as usize / 1000 + 1, 0);
        while let Some(sent) = sender.poll_transmit(now) {
            bytes[ms as usize / 1000] += sent.packet.wire_bytes();
            forth.push_back((later, sent.packet));
        }
        while let Some(answer) = receiver.poll_transmit(now) {
            if !(fails_s * 1000..works_s * 1000).contains(&ms) {
                back.push_back((later, answer.packet));
            }
        }
        while receiver.read().is_some() {}
        has_given_up |=
            std::iter::from_fn(|| sender.poll_event()).any(|event| event == Event::Aborted(Abort::NoAnswer));
    }
    (bytes, has_given_up)
}

/// `[U11]`: without reports the rate falls to a packet in a timeout, and returns within seconds.
#[test]
fn a_learnt_rate_falls_while_no_reports_come() {
    for control in ["learnt", "friendly"] {
        let keys = json!({ "mode": "unreliable", "rate_control": control, "rate_bps": 2e6 });
        let (bytes, has_given_up) = sent_without_reports(&keys, 20, 50, 70);
        let of = |from: usize, to: usize| bytes[from..to].iter().sum::<u32>() / (to - from) as u32;
        assert!(of(10, 20) > 220_000, "{control}: {bytes:?}");
        assert!(of(40, 50) < 10_000 && of(40, 50) > 1500, "{control}: {bytes:?}");
        assert!(of(60, 70) > 220_000 && !has_given_up, "{control}: {bytes:?}");
        assert!(bytes.windows(2).all(|two| two[1] < 8 * two[0].max(20_000)), "it returns step by step: {bytes:?}");
    }
}

/// `[U11]`, `[C16]`: a peer that never reports is given up; a fixed rate goes on.
#[test]
fn a_peer_that_never_reports_is_given_up() {
    let learnt = json!({ "mode": "unreliable", "rate_control": "learnt", "give_up_after_s": 60 });
    let (bytes, has_given_up) = sent_without_reports(&learnt, 0, u64::MAX / 1000, 90);
    assert!(has_given_up && bytes[..60].chunks(2).all(|two| two.iter().any(|&bytes| bytes > 0)), "{bytes:?}");
    assert!(bytes[30..].iter().all(|&bytes| bytes <= 3100), "one packet in a second: {bytes:?}");
    assert!(bytes[80..].iter().all(|&bytes| bytes == 0), "{bytes:?}");
    let fixed = json!({ "mode": "unreliable", "rate_bps": 1e6, "give_up_after_s": 60 });
    assert!(!sent_without_reports(&fixed, 0, u64::MAX / 1000, 90).1);
}
