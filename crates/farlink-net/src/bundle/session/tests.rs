//! Two ends over paths that lose, repeat, delay and translate addresses.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::BytesMut;
use farlink_core::Time;
use farlink_core::rng::{RandomSource, SplitMix64};
use proptest::prelude::*;

use crate::mux::MemoryCounters;
use crate::seal::{PresharedKey, PublicKey, StaticKey};

use super::*;

const MS: Time = Time::from_millis(1);
const LIFE: Time = Time::from_secs(120);

#[derive(Clone, Debug)]
struct Wire {
    is_up: bool,
    loss: f64,
    delay: Time,
    jitter: Time,
    /// Longest IP packet that comes through.
    longest: usize,
    /// The address of the caller as the far end sees it.
    seen_from: SocketAddr,
}

/// To which end, over which path, from where, and the datagram.
type UnderWay = (usize, usize, SocketAddr, Vec<u8>);

/// What the caller's end of a path and the answering end have under way.
struct World {
    now: Time,
    ends: [Session; 2],
    wires: Vec<Wire>,
    /// By arrival and number.
    under_way: BTreeMap<(Time, u64), UnderWay>,
    next: u64,
    rng: SplitMix64,
    events: [Vec<Event>; 2],
    delivered: [Vec<(u8, Vec<u8>)>; 2],
    /// Bytes of datagrams by receiver and path.
    carried: [Vec<u64>; 2],
    stores: [MemoryCounters; 2],
    keys: [StaticKey; 2],
}

fn far() -> SocketAddr {
    ([192, 0, 2, 1], 47_471).into()
}

fn seen(path: usize) -> SocketAddr {
    ([198, 51, 100, path as u8], 1000).into()
}

fn config(own: &StaticKey, peer: PublicKey, calls: bool, paths: u8) -> SessionConfig {
    let paths = ((1_u32 << paths) - 1) as u16;
    SessionConfig { key: own.clone(), peer, shared: PresharedKey::default(), calls, paths, key_life: LIFE }
}

impl World {
    fn new(paths: usize, seed: u64) -> Self {
        let keys = [StaticKey::generate(), StaticKey::generate()];
        let [caller, answerer] = [0, 1].map(|end| config(&keys[end], keys[1 - end].public(), end == 0, paths as u8));
        World::of([caller, answerer], keys, paths, seed)
    }

    fn of(configs: [SessionConfig; 2], keys: [StaticKey; 2], paths: usize, seed: u64) -> Self {
        let ends = configs.map(|config| Session::new(config, Box::<MemoryCounters>::default(), || 1_000_000));
        let wire = |path| Wire {
            is_up: true,
            loss: 0.0,
            delay: MS.times(20),
            jitter: Time::ZERO,
            longest: 1500,
            seen_from: seen(path),
        };
        let mut world = World {
            now: Time::ZERO,
            ends,
            wires: (0..paths).map(wire).collect(),
            under_way: BTreeMap::new(),
            next: 0,
            rng: SplitMix64::new(seed),
            events: Default::default(),
            delivered: Default::default(),
            carried: [vec![0; paths], vec![0; paths]],
            stores: Default::default(),
            keys,
        };
        (0..paths).for_each(|path| world.plug(path, path == 2));
        world
    }

    fn plug(&mut self, path: usize, is_last_resort: bool) {
        let place = Place { socket: path, remote: far(), local: None };
        self.ends[0].set_path(self.now, path as u8, Some(PathPlace { place, longest_bytes: 1500, is_last_resort }));
    }

    /// A process starts again: it has its keys and what it kept of counters, and nothing else.
    fn restart(&mut self, end: usize) {
        let paths = self.wires.len();
        let config = config(&self.keys[end], self.keys[1 - end].public(), end == 0, paths as u8);
        self.ends[end] = Session::new(config, Box::new(self.stores[end].clone()), || 1_000_000 + (1 << 30));
        if end == 0 {
            (0..paths).for_each(|path| self.plug(path, path == 2));
        }
    }

    fn put(&mut self, from: usize, datagram: Datagram) {
        let path = if from == 0 {
            datagram.to.socket
        } else {
            match self.wires.iter().position(|wire| wire.seen_from == datagram.to.remote) {
                Some(path) => path,
                None => return, // an address that nobody has any more
            }
        };
        let wire = self.wires[path].clone();
        let jitter = Time::from_ps(self.rng.next_u64() % (wire.jitter.as_ps() + 1));
        let is_lost = (self.rng.next_u64() as f64 / u64::MAX as f64) < wire.loss;
        if !wire.is_up || is_lost || datagram.bytes.len() + 28 > wire.longest {
            return;
        }
        self.carried[1 - from][path] += datagram.bytes.len() as u64;
        self.next += 1;
        let source = if from == 0 { wire.seen_from } else { far() };
        self.under_way.insert((self.now + wire.delay + jitter, self.next), (1 - from, path, source, datagram.bytes));
    }

    /// Everything that happens until then.
    fn run(&mut self, until: Time) {
        loop {
            for end in 0..2 {
                self.ends[end].handle_timeout(self.now);
                while let Some(datagram) = self.ends[end].poll_transmit() {
                    self.put(end, datagram);
                }
                while let Some(event) = self.ends[end].poll_event() {
                    self.events[end].push(event);
                }
            }
            let arrival = self.under_way.keys().next().map_or(Time::NEVER, |key| key.0);
            let due = self.ends.iter().fold(arrival, |due, end| due.min(end.poll_timeout()));
            if due > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(due);
            if arrival <= self.now
                && let Some((_, (end, path, source, bytes))) = self.under_way.pop_first()
            {
                let place = Place { socket: if end == 0 { path } else { 0 }, remote: source, local: None };
                let delivered = self.ends[end].handle_datagram(self.now, place, BytesMut::from(&bytes[..]));
                self.delivered[end].extend(delivered.map(|(path, content)| (path, content.to_vec())));
            }
        }
    }

    fn wait(&mut self, time: Time) {
        self.run(self.now + time);
    }

    fn send(&mut self, end: usize, path: u8, content: &[u8]) -> bool {
        let mut bytes = Vec::new();
        let to = self.ends[end].seal(self.now, path, content.len(), &mut bytes, |out| out.extend(content));
        if let Some(to) = to {
            self.put(end, Datagram { to, bytes });
        }
        to.is_some()
    }

    fn both_open(&self) -> bool {
        self.ends.iter().all(Session::is_open)
    }

    fn faults(&self, end: usize) -> Vec<&Fault> {
        self.events[end].iter().filter_map(|it| if let Event::Fault(fault) = it { Some(fault) } else { None }).collect()
    }

    /// Sends a packet each way over a path; whether both arrived.
    fn exchange(&mut self, path: u8) -> bool {
        let before = [0, 1].map(|end| self.delivered[end].len());
        let sent = [0, 1].map(|end| self.send(end, path, b"packet"));
        self.wait(Time::from_secs(2));
        sent == [true; 2] && [0, 1].iter().all(|&end| self.delivered[end].len() == before[end] + 1)
    }
}

#[test]
fn a_session_opens_in_a_round_trip_and_every_path_is_proven() {
    let mut world = World::new(3, 1);
    world.run(MS.times(40));
    assert!(world.ends[0].is_open());
    world.run(MS.times(200));
    assert!(world.both_open());
    for path in 0..3 {
        assert!(world.exchange(path), "path {path}");
        assert_eq!(world.ends[1].place(path).unwrap().remote, seen(path.into()));
        let is_proven = |event: &Event| matches!(event, Event::Proven { path: it, .. } if *it == path);
        assert!(world.events.iter().all(|events| events.iter().any(is_proven)));
    }
    assert_eq!((world.faults(0), world.faults(1)), (vec![], vec![]));
}

/// A metered line carries no handshake while another path answers.
#[test]
fn the_last_resort_is_spared_and_used_when_nothing_else_answers() {
    let mut world = World::new(3, 1);
    world.run(MS.times(30));
    assert_eq!(world.carried[1][2], 0);

    let mut world = World::new(3, 1);
    world.wires[0].is_up = false;
    world.wires[1].is_up = false;
    world.run(Time::from_secs(5));
    assert!(world.both_open() && world.exchange(2));
}

#[test]
fn an_address_that_changes_is_followed_after_a_challenge() {
    let mut world = World::new(2, 1);
    world.wait(Time::from_secs(1));
    world.wires[0].seen_from = ([203, 0, 113, 9], 5).into();
    assert!(world.send(0, 0, b"from elsewhere"));
    world.wait(MS.times(100));
    assert_eq!(world.ends[1].place(0).unwrap().remote, world.wires[0].seen_from);
    assert!(world.exchange(0) && world.exchange(1));
}

/// Somebody copies a datagram and sends it from his own address, before the original: at most three times of it goes there.
#[test]
fn a_copied_datagram_gets_three_times_its_length_at_most() {
    let mut world = World::new(1, 1);
    world.wait(Time::from_secs(1));
    let mut bytes = Vec::new();
    let _ = world.ends[0].seal(world.now, 0, 6, &mut bytes, |out| out.extend(b"copied")).unwrap();
    let place = Place { socket: 0, remote: ([203, 0, 113, 66], 6).into(), local: None };
    assert!(world.ends[1].handle_datagram(world.now, place, BytesMut::from(&bytes[..])).is_some());
    assert!(world.ends[1].handle_datagram(world.now, place, BytesMut::from(&bytes[..])).is_none(), "once");
    let mut to_stranger = 0;
    for _ in 0..200 {
        world.ends[1].handle_timeout(world.now);
        while let Some(datagram) = world.ends[1].poll_transmit() {
            to_stranger += if datagram.to == place { datagram.bytes.len() } else { 0 };
        }
        world.now += MS.times(500);
    }
    assert!(to_stranger > 0 && to_stranger <= 3 * bytes.len(), "{to_stranger} of {}", bytes.len());
    assert_eq!(world.ends[1].place(0).unwrap().remote, seen(0), "the path has not moved");
    assert!(world.exchange(0));
}

/// A path of an interface that loses IPv4 and has IPv6 then: the same path, with longer headers.
#[test]
fn a_path_that_changes_its_family_has_other_headers_at_both_ends() {
    let mut world = World::new(2, 1);
    world.wait(Time::from_secs(1));
    let v4 = 1500 - 28 - SEAL_BYTES as u32;
    assert!(world.send(0, 0, &[1; 600]) && world.send(1, 0, &[1; 600]));
    world.wait(Time::from_secs(2));
    assert_eq!([0, 1].map(|end| world.ends[end].content_bytes(0)), [v4; 2]);
    assert_eq!(world.ends[1].overhead_bytes(0), 28 + 25);
    world.wires[0].seen_from = "[2001:db8::7]:1000".parse().unwrap();
    let place = Place { socket: 0, remote: "[2001:db8::1]:47471".parse().unwrap(), local: None };
    world.ends[0].set_path(world.now, 0, Some(PathPlace { place, longest_bytes: 1500, is_last_resort: false }));
    world.wait(MS.times(100));
    assert_eq!(world.ends[1].place(0).unwrap().remote, world.wires[0].seen_from, "it has moved");
    assert_eq!([0, 1].map(|end| world.ends[end].overhead_bytes(0)), [48 + 25; 2]);
    assert_eq!(world.ends[1].overhead_bytes(1), 28 + 25);
    assert!(world.send(0, 0, &[1; 600]) && world.send(1, 0, &[1; 600]));
    world.wait(Time::from_secs(2));
    assert_eq!([0, 1].map(|end| world.ends[end].content_bytes(0)), [v4 - 20; 2], "searched anew");
    assert!(world.exchange(0) && world.exchange(1));
}

#[test]
fn a_path_may_be_taken_away_and_come_back_under_the_same_keys() {
    let mut world = World::new(2, 1);
    world.wait(Time::from_secs(1));
    for end in 0..2 {
        world.ends[end].set_paths(0b01);
    }
    assert!(!world.send(0, 1, b"no way") && world.exchange(0));
    for end in 0..2 {
        world.ends[end].set_paths(0b111);
    }
    world.plug(1, false);
    world.wait(MS.times(100));
    assert!(world.exchange(1));
    let opened = world.events[0].iter().filter(|it| matches!(it, Event::Opened { .. })).count();
    assert_eq!((opened, world.ends[1].counts().repeated), (1, 0));
}

#[test]
fn keys_are_renewed_while_packets_flow() {
    let mut world = World::new(2, 1);
    world.wait(Time::from_secs(1));
    let mut lost = 0;
    for second in 0..600u32 {
        for _ in 0..10 {
            lost += u32::from(!world.send(0, (second % 2) as u8, &[7; 1000]));
        }
        lost += u32::from(!world.send(1, 0, b"back"));
        world.wait(Time::from_secs(1));
    }
    assert_eq!((lost, world.delivered[1].len(), world.delivered[0].len()), (0, 6000, 600));
    let opened = world.events[0].iter().filter(|it| matches!(it, Event::Opened { is_new: false })).count();
    assert!((4..=5).contains(&opened), "{opened} renewals in 600 s");
    assert_eq!(world.ends[0].counts().refused + world.ends[1].counts().refused, 0);
}

#[test]
fn an_idle_session_renews_its_keys_once_an_hour() {
    let mut world = World::new(1, 1);
    for _ in 0..7200 {
        world.wait(Time::from_secs(1));
        assert!(world.send(0, 0, b"probe") && world.send(1, 0, b"answer") || world.now < Time::from_secs(2));
    }
    let opened = world.events[0].iter().filter(|it| matches!(it, Event::Opened { .. })).count();
    assert!((2..=3).contains(&opened), "{opened}");
}

#[test]
fn either_end_may_start_again() {
    for end in [0, 1] {
        let mut world = World::new(2, 1);
        world.wait(Time::from_secs(1));
        assert!(world.exchange(0));
        world.stores[end] = {
            // What was kept on disk: a bound above everything used.
            let mut kept = MemoryCounters::default();
            kept.keep_own(1_000_000 + (1 << 25)).unwrap();
            kept.keep_peer(&world.keys[1 - end].public(), 1_000_000).unwrap();
            kept
        };
        world.restart(end);
        let began = world.now;
        while !(world.both_open() && world.exchange(0)) {
            world.send(1 - end, 0, b"into the void");
            world.wait(MS.times(100));
            assert!(world.now < began + Time::from_secs(6), "end {end} after {:?}", world.now.since(began));
        }
        assert!(world.exchange(1));
    }
}

/// Without a reset, as behind a firewall that has forgotten the way: silence begins again.
#[test]
fn silence_begins_a_handshake() {
    let mut world = World::new(1, 1);
    world.wait(Time::from_secs(1));
    world.wires[0].is_up = false;
    for _ in 0..12 {
        world.send(0, 0, b"nobody hears it");
        world.wait(Time::from_secs(1));
    }
    world.wires[0].is_up = true;
    world.wait(Time::from_secs(11));
    assert!(world.exchange(0));
    let opened = world.events[0].iter().filter(|it| matches!(it, Event::Opened { .. })).count();
    assert_eq!(opened, 2);
}

#[test]
fn who_ends_is_missed_at_once_and_called_again() {
    let mut world = World::new(1, 1);
    world.wait(Time::from_secs(1));
    world.ends[1].close();
    world.wait(MS.times(100));
    assert!(world.events[0].contains(&Event::Closed(Closing::Closed)));
    world.wait(Time::from_secs(3));
    assert!(world.both_open() && world.exchange(0));
}

#[test]
fn a_wrong_key_or_secret_or_version_is_named() {
    let keys = [StaticKey::generate(), StaticKey::generate()];
    let other = StaticKey::generate();
    let world = |caller: SessionConfig, answerer: SessionConfig| {
        let mut world = World::of([caller, answerer], keys.clone(), 1, 1);
        world.run(Time::from_secs(20));
        assert!(!world.ends[0].is_open());
        world
    };
    let [caller, answerer] = [0, 1].map(|end| move |own: &StaticKey, peer: PublicKey| config(own, peer, end == 0, 1));

    let wrong = world(caller(&keys[0], other.public()), answerer(&keys[1], keys[0].public()));
    assert_eq!(wrong.faults(1)[0], &Fault::OtherKey(seen(0)));
    assert_eq!(wrong.faults(0), [&Fault::Unanswered]);

    let wrong = world(caller(&other, keys[1].public()), answerer(&keys[1], keys[0].public()));
    assert_eq!(wrong.faults(1)[0], &Fault::OtherPeer(seen(0), other.public()));

    let mut secret = caller(&keys[0], keys[1].public());
    secret.shared = PresharedKey::new(zeroize::Zeroizing::new([1; 32]));
    let wrong = world(secret, answerer(&keys[1], keys[0].public()));
    assert_eq!(wrong.faults(1)[0], &Fault::OtherSecret(seen(0)));

    let wrong = world(caller(&keys[0], keys[1].public()), caller(&keys[1], keys[0].public()));
    assert_eq!(wrong.faults(1)[0], &Fault::BothCall(seen(0)));
}

/// Both directions of a meeting with version 2.
#[test]
fn another_version_is_named_on_both_sides() {
    let mut world = World::new(1, 1);
    let called = world.keys[1].public();
    let mut header = [0; packet::HELLO_BYTES];
    header[1] = 2;
    let hello = crate::seal::versions::foreign_hello(&called, [9; 32], &header);
    let place = Place { socket: 0, remote: seen(0), local: None };
    world.ends[1].handle_datagram(Time::ZERO, place, BytesMut::from(&hello[..]));
    let answer = world.ends[1].poll_transmit().unwrap();
    assert!(answer.bytes.len() <= hello.len());
    assert_eq!(world.ends[1].poll_event(), Some(Event::Fault(Fault::OtherVersion(vec![2]))));

    // The caller's own hello is answered by a host that has version 2 only.
    world.ends[0].handle_timeout(Time::ZERO);
    let own = world.ends[0].poll_transmit().unwrap().bytes;
    let proof = *crate::seal::versions::proof_of(&own).unwrap();
    let said = [&proof[..], &[2]].concat();
    let content = [&said[..], &crate::seal::versions::code(&called, &said)].concat();
    let answer = packet::hello(0, 0, 0, &content);
    world.ends[0].handle_datagram(Time::ZERO, place, BytesMut::from(&answer[..]));
    while let Some(event) = world.ends[0].poll_event() {
        world.events[0].push(event);
    }
    assert_eq!(world.faults(0), [&Fault::OtherVersion(vec![2])]);
}

#[test]
fn a_recorded_initiation_opens_nothing() {
    let mut world = World::new(1, 1);
    world.ends[0].handle_timeout(Time::ZERO);
    let recorded = world.ends[0].poll_transmit().unwrap().bytes;
    world.put(0, Datagram { to: Place { socket: 0, remote: far(), local: None }, bytes: recorded.clone() });
    world.wait(Time::from_secs(1));
    world.restart(0);
    world.wait(Time::from_secs(1));
    assert!(world.exchange(0));
    let place = Place { socket: 0, remote: ([203, 0, 113, 66], 6).into(), local: None };
    world.ends[1].handle_datagram(world.now, place, BytesMut::from(&recorded[..]));
    assert!(world.ends[1].poll_transmit().is_none());
    assert!(world.exchange(0));
}

#[test]
fn a_black_hole_is_noticed_and_named() {
    let mut world = World::new(1, 1);
    world.wait(Time::from_secs(1));
    let full = |world: &World| vec![1; world.ends[0].content_bytes(0) as usize];
    let first = full(&world).len();
    assert!(world.send(0, 0, &full(&world)[..600]), "half of a packet that does not fit");
    world.wait(Time::from_secs(1));
    assert_eq!(full(&world).len(), 1500 - 28 - SEAL_BYTES, "found from {first}");
    world.ends[0].note_path(world.now, 0, true, Time::from_secs(1));
    world.wait(Time::from_secs(9));
    assert_eq!(full(&world).len(), 1500 - 28 - SEAL_BYTES, "a loss of another cause");
    world.wires[0].longest = 1400;
    world.ends[0].note_path(world.now, 0, true, Time::from_secs(1));
    // Even if nothing more is sent on a path that is left out because of it.
    world.wait(Time::from_secs(10));
    assert!(world.events[0].iter().any(|it| matches!(it, Event::Longest { has_shrunk: true, .. })));
    assert_eq!(full(&world).len(), 1400 - 28 - SEAL_BYTES);
}

#[test]
fn a_flood_of_initiations_is_answered_with_cookies_and_the_peer_comes_through() {
    let mut world = World::new(1, 1);
    let other = StaticKey::generate();
    let place = Place { socket: 0, remote: ([203, 0, 113, 66], 6).into(), local: None };
    let mut sent = [0; 2];
    for _ in 0..50 {
        let mut stranger =
            Session::new(config(&other, world.keys[1].public(), true, 1), Box::<MemoryCounters>::default(), || 1);
        stranger.set_path(Time::ZERO, 0, Some(PathPlace { place, longest_bytes: 1500, is_last_resort: false }));
        stranger.handle_timeout(Time::ZERO);
        let hello = stranger.poll_transmit().unwrap().bytes;
        sent[0] += hello.len();
        world.ends[1].handle_datagram(Time::ZERO, place, BytesMut::from(&hello[..]));
        while let Some(answer) = world.ends[1].poll_transmit() {
            sent[1] += answer.bytes.len();
        }
    }
    assert!(world.ends[1].cookies.is_some() && sent[1] > 0 && sent[1] < sent[0]);
    world.run(MS.times(400));
    assert!(world.both_open() && world.exchange(0), "with a cookie");
}

/// A store that fails for a while, as a full disk.
struct Full(std::sync::Arc<std::sync::atomic::AtomicBool>, MemoryCounters);

impl CounterStore for Full {
    fn own(&self) -> u64 {
        self.1.own()
    }

    fn keep_own(&mut self, bound: u64) -> std::io::Result<()> {
        let is_full = self.0.load(std::sync::atomic::Ordering::Relaxed);
        if is_full { Err(std::io::ErrorKind::StorageFull.into()) } else { self.1.keep_own(bound) }
    }

    fn peer(&self, peer: &PublicKey) -> u64 {
        self.1.peer(peer)
    }

    fn keep_peer(&mut self, peer: &PublicKey, bound: u64) -> std::io::Result<()> {
        self.1.keep_peer(peer, bound)
    }
}

#[test]
fn a_full_disk_is_named_and_the_call_is_made_when_there_is_room() {
    let mut world = World::new(1, 1);
    let is_full = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let config = config(&world.keys[0], world.keys[1].public(), true, 1);
    world.ends[0] = Session::new(config, Box::new(Full(is_full.clone(), MemoryCounters::default())), || 1_000_000);
    world.plug(0, false);
    world.wait(Time::from_secs(60));
    assert!(matches!(world.faults(0)[..], [Fault::Store(_), ..]) && !world.ends[0].is_open());
    is_full.store(false, std::sync::atomic::Ordering::Relaxed);
    world.wait(Time::from_secs(11));
    assert!(world.both_open() && world.exchange(0));
}

#[test]
fn secrets_are_not_shown() {
    let world = World::new(1, 1);
    let shown = format!("{:?} {:?}", world.ends[0], world.ends[0].config);
    assert!(!shown.contains(world.keys[0].to_private_text().as_str()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(12), ..ProptestConfig::default() })]

    /// Whatever wires do for a while, packets flow again soon after they have become good; and nothing is delivered twice.
    #[test]
    fn sessions_recover(
        seed in any::<u64>(),
        paths in 1_usize..5,
        steps in proptest::collection::vec((0_u8..6, any::<u16>(), 0_u64..8000), 1..25),
    ) {
        let mut world = World::new(paths, seed);
        world.stores[0].keep_own(1 << 26).unwrap();
        let mut sent = 0_u32;
        for (what, value, pause) in steps {
            let path = usize::from(value) % paths;
            match what {
                0 => world.wires[path].is_up = !world.wires[path].is_up,
                1 => world.wires[path].loss = f64::from(value % 40) / 100.0,
                2 => world.wires[path].jitter = MS.times(u64::from(value % 500)),
                3 => world.wires[path].seen_from = ([203, 0, 113, path as u8], value | 1).into(),
                4 => world.restart(1),
                _ => world.plug(path, path == 2),
            }
            for end in 0..2 {
                sent += 1;
                world.send(end, path as u8, &sent.to_be_bytes());
            }
            world.wait(MS.times(pause));
        }
        for wire in &mut world.wires {
            (wire.is_up, wire.loss, wire.jitter) = (true, 0.0, Time::ZERO);
        }
        let began = world.now;
        let mut works = vec![false; paths];
        while works.contains(&false) {
            for path in 0..paths as u8 {
                works[usize::from(path)] |= world.exchange(path);
            }
            prop_assert!(world.now < began + Time::from_secs(90), "{works:?}");
        }
        for delivered in &world.delivered {
            let mut numbered: Vec<_> = delivered.iter().filter(|(_, content)| content.len() == 4).collect();
            let before = numbered.len();
            numbered.sort();
            numbered.dedup();
            prop_assert_eq!(numbered.len(), before);
        }
    }

    #[test]
    fn any_bytes_do_no_harm(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..40)) {
        let mut world = World::new(2, 1);
        world.wait(Time::from_secs(1));
        for (at, bytes) in datagrams.into_iter().enumerate() {
            let place = Place { socket: 0, remote: seen(at % 3), local: None };
            let delivered = world.ends[at % 2].handle_datagram(world.now, place, BytesMut::from(&bytes[..]));
            prop_assert!(delivered.is_none());
        }
        prop_assert!(world.exchange(0) && world.exchange(1));
    }

    /// A peer that has the keys and means harm: it makes no end of datagrams, and packets still flow.
    #[test]
    fn any_messages_of_the_peer_do_no_harm(
        contents in proptest::collection::vec((0_u8..16, proptest::collection::vec(any::<u8>(), 0..60)), 1..40),
    ) {
        let mut world = World::new(2, 1);
        world.wait(Time::from_secs(1));
        for (at, (path, content)) in contents.into_iter().enumerate() {
            let end = at % 2;
            let mut bytes = Vec::new();
            let Some(keys) = world.ends[end].current.as_mut() else { continue };
            prop_assert!(keys.seal(Kind::Control, path, &mut bytes, |out| out.extend(&content)));
            let from = if end == 0 { seen(path.into()) } else { far() };
            let socket = if end == 0 { 0 } else { usize::from(path) };
            let place = Place { socket, remote: from, local: None };
            let length = bytes.len();
            world.ends[1 - end].handle_datagram(world.now, place, BytesMut::from(&bytes[..]));
            let mut answers = 0;
            while let Some(answer) = world.ends[1 - end].poll_transmit() {
                answers += answer.bytes.len();
            }
            prop_assert!(answers <= MOST_QUEUED * 60, "{answers} bytes for {length}");
            while world.ends[1 - end].poll_event().is_some() {}
        }
        world.wait(Time::from_secs(15));
        // A peer that says that it ends and goes on is told so, and calls again.
        for path in 0..2 {
            prop_assert!((0..10).any(|_| world.exchange(path)));
        }
    }
}
