//! Model checking: real connections over a network that loses, repeats and reorders packets, with sides that crash.
//!
//! A state consists of both connections, the packets in flight, and what the applications have seen. From each state every packet
//! in flight may arrive, arrive and stay in flight as a duplicate, or get lost; the next timer of either side may fire,
//! regardless of other due events; and either side may crash and restart. The comparison of states ignores times, so timers fire
//! in any order, and states that differ only in times count once. Each failure that is found is nevertheless a real run of the
//! real code.

use std::hash::{Hash, Hasher};

use stateright::{Checker, Model, Property};

use super::Connection;
use crate::endpoint::{Endpoint, Integrity, Rx, Stream};
use crate::event::{Abort, Event};
use crate::protocol::ProtocolConfig;
use crate::protocol::aerotp::{AerotpConfig, Opens, Segment, Side, State};
use crate::rng::SplitMix64;
use crate::time::Time;

/// A rule that is switched off, to see that the checker then finds a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Without {
    DuplicateFilter,
    AfinTimer,
    Tags,
}

/// How many failures may happen on a path through the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Faults {
    losses: u8,
    copies: u8,
    crashes: u8,
}

#[derive(Clone, Debug)]
struct Setting {
    opens: Opens,
    /// Number of bytes of each side's stream; during the opening, each is sent in a segment of its own.
    bytes: [u8; 2],
    faults: Faults,
    /// Largest number of packets in flight to each side.
    most_under_way: usize,
    keep_alive: bool,
    /// Whether data has a deadline and becomes too old when that timer fires.
    deadline: bool,
    /// Words of parity in each segment with data; every segment that arrives then was corrected.
    parity: u8,
    without: Option<Without>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Deliver(usize),
    Repeat(usize),
    Lose(usize),
    Timer(usize),
    Crash(usize),
}

/// The events and data that an application has got from its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Seen {
    is_connected: bool,
    /// The incarnation of the peer that it reads from.
    from: Option<u8>,
    /// Number of bytes read from it.
    bytes: u8,
    /// How many of these bytes were skipped.
    skipped: u8,
    /// How many of the bytes that this side wrote were reported as too old.
    expired: u8,
    is_closed: bool,
    aborted: Option<u8>,
}

/// Longer than any timer that depends on the round trip.
const LONG: Time = Time::from_secs(600);

#[derive(Clone, Debug)]
struct World {
    now: Time,
    ends: [Side<Vec<u8>>; 2],
    incarnations: [u8; 2],
    /// Packets in flight in the order of sending: receiver and segment.
    under_way: Vec<(usize, Segment<Vec<u8>>)>,
    seen: [Seen; 2],
    /// How much of the stream of each side's present incarnation was read by the other side.
    read: [u8; 2],
    left: Faults,
    wrong: Option<&'static str>,
}

/// A byte of a stream: two bits for the incarnation that wrote it, one for the side, the rest for its position.
fn byte(side: usize, incarnation: u8, at: u8) -> u8 {
    (side as u8) << 7 | incarnation << 4 | at
}

impl Setting {
    fn config(&self) -> AerotpConfig {
        let keep_alive = if self.keep_alive { serde_json::json!(5) } else { serde_json::Value::Null };
        let deadline = if self.deadline { serde_json::json!(0.5) } else { serde_json::Value::Null };
        let parity_bytes = if self.parity > 0 { 4 + 4 * u64::from(self.parity) } else { 0 };
        let config: AerotpConfig = serde_json::from_value(serde_json::json!({
            "packet_bytes": 49 + parity_bytes, "fec_words": self.parity, "acks_per_mack": 1, "opens": self.opens,
            "keep_alive_s": keep_alive, "give_up_after_s": 1e5,
            "rate_control": "none", "deadline_s": deadline,
        }))
        .expect("these are its keys");
        config.check().expect("the settings are consistent");
        config
    }

    /// Starts a side, for the first time or after a crash. Its sequence numbers continue where the last incarnation's stream
    /// ended, which is the worst case.
    fn begin(&self, world: &mut World, side: usize) {
        let config = self.config();
        let listens = side == 1 && self.opens == Opens::Sender;
        let mut random = SplitMix64::new(0);
        let mut end = if listens {
            Side::listening(&config, random)
        } else {
            Side::active(Connection::connect(&config, &mut random))
        };
        end.connection.tag = 1 + u16::from(world.incarnations[side]) * 2 + side as u16;
        end.connection.initial = 7 + u32::from(world.incarnations[side]) * u32::from(self.bytes[side] + 1);
        end.connection.without = self.without;
        end.connection.clock = config.clock(); // its timestamps do not lag behind, which the order of states would depend on
        world.ends[side] = end;
        world.seen[side] = Seen::default();
        self.write(world, side);
    }

    fn write(&self, world: &mut World, side: usize) {
        world.read[side] = 0;
        for at in 0..self.bytes[side] {
            let taken = world.ends[side].write(world.now, &mut vec![byte(side, world.incarnations[side], at)]);
            assert_eq!(taken, 1);
        }
        world.ends[side].close(world.now);
    }

    fn start(&self) -> World {
        let config = self.config();
        let end = Side::active(Connection::connect(&config, &mut SplitMix64::new(0)));
        let mut world = World {
            now: Time::from_secs(1000),
            ends: [end.clone(), end],
            incarnations: [0; 2],
            under_way: Vec::new(),
            seen: [Seen::default(); 2],
            read: [0; 2],
            left: self.faults,
            wrong: None,
        };
        for side in [0, 1] {
            self.begin(&mut world, side);
        }
        self.pump(&mut world);
        world
    }

    /// Both applications take events, read and write, as far as the network accepts packets.
    fn pump(&self, world: &mut World) {
        for side in [0, 1] {
            loop {
                let mut has_acted = false;
                while let Some(event) = world.ends[side].poll_event() {
                    self.tell(world, side, event);
                    has_acted = true;
                }
                // Reading may complete the stream.
                while let Some(data) = world.ends[side].read() {
                    for byte in data {
                        world.take(side, byte);
                    }
                    has_acted = true;
                }
                if !has_acted {
                    break;
                }
            }
            while world.under_way.iter().filter(|(to, _)| *to != side).count() < self.most_under_way
                && let Some(sent) = world.ends[side].poll_transmit(world.now)
            {
                world.under_way.push((1 - side, sent.packet));
            }
        }
    }

    fn tell(&self, world: &mut World, side: usize, event: Event) {
        let seen = &mut world.seen[side];
        match event {
            Event::Aborted(why) if why == Abort::PeerRestarted && world.ends[side].connection.is_alive() => {
                // A listener continues with the next connection.
                *seen = Seen { aborted: Some(0), ..Seen::default() };
                world.incarnations[side] += 1;
                self.write(world, side);
            }
            Event::Aborted(_) => seen.aborted = Some(1),
            Event::Connected if seen.is_connected => {
                *seen = Seen { is_connected: true, ..Seen::default() };
                world.incarnations[side] += 1;
                self.write(world, side);
            }
            Event::Connected => seen.is_connected = true,
            Event::Skipped(bytes) => {
                seen.skipped += bytes as u8;
                seen.bytes += bytes as u8;
                let read = seen.bytes;
                world.read[1 - side] = world.read[1 - side].max(read);
            }
            Event::Expired(bytes) => seen.expired += bytes as u8,
            Event::Closed => {
                seen.is_closed = true;
                if world.read[side] < self.bytes[side] {
                    world.wrong = Some("closed although the peer has not read everything");
                }
                if world.seen[side].expired != world.seen[1 - side].skipped {
                    world.wrong = Some("told of more or less than what was skipped");
                }
                if world.seen[side].bytes < self.bytes[1 - side] {
                    world.wrong = Some("closed although not everything was read");
                }
            }
            _ => {}
        }
    }

    /// Runs on without further failures: packets arrive after their delay, timers fire in order. Returns whether both sides end
    /// or report an error.
    fn ends_well(&self, world: &World) -> bool {
        self.end_of(world.clone()).is_ok()
    }

    fn end_of(&self, mut world: World) -> Result<(), String> {
        // A side whose address is not proven, and that has sent what it may, is silent until it gives up [G1].
        let mut steps_with_packets = 0;
        for _ in 0..100_000 {
            if steps_with_packets == 300 {
                break;
            }
            if let Some(wrong) = world.wrong {
                return Err(wrong.into());
            }
            if world.is_over() {
                let is_well = world.left.crashes < self.faults.crashes || world.is_complete(self);
                return if is_well { Ok(()) } else { Err(format!("it ends with {:?}", world.seen)) };
            }
            let timers = [0, 1].map(|side| world.ends[side].poll_timeout().unwrap_or(Time::NEVER));
            if !world.under_way.is_empty() {
                world.now += Time::from_millis(10);
                self.step(&mut world, &Action::Deliver(0));
            } else if timers == [Time::NEVER; 2] {
                return Err("a deadlock".into());
            } else {
                self.step(&mut world, &Action::Timer(usize::from(timers[1] < timers[0])));
            }
            steps_with_packets += usize::from(!world.under_way.is_empty());
        }
        Err(format!("it does not end: {:?}, {:?} under way", world.seen, world.under_way.len()))
    }

    fn step(&self, world: &mut World, action: &Action) {
        match *action {
            Action::Deliver(at) => {
                let (to, packet) = world.under_way.remove(at);
                world.ends[to].handle_packet(world.now, &packet, received(&packet));
            }
            Action::Repeat(at) => {
                world.left.copies -= 1;
                let (to, packet) = world.under_way[at].clone();
                world.ends[to].handle_packet(world.now, &packet, received(&packet));
            }
            Action::Lose(at) => {
                world.left.losses -= 1;
                world.under_way.remove(at);
            }
            Action::Timer(side) => {
                let due = world.ends[side].poll_timeout().unwrap_or(world.now);
                world.now = world.now.max(due);
                world.ends[side].handle_timeout(world.now);
            }
            Action::Crash(side) => {
                world.left.crashes -= 1;
                world.incarnations[side] += 1;
                world.now += Time::from_millis(1);
                self.begin(world, side);
            }
        }
        self.pump(world);
    }
}

/// How a segment arrives: corrected, if it carries parity.
fn received(segment: &Segment<Vec<u8>>) -> Rx {
    let integrity = if segment.fec_words > 0 { Integrity::Mended { bits: 1 } } else { Integrity::Intact };
    Rx { integrity, ..Rx::default() }
}

impl World {
    /// An application reads a byte. All bytes must be of one incarnation of the peer, each once and in order.
    fn take(&mut self, side: usize, found: u8) {
        let seen = &mut self.seen[side];
        let incarnation = found >> 4 & 7;
        if usize::from(found >> 7) != 1 - side {
            self.wrong = Some("read what the peer did not write");
        } else if seen.from.is_some_and(|from| from != incarnation) {
            self.wrong = Some("read from two incarnations of the peer");
        } else if found & 15 != seen.bytes {
            self.wrong = Some("read twice, or out of order");
        }
        seen.from = Some(incarnation);
        seen.bytes += 1;
        if incarnation == self.incarnations[1 - side] {
            self.read[1 - side] = self.read[1 - side].max(seen.bytes);
        }
    }

    /// Whether a timer may fire. Timers fire in any order, except those of hours, because no packet is in flight for that long.
    fn may_fire(&self, side: usize, due: Time) -> bool {
        let is_first = self.ends[1 - side].poll_timeout().is_none_or(|other| due <= other);
        due.since(self.now) < LONG || (is_first && self.under_way.is_empty())
    }

    /// Whether each side has closed, has reported an error, or listens.
    fn is_over(&self) -> bool {
        [0, 1].into_iter().all(|side| {
            let has_reported = self.seen[side].is_closed || self.seen[side].aborted == Some(1);
            has_reported || self.ends[side].state() == State::Listen
        })
    }

    fn is_complete(&self, setting: &Setting) -> bool {
        self.read == setting.bytes && self.seen.iter().all(|seen| seen.is_closed && seen.aborted.is_none())
    }
}

/// Equality that ignores times, consistent with [`Hash`].
impl PartialEq for World {
    fn eq(&self, other: &World) -> bool {
        let hash = |world: &World| {
            let mut hasher = std::hash::DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        hash(self) == hash(other)
    }
}

/// Worlds that differ only in times have the same hash.
impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.incarnations, self.seen, self.read, self.left, self.wrong).hash(hasher);
        for end in &self.ends {
            let Connection {
                lifecycle, sending, receiving, tag, initial, peer, reset, challenge, pending_events, ..
            } = &end.connection;
            let Connection { is_question_due, is_proof_due, asked, allowance, .. } = end.connection;
            (lifecycle, is_question_due, is_proof_due, asked.is_some(), tag, initial).hash(hasher);
            (allowance.is_proven(), allowance.left(), allowance.is_short()).hash(hasher);
            let known = end.listener.as_ref().map(|listener| (listener.past, listener.aborted));
            hash_without_instants(
                &format!("{sending:?}{receiving:?}{peer:?}{known:?}{reset:?}{challenge:?}{pending_events:?}"),
                hasher,
            );
        }
        for (to, packet) in &self.under_way {
            to.hash(hasher);
            is_newer(&self.ends[*to], self.now, packet.timestamp).hash(hasher);
            hash_without_instants(&format!("{packet:?}"), hasher);
        }
    }
}

/// Whether a segment is newer than all segments of the last peer.
fn is_newer(end: &Side<Vec<u8>>, now: Time, timestamp: u32) -> bool {
    let past = end.listener.as_ref().and_then(|listener| listener.past.as_ref());
    end.connection.peer().or(past).is_none_or(|peer| peer.latest.is_before(now, timestamp))
}

/// Times have seven digits or more, sequence numbers fewer; estimates are fractions.
fn hash_without_instants<H: Hasher>(text: &str, hasher: &mut H) {
    let counts = text.find("account: Account {").map_or(text.len(), |at| at);
    let rest = text[counts..].find('}').map_or(text.len(), |at| counts + at);
    for part in [&text[..counts], &text[rest..]] {
        let mut digits = 0;
        let mut value = 0_u32;
        for byte in part.bytes() {
            if byte.is_ascii_digit() || (byte == b'.' && digits > 0) {
                digits += if byte == b'.' { 10 } else { 1 };
                value = value.wrapping_mul(10).wrapping_add(u32::from(byte));
                continue;
            }
            if digits > 0 {
                hasher.write_u32(if digits < 7 { value } else { u32::MAX });
                (digits, value) = (0, 0);
            }
            hasher.write_u8(byte);
        }
    }
}

impl Model for Setting {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.start()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let packets = || 0..world.under_way.len();
        actions.extend(packets().map(Action::Deliver));
        if world.left.copies > 0 {
            actions.extend(packets().map(Action::Repeat));
        }
        if world.left.losses > 0 {
            actions.extend(packets().map(Action::Lose));
        }
        for side in [0, 1] {
            if world.ends[side].poll_timeout().is_some_and(|due| world.may_fire(side, due)) {
                actions.push(Action::Timer(side));
            }
            if world.left.crashes > 0 {
                actions.push(Action::Crash(side));
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.step(&mut next, &action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("what is read was written, once and in order, by one peer", |_, world: &World| {
                world.wrong.is_none()
            }),
            Property::always("once nothing is lost any more, both sides end or report", Setting::ends_well),
            Property::sometimes("both sides close", |_, world: &World| world.seen.iter().all(|seen| seen.is_closed)),
        ]
    }
}

const CALM: Setting = Setting {
    opens: Opens::Sender,
    bytes: [2, 1],
    faults: Faults { losses: 1, copies: 1, crashes: 0 },
    most_under_way: 2,
    keep_alive: false,
    deadline: false,
    parity: 0,
    without: None,
};

/// Explores up to `most` states; returns their number and the failures that were found.
fn explore(name: &str, setting: Setting, most: usize) -> (usize, Vec<&'static str>) {
    let model = setting.clone();
    let checker = setting.checker().threads(2).target_state_count(most).spawn_bfs().join();
    let found: Vec<_> = checker
        .discoveries()
        .into_iter()
        .filter(|(property, _)| checker.discovery_classification(property).to_string() == "counterexample")
        .map(|(property, path)| {
            let end = model.end_of(path.last_state().clone());
            println!("{name}: not so: {property}: {:?}\n{end:?}", path.into_actions());
            property
        })
        .collect();
    let states = checker.unique_state_count();
    let bound = if found.is_empty() && checker.state_count() < most { ", all there are" } else { "" };
    println!("{name}: {states} states, {} steps deep{bound}", checker.max_depth());
    (states, found)
}

/// `make soak` goes further than `make test`.
fn most_states() -> usize {
    if std::env::var_os("PROPTEST_CASES").is_some() { 400_000 } else { 30_000 }
}

fn settings() -> [(&'static str, Setting); 8] {
    let crash = Faults { losses: 1, copies: 1, crashes: 1 };
    let few = Faults { losses: 1, copies: 0, crashes: 0 };
    [
        ("one packet under way each way", Setting { bytes: [1, 0], faults: few, most_under_way: 1, ..CALM }),
        ("one opens", CALM),
        ("what is written becomes too old", Setting { deadline: true, ..CALM }),
        ("segments with parity are corrected", Setting { parity: 1, ..CALM }),
        ("both open", Setting { opens: Opens::Both, ..CALM }),
        ("one opens, either side may crash", Setting { faults: crash, keep_alive: true, ..CALM }),
        ("both open, either side may crash", Setting { opens: Opens::Both, faults: crash, keep_alive: true, ..CALM }),
        (
            "both may crash",
            Setting { bytes: [1, 1], faults: Faults { losses: 1, copies: 0, crashes: 2 }, keep_alive: true, ..CALM },
        ),
    ]
}

#[test]
fn connections_end_and_deliver_in_order_whatever_the_network_does() {
    for (name, setting) in settings() {
        let (_, found) = explore(name, setting, most_states());
        assert_eq!(found, [""; 0], "{name}");
    }
}

/// The checker must find a failure for each rule that is switched off; otherwise finding none would prove nothing.
#[test]
fn every_rule_is_needed() {
    let crash = Faults { losses: 0, copies: 0, crashes: 1 };
    for (without, setting) in [
        (Without::DuplicateFilter, CALM),
        (Without::AfinTimer, CALM),
        (Without::Tags, Setting { faults: crash, keep_alive: true, ..CALM }),
    ] {
        let (_, found) =
            explore(&format!("without {without:?}"), Setting { without: Some(without), ..setting }, 100_000);
        assert!(!found.is_empty(), "{without:?} is not needed");
    }
}

/// A connection that was over asked its restarted peer again and again whether a proof was missing, although the peer's answers said that
/// it does not know the connection; and the peer's next connection, whose data waited for the proof of an address, was never given up. The
/// checker finds this among 400,000 states. `[G4]`, `[C16]`
#[test]
fn a_reset_ends_the_questions_of_a_connection_that_is_over() {
    let (_, setting) = settings().into_iter().find(|(name, _)| *name == "both may crash").expect("it is listed");
    let mut world = setting.start();
    for action in [
        Action::Crash(0),
        Action::Deliver(1),
        Action::Crash(1),
        Action::Deliver(0),
        Action::Deliver(0),
        Action::Timer(0),
        Action::Timer(1),
    ] {
        setting.step(&mut world, &action);
    }
    assert_eq!(setting.end_of(world), Ok(()));
}
