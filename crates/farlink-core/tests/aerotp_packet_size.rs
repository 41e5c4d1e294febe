//! Packet sizes that change during an AeroTP connection, because the path MTU does: `docs/aerotp.md`, `[S1]` to `[S6]`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::pair::{ONE_WAY, Pair, count};
use farlink_core::payload::Virtual;
use farlink_core::protocol::aerotp::{AerotpConfig, Side};
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::{Endpoint, Event, Packet, Rng, Stream, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

type Net = Pair<Vec<u8>, Side<Vec<u8>>>;

fn config(keys: &Value) -> AerotpConfig {
    let config: AerotpConfig = serde_json::from_value(keys.clone()).unwrap();
    config.check().unwrap();
    config
}

fn resize(net: &mut Net, bytes: u64) {
    for side in &mut net.ends {
        side.connection_mut().set_packet_bytes(net.now, count(bytes)).unwrap();
    }
}

/// Packet sizes of both sides, and the losses of the path.
#[derive(Clone, Debug)]
struct Path {
    /// Largest packet that a side may send; symbols of coded blocks keep this length.
    most_bytes: Rc<Cell<u32>>,
    loss: f64,
    /// Whether packets in flight that have become too long are lost.
    is_strict: bool,
}

/// Plays a transfer whose packet size changes at each of these times, in ms.
fn transfer(keys: &Value, seed: u64, path: &Path, changes: &[(u64, u64)], bytes: usize) -> Net {
    let config = config(keys);
    path.most_bytes.set(config.packet_bytes.whole() as u32);
    let mut net: Net = Pair::of(config.pair(seed), &[]);
    let (rng, to) = (RefCell::new(Rng::for_component(seed, 0, "path")), path.clone());
    net.delay = Box::new(move |_, _, packet| {
        let wire_bytes = packet.wire_bytes();
        assert!(wire_bytes <= to.most_bytes.get() || packet.payload_bytes() == 0, "{wire_bytes}");
        if rng.borrow_mut().chance(to.loss) { Time::NEVER } else { ONE_WAY }
    });
    net.write_all(0, bytes, 5000);
    net.write_all(1, bytes / 3, 700);
    for &(at_ms, size) in changes {
        net.wait_until(Time::from_millis(at_ms));
        let is_free = keys.get("coded").is_some();
        path.most_bytes.set(if is_free { path.most_bytes.get().max(size as u32) } else { size as u32 });
        resize(&mut net, size);
        if path.is_strict {
            net.lose_longer_than(size as u32);
        }
    }
    net.run_until(Time::from_secs(20_000));
    net
}

fn changes() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((0_u64..3_000, 120_u64..2_000), 0..8).prop_map(|mut changes| {
        changes.sort_unstable();
        changes
    })
}

fn path(loss: f64, is_strict: bool) -> Path {
    Path { most_bytes: Rc::default(), loss, is_strict }
}

proptest! {
    /// `[S1]`, `[S2]`, `[S3]`: all bytes arrive, once and in order, in packets that are no longer than allowed.
    #[test]
    fn everything_arrives_despite_changes_of_the_packet_size(
        changes in changes(),
        (loss, is_strict, seed) in (0.0..0.3_f64, any::<bool>(), 0_u64..1000),
        kind in 0..9,
        buffer in prop::option::of(2_000_u64..100_000),
        bytes in 1_usize..60_000,
    ) {
        let mut keys = json!({ "packet_bytes": 600, "rate_bps": 2e6, "initial_rto_s": 0.3, "receive_buffer_bytes": buffer });
        match kind {
            0 => {}
            1 => keys["copies"] = json!(3),
            2 => keys["spare_copies"] = json!(true),
            3 => keys["adaptive_length"] = json!({ "min_bytes": 60 }),
            4 => keys["coded"] = json!({ "block_symbols": 20 }),
            5 => (keys["fec_words"], keys["copies"]) = (json!(12), json!(2)),
            6 => (keys["fec_share"], keys["spare_copies"]) = (json!(0.3), json!(true)),
            7 => (keys["mode"], keys["fec_share"]) = (json!("near-reliable"), json!(0.02)),
            _ => {
                keys.as_object_mut().unwrap().remove("rate_bps");
            }
        }
        // A coded block keeps the length of its symbols.
        let net = transfer(&keys, seed, &path(loss, is_strict && kind != 4), &changes, bytes);
        net.assert_done([bytes, bytes / 3]);
    }

    /// `[S4]`, `[S5]`: without acknowledgements, data is delivered in its place, the rest is reported, and the parity
    /// fits the size.
    #[test]
    fn streams_without_retransmission_stay_in_order(
        changes in changes(),
        (loss, seed) in (0.0..0.3_f64, 0_u64..1000),
        mode in prop::sample::select(vec!["unreliable", "quasi-reliable", "erasure", "adaptive", "share"]),
        bytes in 1_usize..60_000,
    ) {
        let mut keys = json!({ "packet_bytes": 2000, "rate_bps": 2e6, "hold_time_s": 0.1, "initial_rto_s": 0.3, "fec_words": 20 });
        keys["mode"] = json!(if mode == "unreliable" { mode } else { "quasi-reliable" });
        match mode {
            "erasure" => keys["erasure"] = json!({ "source": 8, "repair": 2 }),
            "adaptive" => keys["adaptive_fec"] = json!({}),
            "share" => {
                keys.as_object_mut().unwrap().remove("fec_words");
                keys["fec_share"] = json!(0.2);
                keys["erasure"] = json!({ "source": 8, "repair": 2 });
            }
            _ => {}
        }
        let net = transfer(&keys, seed, &path(loss, true), &changes, bytes);
        prop_assert_eq!(net.received, [bytes / 3, bytes], "{:?}", net.skipped);
        prop_assert!(loss > 0.0 || !changes.is_empty() || net.skipped == [0, 0]);
        prop_assert!(net.events.iter().all(|events| events.contains(&Event::Closed)));
    }
}

/// `[S6]`: over a link of 1 Mb/s, a learnt rate fills it with packets of any size, whenever the size changes; the rate is that of the
/// link before and after. Longer packets once looked like a queue for seconds in most cases, as short ones were still under way.
#[test]
fn a_learnt_rate_fills_the_link_with_packets_of_any_size() {
    let sizes = [(1500_u64, 300_u64, 0.0), (300, 1500, 0.0), (1500, 300, 0.5), (300, 1500, 0.5)];
    for ((before, after, parity), later_ms) in
        sizes.into_iter().flat_map(|size| [0, 250, 500, 950].map(|ms| (size, ms)))
    {
        let mut keys = json!({ "packet_bytes": before, "alone": true });
        if parity > 0.0 {
            keys["fec_share"] = json!(parity);
        }
        let config = config(&keys);
        let mut net: Pair<Virtual, Side<Virtual>> = Pair::of(config.pair(1), &[]);
        let free = [Cell::new(Time::ZERO), Cell::new(Time::ZERO)];
        net.delay = Box::new(move |now, side, packet| {
            let leaves = free[side].get().max(now) + Time::from_secs_f64(f64::from(packet.wire_bytes()) * 8.0 / 1e6);
            free[side].set(leaves);
            leaves.since(now) + ONE_WAY
        });
        net.write_all(0, 3_000_000, 1_000_000);
        let later = |s: u64| Time::from_secs(s) + Time::from_millis(later_ms);
        let goodput = |net: &mut Pair<Virtual, Side<Virtual>>, from: u64, to: u64| {
            net.run_until(later(from));
            let received = net.received[1];
            net.run_until(later(to));
            (net.received[1] - received) as f64 * 8.0 / (to - from) as f64
        };
        let share = |packet: u64| (packet - if parity > 0.0 { 48 } else { 44 }) as f64 / (1.0 + parity) / packet as f64;
        let first = goodput(&mut net, 4, 8) / share(before);
        net.ends[0].connection_mut().set_packet_bytes(net.now, count(after)).unwrap();
        let second = goodput(&mut net, 9, 13) / share(after);
        // Phases are a tenth above and below the base rate, which falls by a tenth for a queue. `[P6]`, `[P14]`
        let mut pacing = 0.0;
        for n in 1..=16 {
            net.run_until(later(13) + Time::from_millis(250).times(n));
            pacing += net.ends[0].probe().pacing_bps.unwrap() / 16.0;
        }
        assert!((0.88e6..1.0e6).contains(&first) && (0.88e6..1.0e6).contains(&second), "{first} {second}");
        assert!((0.85e6..1.05e6).contains(&pacing), "{pacing}");
        let last = net.log.iter().rfind(|sent| sent.1 == 0 && sent.2.payload_bytes() > 0).unwrap();
        // A share rounds up to whole words.
        assert!(
            (after - 6..=after).contains(&last.2.wire_bytes().into())
                && (parity > 0.0 || u64::from(last.2.wire_bytes()) == after)
        );
        assert!(net.ends[0].probe().in_flight_bytes.unwrap() < 40_000);
    }
}

/// `[S3]`: the symbols of a block in flight keep their length; those of the next blocks have the new one.
#[test]
fn a_coded_stream_uses_the_new_size_from_the_next_block_on() {
    let keys = json!({ "packet_bytes": 1000, "rate_bps": 1e6, "coded": { "block_symbols": 10 } });
    for size in [300_u32, 1900] {
        let mut net: Pair<Vec<u8>, Side<Vec<u8>>> = Pair::of(config(&keys).pair(1), &[]);
        net.write_all(0, 200_000, 200_000);
        net.run_until(Time::from_millis(500));
        resize(&mut net, size.into());
        let before = net.log.len();
        net.run_until(Time::from_secs(100));
        assert_eq!(net.received[1], 200_000);
        let lengths: Vec<u32> = net.log[before..].iter().map(|sent| sent.2.wire_bytes()).collect();
        // Every source symbol leaves room for a description, although not every one carries it.
        let is_new = |bytes: u32| (size - 20..=size).contains(&bytes);
        let old = lengths.iter().take_while(|&&bytes| !is_new(bytes)).count();
        assert!(old < 40, "the open block closes: {old}");
        assert!(lengths[old..].iter().filter(|&&bytes| bytes > size).count() < 10, "repair of earlier blocks alone");
        assert!(lengths[old..].iter().filter(|&&bytes| is_new(bytes)).count() > 50);
    }
}

/// `[S1]`, `[S4]`: a connection refuses every size that the configuration refuses, and is then unchanged.
#[test]
fn sizes_without_room_for_payload_are_refused() {
    for (keys, bytes, key) in [
        (json!({}), 40, "packet_bytes"),
        (json!({}), 70_000, "packet_bytes"),
        (json!({ "receive_buffer_bytes": 4000 }), 5000, "receive_buffer_bytes"),
        (json!({ "adaptive_length": { "min_bytes": 500 } }), 400, "adaptive_length.min_bytes"),
        (json!({ "coded": {} }), 60, "packet_bytes"),
        (json!({ "mode": "quasi-reliable", "erasure": { "source": 8, "repair": 2 } }), 1600, "packet_bytes"),
    ] {
        let (mut side, _) = Pairs::<Virtual>::pair(&config(&keys), 1);
        let refused = side.connection_mut().set_packet_bytes(Time::ZERO, count(bytes)).unwrap_err();
        assert!(refused.to_string().contains(key), "{keys} {bytes}: {refused}");
        assert_eq!(side.connection().packet_bytes(), 1500);
    }
}

/// `[S5]`: parity that no longer fits is reduced, and may grow again later.
#[test]
fn parity_fits_into_the_packet() {
    let keys = json!({ "mode": "quasi-reliable", "fec_words": 100 });
    let (mut side, _) = Pairs::<Virtual>::pair(&config(&keys), 1);
    let end = side.connection_mut();
    end.write(Time::ZERO, &mut Virtual(10_000));
    end.set_packet_bytes(Time::ZERO, count(200)).unwrap();
    assert_eq!(end.fec_words(), (200 - 40 - 4 - 4 - 4 - 1) / 4);
    let sent = end.poll_transmit(Time::ZERO).unwrap().packet;
    assert!(sent.wire_bytes() <= 200 && sent.payload_bytes() > 0);
    end.set_packet_bytes(Time::ZERO, count(1500)).unwrap();
    end.set_fec_words(100).unwrap();
    assert_eq!(end.poll_transmit(Time::ZERO).unwrap().packet.wire_bytes(), 1500);
}

/// `[S5]`, `[F6]`: copies of reliable data that was sent with less parity keep their length, and have the parity that fits.
#[test]
fn copies_have_the_parity_that_fits() {
    let keys = json!({ "fec_words": 4, "copies": 2, "rate_control": "none" });
    let (mut side, _) = Pairs::<Virtual>::pair(&config(&keys), 1);
    let end = side.connection_mut();
    end.write(Time::ZERO, &mut Virtual(3000));
    let first = end.poll_transmit(Time::ZERO).unwrap().packet;
    assert_eq!((first.wire_bytes(), first.fec_words), (1500, 4));
    end.set_fec_words(50).unwrap();
    let next = end.poll_transmit(Time::ZERO).unwrap().packet;
    assert_eq!((next.wire_bytes(), next.fec_words), (1500, 50));
    let later = Time::from_secs_f64(0.5);
    let copies: Vec<_> = std::iter::from_fn(|| end.poll_transmit(later)).map(|sent| sent.packet).collect();
    let copy = copies.iter().find(|copy| copy.sequence == first.sequence).unwrap();
    assert_eq!((copy.payload_bytes(), copy.wire_bytes(), copy.fec_words), (first.payload_bytes(), 1500, 4));
    assert!(copies.iter().all(|copy| copy.wire_bytes() <= 1500));
}
