//! Model checking: two ends over two paths that lose, repeat and reorder packets, and that drop.
//!
//! A state consists of both ends, the packets in flight and what was delivered. From each state every packet in flight may arrive,
//! arrive and stay in flight as a copy, or get lost; either end's next timer may fire; and the carrier of a path may go at the sender,
//! with or without what was in flight on it. States are compared without times.

use std::hash::{Hash, Hasher};

use stateright::{Checker, Model, Property};

use super::PathBundle;
use super::config::{PathBundleConfig, PathRules};
use super::packet::{Frame, Packet};
use super::path::{PathId, PathState};
use super::queue::FlowQueue;
use crate::time::Time;

/// How many failures may happen on a way through the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Faults {
    losses: u8,
    copies: u8,
    drops: u8,
    timers: u8,
}

#[derive(Clone, Debug)]
struct Setting {
    packets: u8,
    faults: Faults,
    filters_duplicates: bool,
    is_ordered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Deliver(usize),
    Repeat(usize),
    Lose(usize),
    Timer(usize),
    Drop(u8),
}

#[derive(Clone, Debug)]
struct World {
    now: Time,
    ends: [PathBundle<Vec<u8>>; 2],
    /// Receiver, path and packet, in the order of sending.
    in_flight: Vec<(usize, PathId, Packet<Vec<u8>>)>,
    delivered: Vec<u8>,
    left: Faults,
}

impl World {
    /// Lets both ends send and deliver. Acknowledgements and probes that only repeat what is known would make the states endless:
    /// probes are answered at once and without faults.
    fn settle(&mut self) {
        for from in 0..2 {
            while let Some((path, packet)) = self.ends[from].poll_transmit(self.now) {
                self.in_flight.push((1 - from, path, packet));
            }
            while let Some(data) = self.ends[from].receive() {
                self.delivered.push(data[0]);
            }
        }
    }

    fn deliver(&mut self, at: usize) {
        let (to, path, packet) = self.in_flight[at].clone();
        self.now += Time::from_millis(1);
        self.ends[to].handle_packet(self.now, path, &packet);
    }

    /// Key by which states are told apart.
    fn key(&self) -> impl Hash + Eq + use<> {
        let flight: Vec<_> = self
            .in_flight
            .iter()
            .map(|(to, path, packet)| {
                let frames: Vec<(u8, u32, Vec<u16>)> = packet
                    .frames
                    .iter()
                    .map(|frame| match frame {
                        Frame::Data(data) => (0, data.sequence, Vec::new()),
                        Frame::Acknowledgement(ack) => (1, ack.largest, ack.ranges.0.clone()),
                        Frame::Probe { .. } => (2, 0, Vec::new()),
                        Frame::Hold(_) => (3, 0, Vec::new()),
                        Frame::Close { path } => (4, u32::from(*path), Vec::new()),
                    })
                    .collect();
                (*to, path.0, packet.number, frames)
            })
            .collect();
        let ends: Vec<_> = self
            .ends
            .iter()
            .map(|end| {
                let paths: Vec<_> =
                    end.ends().map(|path| (path.state as u8, path.flight.next_number(), path.flight.bytes())).collect();
                let totals = end.totals();
                (paths, totals.flight_bytes, totals.reorder_bytes, totals.lost, totals.delivery.missing)
            })
            .collect();
        (flight, ends, self.delivered.clone(), self.left)
    }

    fn counted(&self) -> u64 {
        let (near, far) = (self.ends[0].totals(), self.ends[1].totals());
        near.dropped + near.lost + far.delivery.missing
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for World {}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Setting {
    /// Both paths are up, and the packets have just been sent.
    fn start(&self) -> World {
        let mut config = PathBundleConfig::default();
        config.classes.iter_mut().for_each(|class| class.is_ordered = self.is_ordered);
        let mut ends = [1, 2].map(|seed| PathBundle::new(config.clone(), Time::ZERO, seed));
        for end in &mut ends {
            end.add_path(Time::ZERO, PathRules::default());
            end.add_path(Time::ZERO, PathRules::default());
            end.lanes.filters_duplicates = self.filters_duplicates;
        }
        let mut world =
            World { now: Time::ZERO, ends, in_flight: Vec::new(), delivered: Vec::new(), left: self.faults };
        world.settle();
        while !world.in_flight.is_empty() {
            world.deliver(0);
            world.in_flight.remove(0);
            world.settle();
        }
        assert!(world.ends.iter().all(|end| end.ends().all(|path| path.state == PathState::Up)));
        for packet in 0..self.packets {
            // One flow. The pace lets one packet after the other go.
            world.ends[0].send(world.now, vec![packet; 10], 1, 0);
            world.settle();
            world.now += Time::from_millis(30);
        }
        world.settle();
        // States are kept by the thousand: without what they do not use.
        for end in &mut world.ends {
            assert!(end.queues.iter().all(FlowQueue::is_empty));
            end.queues.iter_mut().for_each(|queue| *queue = FlowQueue::new());
            end.paths.truncate(2);
            end.paths.shrink_to_fit();
        }
        world
    }
}

impl Model for Setting {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.start()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for at in 0..world.in_flight.len() {
            actions.push(Action::Deliver(at));
            let has_data = world.in_flight[at].2.frames.iter().any(|frame| matches!(frame, Frame::Data(_)));
            if world.left.losses > 0 {
                actions.push(Action::Lose(at));
            }
            if world.left.copies > 0 && has_data {
                actions.push(Action::Repeat(at));
            }
        }
        if world.left.timers > 0 {
            actions.extend([0, 1].map(Action::Timer));
        }
        if world.left.drops > 0 {
            let is_up = |path: &u8| world.ends[0].stats(PathId(*path)).state == Some(PathState::Up);
            actions.extend([0, 1].into_iter().filter(is_up).map(Action::Drop));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut world = world.clone();
        match action {
            Action::Deliver(at) => {
                world.deliver(at);
                world.in_flight.remove(at);
            }
            Action::Repeat(at) => {
                world.left.copies -= 1;
                // A copy comes later, as a packet of its own would after a mistaken repetition.
                world.deliver(at);
                let (_, _, packet) = &mut world.in_flight[at];
                packet.number += 1 << 12;
            }
            Action::Lose(at) => {
                world.left.losses -= 1;
                world.in_flight.remove(at);
            }
            Action::Timer(side) => {
                world.left.timers -= 1;
                let due = world.ends[side].poll_timeout()?;
                world.now = world.now.max(due);
                world.ends[side].handle_timeout(world.now);
            }
            Action::Drop(path) => {
                world.left.drops -= 1;
                world.ends[0].set_carrier(world.now, PathId(path), false);
            }
        }
        world.settle();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("every packet at most once", |setting: &Setting, world: &World| {
                let mut seen = world.delivered.clone();
                seen.sort_unstable();
                seen.dedup();
                seen.len() == world.delivered.len() && seen.iter().all(|&packet| packet < setting.packets)
            }),
            Property::always("in order", |setting: &Setting, world: &World| {
                !setting.is_ordered || world.delivered.is_sorted()
            }),
            Property::always("nothing vanishes", |setting: &Setting, world: &World| {
                // From any state on, without further faults, everything arrives or is counted.
                let mut world = world.clone();
                for _ in 0..200 {
                    let due = world.ends.iter().filter_map(PathBundle::poll_timeout).min().unwrap_or(world.now);
                    if world.in_flight.is_empty() {
                        world.now = world.now.max(due);
                        world.ends.iter_mut().for_each(|end| end.handle_timeout(world.now));
                    } else {
                        world.deliver(0);
                        world.in_flight.remove(0);
                    }
                    world.settle();
                    let all = world.delivered.len() as u64 + world.counted();
                    if all >= u64::from(setting.packets) {
                        return true;
                    }
                }
                false
            }),
        ]
    }
}

const SMALL: Setting = Setting {
    packets: 2,
    faults: Faults { losses: 1, copies: 1, drops: 1, timers: 2 },
    filters_duplicates: true,
    is_ordered: true,
};

/// Explores at most so many states; returns their number and what was found not to hold.
fn explore(setting: Setting, most: usize) -> (usize, Vec<&'static str>) {
    let checker = setting.checker().target_state_count(most).spawn_dfs().join();
    let found: Vec<_> =
        checker.discoveries().into_iter().map(|(property, path)| (property, path.into_actions())).collect();
    println!("{} of {} states, {found:?}", checker.unique_state_count(), checker.state_count());
    (checker.unique_state_count(), found.into_iter().map(|(property, _)| property).collect())
}

#[test]
fn every_packet_arrives_once_or_is_counted() {
    for is_ordered in [true, false] {
        let (states, found) = explore(Setting { is_ordered, ..SMALL }, 10_000);
        assert!(found.is_empty() && states > 1000, "{states} {found:?}");
    }
}

#[test]
#[ignore = "minutes"]
fn every_packet_arrives_once_or_is_counted_at_length() {
    let faults = Faults { losses: 2, copies: 1, drops: 1, timers: 3 };
    for is_ordered in [true, false] {
        let (_, found) = explore(Setting { packets: 3, faults, is_ordered, ..SMALL }, 1_000_000);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn without_the_duplicate_filter_a_packet_arrives_twice() {
    for is_ordered in [true, false] {
        let (_, found) = explore(Setting { filters_duplicates: false, is_ordered, ..SMALL }, 10_000);
        assert!(found.contains(&"every packet at most once"), "{found:?}");
    }
}
