//! AeroTP against senders that are not the peer: openings with forged addresses, stale and forged segments, restarts with any
//! clock. `docs/aerotp.md`, `[G1]` to `[G5]`, `[C22]`.

use std::collections::BTreeMap;

use crate::random_schedules::schedules;
use farlink_core::event::Abort;
use farlink_core::protocol::aerotp::{AerotpConfig, Connection, Flags, Mack, Segment, Side, State};
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::rng::RandomSource;
use farlink_core::{Ecn, Endpoint, Event, Packet, Rng, Rx, Stream, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

type Data = Vec<u8>;

const ONE_WAY: Time = Time::from_millis(20);
/// When each test begins, so that clocks can be behind.
const BEGIN: Time = Time::from_secs(200_000);

fn config(keys: &Value) -> AerotpConfig {
    let mut all = json!({ "packet_bytes": 148 });
    all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let config: AerotpConfig = serde_json::from_value(all).unwrap();
    config.check().unwrap_or_else(|error| panic!("{keys}: {error}"));
    config
}

/// A segment as on the wire, with an IPv4 header and AeroTP's own.
fn segment(flags: Flags, payload: usize) -> Segment<Data> {
    let opening = if flags.has(Flags::ASYN) { 4 } else { 0 };
    Segment { flags, header_bytes: 40 + opening, payload: vec![1; payload], ..Segment::default() }
}

fn stamp(now: Time) -> u32 {
    (now.as_ps() / 1_000_000) as u32
}

/// Sends everything that is due during `span`; returns the number of wire bytes and of wake-ups.
fn bytes_drawn(end: &mut Side<Data>, now: Time, span: Time) -> (u64, u64) {
    let (until, mut at, mut bytes, mut wakes) = (now + span, now, 0, 0);
    loop {
        while end.poll_event().is_some() || end.read().is_some() {}
        while let Some(sent) = end.poll_transmit(at) {
            bytes += u64::from(sent.packet.wire_bytes());
        }
        match end.poll_timeout() {
            Some(due) if due <= until => at = at.max(due),
            _ => return (bytes, wakes),
        }
        end.handle_timeout(at);
        wakes += 1;
        assert!(wakes < 100_000, "timers spin at {at:?}");
    }
}

fn listener(keys: &Value, seed: u64) -> Side<Data> {
    Pairs::<Data>::pair(&config(keys), seed).1
}

/// `[G1]`: what a forged opening of 45 bytes makes a listener send that has 2 MB to send.
#[test]
fn a_forged_opening_draws_at_most_three_times_its_bytes() {
    for rate in [json!({}), json!({ "rate_bps": 1e8 }), json!({ "rate_bps": 1e8, "mode": "unreliable" })] {
        let mut end = listener(&rate, 1);
        end.write(BEGIN, &mut vec![7; 2_000_000]);
        let forged = Segment { tag: 9, opening: 77, sequence: 77, ..segment(Flags::ASYN, 1) };
        assert_eq!(forged.wire_bytes(), 45);
        end.handle_packet(BEGIN, &forged, Rx::default());
        let (bytes, wakes) = bytes_drawn(&mut end, BEGIN, Time::from_secs(3600));
        assert!(bytes > 0 && bytes <= 3 * 45, "{rate}: {bytes} bytes");
        assert!(wakes < 2_000, "{rate}: {wakes} wake-ups in an hour");
    }
}

/// Each mode with connections, and what it may send besides data.
fn modes() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "mode": "near-reliable", "keep_alive_s": 1, "acks_per_mack": 1 }),
        json!({ "copies": 3, "rate_bps": 1e6 }),
        json!({ "deadline_s": 0.5, "fec_words": 3 }),
        json!({ "spare_copies": true, "rate_bps": 1e6, "initial_rto_s": 0.1 }),
        json!({ "adaptive_length": { "min_bytes": 1 } }),
        json!({ "coded": {} }),
        json!({ "coded": { "block_symbols": 5 }, "deadline_s": 0.3, "rate_bps": 1e5 }),
        json!({ "mode": "quasi-reliable", "fec_words": 4, "keep_alive_s": 2 }),
        json!({ "mode": "quasi-reliable", "erasure": { "source": 4, "repair": 2 }, "adaptive_fec": { "report_every_s": 0.05 } }),
        json!({ "mode": "unreliable", "keep_alive_s": 0.5 }),
        json!({ "mode": "unreliable", "deadline_s": 1, "rate_bps": 1e5 }),
    ]
}

proptest! {
    /// `[G1]`: openings, and what may follow them from somebody who does not see the answers: data, ends, questions, MACKs whose
    /// echo is the clock's.
    #[test]
    fn forged_openings_never_draw_more_than_three_times_their_bytes(
        mode in 0..modes().len(), seed: u64, written in 0_usize..20_000, packet in 120_u32..1500, closes: bool,
        forged in proptest::collection::vec((0_u8..6, 0_usize..400, 0_u64..3000, any::<u16>()), 1..12),
    ) {
        let mut keys = modes()[mode].clone();
        keys["packet_bytes"] = json!(packet);
        let mut end = listener(&keys, seed);
        let mode = config(&keys).mode;
        let mut now = BEGIN;
        end.write(now, &mut vec![7; written]);
        if closes {
            end.close(now);
        }
        let (mut came, mut drawn, mut at) = (0, 0, 77_u32);
        for (kind, bytes, ms, random) in forged {
            let content = match kind {
                0 | 1 => segment(Flags::ASYN, bytes),
                2 => segment(Flags::default(), bytes),
                3 => segment(Flags::AFIN, 0),
                4 => segment(Flags::default(), 0),
                // A MACK of everything sent so far, with the clock's time of an earlier instant.
                _ => {
                    let echo = stamp(now).wrapping_sub(u32::from(random) / 8);
                    let mack = Mack { echo, window: 1 << 20, ..Mack::default() };
                    Segment { mack: Some(Box::new(mack)), ..segment(Flags::MACK, 0) }
                }
            };
            // A forger that knows the clock meets the instant of a segment with one of 65,536 lags.
            let tag = if random % 8 == 0 { random } else { 9 };
            let segment = Segment { tag, mode, sequence: at, opening: 77, timestamp: stamp(now), ..content };
            at = at.wrapping_add(segment.payload.len() as u32);
            came += u64::from(segment.wire_bytes());
            end.handle_packet(now, &segment, Rx::default());
            drawn += bytes_drawn(&mut end, now, Time::from_millis(ms)).0;
            now += Time::from_millis(ms);
        }
        drawn += bytes_drawn(&mut end, now, Time::from_secs(30)).0;
        prop_assert!(end.connection().is_address_proven() || drawn <= 3 * came, "{drawn} bytes for {came}");
        prop_assert!(!end.connection().is_address_proven(), "nobody has seen a timestamp");
    }
}

/// Two sides, a path between them, and clocks of their own.
struct World {
    ends: [Side<Data>; 2],
    /// What each side's clock is ahead of [`BEGIN`]'s, in seconds.
    ahead_s: [i64; 2],
    now: Time,
    rng: Rng,
    loss: f64,
    longest_delay_ms: u64,
    /// When losses and reordering end.
    calm: Time,
    under_way: BTreeMap<(Time, u64), (usize, Segment<Data>)>,
    count: u64,
    sent: Vec<(Time, usize, Segment<Data>)>,
    read: [Data; 2],
    skipped: [u64; 2],
    first_byte: [Option<Time>; 2],
    events: [Vec<Event>; 2],
}

impl World {
    fn new(config: &AerotpConfig, seed: u64) -> Self {
        let (active, passive) = Pairs::<Data>::pair(config, seed);
        World {
            ends: [active, passive],
            ahead_s: [0; 2],
            now: BEGIN,
            rng: Rng::for_component(seed, 0, "strangers"),
            loss: 0.0,
            longest_delay_ms: 0,
            calm: BEGIN,
            under_way: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
            read: Default::default(),
            skipped: [0; 2],
            first_byte: [None; 2],
            events: Default::default(),
        }
    }

    fn clock(&self, side: usize) -> Time {
        let ahead = self.ahead_s[side];
        let span = Time::from_secs(ahead.unsigned_abs());
        if ahead < 0 { self.now.since(span) } else { self.now + span }
    }

    fn write(&mut self, side: usize, data: &[u8], closes: bool) {
        let now = self.clock(side);
        assert_eq!(self.ends[side].write(now, &mut data.to_vec()), data.len());
        if closes {
            self.ends[side].close(now);
        }
        self.pump(side);
    }

    fn pump(&mut self, side: usize) {
        let now = self.clock(side);
        loop {
            let mut has_acted = false;
            while let Some(event) = self.ends[side].poll_event() {
                if let Event::Skipped(bytes) = event {
                    self.skipped[side] += bytes;
                }
                self.events[side].push(event);
                has_acted = true;
            }
            while let Some(data) = self.ends[side].read() {
                self.first_byte[side] = self.first_byte[side].or(Some(self.now));
                self.read[side].extend(data);
                has_acted = true;
            }
            if !has_acted {
                break;
            }
        }
        while let Some(sent) = self.ends[side].poll_transmit(now) {
            self.sent.push((self.now, side, sent.packet.clone()));
            assert!(self.sent.len() < 50_000, "this does not end");
            let is_rough = self.now < self.calm;
            if is_rough && self.rng.chance(self.loss) {
                continue;
            }
            let more = if is_rough { self.rng.below(self.longest_delay_ms + 1) } else { 0 };
            self.insert(self.now + ONE_WAY + Time::from_millis(more), 1 - side, sent.packet);
        }
    }

    fn insert(&mut self, at: Time, to: usize, segment: Segment<Data>) {
        self.count += 1;
        self.under_way.insert((at, self.count), (to, segment));
    }

    /// When a side's timer fires, by the world's clock.
    fn timer(&self, side: usize) -> Time {
        let due = self.ends[side].poll_timeout().unwrap_or(Time::NEVER);
        if due == Time::NEVER { due } else { self.now + due.since(self.clock(side)) }
    }

    fn run_until(&mut self, end: Time, is_done: impl Fn(&World) -> bool) {
        let mut steps = 0;
        while !is_done(self) {
            let timers = [self.timer(0), self.timer(1)];
            let arrival = self.under_way.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let next = arrival.min(timers[0]).min(timers[1]);
            if next > end {
                self.now = end;
                return;
            }
            steps += 1;
            assert!(steps < 100_000, "timers spin at {:?}", self.now);
            self.now = self.now.max(next);
            let side = if next == arrival {
                let (_, (to, segment)) = self.under_way.pop_first().unwrap();
                self.ends[to].handle_packet(self.clock(to), &segment, Rx::default());
                to
            } else {
                let side = usize::from(timers[1] < timers[0]);
                self.ends[side].handle_timeout(self.clock(side));
                side
            };
            self.pump(side);
        }
    }

    fn run_for(&mut self, seconds: f64) {
        self.run_until(self.now + Time::from_secs_f64(seconds), |_| false);
    }

    fn is_closed(&self) -> bool {
        self.events.iter().all(|events| events.contains(&Event::Closed))
    }
}

fn content(side: usize, bytes: usize) -> Data {
    (0..bytes).map(|at| ((at * 7 + side * 101) % 251) as u8).collect()
}

/// `[G2]`, `[G3]`: a passive side with data sends at once what three times the opening allows, and the rest a round trip later.
#[test]
fn a_passive_sender_begins_at_once_and_goes_on_after_a_round_trip() {
    for (keys, asked, first_ms) in [
        (json!({}), 1, 40),
        (json!({}), 100, 40),
        (json!({ "mode": "unreliable" }), 1, 80),
        (json!({ "mode": "unreliable" }), 100, 40),
        (json!({ "coded": {} }), 1, 80),
        (json!({ "mode": "quasi-reliable", "fec_words": 4 }), 1, 80),
    ] {
        let mut config = config(&keys);
        config.rate_control = serde_json::from_value(json!("none")).unwrap();
        let mut world = World::new(&config, 3);
        world.write(1, &content(1, 3_000), true);
        world.write(0, &content(0, asked), true);
        world.run_for(0.5);
        let first = world.first_byte[0].expect("data has arrived").since(BEGIN);
        assert!(first <= Time::from_millis(first_ms), "{keys}, {asked} bytes: the first byte after {first:?}");
        assert!(
            world.read[0] == content(1, 3_000),
            "{keys}, {asked} bytes: {} bytes after half a second",
            world.read[0].len()
        );
        world.run_for(20.0);
        assert!(world.is_closed(), "{keys}, {asked} bytes: {:?}", world.events);
    }
}

/// `[G4]`: whatever is lost, an opener that has said its own goes on asking, so that the answer is never stuck.
#[test]
fn an_unproven_side_is_never_stuck() {
    for seed in 0..400 {
        let keys = [json!({}), json!({ "coded": {} }), json!({ "mode": "unreliable" })][seed as usize % 3].clone();
        let config = config(&keys);
        let mut world = World::new(&config, seed);
        (world.loss, world.longest_delay_ms, world.calm) = (0.6, 40, BEGIN + Time::from_secs(6));
        // The question comes in one or two segments, and the answer some time later.
        world.write(0, &content(0, 1), false);
        if seed % 2 == 0 {
            world.run_for(0.3);
            world.write(0, &[1], false);
        }
        world.run_for(0.01 * (seed % 500) as f64);
        world.write(1, &content(1, 3_000), false);
        world.run_for(60.0);
        let came = world.read[0].len() as u64 + world.skipped[0];
        let is_lossy = keys["mode"] == "unreliable";
        // What was lost at the end of a stream that is not closed is not known to be lost.
        let has_begun = !world.read[1].is_empty();
        assert!(
            came == 3_000 || (is_lossy && (!has_begun || came > 0)),
            "seed {seed}, {keys}: {came} bytes, {:?}",
            &world.sent[world.sent.len().saturating_sub(12)..]
        );
    }
}

/// `[G5]`
#[test]
fn a_new_address_is_proven_like_the_first() {
    let mut world = World::new(&config(&json!({})), 5);
    world.write(0, &content(0, 1_000), false);
    world.write(1, &content(1, 1_000), false);
    world.run_for(1.0);
    assert!(world.ends[1].connection().is_address_proven());
    world.ends[1].connection_mut().address_changed();
    let at = world.sent.len();
    world.write(1, &content(1, 50_000), false);
    world.run_for(5.0);
    assert_eq!(world.sent.len(), at, "nothing has come from the new address");
    world.write(0, &[1], false);
    let to = world.now + ONE_WAY + ONE_WAY;
    world.run_until(to - Time::from_millis(1), |_| false);
    let (came, sent) = world.sent[at..].iter().fold((0, 0), |(came, sent), (_, side, segment)| {
        let bytes = segment.wire_bytes();
        if *side == 0 { (came + bytes, sent) } else { (came, sent + bytes) }
    });
    assert!(sent > 0 && sent <= 3 * came, "{sent} bytes for {came}");
    world.run_for(5.0);
    assert_eq!(world.read[0].len(), 51_000);
    assert!(world.ends[1].connection().is_address_proven());
}

/// `[A2]`: strangers change neither what is told of marks nor of damage.
#[test]
fn marks_and_damage_of_strangers_are_not_counted() {
    use farlink_core::Integrity;
    for has_right_tag in [false, true] {
        let mut world = World::new(&config(&json!({ "acks_per_mack": 1 })), 6);
        world.write(0, &content(0, 500), false);
        world.run_for(1.0);
        let own = world.sent.iter().rfind(|sent| sent.1 == 0).unwrap().2.clone();
        for n in 0..10 {
            let tag = if has_right_tag { own.tag } else { own.tag.wrapping_add(1 + n) };
            let forged = Segment { tag, ..own.clone() };
            let now = world.clock(1);
            world.ends[1].handle_packet(now, &forged, Rx { ecn: Ecn::Congestion, ..Rx::default() });
            let damaged = Rx { integrity: Integrity::PayloadDamaged, ..Rx::default() };
            world.ends[1].handle_packet(now, &forged, damaged);
        }
        world.write(0, &[3], false);
        world.run_for(1.0);
        let mack =
            world.sent.iter().rfind(|sent| sent.1 == 1 && sent.2.mack.is_some()).unwrap().2.mack.clone().unwrap();
        assert_eq!((mack.marked, mack.damaged), if has_right_tag { (10, 10) } else { (0, 0) });
    }
}

/// Shifts of a clock that a restart may bring, in seconds.
const SHIFTS: [i64; 9] = [0, 60, -60, 1_800, -1_800, 2_000, -2_000, 100_000, -100_000];

/// `[C22]`: an opener that restarts is served within a round trip and the way of its data, whatever its clock says now: in the
/// middle of a transfer, and after the end of a connection.
#[test]
fn a_restart_with_any_clock_is_served_within_a_round_trip() {
    for shift in SHIFTS {
        for has_ended in [false, true] {
            let config = config(&json!({}));
            let mut world = World::new(&config, 8);
            world.write(0, &content(0, 500), has_ended);
            if has_ended {
                world.write(1, &[], true);
            }
            world.run_for(1.0);
            assert_eq!(world.is_closed(), has_ended);
            world.ends[0] = Pairs::<Data>::pair(&config, 1234).0;
            world.ahead_s[0] = shift;
            (world.read, world.first_byte, world.events) = Default::default();
            let began = world.now;
            world.write(0, &content(2, 500), true);
            world.run_until(began + Time::from_millis(60), |_| false);
            let expected = if has_ended { vec![] } else { vec![Event::Aborted(Abort::PeerRestarted)] };
            assert!(world.events[1].starts_with(&expected), "{shift}: {:?}", world.events[1]);
            assert!(
                world.events[1][expected.len()..].starts_with(&[Event::Connected]),
                "{shift}: {:?}",
                world.events[1]
            );
            let first = world.first_byte[1].expect("data has arrived").since(began);
            assert!(first <= Time::from_millis(60), "{shift}, {has_ended}: {first:?}");
            world.write(1, &[], true);
            world.run_for(20.0);
            assert!(world.read[1] == content(2, 500) && world.is_closed(), "{shift}, {has_ended}: {:?}", world.events);
        }
    }
}

/// `[C22]`: an opening of a stranger with any clock neither ends a connection nor keeps the peer out.
#[test]
fn a_forged_opening_neither_displaces_a_peer_nor_shuts_it_out() {
    for ahead in SHIFTS {
        for is_first in [true, false] {
            let mut world = World::new(&config(&json!({})), 9);
            if !is_first {
                world.write(0, &content(0, 700), false);
                world.run_for(1.0);
            }
            let dated = if ahead < 0 {
                world.now.since(Time::from_secs(-ahead as u64))
            } else {
                world.now + Time::from_secs(ahead as u64)
            };
            let forged = Segment { tag: 4, timestamp: stamp(dated), ..segment(Flags::ASYN, 1) };
            for to in [0, 1] {
                if to == 1 || !is_first {
                    world.insert(world.now, to, forged.clone());
                }
            }
            world.run_for(0.0);
            let began = world.now;
            (world.first_byte, world.read) = Default::default();
            if is_first {
                world.read[1].clear();
            }
            world.write(0, &content(0, 500), true);
            world.run_until(began + Time::from_millis(60), |_| false);
            assert!(!world.read[1].is_empty(), "{ahead}, {is_first}: {:?}", world.events);
            world.write(1, &[], true);
            world.run_for(20.0);
            let got = &world.read[1][world.read[1].len() - 500..];
            assert!(got == content(0, 500) && world.is_closed(), "{ahead}, {is_first}: {:?}", world.events);
            assert!(is_first || !world.events.iter().flatten().any(|event| matches!(event, Event::Aborted(_))));
        }
    }
}

/// Random numbers that a test chooses.
struct Chosen(std::vec::IntoIter<u64>);

impl RandomSource for Chosen {
    fn next_u64(&mut self) -> u64 {
        self.0.next().expect("a draw for each connection")
    }
}

/// `[L10]`: tag and first number of a connection are bits of its own draw, and of nothing else: whoever knows all that was sent
/// and all earlier draws knows nothing of the next ones.
#[test]
fn tags_and_numbers_are_the_bits_of_their_own_draws() {
    let draws: Vec<u64> = (0..50).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n << 17)).collect();
    // What the connections carry before makes no difference.
    for bytes in [1, 300] {
        let mut random = Chosen(draws.clone().into_iter());
        let config = config(&json!({}));
        for draw in &draws {
            let mut opener = Connection::<Data>::connect(&config, &mut random);
            opener.write(BEGIN, &mut vec![1; bytes]);
            let sent = opener.poll_transmit(BEGIN).unwrap().packet;
            assert_eq!((sent.tag, sent.opening), (*draw as u16, (draw >> 16) as u32));
            assert_eq!(sent.timestamp, stamp(BEGIN), "an opener's clock is no secret");
        }
        assert!(random.0.next().is_none(), "one draw for each");
    }
    // A host that accepts draws for each connection too; its timestamps lag behind by the rest of the draw.
    let config = config(&json!({}));
    let limits = farlink_core::protocol::aerotp::AcceptorLimits::default();
    let mut host = farlink_core::protocol::aerotp::Acceptor::<u64, Data>::new(&config, limits).unwrap();
    let mut random = Chosen(draws.clone().into_iter());
    for (address, draw) in draws.iter().enumerate() {
        let opening = Segment { tag: 7, timestamp: 5, opening: 99, sequence: 99, ..segment(Flags::ASYN, 0) };
        host.handle_packet(BEGIN, address as u64, &opening, Rx::default(), &mut random);
        let (to, answer) = host.poll_transmit(BEGIN).expect("a question is answered");
        let lag = (draw >> 48) as u32;
        assert_eq!((to, answer.packet.tag), (address as u64, *draw as u16));
        assert_eq!(answer.packet.timestamp, stamp(BEGIN).wrapping_sub(lag));
    }
}

/// What a stranger sends to a side. He is not on the path, so he sees no segment; he knows addresses, ports, mode, the clocks to
/// the microsecond, and about when the pair talks. Tags and numbers he draws at random. In a quarter of the cases he has guessed the
/// tag, but neither the numbers nor the timestamps; and he has recorded segments of the pair's earlier connection, under other tags,
/// and of this one, which arrive again at any time.
fn stranger(rng: &mut Rng, world: &World, to: usize, past: &[(usize, Segment<Data>)]) -> Segment<Data> {
    let peers: Vec<_> = world.sent.iter().filter(|sent| sent.1 != to).map(|sent| &sent.2).collect();
    let replayed = |rng: &mut Rng, from: &[&Segment<Data>]| from[rng.below(from.len() as u64) as usize].clone();
    if rng.chance(0.2) && !peers.is_empty() {
        return replayed(rng, &peers);
    }
    let past: Vec<_> = past.iter().filter(|(towards, _)| *towards == to).map(|(_, segment)| segment).collect();
    if rng.chance(0.2) && !past.is_empty() {
        return replayed(rng, &past);
    }
    let word = |rng: &mut Rng| rng.below(1 << 32) as u32;
    let now = stamp(world.now);
    let timestamp = match rng.below(4) {
        0 => now,
        1 => now.wrapping_add(2_000_000_000),
        2 => now.wrapping_sub(2_000_000_000),
        _ => word(rng),
    };
    let own = peers.last().filter(|_| rng.chance(0.25));
    let tag = own.map_or(word(rng) as u16, |own| own.tag);
    // A RESET goes to the tag of its receiver.
    let mine = world.sent.iter().rfind(|sent| sent.1 == to).filter(|_| own.is_some()).map(|sent| sent.2.tag);
    let (sequence, opening) = (word(rng), word(rng));
    let payload = 1 + rng.below(100) as usize;
    let content = match rng.below(6) {
        0 | 1 => segment(Flags::ASYN, payload),
        2 => segment(Flags::AFIN, payload),
        3 => {
            let echo = if rng.chance(0.5) { now.wrapping_sub(rng.below(100_000) as u32) } else { word(rng) };
            let mack = Mack { echo, window: word(rng), marked: 500, damaged: 500, ..Mack::default() };
            let flags = if rng.chance(0.5) { Flags::MACK } else { Flags::MACK.with(Flags::ASYN) };
            Segment { mack: Some(Box::new(mack)), ..segment(flags, 0) }
        }
        4 => return Segment { tag: mine.unwrap_or(tag), sequence, timestamp, ..segment(Flags::RESET, 0) },
        _ => segment(Flags::default(), payload),
    };
    Segment { tag, sequence, opening, timestamp, ..content }
}

/// Plays a schedule; returns how many segments of strangers arrived.
fn play(number: u64, wrapping: &[u64]) -> u64 {
    let mut rng = Rng::for_component(number, 0, "campaign");
    let seed = if rng.chance(0.3) { wrapping[rng.below(8) as usize] } else { rng.below(u64::MAX / 2) };
    let mut keys = json!({ "receive_buffer_bytes": 4000, "initial_rto_s": 0.2 });
    match rng.below(4) {
        0 => keys["coded"] = json!({ "block_symbols": 8 }),
        1 => keys["acks_per_mack"] = json!(1),
        2 => keys["rate_bps"] = json!(1e6),
        _ => {}
    }
    let config = config(&keys);
    // An earlier connection of the same pair, of which segments are known.
    let mut earlier = World::new(&config, seed ^ 0x5555);
    earlier.write(0, &content(3, 300), true);
    earlier.write(1, &content(4, 200), true);
    earlier.run_until(BEGIN + Time::from_secs(20), World::is_closed);
    let past: Vec<_> = earlier.sent.iter().map(|(_, side, segment)| (1 - side, segment.clone())).collect();

    let mut world = World::new(&config, seed);
    world.now = BEGIN + Time::from_secs(1 + rng.below(100));
    (world.loss, world.longest_delay_ms) = (0.3 * rng.uniform(), rng.below(60));
    world.calm = world.now + Time::from_millis(rng.below(2_000));
    let bytes = [1 + rng.below(1_500) as usize, rng.below(800) as usize];
    world.write(1, &content(1, bytes[1]), true);
    world.write(0, &content(0, bytes[0]), true);
    let (began, strangers) = (world.now, 1 + rng.below(30));
    for _ in 0..strangers {
        world.run_until(world.now + Time::from_millis(rng.below(60)), |_| false);
        // A listener that nobody has reached yet is opened by whoever comes first; the pair's own tests have that case.
        let to = if world.ends[1].state() == State::Listen { 0 } else { rng.below(2) as usize };
        let forged = stranger(&mut rng, &world, to, &past);
        world.insert(world.now, to, forged);
    }
    world.run_until(began + Time::from_secs(120), World::is_closed);
    let late = world.now.since(world.calm.max(began + Time::from_millis(60 * strangers)));
    for side in [0, 1] {
        let wrong = format!("schedule {number}, side {side}, {keys}: {:?}", world.events);
        assert!(world.read[side] == content(1 - side, bytes[1 - side]), "{wrong}: {} bytes", world.read[side].len());
        assert!(!world.events[side].iter().any(|event| matches!(event, Event::Aborted(_))), "{wrong}");
        assert!(world.events[side].contains(&Event::Closed), "{wrong}");
        assert!(late < Time::from_secs(10), "{wrong}: {late:?} late");
    }
    strangers
}

/// `[C11]`, `[C14]`, `[C22]`, `[A8]`: strangers cause no loss, no repetition and no delay.
#[test]
fn strangers_do_not_disturb_a_pair() {
    let (mut count, wrapping) = (0, crate::aerotp_schedules::wrapping_seeds());
    let wanted = schedules(2_000, 1);
    for number in 0..wanted {
        count += play(number, &wrapping);
    }
    assert!(count >= 10 * wanted, "{count} segments of strangers");
}
