//! A host that accepts AeroTP connections of many peers: `docs/aerotp.md`, section on hosts.

use crate::pair::shared_host::{FORGED, SharedHost, config, forged_segments, stamp};
use farlink_core::event::Abort;
use farlink_core::protocol::Pairs;
use farlink_core::protocol::aerotp::{
    Acceptor, AcceptorLimits, AerotpConfig, Connection, Edges, Flags, Mack, Segment, Side, State,
};
use farlink_core::rng::SplitMix64;
use farlink_core::{Endpoint, Event, Rng, Rx, Stream, Time};
use proptest::prelude::*;
use serde_json::json;

fn content(of: u16, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + usize::from(of) * 31) as u8).collect()
}

fn opening(now: Time, tag: u16) -> Segment<Vec<u8>> {
    Segment { tag, flags: Flags::ASYN, timestamp: stamp(now), payload: vec![1; 10], ..Segment::default() }
}

/// `[H1]`: each stream arrives complete at a connection of its own, despite losses and duplicates.
#[test]
fn many_peers_are_served_at_once() {
    for seed in 0..10 {
        let mut host = SharedHost::new(&json!({}), AcceptorLimits::default(), seed);
        (host.lost, host.duplicated) = (0.1, 0.1);
        for address in 0..20 {
            host.open(address, &content(address, 1000 + 300 * usize::from(address)));
        }
        host.run_for(100.0);
        assert_eq!(host.seen.len(), 20, "one connection for each");
        let mut streams = host.streams();
        streams.sort_unstable();
        let mut expected: Vec<Vec<u8>> = (0..20).map(|of| content(of, 1000 + 300 * usize::from(of))).collect();
        expected.sort_unstable();
        assert!(streams == expected, "each once, and whole");
        assert!(host.seen.values().all(|seen| seen.events.last() == Some(&Event::Closed)));
        assert!(host.opener_events.values().all(|events| events.last() == Some(&Event::Closed)));
    }
}

/// `[H2]`: the connection of a peer that restarts ends, and its next segments open another one.
#[test]
fn a_restarted_peer_gets_a_new_connection() {
    let mut host = SharedHost::new(&json!({}), AcceptorLimits::default(), 1);
    host.open(1, &content(1, 60_000));
    host.run_for(0.1);
    host.open(2, &content(2, 3_000));
    host.run_for(0.1);
    host.open(1, &content(3, 500));
    host.run_for(20.0);
    let ends: Vec<_> = host.seen.values().map(|seen| seen.events.last().copied()).collect();
    assert_eq!(ends, [Some(Event::Aborted(Abort::PeerRestarted)), Some(Event::Closed), Some(Event::Closed)]);
    assert!(host.streams()[1..] == [&content(2, 3_000)[..], &content(3, 500)[..]]);
    let first = host.streams()[0];
    assert!(content(1, 60_000).starts_with(first));
}

/// `[H3]`: while the backlog is full, openings are dropped without an answer; their senders are accepted when a slot is
/// free.
#[test]
fn a_full_backlog_drops_openings_until_a_slot_is_free() {
    let limits = AcceptorLimits { half_open: 2, ..AcceptorLimits::default() };
    let mut host = SharedHost::new(&json!({ "initial_rto_s": 0.2 }), limits, 1);
    host.unreachable = vec![1, 2];
    host.open(1, &content(1, 500));
    host.open(2, &content(2, 500));
    host.run_for(0.1);
    host.open(3, &content(3, 500));
    // Both peers retransmit unanswered segments and so keep their slots.
    host.run_for(30.0);
    assert_eq!((host.acceptor.half_open(), host.seen.len()), (2, 2));
    assert!(host.acceptor.refused().full > 5, "it keeps trying");
    assert!(host.answers.iter().all(|(to, _)| *to != 3), "and gets no answer");
    host.unreachable = vec![1];
    host.run_for(10.0);
    assert!(host.streams().last() == Some(&&content(3, 500)[..]));
    assert_eq!(host.opener_events[&3].last(), Some(&Event::Closed));
}

/// `[H3]`: forged openings fill the backlog, but they are evicted because their senders are silent. The application is
/// informed.
#[test]
fn silent_half_open_connections_are_evicted() {
    let limits = AcceptorLimits { half_open: 4, ..AcceptorLimits::default() };
    let mut host = SharedHost::new(&json!({ "initial_rto_s": 0.2 }), limits, 1);
    for n in 0..10 {
        let forged = opening(host.now, n);
        assert_eq!(host.arrive(FORGED + n, &forged).is_some(), n < 4);
    }
    assert_eq!(host.acceptor.refused().full, 6);
    host.run_for(3.1);
    host.open(1, &content(1, 500));
    host.run_for(5.0);
    assert_eq!(host.opener_events[&1].last(), Some(&Event::Closed));
    let first = host.seen.values().next().map(|seen| seen.events.clone());
    assert_eq!(first, Some(vec![Event::Connected, Event::Aborted(Abort::NoAnswer)]));
    // A half-open connection whose slot is not needed is given up like any silent peer. `[H5]`
    let mut host = SharedHost::new(&json!({ "give_up_after_s": 10 }), limits, 1);
    let forged = opening(host.now, 1);
    host.arrive(FORGED, &forged);
    host.run_for(9.9);
    assert_eq!(host.acceptor.half_open(), 1);
    host.run_for(0.2);
    assert_eq!(host.acceptor.half_open(), 0);
}

/// `[H4]`: connections that have ended free their slots; while none has, no further one is opened.
#[test]
fn the_number_of_connections_is_limited() {
    let limits = AcceptorLimits { connections: 3, ..AcceptorLimits::default() };
    let mut host = SharedHost::new(&json!({}), limits, 1);
    for address in 0..3 {
        host.open(address, &content(address, 500_000));
    }
    host.run_for(0.2);
    host.open(3, &content(3, 500));
    host.run_for(0.5);
    assert_eq!(host.seen.len(), 3);
    assert!(host.acceptor.refused().full > 0);
    let restarted = content(9, 400);
    host.open(0, &restarted);
    host.run_for(60.0);
    assert!(
        host.opener_events.values().all(|events| events.last() == Some(&Event::Closed)),
        "{:?}",
        host.opener_events
    );
    assert_eq!(host.seen.len(), 5, "the fourth and the restarted one were accepted");
}

/// `[H5]`: an ended connection still answers repeated segments of its peer. After its quiet time, no state of it is
/// left.
#[test]
fn an_ended_connection_is_discarded_after_its_quiet_time() {
    let mut host = SharedHost::new(&json!({ "listen_timeout_s": 30 }), AcceptorLimits::default(), 1);
    host.open(1, &content(1, 500));
    host.run_for(5.0);
    let handle = *host.seen.keys().next().unwrap();
    assert_eq!(host.acceptor.get(handle).map(Connection::state), Some(State::AfinRcvd));
    host.run_for(31.0);
    assert!(host.acceptor.get(handle).is_none());
    assert_eq!((host.acceptor.handles().count(), host.acceptor.poll_timeout()), (0, None));
}

/// `[H5]`: segments in flight from a peer whose connection the application has removed open no connection.
#[test]
fn segments_in_flight_do_not_reopen_a_removed_connection() {
    let mut host = SharedHost::new(&json!({ "listen_timeout_s": 30 }), AcceptorLimits::default(), 1);
    let old = opening(host.now, 7);
    let handle = host.arrive(FORGED, &old).unwrap();
    host.acceptor.remove(handle);
    host.answers.clear();
    assert_eq!(host.arrive(FORGED, &old), None, "no newer than the last known segment");
    assert!(host.answers.is_empty());
    host.now += Time::from_millis(1);
    let next = opening(host.now, 7);
    assert_eq!(host.arrive(FORGED, &next), None, "the tag is of the past");
    assert!(host.answers.iter().all(|(to, answer)| *to == FORGED && answer.flags.has(Flags::RESET)));
    assert_eq!(host.answers.len(), 1);
    assert!(host.arrive(FORGED + 1, &next).is_some(), "another address is another peer");
    host.run_for(31.0);
    let later = opening(host.now, 7);
    assert!(host.arrive(FORGED, &later).is_some(), "no segment of it can be in flight any more");
}

/// `[H6]`, `[C13]`: a segment of no connection is answered with a reset to its sender's address; acknowledgements and
/// resets are not answered.
#[test]
fn stray_segments_are_answered_with_resets() {
    let mut host = SharedHost::new(&json!({}), AcceptorLimits { half_open: 3, ..AcceptorLimits::default() }, 1);
    let stray = Segment { tag: 9, timestamp: stamp(host.now), payload: vec![1], ..Segment::default() };
    host.arrive(FORGED, &stray);
    let [(to, reset)] = &host.answers[..] else { panic!("{:?}", host.answers) };
    assert_eq!((*to, reset.tag, reset.timestamp, reset.flags), (FORGED, 9, stray.timestamp, Flags::RESET));
    let mack = Mack { edges: Edges::default(), ..Mack::default() };
    host.arrive(FORGED, &Segment { flags: Flags::MACK, mack: Some(Box::new(mack)), payload: vec![], ..stray.clone() });
    host.arrive(FORGED, &Segment { flags: Flags::RESET, payload: vec![], ..stray.clone() });
    assert_eq!((host.answers.len(), host.acceptor.refused().dropped.stray), (1, 3));
    // One answer waits for each address, and at most as many as the backlog has slots.
    let (mut random, mut acceptor) = (SplitMix64::new(1), host.acceptor.clone());
    for n in 0..10 {
        for _ in 0..2 {
            acceptor.handle_packet(host.now, FORGED + n, &stray, Rx::default(), &mut random);
        }
    }
    let resets = std::iter::from_fn(|| acceptor.poll_transmit(host.now)).map(|(to, _)| to - FORGED);
    assert_eq!(resets.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn modes_without_connections_are_refused() {
    for (keys, key) in [(json!({ "mode": "datagram" }), "mode"), (json!({ "opens": "both" }), "opens")] {
        let refused = Acceptor::<u16, Vec<u8>>::new(&config(&keys), AcceptorLimits::default());
        assert!(refused.unwrap_err().to_string().contains(key));
    }
}

/// An acceptor and the listener of a pair, which receive the same segments.
struct Twins {
    one: Side<Vec<u8>>,
    host: Acceptor<(), Vec<u8>>,
    random: SplitMix64,
    read: [Vec<u8>; 2],
}

impl Twins {
    fn new(config: &AerotpConfig, seed: u64) -> Self {
        let (_, one) = Pairs::<Vec<u8>>::pair(config, seed);
        let host = Acceptor::new(config, AcceptorLimits::default()).unwrap();
        // The random stream of the passive side of a pair.
        Twins { one, host, random: SplitMix64::new(seed + 1), read: Default::default() }
    }

    fn drain(&mut self, now: Time) -> Vec<Segment<Vec<u8>>> {
        while self.one.poll_event().is_some() {}
        while let Some(data) = self.one.read() {
            self.read[0].extend(data);
        }
        while self.one.poll_event().is_some() {}
        while self.host.poll_event().is_some() {}
        for handle in self.host.handles().collect::<Vec<_>>() {
            while let Some(data) = self.host.get_mut(handle).and_then(Stream::read) {
                self.read[1].extend(data);
            }
        }
        while self.host.poll_event().is_some() {}
        let sent: Vec<_> = std::iter::from_fn(|| self.one.poll_transmit(now)).map(|out| out.packet).collect();
        let host: Vec<_> = std::iter::from_fn(|| self.host.poll_transmit(now)).map(|(_, out)| out.packet).collect();
        assert_eq!(format!("{sent:?}"), format!("{host:?}"));
        assert_eq!(self.read[0], self.read[1]);
        sent
    }
}

/// `[C12]`, `[H2]`: the simulator's listener obeys the same rules as a host: both give the same answers, with the same
/// tags, to the same segments.
#[test]
fn an_acceptor_with_one_peer_behaves_like_the_listener_of_a_pair() {
    let mut restarts = 0;
    for seed in 0..300 {
        let mut rng = Rng::for_component(seed, 0, "twins");
        let config = config(&json!({ "listen_timeout_s": 20, "give_up_after_s": 1000 }));
        let mut twins = Twins::new(&config, seed);
        let mut stream = SplitMix64::new(seed ^ 0x5555);
        let mut opener = Connection::<Vec<u8>>::connect(&config, &mut stream);
        let mut now = Time::from_secs(1);
        let mut old: Vec<Segment<Vec<u8>>> = Vec::new();
        for _ in 0..60 {
            match rng.below(12) {
                0 => {
                    opener = Connection::connect(&config, &mut stream);
                    restarts += 1;
                }
                1 => opener.close(now),
                2..=5 => drop(opener.write(now, &mut vec![seed as u8; 1 + rng.below(400) as usize])),
                6 => now += Time::from_secs(rng.below(30)),
                _ => now += Time::from_millis(rng.below(300)),
            }
            opener.handle_timeout(now);
            twins.one.handle_timeout(now);
            twins.host.handle_timeout(now);
            let mut arriving: Vec<_> = std::iter::from_fn(|| opener.poll_transmit(now)).map(|out| out.packet).collect();
            old.extend(arriving.iter().cloned());
            if !old.is_empty() && rng.chance(0.2) {
                arriving.push(old[rng.below(old.len() as u64) as usize].clone());
            }
            for segment in arriving {
                if rng.chance(0.3) {
                    continue;
                }
                twins.one.handle_packet(now, &segment, Rx::default());
                twins.host.handle_packet(now, (), &segment, Rx::default(), &mut twins.random);
                for answer in twins.drain(now) {
                    if rng.chance(0.8) {
                        opener.handle_packet(now, &answer, Rx::default());
                    }
                }
            }
            while opener.poll_event().is_some() {}
        }
    }
    assert!(restarts > 500, "{restarts}");
}

proptest! {
    #[test]
    fn forged_segments_do_not_disturb_a_connection(program in proptest::collection::vec(any::<u8>(), 0..400)) {
        forged_segments(&program);
    }
}
