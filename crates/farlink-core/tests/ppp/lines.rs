//! One line: it opens, or says why not.

use farlink_core::Time;
use farlink_core::ppp::auth::{CHAP, Prover, Standing};
use farlink_core::ppp::control::ControlPacket;
use farlink_core::ppp::{Accm, Addresses, Cause, Event, Limits, Proof, Properties};

use super::wires::{Wires, config, packet, proven, secs};

fn opened(configs: [farlink_core::ppp::BundleConfig; 2]) -> Wires {
    let mut wires = Wires::new(configs, 9600.0, Time::from_millis(300), 1);
    wires.all_up();
    wires.run(secs(60.0));
    wires
}

#[test]
fn a_line_opens_and_carries_packets_both_ways() {
    let mut wires = opened([config(0, 1, 9600.0), config(1, 1, 9600.0)]);
    assert_eq!(wires.members(), 1);
    let addresses = Addresses { own: [10, 0, 0, 1].into(), peer: [10, 0, 0, 2].into() };
    let properties = Properties { mtu: 1500, ipv4: Some(addresses), ipv6: None };
    assert_eq!(
        wires.events[0].iter().map(|(_, event)| event.clone()).collect::<Vec<_>>(),
        [Event::LineUp { line: 0 }, Event::NetworkUp(properties),]
    );
    // LCP and IPCP take a round trip each and some bytes, and the line settles in between.
    assert!(wires.events[0][1].0 < secs(1.9), "{:?}", wires.events[0]);
    for length in [20, 500, 1500] {
        assert!(wires.send(0, packet(length, length as usize)) && wires.send(1, packet(length, length as usize)));
    }
    assert!(!wires.send(0, packet(1501, 1501)), "longer than the peer puts together");
    wires.run(secs(10.0));
    for end in 0..2 {
        assert_eq!(
            wires.packets[end].iter().map(|(_, one)| one.clone()).collect::<Vec<_>>(),
            [20, 500, 1500].map(|n| packet(n, n as usize))
        );
    }
}

#[test]
fn a_line_without_multilink_carries_packets_whole() {
    let mut near = config(0, 1, 9600.0);
    near.link.lcp.multilink = None;
    let mut wires = opened([near, config(1, 1, 9600.0)]);
    assert!(wires.has_network());
    wires.send(0, packet(1, 1500));
    wires.send(1, packet(2, 1500));
    wires.run(secs(10.0));
    assert_eq!((wires.arrived(1), wires.arrived(0)), (vec![1], vec![2]));
}

#[test]
fn every_proof_opens_the_line_and_a_wrong_secret_does_not() {
    for demands in [vec![Proof::ChapMd5], vec![Proof::Pap], vec![Proof::ChapMd5, Proof::Pap]] {
        for one_way in [false, true] {
            let far = if one_way { vec![] } else { demands.clone() };
            let good = [
                proven(config(0, 1, 9600.0), 0, demands.clone(), "s"),
                proven(config(1, 1, 9600.0), 1, far.clone(), "s"),
            ];
            assert!(opened(good).has_network(), "{demands:?}");
            let bad =
                [proven(config(0, 1, 9600.0), 0, demands.clone(), "s"), proven(config(1, 1, 9600.0), 1, far, "t")];
            let wires = opened(bad);
            assert!(
                !wires
                    .events
                    .iter()
                    .flatten()
                    .any(|(_, event)| matches!(event, Event::LineUp { .. } | Event::NetworkUp(_)))
            );
            assert!(
                wires.causes(0).contains(&Cause::WrongSecret) || wires.causes(0).contains(&Cause::Refused),
                "{:?}",
                wires.causes(0)
            );
            assert!(wires.causes(0).len() <= 2, "not tried again at once: {:?}", wires.causes(0));
        }
    }
}

#[test]
fn nobody_joins_without_the_proof_that_is_demanded() {
    let near = proven(config(0, 1, 9600.0), 0, vec![Proof::ChapMd5], "s");
    let wires = opened([near, config(1, 1, 9600.0)]);
    assert_eq!(wires.causes(0), [Cause::NoProof]);
    assert!(!wires.has_network());
}

/// A peer that asks for PAP gets no password unless that is allowed.
#[test]
fn a_password_is_not_shown_to_everybody() {
    let far = proven(config(1, 1, 9600.0), 1, vec![Proof::Pap], "s");
    let mut near = proven(config(0, 1, 9600.0), 0, vec![], "s");
    near.identities.shows_password = false;
    assert_eq!(opened([near, far]).causes(1), [Cause::NoProof]);
}

#[test]
fn a_looped_line_is_named() {
    for proof in [false, true] {
        let configs = [0, 1].map(|end| {
            let plain = config(end, 1, 9600.0);
            if proof { proven(plain, end, vec![Proof::ChapMd5], "s") } else { plain }
        });
        let mut wires = Wires::new(configs, 9600.0, Time::from_millis(300), 1);
        wires.wires[0].is_looped = true;
        wires.all_up();
        wires.run(secs(30.0));
        assert_eq!(wires.causes(0), [Cause::LoopedBack], "proof: {proof}");
    }
}

/// A line that is looped back while it is open: its echoes come back.
#[test]
fn a_line_that_is_looped_later_is_named_too() {
    let mut wires = opened([config(0, 1, 9600.0), config(1, 1, 9600.0)]);
    wires.wires[0].is_looped = true;
    wires.run(secs(11.0));
    assert_eq!(wires.causes(0), [Cause::LoopedBack]);
}

#[test]
fn a_silent_line_has_no_answer_and_is_tried_again() {
    let mut wires = Wires::new([config(0, 1, 9600.0), config(1, 1, 9600.0)], 9600.0, Time::from_millis(300), 1);
    wires.wires[0].is_hole = true;
    wires.all_up();
    wires.run(secs(100.0));
    assert_eq!(wires.causes(0), [Cause::NoAnswer]);
    wires.wires[0].is_hole = false;
    wires.run(secs(30.0));
    assert!(wires.has_network());
}

#[test]
fn a_black_hole_is_found_by_echoes_under_load_too() {
    for load in [false, true] {
        let mut wires = opened([config(0, 1, 9600.0), config(1, 1, 9600.0)]);
        wires.wires[0].is_hole = true;
        let begin = wires.now;
        for _ in 0..60 {
            if load {
                for end in 0..2 {
                    wires.send(end, packet(1, 1000));
                }
            }
            wires.run(secs(1.0));
        }
        for end in 0..2 {
            assert_eq!(wires.causes(end)[0], Cause::NoEcho);
            let (at, _) = wires.events[end].iter().find(|(_, event)| matches!(event, Event::LineDown { .. })).unwrap();
            // Three echoes of 10 s, the first of them up to 10 s after the hole, and two packets in front of each.
            assert!((30.0..50.0).contains(&at.since(begin).as_secs_f64()), "{at}, load: {load}");
        }
    }
}

/// A queue that is always full, on a slow line with a long round trip: no echo is lost, and the line stays.
#[test]
fn a_full_queue_does_not_take_a_line_down() {
    let mut wires = Wires::new([config(0, 1, 2400.0), config(1, 1, 2400.0)], 2400.0, Time::from_millis(700), 1);
    wires.all_up();
    wires.run(secs(30.0));
    for number in 0..600 {
        for end in 0..2 {
            wires.send(end, packet(number, 1500));
        }
        wires.run(secs(1.0));
    }
    assert_eq!((wires.causes(0), wires.causes(1)), (vec![], vec![]));
}

#[test]
fn control_characters_are_escaped_as_the_receiver_wants() {
    let mut near = config(0, 1, 9600.0);
    near.link.lcp.receive_map = Accm(0x000a_0000); // XON and XOFF
    let mut wires = opened([near, config(1, 1, 9600.0)]);
    for n in 0..20 {
        wires.send(1, packet(n, 300));
    }
    wires.run(secs(20.0));
    assert_eq!(wires.arrived(0), (0..20).collect::<Vec<_>>());
}

/// Addresses are given to an end that has none, and ends that want different ones do not come together.
#[test]
fn addresses_are_given_or_disagree() {
    let unspecified = [0, 0, 0, 0].into();
    let mut near = config(0, 1, 9600.0);
    near.ipv4 = Some(Addresses { own: unspecified, peer: unspecified });
    let wires = opened([near.clone(), config(1, 1, 9600.0)]);
    let addresses = Addresses { own: [10, 0, 0, 1].into(), peer: [10, 0, 0, 2].into() };
    assert_eq!(wires.ends[0].properties().unwrap().ipv4, Some(addresses));
    near.ipv4 = Some(Addresses { own: [10, 9, 9, 9].into(), peer: [10, 0, 0, 2].into() });
    assert!(!opened([near, config(1, 1, 9600.0)]).has_network());
}

#[test]
fn ipv6_gets_identifiers() {
    let configs = [0, 1].map(|end| {
        let mut one = config(end, 1, 9600.0);
        (one.ipv4, one.ipv6) = (None, true);
        one
    });
    let mut wires = opened(configs);
    let (own, peer) = wires.ends[0].properties().unwrap().ipv6.unwrap();
    assert_eq!(wires.ends[1].properties().unwrap().ipv6, Some((peer, own)));
    let mut six = packet(7, 100).to_vec();
    six[0] = 0x60;
    assert!(wires.send(0, six.into()) && !wires.send(0, packet(8, 100)), "only version 6 is carried");
    wires.run(secs(5.0));
    assert_eq!(wires.arrived(1), [7]);
}

/// IP is negotiated again after all requests were lost while the line stayed.
#[test]
fn a_network_that_found_no_answer_is_tried_again() {
    let configs = [0, 1].map(|end| {
        let mut one = config(end, 1, 9600.0);
        one.link.echo = None;
        one
    });
    let mut wires = Wires::new(configs, 9600.0, Time::from_millis(300), 1);
    wires.all_up();
    wires.run(secs(0.8));
    assert_eq!(wires.members(), 1);
    wires.wires[0].is_hole = true;
    wires.run(secs(100.0));
    assert!(!wires.has_network());
    wires.wires[0].is_hole = false;
    wires.run(secs(40.0));
    assert!(wires.has_network());
    assert_eq!(wires.causes(0), []);
}

/// A restart timer below the round trip would negotiate for ever without numbers that are kept.
#[test]
fn a_timer_shorter_than_the_round_trip_still_opens() {
    let configs = [0, 1].map(|end| {
        let mut one = config(end, 1, 9600.0);
        one.link.limits.restart = secs(1.0);
        one
    });
    let mut wires = Wires::new(configs, 9600.0, Time::from_millis(1500), 3);
    wires.all_up();
    wires.run(secs(60.0));
    assert!(wires.has_network(), "{:?}", wires.events);
    assert_eq!(wires.causes(0), []);
}

/// A peer may ask again during a call (RFC 1994, section 2): it is answered, and the line stays.
#[test]
fn a_challenge_during_a_call_is_answered() {
    let known = proven(config(0, 1, 9600.0), 0, vec![], "secret").identities;
    let mut out = Vec::new();
    let mut prover = Prover::start(Time::ZERO, Proof::ChapMd5, Limits::default(), &known, &mut out);
    for id in [7, 8] {
        let challenge = [&[4][..], &[id; 4], b"far"].concat();
        let mut hear = |code, data: Vec<u8>| {
            prover.handle(CHAP, &ControlPacket { code, id, data: data.into() }, &known, |_| false, &mut out);
        };
        hear(1, challenge);
        hear(3, Vec::new());
        let (protocol, answer) = out.pop().unwrap();
        assert!(out.is_empty());
        assert_eq!((protocol, answer.code, answer.id), (CHAP, 2, id));
        assert_eq!(*prover.standing(), Standing::Proven(None));
    }
}
