//! Which line takes the next packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Which line takes the next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Each line in turn, skipping lines without room.
    #[default]
    RoundRobin,
    /// The line with the smallest backlog in bytes.
    ShortestQueue,
    /// The line over which the packet arrives first, even if the packet has to wait for that line. While another line is idle, it
    /// waits only if the lines without room would deliver the whole queue before the idle line could deliver the packet.
    /// Fragments get lengths such that all arrive at the same time.
    EarliestDelivery,
    /// All lines that have room get a copy; the first to arrive is delivered.
    Redundant,
    /// The line with the earliest expected arrival, where a drop before that costs a minute. The rate of drops of a line is
    /// estimated from its own drops so far.
    DropAware,
    /// All free lines, as in Linux 6.1: each packet is cut into one fragment for each free line, however short the fragments
    /// become, with lengths in proportion to the speeds of the serial ports (`serial_bps`, equal by default). A line is free
    /// while `tty_bytes` and two more fragments have room. A packet waits while fewer than half of the lines are free, and is
    /// dropped while no line is up. `packets`, `line_packets`, `min_fragment_bytes`, `modem_bytes` and `serial_bytes` have no
    /// meaning with this scheduler. The receiver is that of Linux unless `receiver` is given.
    Linux,
}

/// A line that has room, as a scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) line: usize,
    /// Bytes that have not left the line's modem yet.
    pub(super) waiting_bytes: u64,
    /// When the packet would arrive over it.
    pub(super) arrival: Time,
    /// Estimated drops per second of up time.
    pub(super) drop_rate: f64,
}

/// Cost of a drop: TCP's timeout over such a bundle (Zaghloul, table 6.1: T_0 = 60 s).
const DROP_COST_S: f64 = 60.0;

impl Scheduler {
    /// The line that the schedule begins with, where `turn` is the line after the one that was chosen last.
    pub(super) fn begins_with(self, turn: usize) -> usize {
        if self == Scheduler::RoundRobin { turn } else { 0 }
    }

    /// Chooses the best line. The candidates are in order, from the line that the schedule begins with. [`Scheduler::Redundant`]
    /// then takes all lines with room from the chosen one on.
    pub(super) fn choose(self, now: Time, mut candidates: impl Iterator<Item = Candidate>) -> Option<usize> {
        let best = match self {
            Scheduler::RoundRobin | Scheduler::Redundant | Scheduler::Linux => candidates.next(),
            Scheduler::ShortestQueue => candidates.min_by_key(|candidate| candidate.waiting_bytes),
            Scheduler::EarliestDelivery => candidates.min_by_key(|candidate| candidate.arrival),
            Scheduler::DropAware => candidates.min_by(|a, b| a.cost(now).total_cmp(&b.cost(now))),
        };
        best.map(|candidate| candidate.line)
    }
}

impl Candidate {
    /// The same line with an arrival that is later `by` a time.
    pub(super) fn later(self, by: Time) -> Self {
        Candidate { arrival: self.arrival + by, ..self }
    }

    /// Expected time until the packet arrives, in s, with the cost of a drop times its probability.
    fn cost(&self, now: Time) -> f64 {
        let wait_s = self.arrival.since(now).as_secs_f64();
        wait_s - libm::expm1(-self.drop_rate * wait_s) * DROP_COST_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> [Candidate; 3] {
        [(0, 500, 3_000, 0.01), (2, 100, 4_000, 0.0), (3, 200, 2_900, 0.05)].map(
            |(line, waiting_bytes, ms, drop_rate)| Candidate {
                line,
                waiting_bytes,
                arrival: Time::from_millis(ms),
                drop_rate,
            },
        )
    }

    #[test]
    fn each_scheduler_has_its_own_best() {
        for (scheduler, best) in [
            (Scheduler::RoundRobin, 0),
            (Scheduler::ShortestQueue, 2),
            (Scheduler::EarliestDelivery, 3),
            (Scheduler::DropAware, 2), // 4 s against 3 + 1.8 s and 2.9 + 8.1 s
            (Scheduler::Redundant, 0),
        ] {
            assert_eq!(scheduler.choose(Time::ZERO, candidates().into_iter()), Some(best), "{scheduler:?}");
        }
    }

    #[test]
    fn only_round_robin_starts_after_the_line_chosen_last() {
        assert_eq!(Scheduler::RoundRobin.begins_with(3), 3);
        assert_eq!(Scheduler::EarliestDelivery.begins_with(3), 0);
        assert_eq!(Scheduler::RoundRobin.choose(Time::ZERO, [].into_iter()), None);
    }
}
