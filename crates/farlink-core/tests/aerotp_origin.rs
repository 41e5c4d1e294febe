//! Moves of the origin of AeroTP's clocks: nobody notices them, and with them a connection outlives the 213 days of a `Time`. `[L15]`

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use crate::random_schedules::schedules;
use farlink_core::payload::Virtual;
use farlink_core::protocol::aerotp::{
    Acceptor, AcceptorLimits, AerotpConfig, Connection, Handle, Mode, Segment, Service, Side, State,
};
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::rng::SplitMix64;
use farlink_core::{BitRate, Ecn, Endpoint, Event, Integrity, LinkHint, OriginShift, Rng, Rx, Stream, Time, Transmit};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Picoseconds since the beginning, which do not end.
type Instant = u128;

const SECOND: Instant = 1_000_000_000_000;
const MS: Instant = SECOND / 1000;
const DAY: Instant = 86_400 * SECOND;

/// What an end of the flow is made of.
enum End {
    Side(Box<Side<Virtual>>),
    Host(Box<Acceptor<u8, Virtual>>, SplitMix64),
}

/// A call of an end, with its present connection where there is one.
macro_rules! each {
    ($end:expr, $it:ident => $call:expr) => {
        match $end {
            End::Side($it) => $call,
            End::Host($it, _) => $call,
        }
    };
}

impl End {
    fn handle_packet(&mut self, now: Time, segment: &Segment<Virtual>, rx: Rx) {
        match self {
            End::Side(side) => side.handle_packet(now, segment, rx),
            End::Host(host, random) => drop(host.handle_packet(now, 1, segment, rx, random)),
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Segment<Virtual>>> {
        match self {
            End::Side(side) => side.poll_transmit(now),
            End::Host(host, _) => host.poll_transmit(now).map(|(_, transmit)| transmit),
        }
    }

    fn poll_event(&mut self) -> Option<(Option<Handle>, Event)> {
        match self {
            End::Side(side) => side.poll_event().map(|event| (None, event)),
            End::Host(host, _) => host.poll_event().map(|(handle, event)| (Some(handle), event)),
        }
    }

    /// The present connection.
    fn connection(&mut self) -> Option<&mut Connection<Virtual>> {
        match self {
            End::Side(side) => Some(side.connection_mut()),
            End::Host(host, _) => host.handles().last().and_then(|handle| host.get_mut(handle)),
        }
    }

    fn read(&mut self) -> u64 {
        let read_all =
            |it: &mut Connection<Virtual>| std::iter::from_fn(|| it.read()).map(|data| u64::from(data.0)).sum::<u64>();
        match self {
            End::Side(side) => read_all(side.connection_mut()),
            End::Host(host, _) => {
                let handles: Vec<Handle> = host.handles().collect();
                handles.into_iter().filter_map(|handle| host.get_mut(handle).map(read_all)).sum()
            }
        }
    }
}

/// An end and its clock.
struct Place {
    end: End,
    /// What the clock reads at the beginning.
    start: Time,
    moved: OriginShift,
}

impl Place {
    /// What the clock reads; a `Time` ends some time.
    fn clock(&self, at: Instant) -> Time {
        let reading = at + Instant::from(self.start.as_ps()) - Instant::from(self.moved.as_secs()) * SECOND;
        u64::try_from(reading).map_or(Time::NEVER, Time::from_ps)
    }

    /// When it wants to be called, at `now` at the earliest.
    fn timeout(&self, now: Instant) -> Option<Instant> {
        let due = each!(&self.end, it => it.poll_timeout())?;
        let at = Instant::from(due.as_ps()) + Instant::from(self.moved.as_secs()) * SECOND;
        Some(at.saturating_sub(self.start.as_ps().into()).max(now))
    }

    fn move_origin(&mut self, by: OriginShift) {
        each!(&mut self.end, it => it.move_origin(by));
        self.moved += by;
    }
}

/// What can be seen from outside.
#[derive(Debug, PartialEq)]
enum Seen {
    Sent(Box<Transmit<Segment<Virtual>>>),
    Event(Option<Handle>, Event),
    Read(u64),
    Timeout,
}

/// When origins are moved.
enum Moves {
    Never,
    /// As a driver does it.
    WhenDue,
    /// After so many further calls of either side, that side's, by this share of what is allowed; and again from the first one on.
    Planned(VecDeque<(u32, usize, f64)>, u32),
}

struct World {
    config: AerotpConfig,
    rng: Rng,
    now: Instant,
    places: [Place; 2],
    moves: Moves,
    trouble: Trouble,
    /// Whether all packets are lost.
    is_out: bool,
    under_way: BTreeMap<(Instant, u64), (usize, Segment<Virtual>, Rx)>,
    count: u64,
    log: Vec<(Instant, usize, Seen)>,
    received: [u64; 2],
    /// Sides whose applications do not read.
    is_asleep: [bool; 2],
}

#[derive(Clone, Copy, Debug)]
struct Trouble {
    loss: f64,
    twice: f64,
    least_delay_ms: u64,
    /// Packets overtake each other by up to this.
    jitter_ms: u64,
    /// Shares of packets that arrive with a congestion mark, or repaired.
    faults: f64,
}

/// Everything that could be seen, and what the ends say of themselves in the end.
type Played = (Vec<(Instant, usize, Seen)>, Vec<String>);

/// What a clock reads at least after a move: more than any timer of these tests looks back, and than the longest round trip.
const KEPT_S: u64 = 150_000;

impl World {
    fn new(keys: &Value, starts_s: [u64; 2], is_host: bool, trouble: Trouble, seed: u64, moves: Moves) -> Self {
        let config = config(keys);
        let (active, passive) = Pairs::<Virtual>::pair(&config, seed);
        let host = Acceptor::new(&config, AcceptorLimits::default()).ok().filter(|_| is_host);
        let passive = host.map_or(End::Side(passive.into()), |host| End::Host(host.into(), SplitMix64::new(seed)));
        let mut starts = starts_s.map(Time::from_secs).into_iter();
        let places = [End::Side(active.into()), passive].map(|end| Place {
            end,
            start: starts.next().expect("one for each"),
            moved: OriginShift::default(),
        });
        World {
            config,
            rng: Rng::for_component(seed, 0, "origin"),
            now: 0,
            places,
            moves,
            trouble,
            is_out: false,
            under_way: BTreeMap::new(),
            count: 0,
            log: Vec::new(),
            received: [0; 2],
            is_asleep: [false; 2],
        }
    }

    fn note(&mut self, side: usize, seen: Seen) {
        self.log.push((self.now, side, seen));
    }

    /// Moves the origins that are to be moved before the next call.
    fn move_origins(&mut self) {
        match &mut self.moves {
            Moves::Never => {}
            Moves::WhenDue => {
                for place in &mut self.places {
                    if let Some(by) = OriginShift::due(place.clock(self.now)) {
                        place.move_origin(by);
                    }
                }
            }
            Moves::Planned(planned, calls) => {
                *calls += 1;
                while let Some(&(after, side, share)) = planned.front()
                    && after < *calls
                {
                    let place = &mut self.places[side];
                    let most_s = place.clock(self.now).as_ps() / 1_000_000_000_000 - KEPT_S;
                    place.move_origin(OriginShift::from_secs((most_s as f64 * share) as u64));
                    planned.rotate_left(1);
                    *calls = 0;
                }
            }
        }
    }

    /// Calls an end with the reading of its clock.
    fn call<T>(&mut self, side: usize, call: impl FnOnce(&mut End, Time) -> T) -> T {
        self.move_origins();
        let now = self.places[side].clock(self.now);
        call(&mut self.places[side].end, now)
    }

    /// Lets a side read, send and report events until it has nothing more.
    fn pump(&mut self, side: usize) {
        loop {
            let before = self.log.len();
            let read = if self.is_asleep[side] { 0 } else { self.call(side, |end, _| end.read()) };
            if read > 0 {
                self.received[side] += read;
                self.note(side, Seen::Read(read));
            }
            while let Some((handle, event)) = self.call(side, |end, _| end.poll_event()) {
                self.note(side, Seen::Event(handle, event));
            }
            while let Some(transmit) = self.call(side, End::poll_transmit) {
                self.send(side, transmit);
            }
            if self.log.len() == before {
                return;
            }
        }
    }

    fn send(&mut self, side: usize, transmit: Transmit<Segment<Virtual>>) {
        let Trouble { loss, twice, least_delay_ms, jitter_ms, faults } = self.trouble;
        let is_lost = self.is_out || self.rng.chance(loss);
        for _ in 0..if is_lost { 0 } else { 1 + u64::from(self.rng.chance(twice)) } {
            let is_marked = transmit.ecn != Ecn::NotCapable && self.rng.chance(faults);
            let ecn = if is_marked { Ecn::Congestion } else { transmit.ecn };
            let integrity = if self.rng.chance(faults) { Integrity::Mended { bits: 3 } } else { Integrity::Intact };
            let delay = Instant::from(least_delay_ms + self.rng.below(jitter_ms + 1)) * MS;
            self.count += 1;
            self.under_way
                .insert((self.now + delay, self.count), (1 - side, transmit.packet.clone(), Rx { ecn, integrity }));
        }
        self.note(side, Seen::Sent(transmit.into()));
    }

    /// Handles what happens until an instant.
    fn run_until(&mut self, end: Instant, most_seen: usize) {
        while self.log.len() < most_seen {
            let arrival = self.under_way.first_key_value().map(|(key, _)| key.0);
            let timeouts = [0, 1].map(|side| self.places[side].timeout(self.now));
            let Some(next) = arrival.into_iter().chain(timeouts.into_iter().flatten()).min() else { break };
            if next > end {
                break;
            }
            self.now = next;
            if arrival == Some(next)
                && let Some((_, (to, segment, rx))) = self.under_way.pop_first()
            {
                self.call(to, |end, now| end.handle_packet(now, &segment, rx));
                self.pump(to);
            } else {
                let side = usize::from(timeouts[0] != Some(next));
                self.note(side, Seen::Timeout);
                self.call(side, |end, now| each!(end, it => it.handle_timeout(now)));
                self.pump(side);
            }
        }
        self.now = self.now.max(end);
    }

    fn write(&mut self, side: usize, bytes: u32) -> usize {
        let taken = self.call(side, |end, now| end.connection().map_or(0, |it| it.write(now, &mut Virtual(bytes))));
        self.pump(side);
        taken
    }

    fn apply(&mut self, act: Act) {
        let side = match act {
            Act::Write(side, bytes) => {
                self.write(side, bytes);
                side
            }
            Act::Sleep(side, is_asleep) => {
                self.is_asleep[side] = is_asleep;
                side
            }
            Act::Close(side) => {
                self.call(side, |end, now| end.connection().map(|it| it.close(now)));
                side
            }
            Act::Outage(is_out, is_told) => {
                self.is_out = is_out;
                let hint = if is_out { LinkHint::Down } else { LinkHint::Up };
                for side in if is_told { 0..2 } else { 0..0 } {
                    self.call(side, |end, now| each!(end, it => it.handle_link(now, hint)));
                    self.pump(side);
                }
                0
            }
            Act::Hint(side, is_rate, value) => {
                let rate = LinkHint::Rate(BitRate::new(1e4 + 1e6 * value).unwrap());
                let hint = if is_rate { rate } else { LinkHint::Ber(1e-3 * value) };
                self.call(side, |end, now| each!(end, it => it.handle_link(now, hint)));
                side
            }
            Act::PacketBytes(side, bytes) => {
                let size = serde_json::from_value(json!(bytes)).unwrap();
                self.call(side, |end, now| end.connection().map(|it| it.set_packet_bytes(now, size).is_ok()));
                side
            }
            Act::Mode(side, mode) => {
                self.call(side, |end, _| end.connection().map(|it| it.set_mode(mode).is_ok()));
                side
            }
            Act::Message(side, class, bytes) => {
                let service = Service { weight: Some(3), deadline: Some(Time::from_millis(u64::from(bytes))) };
                self.call(side, |end, now| {
                    let it = end.connection()?;
                    it.set_service(class, service).ok()?;
                    it.write_class(now, class, &mut Virtual(bytes)).ok()
                });
                side
            }
            // A program that starts anew tells its connection of all moves so far.
            Act::Restart(wrong_s) => {
                let (mut fresh, _) = Pairs::<Virtual>::pair(&self.config, self.rng.below(u64::MAX));
                fresh.move_origin(self.places[0].moved);
                fresh.move_origin(OriginShift::from_secs((1 << 32) - wrong_s)); // earlier timestamps
                self.places[0].end = End::Side(fresh.into());
                self.write(0, 300);
                0
            }
            Act::Old(back) => {
                let sent = self.log.iter().rev().filter_map(|(_, side, seen)| match seen {
                    Seen::Sent(transmit) => Some((1 - side, transmit.packet.clone())),
                    _ => None,
                });
                let Some((to, segment)) = sent.take(back + 1).last() else { return };
                self.call(to, |end, now| end.handle_packet(now, &segment, Rx::default()));
                to
            }
            Act::Remove => {
                self.call(1, |end, _| {
                    if let End::Host(host, _) = end
                        && let Some(last) = host.handles().last()
                    {
                        host.remove(last);
                    }
                });
                1
            }
        };
        self.pump(side);
    }

    fn played(mut self, acts: &[(u64, Act)]) -> Played {
        for &(after_ms, act) in acts {
            self.run_until(self.now + Instant::from(after_ms) * MS, MOST_SEEN);
            self.apply(act);
        }
        self.run_until(self.now + 2000 * SECOND, MOST_SEEN);
        let told = |place: &mut Place| {
            let connection = place.end.connection();
            connection.map_or(String::new(), |it| {
                format!("{:?} {:?} {:?} {:?}", it.state(), it.dropped(), it.counters(), it.probe())
            })
        };
        let told = self.places.iter_mut().map(told).collect();
        (self.log, told)
    }
}

/// Enough of a schedule.
const MOST_SEEN: usize = 6_000;

fn config(keys: &Value) -> AerotpConfig {
    let mut all = json!({ "packet_bytes": 148 });
    all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let config: AerotpConfig = serde_json::from_value(all).unwrap();
    config.check().unwrap();
    config
}

/// What an application or the link does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write(usize, u32),
    Close(usize),
    /// The application reads no more, or reads again.
    Sleep(usize, bool),
    /// Whether packets are lost from now on, and whether the ends are told.
    Outage(bool, bool),
    /// A rate or a bit error rate.
    Hint(usize, bool, f64),
    PacketBytes(usize, u64),
    Mode(usize, Mode),
    Message(usize, u8, u32),
    /// The opener's program starts anew; its clock may be wrong by so many seconds.
    Restart(u64),
    /// A segment that was sent some time ago arrives, perhaps again.
    Old(usize),
    /// A host forgets its present connection.
    Remove,
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let side = || 0..2_usize;
    let act = prop_oneof![
        8 => (side(), 1..9_000_u32).prop_map(|(side, bytes)| Act::Write(side, bytes)),
        2 => (side(), 1..100_000_u32).prop_map(|(side, bytes)| Act::Write(side, bytes)),
        3 => side().prop_map(Act::Close),
        2 => (side(), any::<bool>()).prop_map(|(side, is_asleep)| Act::Sleep(side, is_asleep)),
        1 => any::<bool>().prop_map(|is_told| Act::Outage(true, is_told)),
        3 => any::<bool>().prop_map(|is_told| Act::Outage(false, is_told)),
        2 => (side(), any::<bool>(), 0.0..1.0_f64).prop_map(|(side, is_rate, value)| Act::Hint(side, is_rate, value)),
        1 => (side(), 120..200_u64).prop_map(|(side, bytes)| Act::PacketBytes(side, bytes)),
        1 => (side(), prop_oneof![Just(Mode::QuasiReliable), Just(Mode::Unreliable)]).prop_map(|(side, mode)| Act::Mode(side, mode)),
        2 => (side(), 0..8_u8, 1..2_000_u32).prop_map(|(side, class, bytes)| Act::Message(side, class, bytes)),
        2 => prop_oneof![Just(0), 1..100_000_u64].prop_map(Act::Restart),
        1 => (0..100_usize).prop_map(Act::Old),
        1 => Just(Act::Remove),
    ];
    let after_ms = prop_oneof![2 => Just(0), 6 => 0..1_500_u64, 2 => 0..60_000_u64, 1 => 0..40_000_000_u64];
    proptest::collection::vec((after_ms, act), 1..14)
}

/// Settings of every mode, as one of several tables and keys that fit all.
fn settings(start_s: u64) -> impl Strategy<Value = Value> {
    let reliable = prop_oneof![
        Just(json!({})),
        Just(json!({ "mode": "near-reliable" })),
        Just(json!({ "copies": 3 })),
        Just(json!({ "spare_copies": true })),
        Just(json!({ "acks_per_mack": 4 })),
        Just(json!({ "adaptive_length": { "estimate": "measured", "min_bytes": 20, "measurement_interval_s": 0.7 } })),
        Just(json!({ "adaptive_length": { "min_bytes": 20, "memory_s": 2 } })),
        Just(json!({ "coded": { "block_symbols": 12 } })),
        Just(json!({ "coded": { "block_symbols": 5 }, "adaptive_length": { "min_bytes": 20 } })),
    ];
    let rate = prop_oneof![
        Just(json!({ "rate_control": "none" })),
        Just(json!({ "rate_control": "learnt" })),
        Just(json!({ "rate_control": "learnt", "alone": true, "ecn": true })),
        Just(json!({ "rate_control": "friendly", "ecn": true })),
        Just(json!({ "rate_bps": 2e5 })),
        Just(json!({ "rate_bps": 1e6, "alone": false })),
    ];
    let changes = json!([
        { "at_s": start_s + 1, "mode": "unreliable" },
        { "at_s": start_s as f64 + 7.5, "mode": "quasi-reliable" }
    ]);
    let open_loop = prop_oneof![
        Just(json!({ "mode": "quasi-reliable", "fec_words": 4, "adaptive_fec": {}, "hold_time_s": 0.5 })),
        Just(
            json!({ "mode": "quasi-reliable", "fec_words": 2, "erasure": { "source": 5, "repair": 2 }, "rate_bps": 1e5 })
        ),
        Just(json!({ "mode": "quasi-reliable", "fec_words": 2, "mode_changes": changes.clone(), "rate_bps": 1e5 })),
        Just(json!({ "mode": "unreliable", "hold_time_s": 2, "rate_bps": 5e4 })),
        Just(json!({ "mode": "datagram", "rate_bps": 2e4 })),
        Just(
            json!({ "mode": "quasi-reliable", "fec_words": 2, "mode_changes": changes, "rate_control": "learnt", "alone": true })
        ),
        Just(
            json!({ "mode": "quasi-reliable", "adaptive_fec": {}, "erasure": { "source": 5, "repair": 2 }, "rate_control": "learnt" })
        ),
        Just(json!({ "mode": "unreliable", "hold_time_s": 2, "rate_control": "friendly", "ecn": true })),
    ];
    let with_rate = (reliable, rate).prop_map(|(keys, rate)| joined(&keys, &rate));
    let give_up_s = prop_oneof![Just(3_600), Just(40), Just(9_000), Just(120_000)];
    let common = (any::<[bool; 5]>(), give_up_s, 1..3_000_u32).prop_map(|(has, give_up_s, deadline_ms)| {
        let mut keys = json!({ "give_up_after_s": give_up_s });
        if has[0] {
            keys["keep_alive_s"] = json!(20);
        }
        if has[1] {
            keys["deadline_s"] = json!(f64::from(deadline_ms) / 1e3);
        }
        if has[2] {
            keys["close_timeout_s"] = json!(500);
        }
        if has[3] {
            keys["opens"] = json!("both");
        }
        if has[4] {
            keys["receive_buffer_bytes"] = json!(3_000);
        }
        keys
    });
    (prop_oneof![3 => with_rate, 1 => open_loop], common).prop_map(|(keys, common)| joined(&keys, &common))
}

fn joined(one: &Value, other: &Value) -> Value {
    let mut all = one.clone();
    all.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    all
}

fn troubles() -> impl Strategy<Value = Trouble> {
    let faults = prop_oneof![Just(0.0), 0.0..0.1_f64];
    let least_delay_ms = prop_oneof![2 => 1..30_u64, 3 => 1..300_u64, 1 => 1..10_000_u64];
    (0.0..0.4_f64, 0.0..0.2_f64, least_delay_ms, prop_oneof![Just(0), 0..200_u64], faults).prop_map(
        |(loss, twice, least_delay_ms, jitter_ms, faults)| Trouble { loss, twice, least_delay_ms, jitter_ms, faults },
    )
}

/// At once or later, mostly by a little, because the next move of a clock can only be by what it still reads.
fn moves() -> impl Strategy<Value = Vec<(u32, usize, f64)>> {
    let calls = prop_oneof![0..3_u32, 0..40_u32, 0..200_u32];
    let share = prop_oneof![1 => Just(1.0), 30 => 0.0..0.02_f64, 10 => 0.0..1e-4_f64];
    proptest::collection::vec((calls, 0..2_usize, share), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(schedules(250, 1) as u32))]

    /// The same packets, events, data and timers at the same true times, whenever and by how much either side's origin moves.
    #[test]
    fn nobody_notices_that_origins_move(
        (start_s, keys) in (KEPT_S..10_000_000_u64).prop_flat_map(|start_s| (Just(start_s), settings(start_s))),
        ahead_s in 0..1_000_u64, is_host: bool, trouble in troubles(), acts in acts(), moves in moves(), seed: u64,
    ) {
        let starts_s = [start_s, start_s + ahead_s];
        let world = |moves| World::new(&keys, starts_s, is_host, trouble, seed, moves);
        assert_same(world(Moves::Never).played(&acts), world(Moves::Planned(moves.into(), 0)).played(&acts));
    }
}

fn assert_same((expected, told): Played, (found, told_too): Played) {
    for (n, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "{n} were seen before");
    }
    assert_eq!((found.len(), told_too), (expected.len(), told));
}

/// What random schedules seldom meet: a set rate that is tried lower because much is lost, and an end that nobody answers.
#[test]
fn nobody_notices_moves_during_trials_and_unanswered_ends() {
    let trial = json!({ "rate_bps": 1e6, "alone": false, "packet_bytes": 500 });
    let end = json!({ "mode": "unreliable", "give_up_after_s": 40, "rate_bps": 1e5 });
    let writes = vec![(0, Act::Write(0, 900_000)); 2];
    let silence =
        vec![(0, Act::Write(0, 500)), (900, Act::Outage(true, false)), (0, Act::Close(0)), (50_000, Act::Close(0))];
    for (keys, acts, loss) in [(trial, writes, 0.4), (end, silence, 0.0)] {
        for seed in 0..8 {
            let trouble = Trouble { loss, twice: 0.0, least_delay_ms: 20, jitter_ms: 0, faults: 0.0 };
            let world = |moves| World::new(&keys, [9_000_000; 2], false, trouble, seed, moves);
            let moves = VecDeque::from([(30, 0, 0.01), (7, 1, 0.01)]);
            assert_same(world(Moves::Never).played(&acts), world(Moves::Planned(moves, 0)).played(&acts));
        }
    }
}

/// A connection with keep-alives every hour and data every four days, in both directions over a path that loses a fiftieth. At the end the
/// path is out for a while.
fn lives_400_days(keys: &Value, moves: Moves) -> World {
    let trouble = Trouble { loss: 0.02, twice: 0.01, least_delay_ms: 300, jitter_ms: 20, faults: 0.0 };
    let mut world = World::new(keys, [1_000, 5], false, trouble, 9, moves);
    for day in (0..400).step_by(4) {
        world.run_until(day * DAY, usize::MAX);
        for side in [0, 1] {
            assert_eq!(world.write(side, 10_000), 10_000);
        }
    }
    world.run_until(400 * DAY, usize::MAX);
    world.is_out = true;
    world.write(0, 50_000);
    world.run_until(400 * DAY + 10 * SECOND, usize::MAX);
    world.is_out = false;
    world.run_until(400 * DAY + 600 * SECOND, usize::MAX);
    world
}

fn hourly(rate: &Value) -> Value {
    joined(&json!({ "keep_alive_s": 3_600, "give_up_after_s": 20_000, "packet_bytes": 1_500 }), rate)
}

fn events(world: &World, side: usize) -> Vec<Event> {
    let of_side = world.log.iter().filter(|seen| seen.1 == side);
    of_side.filter_map(|(_, _, seen)| if let Seen::Event(_, event) = seen { Some(*event) } else { None }).collect()
}

#[test]
fn a_connection_of_400_days_works_when_origins_are_moved() {
    for rate in [json!({ "rate_control": "none" }), json!({ "rate_control": "learnt" }), json!({ "rate_bps": 1e5 })] {
        let mut world = lives_400_days(&hourly(&rate), Moves::WhenDue);
        assert_eq!(world.received, [1_000_000, 1_050_000], "{rate}");
        for side in [0, 1] {
            assert_eq!(world.places[side].moved.as_secs() / 86_400, 300);
            assert_eq!(events(&world, side), [Event::Connected]);
            assert_eq!(world.places[side].end.connection().map(|it| it.state()), Some(State::Established));
        }
        let days = world.log.iter().filter(|seen| matches!(seen.2, Seen::Sent(_))).map(|seen| seen.0 / DAY);
        assert!((0..400).all(|day| days.clone().filter(|&of| of == day).count() >= 24), "a question every hour");
        for side in [0, 1] {
            world.apply(Act::Close(side));
        }
        world.run_until(401 * DAY, usize::MAX);
        assert!([0, 1].iter().all(|&side| events(&world, side).contains(&Event::Closed)), "{rate}");
    }
}

/// The limit of a `Time`: after 213 days the clock stands still, no timer runs and nothing that is lost is sent again.
#[test]
fn without_moves_a_connection_ends_with_its_clock() {
    for rate in [json!({ "rate_control": "none" }), json!({ "rate_bps": 1e5 })] {
        let world = lives_400_days(&hourly(&rate), Moves::Never);
        assert!(world.received[1] < 1_050_000, "{rate}: {:?}", world.received);
        let last = world.log.iter().filter(|seen| matches!(seen.2, Seen::Timeout)).map(|seen| seen.0 / DAY).max();
        assert_eq!(last, Some(213), "{rate}");
    }
}

/// Structs whose times are all durations, or that no connection keeps.
const WITHOUT_INSTANTS: [&str; 15] = [
    "Account",
    "Answer",
    "AnswerTimes",
    "Confirmation",
    "Constants",
    "LeastRoundTrip",
    "MackFields",
    "RemainingWindow",
    "ReportTimes",
    "RoundTrip",
    "RoundTrips",
    "Service",
    "Shape",
    "Timing",
    "Waits",
];

/// A struct with a `Time` says which of its fields move; the compiler checks such a list, but not that there is one.
#[test]
fn every_struct_with_a_time_says_which_fields_move() {
    let protocol = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocol");
    let mut files = Vec::from(["parts/pacer.rs", "parts/recent.rs"].map(|file| protocol.join(file)));
    let mut folders = vec![protocol.join("aerotp"), protocol.join("parts/length")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|file| !["tests.rs", "model.rs"].iter().any(|of_tests| file.ends_with(of_tests)));
    let mut without = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (name, fields) in code.split("struct ").skip(1).filter_map(|rest| rest.split_once(" {\n")) {
            let name = name.split('<').next().unwrap();
            let is_listed = [":", "<D>:"].iter().any(|end| words.contains(&format!("instants! {{ {name}{end}")))
                || words.contains(&format!("MoveOrigin for {name}"));
            let fields =
                fields.split("\n}").next().unwrap().lines().filter(|line| !line.trim_start().starts_with("//"));
            let mut types = fields.filter_map(|line| line.split_once(": ")).map(|(_, field_type)| field_type);
            let has_time = types.any(|it| it.split(|c: char| !c.is_alphanumeric()).any(|word| word == "Time"));
            if has_time && !is_listed && name != "Connection" {
                without.insert(name.to_owned());
            }
        }
    }
    assert_eq!(without.into_iter().collect::<Vec<_>>(), WITHOUT_INSTANTS);
}
