//! A bundle whose lines take fragments, deliver them in any order between lines, lose them, repeat them and drop: every packet arrives once,
//! or something of it was lost; and the mutant whose driver does not report what has left is found.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use farlink_core::Time;
use farlink_core::ppp::Bundle;
use farlink_core::rng::SplitMix64;
use stateright::{Checker, Model, Property};

use super::wires::{Wires, config, number, packet, secs};

const LINES: usize = 2;
const PACKETS: u32 = 2;

/// Both ends, and what is between them on the way to the far one.
#[derive(Clone)]
struct Ends {
    ends: [Bundle<SplitMix64>; 2],
    on_the_way: [VecDeque<Vec<u8>>; LINES],
    is_up: [bool; LINES],
    arrived: Vec<u32>,
    /// What went wrong on the way so far.
    lost: u8,
    duplicates: u8,
    drops: u8,
}

impl std::fmt::Debug for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "arrived {:?}, on the way {:?}, up {:?}",
            self.arrived,
            self.on_the_way.each_ref().map(VecDeque::len),
            self.is_up
        )
    }
}

impl Ends {
    /// The whole state. Time stands still in the model, so that it is equal wherever states are.
    fn text(&self) -> String {
        let Ends { ends, on_the_way, is_up, arrived, lost, duplicates, drops } = self;
        format!("{ends:?}{on_the_way:?}{is_up:?}{arrived:?}{lost}{duplicates}{drops}")
    }
}

impl PartialEq for Ends {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Hash for Ends {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    /// A port takes a frame, or a part of one, and reports it.
    Take(usize),
    Deliver(usize),
    Duplicate(usize),
    Lose(usize),
    /// Both ends notice a drop; what is on the way is lost.
    Drop(usize),
}

struct Drops {
    lost: u8,
    duplicates: u8,
    drops: u8,
    /// The driver reports nothing of the first line as sent.
    is_mutant: bool,
}

const NOW: Time = Time::from_secs(60);
/// A port takes half of a fragment and a bit: drops hit the middle of frames, too.
const PORTION: usize = 180;

impl Model for Drops {
    type State = Ends;
    type Action = Act;

    fn init_states(&self) -> Vec<Ends> {
        let configs = [0, 1].map(|end| {
            let mut one = config(end, LINES, 2400.0);
            (one.latency, one.least_fragment) = (secs(2.0), 150);
            one
        });
        let mut wires = Wires::new(configs, 2400.0, Time::from_millis(100), 1);
        wires.all_up();
        wires.run(NOW);
        let [mut near, far] = wires.ends;
        for at in 0..PACKETS {
            assert!(near.send(NOW, packet(at, 300), 0));
        }
        let on_the_way = [VecDeque::new(), VecDeque::new()];
        vec![Ends {
            ends: [near, far],
            on_the_way,
            is_up: [true; LINES],
            arrived: vec![],
            lost: 0,
            duplicates: 0,
            drops: 0,
        }]
    }

    fn actions(&self, state: &Ends, actions: &mut Vec<Act>) {
        for line in (0..LINES).filter(|&line| state.is_up[line]) {
            if state.ends[0].has_bytes(line) && state.on_the_way[line].len() < 3 {
                actions.push(Act::Take(line));
            }
            if !state.on_the_way[line].is_empty() {
                actions.push(Act::Deliver(line));
                actions.extend((state.lost < self.lost).then_some(Act::Lose(line)));
                actions.extend((state.duplicates < self.duplicates).then_some(Act::Duplicate(line)));
            }
            if state.drops < self.drops {
                actions.push(Act::Drop(line));
            }
        }
    }

    fn next_state(&self, before: &Ends, act: Act) -> Option<Ends> {
        let mut state = before.clone();
        match act {
            Act::Take(line) => {
                let mut bytes = Vec::new();
                state.ends[0].poll_bytes(line, PORTION, &mut bytes);
                if !self.is_mutant || line > 0 {
                    state.ends[0].sent(NOW, line, bytes.len());
                }
                state.on_the_way[line].push_back(bytes);
            }
            Act::Deliver(line) | Act::Duplicate(line) => {
                let bytes = state.on_the_way[line].front()?.clone();
                if matches!(act, Act::Deliver(_)) {
                    state.on_the_way[line].pop_front();
                } else {
                    state.duplicates += 1;
                }
                state.ends[1].receive(NOW, line, &bytes);
                while let Some(packet) = state.ends[1].poll_packet() {
                    state.arrived.push(number(&packet));
                }
            }
            Act::Lose(line) => {
                state.lost += 1;
                state.on_the_way[line].pop_front();
            }
            Act::Drop(line) => {
                state.drops += 1;
                state.is_up[line] = false;
                state.lost += u8::from(!state.on_the_way[line].is_empty());
                state.on_the_way[line].clear();
                for end in &mut state.ends {
                    end.on_carrier(NOW, line, false);
                    while end.poll_event().is_some() {}
                }
                while let Some(packet) = state.ends[1].poll_packet() {
                    state.arrived.push(number(&packet));
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no packet twice", |_, state: &Ends| {
                (0..PACKETS).all(|at| state.arrived.iter().filter(|&&one| one == at).count() <= 1)
            }),
            Property::always("in order unless a line dropped", |_, state: &Ends| {
                state.drops > 0 || state.arrived.is_sorted()
            }),
            Property::always("at the end all have arrived, or something was lost", |model: &Drops, state: &Ends| {
                let mut actions = Vec::new();
                model.actions(state, &mut actions);
                actions.retain(|act| matches!(act, Act::Take(_) | Act::Deliver(_)));
                let is_over = actions.is_empty() && state.is_up.contains(&true);
                !is_over || state.arrived.len() == PACKETS as usize || state.lost > 0 || state.duplicates > 0
            }),
            Property::sometimes("all arrive in spite of a drop", |_, state: &Ends| {
                state.drops > 0 && state.arrived.len() == PACKETS as usize
            }),
        ]
    }
}

#[test]
fn every_packet_arrives_once_or_something_was_lost() {
    let checker = Drops { lost: 1, duplicates: 1, drops: 1, is_mutant: false }.checker().spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.unique_state_count() > 1000);
}

/// What the peer got, and the driver did not report, is sent again under new numbers, and arrives twice.
#[test]
fn a_driver_that_does_not_report_is_found() {
    let checker = Drops { lost: 0, duplicates: 0, drops: 1, is_mutant: true }.checker().spawn_bfs().join();
    assert!(checker.discovery("no packet twice").is_some());
}
