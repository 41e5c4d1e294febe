use serde_json::{Value, json};

use super::ip::IpPacket;
use super::*;
use crate::path::Channels;
use crate::scenario::expand;
use crate::trace::MemoryTraces;

/// A packet of IPv6 whose last bytes are its number.
fn packet(bytes: usize, class: u8, number: u64) -> IpPacket {
    let mut packet = vec![0; bytes];
    (packet[0], packet[1]) = (0x60, 0x10); // ECT(1)
    packet[4..6].copy_from_slice(&(bytes as u16 - 40).to_be_bytes());
    packet[bytes - 8..].copy_from_slice(&number.to_be_bytes());
    IpPacket { bytes: packet, class }
}

fn emulator_with(link: Value, most_bytes: u64) -> Emulator<IpPacket> {
    let mut scenario = json!({
        "duration_s": 100, "transport": { "udp": { "kind": "udp" } },
        "flow": { "f": { "transport": "udp", "traffic": { "kind": "file", "bytes": 1 } } },
    });
    scenario["link"] = link;
    let expanded = expand(&scenario).unwrap();
    let path =
        PathSetup::resolve(&expanded.points[0].scenario, None, &MemoryTraces::default(), &mut Channels::default());
    Emulator::new(&path.unwrap(), 1, 0, most_bytes)
}

fn emulator(link: Value) -> Emulator<IpPacket> {
    emulator_with(link, u64::MAX)
}

/// Everything that leaves at an end: when, in milliseconds, and its number.
fn left(emulator: &mut Emulator<IpPacket>, at: End) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    while emulator.poll_timeout() < Time::NEVER {
        let now = emulator.poll_timeout();
        while let Some(Departure { due, packet, .. }) = emulator.poll(now, at) {
            assert_eq!(due, now, "it is told of in time");
            let number = u64::from_be_bytes(packet.bytes[packet.bytes.len() - 8..].try_into().unwrap());
            all.push((due.as_ps() / 1_000_000_000, number));
        }
        if emulator.poll_timeout() == now {
            break; // what is left leaves at the other end
        }
    }
    all
}

#[test]
fn packets_take_rate_queue_and_delay_of_their_way() {
    // A packet in a millisecond there, in ten back.
    let link = json!({
        "rate_bps": 8e6, "delay_s": 0.25, "queue_packets": 2, "return": { "rate_bps": 8e5, "delay_s": 0.1, "queue_packets": 1 },
    });
    for (from, due) in [(End::Near, vec![(251, 0), (252, 1), (253, 2)]), (End::Far, vec![(110, 0), (120, 1)])] {
        let mut emulator = emulator(link.clone());
        (0..5).for_each(|number| emulator.handle_packet(Time::ZERO, from, packet(1000, 0, number)));
        assert_eq!(emulator.counts(from).dropped as usize, 5 - due.len());
        assert_eq!(emulator.held_bytes(from), 1000 * due.len() as u64);
        assert_eq!(left(&mut emulator, from.other()), due);
        assert_eq!((emulator.held_bytes(from), emulator.counts(from.other()).in_packets), (0, 0));
        assert_eq!(emulator.counts(from).out_bytes, 1000 * due.len() as u64);
        assert!(emulator.counts(from).mean_delay_s().unwrap() > 0.1);
    }
}

#[test]
fn lower_classes_go_first() {
    let mut emulator = emulator(json!({ "rate_bps": 8e6, "delay_s": 0, "service": "strict" }));
    for (number, class) in [5, 5, 5, 0, 3].into_iter().enumerate() {
        emulator.handle_packet(Time::ZERO, End::Near, packet(1000, class, number as u64));
    }
    let numbers: Vec<_> = left(&mut emulator, End::Far).iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [0, 3, 4, 1, 2]);
}

#[test]
fn marks_begin_where_so_many_wait() {
    let mut emulator = emulator(json!({ "rate_bps": 8e6, "delay_s": 0, "ecn_threshold_packets": 3 }));
    (0..10).for_each(|number| emulator.handle_packet(Time::ZERO, End::Near, packet(1000, 0, number)));
    assert_eq!(left(&mut emulator, End::Far).len(), 10);
    assert_eq!(emulator.counts(End::Near).marked, 6, "one is sent and three wait unmarked");
}

#[test]
fn wrong_bits_are_in_the_packet() {
    let mut emulator = emulator(json!({ "rate_bps": 1e9, "delay_s": 0, "channel": { "kind": "ber", "ber": 1e-4 } }));
    (0..100).for_each(|_| emulator.handle_packet(Time::ZERO, End::Near, packet(1000, 0, 0)));
    let mut wrong = 0;
    while let Some(Departure { packet: got, .. }) = emulator.poll(Time::from_secs(1), End::Far) {
        wrong += u64::from(got != packet(1000, 0, 0));
    }
    let counts = emulator.counts(End::Near);
    assert!(wrong == counts.damaged && (30..80).contains(&wrong), "{wrong} {counts:?}");
    assert_eq!(counts.out_packets + counts.ruined, 100);
}

#[test]
fn the_memory_has_a_bound() {
    let mut emulator = emulator_with(json!({ "rate_bps": 8e6, "delay_s": 1 }), 5500);
    (0..9).for_each(|number| emulator.handle_packet(Time::ZERO, End::Near, packet(1000, 0, number)));
    assert_eq!((emulator.counts(End::Near).refused, emulator.held_bytes(End::Near)), (4, 5000));
    assert_eq!(left(&mut emulator, End::Far).len(), 5);
    emulator.handle_packet(Time::from_secs(5), End::Near, packet(1000, 0, 9));
    assert_eq!(emulator.counts(End::Near).refused, 4);
}

#[test]
fn what_only_the_simulator_does_is_refused() {
    let scenario = |changes: &[(&str, Value)]| {
        let mut scenario = json!({
            "duration_s": 10, "path": ["a", "b", "c"], "transport": { "tcp": { "kind": "tcp" } },
            "hop": {},
            "flow": { "f": { "transport": "tcp", "traffic": { "kind": "bulk" } } },
        });
        for name in ["a", "b", "c"] {
            scenario["hop"][name] = json!({ "rate_bps": 9600, "delay_s": 0.1 });
        }
        for (key, value) in changes {
            scenario["hop"]["b"][*key] = value.clone();
        }
        let expanded = expand(&scenario).unwrap_or_else(|error| panic!("{error:?}"));
        expanded.points[0].scenario.clone()
    };
    assert!(check_playable(&scenario(&[])).is_ok());
    let refused = check_playable(&scenario(&[("gateway", json!(true))])).unwrap_err();
    assert_eq!(refused.path, "hop.b.gateway");
    let calls = json!({
        "up": { "distribution": "exponential", "mean_s": 100 }, "redial": { "distribution": "exponential", "mean_s": 20 },
    });
    let bundle = json!({ "lines": 2, "calls": calls, "on_drop": "duplicate-acks" });
    let refused = check_playable(&scenario(&[("bundle", bundle)])).unwrap_err();
    assert_eq!(refused.path, "hop.b.bundle.on_drop");
    assert_eq!(classes_of(&scenario(&[("service", json!({ "weights": [3, 1] }))])), 2);
    assert_eq!(classes_of(&scenario(&[])), 8);
}
