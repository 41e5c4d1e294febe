//! Both ends of a negotiation, through every order of loss, duplication, reordering and expired timers (within bounds).

use farlink_core::Time;
use farlink_core::ppp::control::ControlPacket;
use farlink_core::ppp::lcp::{LcpConfig, LcpOptions, Multilink};
use farlink_core::ppp::negotiator::{Limits, Negotiator};
use farlink_core::ppp::{Accm, Discriminator, Proof};
use farlink_core::rng::RandomSource;
use stateright::{Checker, Model, Property};

/// One magic number for each end, so that there are few states.
struct Fixed(u64);

impl RandomSource for Fixed {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

type End = Negotiator<LcpOptions>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Ends {
    ends: [End; 2],
    /// Packets on the way to each end.
    ways: [Vec<ControlPacket>; 2],
    duplicates: u8,
    timeouts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Deliver(usize, usize),
    Duplicate(usize, usize),
    Lose(usize, usize),
    Expire(usize),
}

struct Negotiation {
    timeouts: u8,
    duplicates: u8,
    /// An end that takes an acknowledgement of any request for one of its last.
    is_mutant: bool,
}

/// On the way at once; more are lost.
const MOST_ON_THE_WAY: usize = 2;

fn end(at: usize) -> End {
    let multilink =
        Multilink { mrru: 1500, short_numbers: at == 0, discriminator: Discriminator::new(1, &[at as u8]).unwrap() };
    let config = LcpConfig {
        mru: if at == 0 { 1500 } else { 1000 },
        receive_map: Accm(at as u32),
        // The near end wants CHAP, then PAP; the far end has PAP only: a Nak is needed.
        demands: if at == 0 { vec![Proof::ChapMd5, Proof::Pap] } else { vec![] },
        offers: if at == 0 { vec![] } else { vec![Proof::Pap] },
        multilink: Some(multilink),
        ..LcpConfig::default()
    };
    let limits = Limits { restart: Time::ZERO, max_configure: 3, max_terminate: 1, max_failure: 2 };
    Negotiator::new(LcpOptions::new(config), limits)
}

impl Ends {
    fn collect(&mut self, at: usize) {
        while let Some(packet) = self.ends[at].poll_transmit() {
            if self.ways[1 - at].len() < MOST_ON_THE_WAY {
                self.ways[1 - at].push(packet);
            }
        }
        while self.ends[at].poll_layer().is_some() {}
    }

    fn are_open(&self) -> bool {
        self.ends.iter().all(End::is_open)
    }

    fn agree(&self) -> bool {
        let [near, far] = &self.ends;
        near.options.receives() == far.options.sends() && far.options.receives() == near.options.sends()
    }
}

impl Model for Negotiation {
    type State = Ends;
    type Action = Act;

    fn init_states(&self) -> Vec<Ends> {
        let mut ends = Ends { ends: [end(0), end(1)], ways: [vec![], vec![]], duplicates: 0, timeouts: 0 };
        for at in 0..2 {
            ends.ends[at].open(Time::ZERO, &mut Fixed(at as u64 + 1));
            ends.ends[at].up(Time::ZERO, &mut Fixed(at as u64 + 1));
            ends.collect(at);
        }
        vec![ends]
    }

    fn actions(&self, state: &Ends, actions: &mut Vec<Act>) {
        for to in 0..2 {
            for at in 0..state.ways[to].len() {
                actions.extend([Act::Deliver(to, at), Act::Lose(to, at)]);
                if state.duplicates < self.duplicates {
                    actions.push(Act::Duplicate(to, at));
                }
            }
            if state.ends[to].poll_timeout().is_some() && state.timeouts < self.timeouts {
                actions.push(Act::Expire(to));
            }
        }
    }

    fn next_state(&self, before: &Ends, act: Act) -> Option<Ends> {
        let mut state = before.clone();
        match act {
            Act::Deliver(to, at) | Act::Duplicate(to, at) => {
                let mut packet = state.ways[to][at].clone();
                if matches!(act, Act::Deliver(..)) {
                    state.ways[to].remove(at);
                } else {
                    state.duplicates += 1;
                }
                if self.is_mutant && packet.code == 2 && to == 0 {
                    // Without comparison: whatever was acknowledged counts for the request that is pending.
                    packet = state.ends[to].clone().pending_as_ack().unwrap_or(packet);
                }
                state.ends[to].handle(Time::ZERO, &packet, &mut Fixed(to as u64 + 1));
                state.collect(to);
            }
            Act::Lose(to, at) => {
                state.ways[to].remove(at);
            }
            Act::Expire(at) => {
                state.timeouts += 1;
                state.ends[at].on_timeout(Time::ZERO, &mut Fixed(at as u64 + 1));
                state.collect(at);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("open ends agree", |_, state: &Ends| !state.are_open() || state.agree()),
            Property::sometimes("both open", |_, state: &Ends| state.are_open()),
        ]
    }
}

fn check(timeouts: u8, duplicates: u8) {
    let checker = Negotiation { timeouts, duplicates, is_mutant: false }.checker().spawn_bfs().join();
    println!("{timeouts} timeouts, {duplicates} duplicates: {} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.unique_state_count() > 1000);
}

#[test]
fn open_ends_agree_under_loss_duplication_and_reordering() {
    check(1, 1);
}

#[test]
#[ignore = "minutes: make soak"]
fn open_ends_agree_with_more_of_each() {
    check(2, 1);
}

/// An end that does not compare what is acknowledged with what it asked for is found out.
#[test]
fn a_mutant_that_takes_any_acknowledgement_is_found() {
    let checker = Negotiation { timeouts: 1, duplicates: 1, is_mutant: true }.checker().spawn_bfs().join();
    assert!(checker.discovery("open ends agree").is_some());
}
