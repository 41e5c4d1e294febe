//! Cases of AeroTP connections that sentences of `docs/aerotp.md` describe; the marks name the sentences.

use crate::pair;
use crate::pair::{ONE_WAY, Pair};
use farlink_core::event::Abort;
use farlink_core::payload::{Payload, Virtual};
use farlink_core::protocol::aerotp::{AerotpConfig, Flags, Mack, Repair, Segment, Side, State};
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::{Endpoint, Event, LinkHint, Packet, Rx, Stream, Time};
use serde_json::{Value, json};

pub(crate) type Net = Pair<Virtual, Side<Virtual>>;

/// Packets of 100 bytes of payload.
fn config(keys: Value) -> AerotpConfig {
    let mut all = json!({ "packet_bytes": 148 });
    if keys.get("rate_bps").is_none() {
        all["rate_control"] = json!("none");
    }
    all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let config: AerotpConfig = serde_json::from_value(all).unwrap();
    config.check().unwrap();
    config
}

pub(crate) fn net(keys: Value) -> Net {
    Pair::of(Pairs::<Virtual>::pair(&config(keys), 7), &[])
}

pub(crate) fn restarted(keys: Value, seed: u64) -> [Side<Virtual>; 2] {
    Pairs::<Virtual>::pair(&config(keys), seed).into()
}

pub(crate) fn write(net: &mut Net, side: usize, bytes: u32) {
    assert_eq!(net.ends[side].write(net.now, &mut Virtual(bytes)), bytes as usize);
    net.pump(side);
}

fn close(net: &mut Net, side: usize) {
    net.ends[side].close(net.now);
    net.pump(side);
}

pub(crate) fn wait(net: &mut Net, seconds: f64) {
    net.wait_until(net.now + Time::from_secs_f64(seconds));
}

pub(crate) fn packets(net: &Net, side: usize) -> Vec<Segment<Virtual>> {
    net.log.iter().filter(|sent| sent.1 == side).map(|sent| sent.2.clone()).collect()
}

pub(crate) fn last_of(net: &Net, side: usize, is_wanted: impl Fn(&Segment<Virtual>) -> bool) -> Segment<Virtual> {
    packets(net, side).into_iter().rfind(|segment| is_wanted(segment)).expect("it was sent")
}

/// A connection that has carried data in both directions.
pub(crate) fn established(keys: Value) -> Net {
    let mut net = net(keys);
    write(&mut net, 0, 1000);
    wait(&mut net, 1.0);
    write(&mut net, 1, 1000);
    wait(&mut net, 1.0);
    assert_eq!([0, 1].map(|side| net.ends[side].state()), [State::Established; 2]);
    assert_eq!(net.received, [1000, 1000]);
    net
}

/// `[C1]`, `[C2]`
#[test]
fn data_is_sent_with_the_asyn_and_directly_after_it() {
    let mut net = net(json!({}));
    assert_eq!([0, 1].map(|side| net.ends[side].state()), [State::AsynSent, State::Listen]);
    write(&mut net, 0, 1000);
    net.run_until(ONE_WAY);
    assert_eq!(net.received[1], 1000, "half a round trip after the beginning");
    let sent = packets(&net, 0);
    assert!(sent.len() == 10 && sent.iter().all(|segment| segment.flags.has(Flags::ASYN)));
}

/// `[C4]`: until the peer is known to receive, any segment opens the connection.
#[test]
fn any_of_the_first_segments_opens_the_connection() {
    for lost in 0..10 {
        let mut net = net(json!({}));
        net.faults = (0..lost).map(|_| pair::Fault::Lose).collect();
        net.write_all(0, 1000, 1000);
        net.run_until(ONE_WAY);
        assert_ne!(net.ends[1].state(), State::Listen, "{lost} lost");
        net.write_all(1, 0, 1);
        net.run_until(Time::from_secs(10_000));
        net.assert_done([1000, 0]);
    }
}

/// `[C7]`: both sides open at once, and segments of one of them may be lost.
#[test]
fn a_simultaneous_opening_establishes_one_connection() {
    for lost in [[false, false], [true, false], [false, true], [true, true]] {
        let mut net = net(json!({ "opens": "both" }));
        net.faults = lost.iter().map(|&is| if is { pair::Fault::Lose } else { pair::Fault::Delay(20) }).collect();
        net.write_all(0, 100, 100);
        net.write_all(1, 100, 100);
        net.run_until(Time::from_secs(10_000));
        net.assert_done([100, 100]);
    }
}

/// `[C9]`, `[C16]`: no data is in flight, and the peer is gone.
#[test]
fn keep_alives_detect_a_vanished_peer() {
    let mut net = established(json!({ "keep_alive_s": 5, "give_up_after_s": 60 }));
    wait(&mut net, 2.0); // the opener asks once more `[G4]`
    net.is_cut[1] = true;
    let sent = packets(&net, 0).len();
    wait(&mut net, 50.0);
    assert!((9..=10).contains(&(packets(&net, 0).len() - sent)), "a question every five seconds");
    assert_eq!(net.ends[0].state(), State::Established);
    wait(&mut net, 20.0);
    assert!(net.events[0].contains(&Event::Aborted(Abort::NoAnswer)), "{:?}", net.events[0]);
    assert_eq!((net.ends[0].state(), net.ends[0].poll_timeout()), (State::Closed, None));
}

/// `[C9]`: also after the end of the own stream.
#[test]
fn a_live_peer_answers_keep_alives() {
    let mut net = established(json!({ "keep_alive_s": 5, "give_up_after_s": 60 }));
    close(&mut net, 0);
    wait(&mut net, 1000.0);
    assert_eq!([0, 1].map(|side| net.ends[side].state()), [State::AfinSent, State::AfinRcvd]);
    net.ends[1].close(net.now);
    wait(&mut net, 10.0);
    assert!(net.events.iter().all(|events| events.contains(&Event::Closed)));
}

/// `[C16]`
#[test]
fn a_peer_that_never_answers_is_reported() {
    let mut net = net(json!({ "give_up_after_s": 100 }));
    net.is_cut = [true; 2];
    write(&mut net, 0, 100);
    wait(&mut net, 99.0);
    assert_eq!(net.events[0], []);
    let gaps: Vec<f64> = net.log.windows(2).map(|two| two[1].0.since(two[0].0).as_secs_f64()).collect();
    assert!(gaps.iter().all(|&gap| gap < 8.1) && gaps.len() > 10, "at most eight times initial_rto_s apart: {gaps:?}");
    wait(&mut net, 2.0);
    assert_eq!(net.events[0], [Event::Aborted(Abort::NoAnswer)]);
}

/// `[C16]`, `[R6]`: a peer with a closed window is probed, which shows whether it is still alive.
#[test]
fn a_vanished_peer_with_a_closed_window_is_reported() {
    for coded in [json!(null), json!({})] {
        let mut net =
            net(json!({ "receive_buffer_bytes": 400, "half_open_bytes": 400, "give_up_after_s": 60, "coded": coded }));
        net.is_reader_asleep[1] = true;
        write(&mut net, 0, 2000);
        wait(&mut net, 300.0);
        let aborted = Event::Aborted(Abort::NoAnswer);
        assert!(!net.events[0].contains(&aborted), "{coded}: it answered all the time");
        net.is_cut = [true; 2];
        wait(&mut net, 50.0);
        assert!(!net.events[0].contains(&aborted), "{coded}: not before the time");
        wait(&mut net, 20.0);
        assert!(net.events[0].contains(&aborted), "{coded}: {:?}", net.events[0]);
    }
}

/// `[C19]`
#[test]
fn nothing_is_sent_while_the_link_is_down() {
    let mut net = established(json!({ "keep_alive_s": 5 }));
    let tell = |net: &mut Net, hint| {
        for side in [0, 1] {
            net.ends[side].handle_link(net.now, hint);
            net.pump(side);
        }
    };
    tell(&mut net, LinkHint::Down);
    let sent = net.log.len();
    write(&mut net, 0, 5000);
    write(&mut net, 1, 5000);
    wait(&mut net, 300.0);
    assert_eq!(net.log.len(), sent);
    tell(&mut net, LinkHint::Up);
    assert_eq!(net.log.iter().filter(|sent| sent.0 == net.now).count(), 98, "everything is sent at once");
    wait(&mut net, ONE_WAY.as_secs_f64());
    assert_eq!(net.received, [6000, 6000]);
}

/// `[C20]`: without hints, a probe detects the end of the outage.
#[test]
fn a_connection_continues_after_an_outage_of_minutes() {
    for minutes in [1.0, 7.0, 30.0] {
        let mut net = established(json!({ "give_up_after_s": 7200 }));
        write(&mut net, 0, 50_000);
        wait(&mut net, 0.005);
        net.is_cut = [true; 2];
        write(&mut net, 0, 50_000);
        wait(&mut net, minutes * 60.0);
        net.is_cut = [false; 2];
        let back = net.now;
        while net.received[1] < 101_000 {
            assert!(net.step(Time::NEVER));
        }
        let took = net.now.since(back).as_secs_f64();
        // Round trip 0.04 s, held for up to 0.05 s: a timeout of 0.1 s, eight probes in each.
        assert!(took < 0.2, "{took} s after {minutes} minutes");
    }
}

/// `[C20]`: whichever probe is the first to get through brings the first missing data, however much was in flight.
#[test]
fn the_first_missing_data_arrives_with_the_first_probe_after_an_outage() {
    let lost_and_outage = [1, 100, 1000, 5000, 50_000].into_iter().flat_map(|bytes| (0..8).map(move |k| (bytes, k)));
    for (bytes, k) in lost_and_outage {
        let mut net = established(json!({}));
        net.is_cut = [true; 2];
        write(&mut net, 0, bytes);
        wait(&mut net, 20.0 + 0.037 * f64::from(k));
        let had = net.received[1];
        net.is_cut = [false; 2];
        let back = net.now;
        while net.received[1] == had {
            assert!(net.step(Time::NEVER));
        }
        let took = net.now.since(back).as_secs_f64();
        // One way, and an eighth of a timeout of 0.101 s.
        assert!(took < ONE_WAY.as_secs_f64() + 0.0127, "{took} s, {bytes} bytes and outage {k}");
    }
}

/// `[L8]`: timestamps wrap after 71.6 minutes; after half of that, they no longer tell the order of two segments.
#[test]
fn a_connection_continues_after_hours_without_data() {
    let waits = [2000.0, 2200.0, 4000.0, 4400.0, 20_000.0];
    for (seconds, keys) in waits.into_iter().flat_map(|wait| [(wait, json!({})), (wait, json!({ "coded": {} }))]) {
        let mut net = established(keys);
        wait(&mut net, seconds);
        write(&mut net, 0, 1000);
        wait(&mut net, 0.2);
        assert_eq!(net.received[1], 2000);
        assert_eq!(net.ends[0].probe().acknowledged_bytes, Some(2000), "after {seconds} s");
        assert_eq!(net.ends[0].dropped().forged, 0);
        assert!(net.ends[0].probe().rtt < Some(Time::from_secs(1)));
    }
}

/// `[A3]`: a timestamp that was held for too long is not echoed.
#[test]
fn a_reader_that_paused_for_hours_does_not_block_the_sender() {
    let waits = [600.0, 2000.0, 4500.0];
    let coded = json!({ "receive_buffer_bytes": 400, "coded": {} });
    let modes = |wait| [(wait, json!({ "receive_buffer_bytes": 400 })), (wait, coded.clone())];
    for (seconds, keys) in waits.into_iter().flat_map(modes) {
        let mut net = net(keys);
        net.is_reader_asleep[1] = true;
        write(&mut net, 0, 2000);
        wait(&mut net, seconds);
        net.is_reader_asleep[1] = false;
        net.pump(1);
        wait(&mut net, 5.0);
        assert_eq!(net.received[1], 2000);
        assert_eq!(net.ends[0].dropped().forged, 0);
        assert!(net.ends[0].probe().rtt < Some(Time::from_secs(1)), "{:?}", net.ends[0].probe().rtt);
    }
}

/// `[A8]`, `[C5]`: an acknowledgement of data, or an echo of a timestamp, that was never sent changes no state.
#[test]
fn forged_acknowledgements_are_ignored() {
    let mut net = net(json!({}));
    wait(&mut net, 100.0);
    net.is_cut = [true; 2];
    write(&mut net, 0, 1000);
    let data = packets(&net, 0)[0].clone();
    let mack = Mack { echo: data.timestamp, window: 1000, is_from_start: true, is_to_end: true, ..Mack::default() };
    let good =
        Segment { tag: 99, flags: Flags::MACK, mack: Some(Box::new(mack)), timestamp: 5, payload: Virtual(0), ..data };
    let with = |change: fn(&mut Mack)| {
        let mut mack = mack;
        change(&mut mack);
        Segment { mack: Some(Box::new(mack)), ..good.clone() }
    };
    let forged = [
        Segment { sequence: data.sequence.wrapping_add(1001), ..good.clone() },
        Segment { sequence: data.sequence.wrapping_sub(1), ..good.clone() },
        with(|mack| mack.echo = mack.echo.wrapping_sub(1)),
        with(|mack| mack.echo = mack.echo.wrapping_add(2_000_000)),
        with(|mack| mack.held = 2_000_000),
        with(|mack| assert!(mack.edges.push(0, 100))),
    ];
    wait(&mut net, 0.5);
    let before = format!("{:?}", net.ends[0].state());
    for segment in &forged {
        net.ends[0].handle_packet(net.now, segment, Rx::default());
        assert_eq!(format!("{:?}", net.ends[0].state()), before);
    }
    assert_eq!(net.ends[0].probe().acknowledged_bytes, Some(0));
    // The genuine acknowledgement establishes, and a second forged one is counted.
    net.ends[0].handle_packet(net.now, &Segment { sequence: data.sequence.wrapping_add(100), ..good }, Rx::default());
    assert_eq!(net.ends[0].state(), State::Established);
    net.ends[0].handle_packet(net.now, &forged[0], Rx::default());
    assert_eq!(net.ends[0].dropped().forged, 1);
    assert_eq!(net.ends[0].probe().acknowledged_bytes, Some(100));
}

/// `[C14]`
#[test]
fn only_a_reset_for_a_sent_segment_is_accepted() {
    let mut net = established(json!({}));
    net.is_cut = [true; 2];
    write(&mut net, 0, 100);
    let sent = last_of(&net, 0, |segment| segment.mack.is_none());
    let reset = Segment { flags: Flags::RESET, payload: Virtual(0), ..sent };
    let forged = [
        Segment { tag: sent.tag.wrapping_add(1), ..reset.clone() },
        Segment { sequence: sent.sequence.wrapping_add(500), ..reset.clone() },
        Segment { timestamp: sent.timestamp.wrapping_add(1_000_000), ..reset.clone() },
        Segment { timestamp: sent.timestamp.wrapping_sub(3_000_000), ..reset.clone() },
    ];
    for segment in forged {
        net.ends[0].handle_packet(net.now, &segment, Rx::default());
    }
    assert_eq!((net.ends[0].state(), net.ends[0].dropped().stray), (State::Established, 4));
    net.ends[0].handle_packet(net.now, &reset, Rx::default());
    net.pump(0);
    assert_eq!(net.events[0].last(), Some(&Event::Aborted(Abort::Reset)));
}

/// `[C17]`
#[test]
fn a_peer_that_does_not_close_is_given_up_at_the_close_timeout() {
    let mut net = established(json!({ "close_timeout_s": 30 }));
    close(&mut net, 0);
    wait(&mut net, 29.0);
    assert_eq!(net.ends[0].state(), State::AfinSent);
    wait(&mut net, 2.0);
    assert_eq!(net.events[0].last(), Some(&Event::Aborted(Abort::NotClosed)));
}

/// `[C18]`: the acknowledgement of the end is lost and is repeated while the listen timer runs.
#[test]
fn a_listener_repeats_its_last_answer_until_the_listen_timeout() {
    let mut net = established(json!({ "listen_timeout_s": 60 }));
    close(&mut net, 1);
    wait(&mut net, 1.0);
    net.is_cut[1] = true;
    close(&mut net, 0);
    wait(&mut net, 30.0);
    assert_eq!([0, 1].map(|side| net.ends[side].state()), [State::AfinRcvd; 2]);
    assert!(!net.events[0].contains(&Event::Closed) && net.events[1].contains(&Event::Closed));
    net.is_cut = [false; 2];
    wait(&mut net, 10.0);
    assert!(net.events[0].contains(&Event::Closed));
    wait(&mut net, 70.0);
    assert_eq!([0, 1].map(|side| net.ends[side].state()), [State::Closed, State::Listen]);
    assert_eq!([0, 1].map(|side| net.ends[side].poll_timeout()), [None; 2]);
}

/// `[C15]`: only the acknowledgement of the end is missing, and the listener has discarded the connection.
#[test]
fn a_reset_replaces_the_last_acknowledgement() {
    let mut net = established(json!({ "listen_timeout_s": 5 }));
    close(&mut net, 1);
    wait(&mut net, 1.0);
    net.is_cut[1] = true;
    close(&mut net, 0);
    wait(&mut net, 0.03);
    net.is_cut = [true; 2];
    wait(&mut net, 30.0);
    assert_eq!(net.ends[1].state(), State::Listen);
    net.is_cut = [false; 2];
    wait(&mut net, 5.0);
    assert_eq!(net.events[0].last(), Some(&Event::Closed), "{:?}", net.events[0]);
}

/// `[B7]`: little is stored for a peer that has not proved that it receives.
#[test]
fn a_half_open_peer_takes_little_memory() {
    let mut net = net(json!({ "half_open_bytes": 300 }));
    net.is_cut[1] = true;
    net.is_reader_asleep[1] = true;
    write(&mut net, 0, 10_000);
    assert_eq!(packets(&net, 0).len(), 3, "the opener knows the peer");
    let data = packets(&net, 0)[2].clone();
    wait(&mut net, 0.1);
    let mack = last_of(&net, 1, |segment| segment.mack.is_some()).mack.unwrap();
    assert_eq!(mack.window, 0);
    let beyond = Segment { sequence: data.sequence.wrapping_add(100), ..data };
    net.ends[1].handle_packet(net.now, &beyond, Rx::default());
    assert_eq!(net.ends[1].dropped().outside, 1);
    net.is_cut = [false; 2];
    wait(&mut net, 20.0);
    net.is_reader_asleep[1] = false;
    net.pump(1);
    assert_eq!(net.received[1], 10_000);
}

/// `[B7]`, `[K8]`: the description of a block requests room for all of it.
#[test]
fn a_half_open_peer_cannot_describe_more_than_it_may_send() {
    let mut net = net(json!({ "half_open_bytes": 300, "coded": {} }));
    net.is_cut[1] = true;
    write(&mut net, 0, 10_000);
    wait(&mut net, 0.5);
    let sent: u32 = packets(&net, 0).iter().filter(|segment| segment.repair.is_none()).map(|s| s.payload.0).sum();
    assert!(sent <= 300, "{sent} bytes: who opens knows");
    let data = last_of(&net, 0, |segment| segment.payload.0 > 0);
    let repair = Repair { start: data.opening, bytes: 8400, symbol_bytes: 84, symbols: 100, index: 100 };
    let flags = data.flags.with(Flags::REPAIR);
    let asks = Segment { sequence: data.opening, flags, repair: Some(repair), payload: Virtual(84), ..data.clone() };
    let outside = net.ends[1].dropped().outside;
    net.ends[1].handle_packet(net.now, &asks, Rx::default());
    assert_eq!(net.ends[1].dropped().outside, outside + 1);
    net.is_cut = [false; 2];
    wait(&mut net, 20.0);
    assert_eq!(net.received[1], 10_000);
    // A peer that is known to receive may describe as much as the buffer holds.
    for (bytes, expected) in [(16 << 20, 0), ((16 << 20) + 1, 1)] {
        let next = data.opening.wrapping_add(10_000);
        let symbols = u32::div_ceil(bytes, 8000) as u16;
        let repair = Repair { start: next, bytes, symbol_bytes: 8000, symbols, index: symbols.into() };
        let asks = Segment {
            flags: Flags::REPAIR,
            sequence: next,
            repair: Some(repair),
            payload: Virtual(8000),
            ..data.clone()
        };
        let outside = net.ends[1].dropped().outside;
        net.ends[1].handle_packet(net.now, &asks, Rx::default());
        assert_eq!(net.ends[1].dropped().outside, outside + expected, "{bytes}");
    }
}

/// `[B6]`
#[test]
fn many_small_pieces_take_no_more_memory_than_the_buffer() {
    let mut ends = Pairs::<Vec<u8>>::pair(&config(json!({ "receive_buffer_bytes": 64_000 })), 7);
    let first = ends.0.write(Time::ZERO, &mut vec![1; 50]);
    let first = (first > 0).then(|| ends.0.poll_transmit(Time::ZERO).unwrap().packet).unwrap();
    for n in 1..30_000_u32 {
        let segment = Segment { sequence: first.sequence.wrapping_add(2 * n), payload: vec![0], ..first.clone() };
        ends.1.handle_packet(Time::ZERO, &segment, Rx::default());
    }
    assert_eq!(ends.1.counters().peak_reorder_bytes, 1064, "a byte each");
    assert_eq!(ends.1.dropped().outside, 29_999 - 1064);
    ends.1.handle_packet(Time::ZERO, &first, Rx::default());
    assert_eq!(
        ends.1.read().map(|data| data.len()),
        Some(51),
        "data that fills the gap is always accepted, with the data after it"
    );
}

/// `[B3]`, `[B4]`, `[B5]`
#[test]
fn contradictory_segments_are_dropped() {
    let mut net = established(json!({}));
    let data = Segment { sequence: 0, ..last_of(&net, 0, |segment| segment.payload.0 > 0) };
    let mack = last_of(&net, 0, |segment| segment.mack.is_some());
    let malformed = [
        Segment { flags: data.flags.with(Flags::MACK), ..data.clone() },
        Segment { flags: data.flags.with(Flags::REPAIR), ..data.clone() },
        Segment { repair: Some(Repair::default()), ..data.clone() },
        Segment { payload: Virtual(1), ..mack.clone() },
        Segment { flags: mack.flags.with(Flags::AFIN), ..mack.clone() },
        Segment { flags: Flags(mack.flags.0 & !Flags::MACK.0), ..mack.clone() },
    ];
    for segment in malformed {
        net.ends[1].handle_packet(net.now, &segment, Rx::default());
    }
    assert_eq!(net.ends[1].dropped().malformed, 6);
    // Repair symbols without a code, and data beyond the window.
    let next = last_of(&net, 0, |segment| segment.payload.0 > 0).sequence.wrapping_add(100);
    let repair = Segment {
        sequence: next,
        flags: data.flags.with(Flags::REPAIR),
        repair: Some(Repair::default()),
        ..data.clone()
    };
    net.ends[1].handle_packet(net.now, &repair, Rx::default());
    let far = Segment { sequence: next.wrapping_add(80 << 20), ..data };
    net.ends[1].handle_packet(net.now, &far, Rx::default());
    assert_eq!(net.ends[1].dropped().outside, 2);
    wait(&mut net, 1.0);
    assert_eq!(net.received[1], 1000);
}

/// `[R7]`, `[R8]`: sequence numbers wrap; segments of an earlier cycle are recognised by their age.
#[test]
fn a_connection_of_more_than_four_gigabytes() {
    let keys = json!({ "packet_bytes": 65_000, "receive_buffer_bytes": 1 << 26, "rate_bps": 1e11 });
    let mut net = net(keys);
    let mut left = 5_000_000_000_usize;
    let mut old = None;
    while net.received[1] < 5_000_000_000_usize {
        left -= net.ends[0].write(net.now, &mut Virtual(left.min(1 << 28) as u32));
        net.pump(0);
        assert!(net.step(Time::NEVER));
        if net.received[1] > 500_000_000 && old.is_none() {
            old = Some((net.received[1], packets(&net, 0).into_iter().rfind(|sent| sent.payload.0 > 0).unwrap()));
        }
        if net.log.len() > 1000 {
            net.log.clear();
            net.codepoints.clear();
        }
        // A segment of the previous cycle has the sequence number of the next data.
        if let Some((at, segment)) = old.clone()
            && net.received[1] >= at + (1 << 32) - 30_000_000
            && net.received[1] < at + (1 << 32)
        {
            let before = (net.ends[1].dropped(), net.ends[1].counters().peak_reorder_bytes);
            net.ends[1].handle_packet(net.now, &segment, Rx::default());
            assert_eq!(net.ends[1].dropped().stray, before.0.stray + 1);
            assert_eq!(net.ends[1].counters().peak_reorder_bytes, before.1);
            old = Some((usize::MAX >> 1, segment));
        }
    }
    assert_eq!(net.ends[1].dropped().stray, 1);
    wait(&mut net, 1.0);
    assert_eq!(net.ends[0].probe().acknowledged_bytes, Some(5_000_000_000));
}

#[test]
fn contradictory_limits_are_refused() {
    let refusal = |keys: Value| {
        let mut all = json!({ "packet_bytes": 148 });
        if keys.get("rate_bps").is_none() {
            all["rate_control"] = json!("none");
        }
        all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        serde_json::from_value::<AerotpConfig>(all).unwrap().check().unwrap_err().to_string()
    };
    assert!(refusal(json!({ "half_open_bytes": 100 })).contains("half_open_bytes"));
    assert!(refusal(json!({ "half_open_bytes": 1e9 })).contains("give at least packet_bytes and at most"));
}

/// This includes optional fields, parity and checks.
#[test]
fn full_packets_have_exactly_the_configured_size() {
    for keys in [
        json!({}),
        json!({ "coded": { "expected_loss": 0.3 } }),
        json!({ "mode": "quasi-reliable", "fec_words": 2 }),
        json!({ "fec_words": 2 }),
        json!({ "mode": "near-reliable", "fec_share": 0.2 }),
        json!({ "mode": "quasi-reliable", "fec_share": 0.2, "erasure": { "source": 4, "repair": 2 } }),
        json!({ "mode": "quasi-reliable", "erasure": { "source": 4, "repair": 2 } }),
    ] {
        let mut net = net(keys.clone());
        write(&mut net, 0, 3_000);
        close(&mut net, 0);
        wait(&mut net, 60.0);
        let longest_of = |is_repair: bool| {
            let of_kind = packets(&net, 0).into_iter().filter(|segment| {
                segment.repair.is_some_and(|repair| repair.index >= u32::from(repair.symbols)) == is_repair
            });
            of_kind.map(|segment| segment.wire_bytes()).max()
        };
        assert!(longest_of(false) > Some(120) && longest_of(false) <= Some(148), "{keys}: {:?}", longest_of(false));
        let has_repairs = keys.get("coded").or(keys.get("erasure")).is_some();
        assert_eq!(longest_of(true).is_some(), has_repairs, "{keys}");
        assert!(longest_of(true) <= Some(148), "{keys}: {:?}", longest_of(true));
    }
}

/// 20 kB at a packet a millisecond, half of them lost: the times at which each segment with data was sent, and when the
/// last of it had arrived.
fn over_a_lossy_link(keys: Value, is_closed: bool) -> (Vec<(Time, Segment<Virtual>)>, Time) {
    let mut all = json!({ "rate_bps": 148e3 * 8.0 });
    all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let mut net = net(all);
    net.delay = Box::new(|now, side, segment: &Segment<Virtual>| {
        let ms = (now.as_secs_f64() * 1e3).round() as u64;
        let is_lost = side == 0 && segment.payload.0 > 0 && ms.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
        if is_lost { Time::NEVER } else { ONE_WAY }
    });
    write(&mut net, 0, 20_000);
    if is_closed {
        close(&mut net, 0);
    }
    wait(&mut net, 10.0);
    assert_eq!(net.received[1], 20_000);
    let complete = last_of(&net, 1, |segment| segment.mack.is_some()).sequence;
    let arrived = net.log.iter().find(|sent| sent.1 == 1 && sent.2.sequence == complete).unwrap().0;
    let sent = net
        .log
        .iter()
        .filter(|sent| sent.1 == 0 && sent.2.payload.0 > 0)
        .map(|sent| (sent.0, sent.2.clone()))
        .collect();
    (sent, arrived)
}

/// Times of the last transmission and of the retransmission, for each one sent before an answer could have requested it.
fn repeated_early(sent: &[(Time, Segment<Virtual>)]) -> Vec<(Time, Time)> {
    let mut found = Vec::new();
    for (n, (at, segment)) in sent.iter().enumerate() {
        let before = sent[..n].iter().rfind(|(_, earlier)| earlier.sequence == segment.sequence);
        if let Some(&(last, _)) = before.filter(|(last, _)| at.since(*last) < ONE_WAY.times(2)) {
            found.push((last, *at));
        }
    }
    found
}

/// `[R11]`, `[R12]`: segments near the end that are likely to be lost are copied before their loss is detected, and
/// copies are not sent back to back.
#[test]
fn spare_copies_protect_the_end_of_the_stream() {
    let (sent, arrived) = over_a_lossy_link(json!({ "spare_copies": true }), true);
    let end = sent.iter().find(|sent| sent.1.flags.has(Flags::AFIN)).unwrap().0;
    let copies = repeated_early(&sent);
    assert!(
        copies.len() > 20
            && copies.iter().all(|&(last, at)| at > end && at.since(last) >= Time::from_ps(2_500_000_000))
    );
    let (_, arrived_singly) = over_a_lossy_link(json!({}), true);
    assert!(arrived + ONE_WAY.times(4) < arrived_singly, "{arrived:?} against {arrived_singly:?}");
}

/// `[R10]`, `[R11]`: there are no spare copies unless configured, before the end, or without a rate.
#[test]
fn without_spare_copies_only_lost_segments_are_retransmitted() {
    for (keys, is_closed) in [(json!({}), true), (json!({ "spare_copies": true }), false)] {
        assert_eq!(repeated_early(&over_a_lossy_link(keys.clone(), is_closed).0), [], "{keys}");
    }
    let mut net = net(json!({ "spare_copies": true }));
    net.faults = (0..50).map(|n| if n % 3 == 0 { pair::Fault::Lose } else { pair::Fault::Delay(20) }).collect();
    net.write_all(0, 2000, 2000);
    wait(&mut net, 10.0);
    let sent: Vec<_> =
        net.log.iter().filter(|sent| sent.1 == 0 && sent.2.payload.0 > 0).map(|s| (s.0, s.2.clone())).collect();
    assert!(repeated_early(&sent).is_empty() && sent.len() > 20);
}

/// `[P3]`, `[P11]`: the first sixteen packets are sent a microsecond apart, with a request for an answer after the
/// first, the eighth and the last.
#[test]
fn the_first_packets_of_a_learnt_rate_request_answers() {
    let first_second = |control: &str| {
        let mut net = net(json!({ "rate_control": control, "initial_rto_s": 10 }));
        net.is_cut = [true; 2];
        write(&mut net, 0, 10_000);
        wait(&mut net, 0.1);
        packets(&net, 0)
    };
    for control in ["learnt", "friendly"] {
        let sent = first_second(control);
        let is_question: Vec<bool> = sent.iter().map(|segment| segment.payload.is_empty()).collect();
        let asked: Vec<usize> = (0..sent.len()).filter(|&at| is_question[at]).collect();
        assert_eq!((sent.len(), asked), (19, vec![1, 9, 18]));
        let data: Vec<u32> =
            sent.iter().filter(|segment| !segment.payload.is_empty()).map(|one| one.timestamp).collect();
        assert!(data.windows(2).all(|pair| pair[1] == pair[0] + 1), "{data:?}");
    }
}

/// `[P3]`, `[P11]`: answers that came before the first sixteen packets do not end the burst, and a shorter one tells the speed as well. A
/// hundred packets after that are not paced at sixteen packets in a second.
#[test]
fn a_connection_that_was_asked_first_answers_with_a_whole_burst() {
    for control in ["learnt", "friendly"] {
        for (first, idle_s) in [(100, 0.0), (100, 3.0), (500, 3.0), (1600, 3.0)] {
            let mut net = net(json!({ "rate_control": control, "alone": false }));
            write(&mut net, 0, 4);
            write(&mut net, 1, first);
            wait(&mut net, 0.2 + idle_s);
            write(&mut net, 0, 4);
            wait(&mut net, 0.1);
            write(&mut net, 1, 10_000);
            let round_trips = (1..=25).find(|_| {
                wait(&mut net, 2.0 * pair::ONE_WAY.as_secs_f64());
                net.received[0] == first as usize + 10_000
            });
            assert!(round_trips.is_some_and(|round_trips| round_trips <= 8), "{control}, {first}: {round_trips:?}");
        }
    }
}

/// `[P3]`, `[P12]`: what follows the first sixteen packets does not wait for `initial_rto_s`, 1 s, where the round trip is shorter: 40 packets
/// over a fast path arrive within a few round trips.
#[test]
fn the_rate_after_the_first_packets_is_that_of_the_path() {
    for control in ["learnt", "friendly"] {
        let mut net = net(json!({ "rate_control": control, "alone": false }));
        write(&mut net, 0, 4000);
        let round_trip_s = 2.0 * pair::ONE_WAY.as_secs_f64();
        let round_trips = (1..=25).find(|_| {
            wait(&mut net, round_trip_s);
            net.received[1] == 4000
        });
        assert!(round_trips.is_some_and(|round_trips| round_trips <= 4), "{control}: {round_trips:?}");
    }
}
