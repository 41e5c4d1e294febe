//! AeroTP's reliable mode over random schedules of loss, duplication, delay, outages with and without hints, restarts
//! of either side, very old segments, and wrapping sequence numbers: `docs/aerotp.md`, `[R1]`, `[C12]`, `[C20]`.
//!
//! The data that a side reads is a prefix of the data that one incarnation of its peer wrote, except for data skipped
//! at a deadline. Without restarts everything arrives and both sides close; with restarts each side closes, reports an
//! error, or listens.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::random_schedules::schedules;
use farlink_core::event::Abort;
use farlink_core::protocol::aerotp::{AerotpConfig, Segment, Side, State};
use farlink_core::protocol::{Pairs, ProtocolConfig};
use farlink_core::{Endpoint, Event, LinkHint, Rng, Rx, Stream, Time};
use farlink_fec::awgn::split_mix64;
use serde_json::json;

/// An event that affects the whole pair.
#[derive(Clone, Copy, Debug)]
enum Incident {
    Outage {
        is_told: bool,
    },
    Back {
        is_told: bool,
    },
    Restart(usize),
    /// An arbitrary earlier segment arrives.
    Old,
}

#[derive(Clone, Copy, Debug)]
struct Trouble {
    loss: f64,
    twice: f64,
    longest_delay_ms: u64,
    /// Losses end.
    calm: Time,
}

#[derive(Clone, Debug, Default)]
struct App {
    incarnation: u32,
    is_connected: bool,
    /// Skipped bytes do not count.
    read: Vec<Option<u8>>,
    is_closed: bool,
    is_aborted: bool,
    has_reported: bool,
}

/// A segment in flight, and the side to which it goes.
type Arrival = (usize, Segment<Vec<u8>>);

struct World {
    config: AerotpConfig,
    rng: Rng,
    now: Time,
    ends: [Side<Vec<u8>>; 2],
    apps: [App; 2],
    bytes: [usize; 2],
    trouble: Trouble,
    is_out: bool,
    under_way: BTreeMap<(Time, u64), Arrival>,
    incidents: BTreeMap<(Time, u64), Incident>,
    /// Some of the sent segments, with their destinations.
    sent: Vec<(usize, Segment<Vec<u8>>)>,
    count: u64,
    restarts: u32,
    /// The latest incarnation of the peer from which each side has read anything since its own last restart.
    latest_read: [u32; 2],
}

fn byte(side: usize, incarnation: u32, at: usize) -> u8 {
    let step = 7 + 2 * (incarnation as usize % 50);
    ((at * step + side * 101 + incarnation as usize * 53) % 251) as u8
}

/// Seeds of connections whose sequence numbers wrap within their first kilobytes.
pub(crate) fn wrapping_seeds() -> Vec<u64> {
    let is_late = |seed: &u64| (split_mix64(*seed) >> 16) as u32 > u32::MAX - 2_000;
    (0..).filter(is_late).take(8).collect()
}

impl World {
    fn random(number: u64, wrapping: &[u64], has_deadline: bool) -> World {
        let mut rng = Rng::for_component(number, 0, "aerotp");
        let both = rng.chance(0.3);
        let mut keys = json!({ "packet_bytes": 148, "keep_alive_s": 5, "opens": if both { "both" } else { "sender" } });
        if rng.chance(0.4) {
            keys["acks_per_mack"] = json!(1 + rng.below(12));
        }
        if rng.chance(0.2) {
            keys["copies"] = json!(2);
        }
        if rng.chance(0.3) {
            keys["rate_bps"] = json!(1e5);
        }
        if rng.chance(0.2) {
            keys["receive_buffer_bytes"] = json!(400);
        }
        if rng.chance(0.2) {
            keys["half_open_bytes"] = json!(200);
        }
        if has_deadline {
            let mut rng = Rng::for_component(number, 0, "deadline");
            keys["deadline_s"] = json!(0.01 + if rng.chance(0.5) { rng.uniform() } else { 20.0 * rng.uniform() });
            // Longer than any outage. A side that has not noticed the replacement of its peer sends probes until then.
            keys["give_up_after_s"] = json!(500);
        }
        let config: AerotpConfig = serde_json::from_value(keys).unwrap();
        config.check().unwrap();
        let seed = if rng.chance(0.3) { wrapping[rng.below(8) as usize] } else { rng.below(u64::MAX) };
        let (active, passive) = Pairs::<Vec<u8>>::pair(&config, seed);
        let most_ms = if rng.chance(0.2) { 900_000 } else { 5_000 };
        let calm = Time::from_millis(1 + rng.below(most_ms));
        let longest_delay = if rng.chance(0.5) { 20 } else { 400 };
        let trouble = Trouble {
            loss: rng.uniform() * 0.5,
            twice: rng.uniform() * 0.3,
            longest_delay_ms: 1 + rng.below(longest_delay),
            calm,
        };
        let bytes = [rng.below(2_500) as usize, if rng.chance(0.5) { rng.below(1_500) as usize } else { 0 }];
        let mut world = World {
            config,
            rng,
            now: Time::from_secs(1),
            ends: [active, passive],
            apps: Default::default(),
            bytes,
            trouble,
            is_out: false,
            under_way: BTreeMap::new(),
            incidents: BTreeMap::new(),
            sent: Vec::new(),
            count: 0,
            restarts: 0,
            latest_read: [0; 2],
        };
        world.plan();
        world
    }

    fn plan(&mut self) {
        let span = self.trouble.calm.as_ps() / 1_000_000_000;
        let at = |world: &mut World| world.now + Time::from_millis(world.rng.below(span + 1));
        if self.rng.chance(0.3) {
            let from = at(self);
            // Few outages of minutes, because probes are sent all the time.
            let longest_ms = if self.rng.chance(0.02) { 300_000 } else { 4_000 };
            let until = from + Time::from_millis(1 + self.rng.below(longest_ms));
            let is_told = self.rng.chance(0.5);
            self.trouble.calm = self.trouble.calm.max(until);
            self.add(from, Incident::Outage { is_told });
            self.add(until, Incident::Back { is_told });
        }
        let restarts = if self.rng.chance(0.4) { 1 + self.rng.below(3) } else { 0 };
        for _ in 0..restarts {
            let (from, side) = (at(self), self.rng.below(2) as usize);
            self.add(from, Incident::Restart(side));
        }
        for _ in 0..self.rng.below(4) {
            let from = at(self) + Time::from_millis(self.rng.below(1_000_000));
            self.add(from, Incident::Old);
        }
    }

    fn add(&mut self, at: Time, incident: Incident) {
        self.count += 1;
        self.incidents.insert((at, self.count), incident);
    }

    fn write(&mut self, side: usize) {
        let incarnation = self.apps[side].incarnation;
        let mut data: Vec<u8> = (0..self.bytes[side]).map(|at| byte(side, incarnation, at)).collect();
        assert_eq!(self.ends[side].write(self.now, &mut data), self.bytes[side]);
        self.ends[side].close(self.now);
    }

    /// Opens the next connection after the application was informed of the end of the last one.
    fn renew(&mut self, side: usize, has_reported: bool) {
        let incarnation = self.apps[side].incarnation + 1;
        self.apps[side] = App { incarnation, has_reported, ..App::default() };
        self.write(side);
    }

    fn pump(&mut self, side: usize) {
        self.hear(side);
        loop {
            let before = self.apps[side].read.len();
            while let Some(data) = self.ends[side].read() {
                self.apps[side].read.extend(data.into_iter().map(Some));
            }
            self.check(side);
            self.hear(side);
            if self.apps[side].read.len() == before {
                break;
            }
        }
        while let Some(sent) = self.ends[side].poll_transmit(self.now) {
            self.send(side, sent.packet);
        }
    }

    fn hear(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            match event {
                Event::Aborted(Abort::PeerRestarted) if self.ends[side].state() != State::Closed => {
                    self.renew(side, true)
                }
                Event::Aborted(_) => self.apps[side].is_aborted = true,
                Event::Connected if self.apps[side].is_connected => {
                    self.renew(side, false);
                    self.apps[side].is_connected = true;
                }
                Event::Connected => self.apps[side].is_connected = true,
                Event::Closed => self.apps[side].is_closed = true,
                Event::Skipped(bytes) => {
                    assert!(self.config.deadline_s.is_some(), "{bytes} bytes were given up");
                    let missing = std::iter::repeat_n(None, bytes as usize);
                    self.apps[side].read.extend(missing);
                }
                _ => {}
            }
        }
    }

    /// The data read is a prefix of the data written by one incarnation of the peer, and not by one before another whose data was
    /// read: it would be read twice.
    fn check(&mut self, side: usize) {
        let (read, peer) = (&self.apps[side].read, 1 - side);
        let is_of = |incarnation: &u32| {
            let written = (0..self.bytes[peer]).map(|at| byte(peer, *incarnation, at));
            read.len() <= self.bytes[peer]
                && written.zip(read).all(|(written, read)| read.is_none_or(|read| written == read))
        };
        let mut incarnations = (0..=self.apps[peer].incarnation).rev();
        let (from, first) = (incarnations.find(is_of), read.first().copied().flatten());
        assert!(from.is_some(), "side {side} read bytes that were not written");
        // The first byte tells incarnations apart.
        if let (Some(from), Some(_)) = (from, first) {
            let latest = &mut self.latest_read[side];
            assert!(from >= *latest, "side {side} reads what incarnation {from} of its peer wrote, after {latest}");
            *latest = from;
        }
    }

    fn send(&mut self, side: usize, packet: Segment<Vec<u8>>) {
        let to = 1 - side;
        if self.sent.len() < 64 {
            self.sent.push((to, packet.clone()));
        }
        self.count += 1;
        let states = || self.ends.each_ref().map(Side::state);
        assert!(self.count < 100_000, "this does not end: {:?} at {:?}, {packet:?} to {to}", states(), self.now);
        let is_calm = self.now >= self.trouble.calm;
        if self.is_out || (!is_calm && self.rng.chance(self.trouble.loss)) {
            return;
        }
        let copies = 1 + u64::from(!is_calm && self.rng.chance(self.trouble.twice));
        for _ in 0..copies {
            self.count += 1;
            let delay = 1 + if is_calm { 10 } else { self.rng.below(self.trouble.longest_delay_ms) };
            self.under_way.insert((self.now + Time::from_millis(delay), self.count), (to, packet.clone()));
        }
    }

    fn meet(&mut self, incident: Incident) {
        match incident {
            Incident::Outage { is_told } => {
                self.is_out = true;
                self.tell(is_told, LinkHint::Down);
            }
            Incident::Back { is_told } => {
                self.is_out = false;
                self.tell(is_told, LinkHint::Up);
            }
            Incident::Restart(side) => {
                self.restarts += 1;
                self.latest_read[side] = 0;
                let fresh = Pairs::<Vec<u8>>::pair(&self.config, self.rng.below(u64::MAX));
                self.ends[side] = if side == 0 { fresh.0 } else { fresh.1 };
                self.renew(side, false);
            }
            Incident::Old if !self.sent.is_empty() => {
                let (to, packet) = self.sent[self.rng.below(self.sent.len() as u64) as usize].clone();
                self.ends[to].handle_packet(self.now, &packet, Rx::default());
            }
            Incident::Old => {}
        }
        self.pump(0);
        self.pump(1);
    }

    fn tell(&mut self, is_told: bool, hint: LinkHint) {
        for end in self.ends.iter_mut().filter(|_| is_told) {
            end.handle_link(self.now, hint);
        }
    }

    fn is_over(&self) -> bool {
        self.incidents.is_empty()
            && [0, 1].into_iter().all(|side| {
                let App { is_closed, is_aborted, .. } = self.apps[side];
                is_closed || is_aborted || self.ends[side].state() == State::Listen
            })
    }

    fn play(&mut self) {
        self.write(0);
        self.write(1);
        self.pump(0);
        self.pump(1);
        let mut steps = 0;
        while !self.is_over() {
            steps += 1;
            assert!(steps < 200_000, "timers without end at {:?}", self.now);
            let timers = [0, 1].map(|side| self.ends[side].poll_timeout().unwrap_or(Time::NEVER));
            let packet = self.under_way.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let incident = self.incidents.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let next = packet.min(incident).min(timers[0]).min(timers[1]);
            assert_ne!(next, Time::NEVER, "a deadlock: {:?}", self.apps);
            assert!(next < Time::from_secs(20_000), "this takes for ever: {:?}", self.apps);
            self.now = self.now.max(next);
            if next == incident {
                let (_, incident) = self.incidents.pop_first().unwrap();
                self.meet(incident);
            } else if next == packet {
                let (_, (to, packet)) = self.under_way.pop_first().unwrap();
                self.ends[to].handle_packet(self.now, &packet, Rx::default());
                self.pump(to);
            } else {
                let side = usize::from(timers[1] < timers[0]);
                self.ends[side].handle_timeout(self.now);
                self.pump(side);
            }
        }
        if self.restarts == 0 {
            for side in [0, 1] {
                let app = &self.apps[side];
                assert!(app.is_closed && !app.is_aborted && !app.has_reported, "side {side}: {app:?}");
                assert_eq!(app.read.len(), self.bytes[1 - side]);
            }
        }
    }
}

fn play_all(schedules: u64, has_deadline: bool) {
    let wrapping = wrapping_seeds();
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= schedules {
                        break;
                    }
                    let mut world = World::random(number, &wrapping, has_deadline);
                    let played = catch_unwind(AssertUnwindSafe(|| world.play()));
                    assert!(played.is_ok(), "schedule {number}: {:?}, {:?}", world.config, world.trouble);
                }
            });
        }
    });
}

#[test]
fn data_read_was_written_by_one_peer_in_any_schedule() {
    play_all(schedules(10_000, 20), false);
}

/// `[V6]`: expired data is skipped in its place, whatever else happens.
#[test]
fn skips_are_reported_in_their_place_in_any_schedule() {
    play_all(schedules(2_500, 5), true);
}
