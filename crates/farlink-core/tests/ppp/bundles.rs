//! Several lines: fragments both ways, drops, and lines that come back.

use farlink_core::Time;
use farlink_core::ppp::{BundleConfig, Cause, Discriminator, Event, Proof};

use super::wires::{Wires, config, number, packet, proven, secs};

fn pair(change: impl Fn(usize, &mut BundleConfig), lines: usize) -> [BundleConfig; 2] {
    [0, 1].map(|end| {
        let mut one = proven(config(end, lines, 2400.0), end, vec![Proof::ChapMd5], "secret");
        change(end, &mut one);
        one
    })
}

fn opened(configs: [BundleConfig; 2], seed: u64) -> Wires {
    let mut wires = Wires::new(configs, 2400.0, Time::from_millis(700), seed);
    wires.all_up();
    wires.run(secs(30.0));
    wires
}

/// Sends packets at an interval, and runs.
fn stream(wires: &mut Wires, end: usize, from: u32, count: u32, length: usize, every: f64) {
    for number in from..from + count {
        wires.send(end, packet(number, length));
        wires.run(secs(every));
    }
}

#[test]
fn eight_lines_carry_eight_times_as_much() {
    let mut wires = opened(pair(|_, _| {}, 8), 1);
    assert_eq!(wires.members(), 8);
    let begin = wires.now;
    // As fast as the lines carry them, 0.89 of their rates: of a longer queue CoDel would drop some.
    stream(&mut wires, 0, 0, 40, 1500, 0.7);
    wires.run(secs(30.0));
    assert_eq!(wires.arrived(1), (0..40).collect::<Vec<_>>());
    let (last, _) = wires.packets[1].last().unwrap();
    let share = 40.0 * 1500.0 / last.since(begin).as_secs_f64() / (8.0 * 300.0);
    // 700 ms of delay and the time of the last packet, in 29.4 s.
    assert!(share > 0.84, "{share}");
    assert!(wires.wires.iter().all(|wire| wire.ways[0].bytes > 5000), "all lines are used");
}

#[test]
fn short_numbers_and_mrru_are_negotiated_for_each_direction() {
    let short_at_far = |end: usize, config: &mut BundleConfig| {
        let multilink = config.link.lcp.multilink.as_mut().unwrap();
        (multilink.short_numbers, multilink.mrru) = (end == 1, if end == 0 { 1500 } else { 700 });
    };
    let mut wires = opened(pair(short_at_far, 3), 2);
    assert_eq!([0, 1].map(|end| wires.ends[end].properties().unwrap().mtu), [700, 1500]);
    // Numbers of 12 bits wrap.
    for end in 0..2 {
        stream(&mut wires, end, 0, 300, 600 + 100 * end, 1.0);
    }
    wires.run(secs(60.0));
    assert!(!wires.send(0, packet(0, 701)));
    assert_eq!([0, 1].map(|end| wires.arrived(end).len()), [300, 300]);
}

#[test]
fn any_line_drops_and_comes_back_the_first_one_too() {
    for line in 0..3 {
        let mut wires = opened(pair(|_, _| {}, 3), 3);
        stream(&mut wires, 0, 0, 20, 400, 0.6);
        wires.carrier(line, false);
        stream(&mut wires, 0, 20, 20, 400, 1.0);
        assert_eq!((wires.members(), wires.has_network()), (2, true));
        wires.carrier(line, true);
        stream(&mut wires, 0, 40, 40, 400, 0.6);
        wires.run(secs(30.0));
        assert_eq!(wires.members(), 3);
        let arrived = wires.arrived(1);
        // What had left the port was on the way: 0.7 s at 300 bytes/s are less than two packets.
        assert!(arrived.len() >= 77, "{} of 80", arrived.len());
        assert!(!wires.events.iter().flatten().any(|(_, event)| *event == Event::NetworkDown), "IP survives");
    }
}

/// What the port had not sent is sent again; what was on the way is lost; nothing comes twice.
#[test]
fn a_drop_costs_no_more_than_what_was_on_the_way() {
    for seed in 0..20 {
        let mut wires = opened(pair(|_, _| {}, 4), seed);
        // Each of a flow of its own, so that CoDel drops none.
        for number in 0..30 {
            wires.send_of(0, packet(number, 400), number.into());
        }
        wires.run(secs(2.0 + seed as f64 / 7.0));
        wires.carrier((seed % 4) as usize, false);
        wires.run(secs(90.0));
        let mut arrived = wires.arrived(1);
        let count = arrived.len();
        arrived.sort_unstable();
        arrived.dedup();
        assert_eq!(arrived.len(), count, "a packet came twice");
        // A fragment of each of two packets may be under way on the line.
        assert!(count >= 27, "{count} of 30, seed {seed}");
        assert!(wires.ends[0].send_counts().repeated > 0);
    }
}

/// The gap is passed at once, not after the receiver's patience: a filler goes over each line.
#[test]
fn what_is_missing_after_a_drop_holds_nothing_up() {
    let mut wires = opened(pair(|_, _| {}, 4), 5);
    for number in 0..8 {
        wires.send(0, packet(number, 1400));
    }
    wires.run(secs(1.5));
    wires.carrier(1, false);
    wires.run(secs(60.0));
    let (last, _) = *wires.packets[1].last().as_ref().unwrap();
    let dropped = secs(31.5);
    // 8 packets over three lines take 13 s at most, from the start on.
    assert!(last.since(dropped) < secs(14.0), "{last}");
    assert!(wires.ends[0].send_counts().fillers > 0);
    assert_eq!(wires.ends[1].receive_counts().given_up, 0, "no patience was needed");
}

#[test]
fn a_peer_that_notices_a_drop_late_gets_the_rest_all_the_same() {
    for late in 0..2 {
        let mut wires = opened(pair(|_, _| {}, 3), 6);
        stream(&mut wires, 0, 0, 10, 400, 0.6);
        wires.carrier_at(1 - late, 1, false);
        stream(&mut wires, 0, 10, 40, 400, 0.6);
        // The echoes of the late end give the line up.
        wires.run(secs(60.0));
        assert_eq!(wires.causes(late).last(), Some(&Cause::NoEcho));
        let arrived = wires.arrived(1);
        let lost = 50 - arrived.len();
        // If the sender is late, its line takes a third of all fragments until then; if the receiver is, a few were under way.
        assert!(lost <= if late == 0 { 45 } else { 2 }, "{lost} lost, late: {late}");
        assert!(arrived.contains(&49) || late == 0);
    }
}

#[test]
fn a_network_lingers_without_any_line_and_packets_wait() {
    let mut wires = opened(pair(|_, config| config.linger = secs(60.0), 2), 7);
    stream(&mut wires, 0, 0, 5, 400, 1.0);
    (0..2).for_each(|line| wires.carrier(line, false));
    wires.run(secs(20.0));
    assert!(wires.send(0, packet(5, 400)) && wires.has_network());
    (0..2).for_each(|line| wires.carrier(line, true));
    wires.run(secs(30.0));
    assert!(wires.arrived(1).contains(&5));
    assert!(!wires.events.iter().flatten().any(|(_, event)| *event == Event::NetworkDown));
    (0..2).for_each(|line| wires.carrier(line, false));
    wires.run(secs(61.0));
    assert!(!wires.has_network() && !wires.send(0, packet(6, 400)));
}

#[test]
fn without_linger_the_network_ends_with_its_last_line_and_begins_anew() {
    let mut wires = opened(pair(|_, _| {}, 2), 8);
    stream(&mut wires, 0, 0, 5, 400, 2.0);
    (0..2).for_each(|line| wires.carrier(line, false));
    assert!(!wires.has_network());
    wires.carrier(1, true);
    wires.run(secs(30.0));
    stream(&mut wires, 0, 5, 5, 400, 2.0);
    wires.run(secs(10.0));
    assert_eq!(wires.arrived(1)[5..], [5, 6, 7, 8, 9]);
}

#[test]
fn a_peer_that_begins_anew_is_heard_although_lines_of_its_old_bundle_seem_up() {
    let mut wires = opened(pair(|_, _| {}, 2), 9);
    // Enough fragments that the numbers of a new bundle are far behind.
    stream(&mut wires, 1, 0, 1200, 100, 0.25);
    wires.run(secs(30.0));
    // The far end restarts: its memory is gone, and the near end sees carrier drop on one line only.
    let [_, far] = pair(|_, _| {}, 2);
    wires.ends[1] = farlink_core::ppp::Bundle::new(far, farlink_core::rng::SplitMix64::new(99));
    wires.carrier(0, false);
    wires.carrier(0, true);
    wires.run(secs(8.0));
    let before = wires.packets[0].len();
    stream(&mut wires, 1, 2000, 5, 400, 2.0);
    wires.run(secs(5.0));
    assert_eq!(wires.arrived(0)[before..], [2000, 2001, 2002, 2003, 2004]);
    assert_eq!(wires.ends[0].peer_restarts(), 1);
}

/// Lines of two peers that have one discriminator, but not one name.
#[test]
fn lines_of_another_peer_do_not_join() {
    let mut other = pair(|_, _| {}, 2)[1].clone();
    other.identities.own.as_mut().unwrap().name = b"other".to_vec();
    let mut near = pair(|_, _| {}, 2)[0].clone();
    let peers = &mut near.identities.peers;
    let mut known = peers[0].clone();
    known.name = b"other".to_vec();
    peers.push(known);
    // Line 0 goes to "far"; line 1 to "other".
    let mut wires = Wires::new([near, wires_config(1)], 2400.0, Time::from_millis(100), 11);
    wires.carrier(0, true);
    wires.run(secs(20.0));
    assert_eq!(wires.members(), 1);
    let first = std::mem::replace(
        &mut wires.ends[1],
        farlink_core::ppp::Bundle::new(other, farlink_core::rng::SplitMix64::new(5)),
    );
    wires.carrier_at(1, 1, true);
    wires.carrier_at(0, 1, true);
    wires.run(secs(5.0));
    drop(first);
    assert_eq!(wires.causes(0), [Cause::OtherPeer]);
    assert!(wires.ends[0].status(0).unwrap().is_member && !wires.ends[0].status(1).unwrap().is_member);
}

fn wires_config(end: usize) -> BundleConfig {
    pair(|_, _| {}, 2)[end].clone()
}

#[test]
fn other_discriminators_and_peers_without_multilink_do_not_join_either() {
    for (cause, multilink) in [(Cause::OtherPeer, true), (Cause::NoMultilink, false)] {
        let mut wires = Wires::new(pair(|_, _| {}, 2), 2400.0, Time::from_millis(100), 12);
        wires.carrier(0, true);
        wires.run(secs(20.0));
        let mut other = wires_config(1);
        if multilink {
            other.link.lcp.multilink.as_mut().unwrap().discriminator = Discriminator::new(1, b"else").unwrap();
        } else {
            other.link.lcp.multilink = None;
        }
        wires.ends[1] = farlink_core::ppp::Bundle::new(other, farlink_core::rng::SplitMix64::new(5));
        wires.carrier_at(1, 1, true);
        wires.carrier_at(0, 1, true);
        wires.run(secs(5.0));
        // Without multilink there is no discriminator, which is told first.
        assert!(wires.causes(0) == [cause] || wires.causes(0) == [Cause::OtherPeer], "{:?}", wires.causes(0));
    }
}

/// A small packet between long ones: no fragment in front of it holds its line for longer than the latency.
#[test]
fn fragments_are_short_enough_for_the_latency() {
    let mut wires = opened(pair(|_, config| config.latency = secs(0.5), 1), 13);
    wires.send(0, packet(0, 1500));
    let frames = wires.ends[1].status(0).unwrap().frames.frames;
    wires.run(secs(10.0));
    let fragments = wires.ends[1].status(0).unwrap().frames.frames - frames;
    // 300 bytes/s: two fragments within 0.5 s have 75 bytes each, headers included.
    assert!((20..30).contains(&fragments), "{fragments}");
}

#[test]
fn closing_ends_all_lines_at_both_ends() {
    let mut wires = opened(pair(|_, _| {}, 2), 14);
    let now = wires.now;
    wires.ends[0].close(now);
    wires.run(secs(5.0));
    assert_eq!(wires.causes(1), [Cause::Terminated; 2]);
    assert_eq!(wires.members(), 0);
    wires.run(secs(600.0));
    assert_eq!(wires.members(), 0, "it stays closed");
}

/// Numbers of packets come in the order in which they were sent, as long as nothing drops.
#[test]
fn packets_stay_in_order() {
    let mut wires = opened(pair(|_, _| {}, 5), 15);
    for way in wires.wires.iter_mut().enumerate() {
        way.1.ways[0].delay = Time::from_millis(100 + 400 * way.0 as u64);
        way.1.ways[0].rate_bps = 1200.0 * (1 + way.0) as f64;
    }
    for n in 0..100 {
        wires.send(0, packet(n, 40 + (n as usize * 37) % 1400));
        wires.run(secs(0.4));
    }
    wires.run(secs(100.0));
    let arrived: Vec<u32> = wires.packets[1].iter().map(|(_, one)| number(one)).collect();
    assert_eq!(arrived, (0..100).collect::<Vec<_>>());
}
