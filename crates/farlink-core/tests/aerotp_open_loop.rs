//! AeroTP without acknowledgements: settings that may change during a connection, classes and deadlines of messages.

use farlink_core::payload::Virtual;
use farlink_core::protocol::Pairs;
use farlink_core::protocol::aerotp::{AerotpConfig, Flags, Mode, Service, Side, SwitchError};
use farlink_core::{Endpoint, Event, Integrity, Packet, Rx, Stream, Time};
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
