//! Both ends of a bundle of paths and the paths between them, in virtual time.

use std::collections::VecDeque;

use super::super::PathsSetup;
use super::parcel::{Gone, Parcel};
use super::wire::{PathCounts, Wire};
use crate::bundle::{Availability, Counts};
use crate::link::Capacity;
use crate::paths::{Event, Frame, PathBundle, PathId, PathState};
use crate::rng::{RandomSource, Rng};
use crate::time::Time;

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Delivered,
    /// In front of the paths: it was never sent.
    Dropped,
    Lost,
}

/// A packet of a user in the bundle. Its slot is free when its last copy is gone and its fate was polled.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    was_sent: bool,
    is_decided: bool,
    is_polled: bool,
    is_gone: bool,
}

/// Transmissions of one end.
#[derive(Debug, Default)]
struct Way {
    slots: Vec<Slot>,
    free: Vec<u32>,
    gone: Gone,
    fates: VecDeque<(Time, u32, Fate)>,
    /// Packets whose fate is open.
    open: usize,
    availability: Availability,
    peak_bytes: u64,
    /// Since when each path is up.
    up_since: Vec<Option<Time>>,
}

/// The carrier of a path goes or comes at some ends.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    at: Time,
    path: usize,
    ends: [bool; 2],
    is_up: bool,
}

/// The ends and the paths.
pub(super) struct Pair {
    now: Time,
    ends: [PathBundle<Parcel>; 2],
    /// By path, and by the end that sends.
    wires: Vec<[Wire; 2]>,
    /// In the order of time, the next one last.
    carriers: Vec<Carrier>,
    ways: [Way; 2],
    scratch: Vec<u32>,
}

impl Pair {
    /// Begins a run.
    pub(super) fn start(setup: &PathsSetup, hop: &str, seed: u64, run: u64) -> Self {
        let mut rng = Rng::for_component(seed, run, &format!("hop.{hop}.paths"));
        let mut ends = [(); 2].map(|()| PathBundle::new(setup.config.clone(), Time::ZERO, rng.next_u64()));
        let mut carriers = Vec::new();
        let mut wires = Vec::new();
        for (path, member) in setup.members.iter().enumerate() {
            ends.iter_mut().for_each(|end| {
                end.add_path(Time::ZERO, member.rules.clone());
            });
            let spans: Vec<_> = member.unplugged.iter().map(|&(from, until, _)| (from, until)).collect();
            wires.push([0, 1].map(|end| {
                Wire::start(&member.links[end], end, spans.clone(), member.rules.overhead_bytes, (seed, run))
            }));
            for &(from, until, ends) in &member.unplugged {
                let changes = [(from, false), (until, true)];
                carriers.extend(changes.map(|(at, is_up)| Carrier { at, path, ends, is_up }));
            }
        }
        carriers.sort_by_key(|carrier| (carrier.at, carrier.path));
        carriers.reverse();
        let up_since = vec![None; wires.len()];
        let ways = [(); 2].map(|()| Way { up_since: up_since.clone(), ..Way::default() });
        let mut pair = Pair { now: Time::ZERO, ends, wires, carriers, ways, scratch: Vec::new() };
        pair.settle();
        pair
    }

    /// Takes a packet of a user; its slot, or `None` if it is dropped at once.
    pub(super) fn send(&mut self, now: Time, end: usize, bytes: u32, class: u8, flow: u64) -> Option<u32> {
        self.handle_timeout(now);
        let way = &mut self.ways[end];
        let slot = way.free.pop().unwrap_or_else(|| {
            way.slots.push(Slot::default());
            way.slots.len() as u32 - 1
        });
        way.slots[slot as usize] = Slot::default();
        let is_taken = self.ends[end].send(self.now, Parcel::new(slot, bytes, &way.gone), class, flow);
        if !is_taken {
            way.slots[slot as usize] = Slot { is_decided: true, is_polled: true, ..Slot::default() };
        }
        way.open += usize::from(is_taken);
        way.peak_bytes = way.peak_bytes.max(self.ends[end].totals().queued_bytes);
        self.settle();
        is_taken.then_some(slot)
    }

    /// When something happens by itself.
    pub(super) fn next_event(&self) -> Time {
        let arrivals = self.wires.iter().flatten().map(Wire::next_arrival).min().unwrap_or(Time::NEVER);
        let timeouts = self.ends.iter().filter_map(PathBundle::poll_timeout).min().unwrap_or(Time::NEVER);
        let carrier = self.carriers.last().map_or(Time::NEVER, |carrier| carrier.at);
        arrivals.min(timeouts).min(carrier).max(self.now)
    }

    /// When the next fate of a packet of an end was decided.
    pub(super) fn next_outcome(&self, end: usize) -> Time {
        self.ways[end].fates.front().map_or(Time::NEVER, |&(at, ..)| at)
    }

    /// Handles all that is due at `now`.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        let mut steps_at_once = 0;
        loop {
            let next = self.next_event();
            if next > now || next == Time::NEVER {
                break;
            }
            steps_at_once = if next > self.now { 0 } else { steps_at_once + 1 };
            assert!(steps_at_once < MOST_STEPS_AT_ONCE, "a bundle of paths does not come to rest at {}", self.now);
            self.step(next);
        }
        self.now = self.now.max(now);
    }

    fn step(&mut self, now: Time) {
        self.now = now;
        for (path, wires) in self.wires.iter_mut().enumerate() {
            for (from, wire) in wires.iter_mut().enumerate() {
                while let Some(packet) = wire.arrived(now) {
                    self.ends[1 - from].handle_packet(now, PathId(path as u8), &packet);
                }
            }
        }
        while let Some(carrier) = self.carriers.pop_if(|carrier| carrier.at <= now) {
            for end in (0..2).filter(|&end| carrier.ends[end]) {
                self.ends[end].set_carrier(now, PathId(carrier.path as u8), carrier.is_up);
            }
        }
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|at| at <= now) {
                end.handle_timeout(now);
            }
        }
        self.settle();
    }

    /// Sends and delivers what can be sent and delivered now.
    fn settle(&mut self) {
        for from in 0..2 {
            while let Some((path, packet)) = self.ends[from].poll_transmit(self.now) {
                for frame in &packet.frames {
                    if let Frame::Data(data) = frame
                        && let Some(slot) = data.payload.slot()
                    {
                        self.ways[from].slots[slot as usize].was_sent = true;
                    }
                }
                self.wires[usize::from(path.0)][from].send(self.now, packet);
            }
        }
        for to in 0..2 {
            while let Some(parcel) = self.ends[to].receive() {
                if let Some(slot) = parcel.slot() {
                    self.ways[1 - to].decide(self.now, slot, Fate::Delivered);
                }
            }
            self.follow_states(to);
        }
        for way in &mut self.ways {
            way.gone.take(&mut self.scratch);
            for slot in self.scratch.drain(..) {
                way.note_gone(self.now, slot);
            }
        }
    }

    /// Notes which paths an end takes for up.
    fn follow_states(&mut self, end: usize) {
        let mut has_changed = false;
        while let Some(event) = self.ends[end].poll_event() {
            has_changed = true;
            if let Event::Down(path, _) = event {
                self.wires[usize::from(path.0)][end].counts.failures += 1;
                self.ways[end].availability.drops += 1;
            }
        }
        if has_changed {
            self.note_states(end);
        }
    }

    fn note_states(&mut self, end: usize) {
        let way = &mut self.ways[end];
        let up = way.up_since.iter().filter(|since| since.is_some()).count();
        way.availability.note(self.now, self.wires.len(), up);
        for (path, wires) in self.wires.iter_mut().enumerate() {
            let state = self.ends[end].stats(PathId(path as u8)).state;
            let is_up = matches!(state, Some(PathState::Up | PathState::Suspect));
            let since = std::mem::replace(&mut way.up_since[path], is_up.then_some(self.now));
            wires[end].counts.up_s += since.map_or(0.0, |since| self.now.since(since).as_secs_f64());
        }
    }

    /// The next packet of an end whose fate was decided by `now`.
    pub(super) fn poll(&mut self, now: Time, end: usize) -> Option<(u32, Fate)> {
        let way = &mut self.ways[end];
        way.fates.front().filter(|(at, ..)| *at <= now)?;
        let (_, slot, fate) = way.fates.pop_front()?;
        way.slots[slot as usize].is_polled = true;
        way.free_if_done(slot);
        Some((slot, fate))
    }

    /// Whether any packet of an end is in the bundle.
    pub(super) fn has_packets(&self, end: usize) -> bool {
        self.ways[end].open > 0 || !self.ways[end].fates.is_empty()
    }

    pub(super) fn begin_measurement(&mut self, now: Time) {
        self.handle_timeout(now);
        for end in 0..2 {
            self.note_states(end);
            self.ways[end].availability.begin(now);
        }
        self.wires.iter_mut().flatten().for_each(|wire| wire.counts = PathCounts::default());
    }

    pub(super) fn availability(&mut self, now: Time, end: usize) -> Availability {
        self.handle_timeout(now);
        self.note_states(end);
        self.ways[end].availability
    }

    pub(super) fn counts(&self, end: usize) -> Counts {
        let totals = self.ends[end].totals();
        let sent = self.wires.iter().map(|wires| wires[end].counts.sent).sum();
        Counts {
            fragments: sent,
            requeued: totals.repeated,
            out_of_order: 0,
            peak_waiting_bytes: self.ways[end].peak_bytes,
        }
    }

    pub(super) fn of_paths(&mut self, now: Time, end: usize) -> Vec<PathCounts> {
        self.handle_timeout(now);
        self.note_states(end);
        self.wires.iter().map(|wires| wires[end].counts).collect()
    }

    pub(super) fn capacity(&self, path: usize, end: usize) -> Capacity {
        self.wires[path][end].hop.capacity()
    }
}

/// Steps at one instant, after which a bundle would never come to rest.
const MOST_STEPS_AT_ONCE: u32 = 100_000;

impl Way {
    fn decide(&mut self, now: Time, slot: u32, fate: Fate) {
        let entry = &mut self.slots[slot as usize];
        debug_assert!(!entry.is_decided, "a packet comes out once");
        entry.is_decided = true;
        self.open -= 1;
        self.fates.push_back((now, slot, fate));
    }

    /// No copy of a packet is left.
    fn note_gone(&mut self, now: Time, slot: u32) {
        let Slot { was_sent, is_decided, .. } = self.slots[slot as usize];
        self.slots[slot as usize].is_gone = true;
        if !is_decided {
            self.decide(now, slot, if was_sent { Fate::Lost } else { Fate::Dropped });
        }
        self.free_if_done(slot);
    }

    fn free_if_done(&mut self, slot: u32) {
        let entry = self.slots[slot as usize];
        if entry.is_gone && entry.is_polled {
            self.free.push(slot);
        }
    }
}
