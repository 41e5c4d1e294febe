//! Which line takes the next packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Which line takes the next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// One after the other, those without room left out.
    #[default]
    RoundRobin,
    /// The one with the fewest bytes waiting.
    ShortestQueue,
    /// The one over which it arrives first. That may mean to wait for it, but while another line is idle only if it would bring all
    /// that wait by the time of that one; with fragments, shares such that all arrive together.
    EarliestDelivery,
    /// All lines that have room: the copy that arrives first counts.
    Redundant,
    /// The one over which it arrives first, a drop before that counted as a minute lost: lines are judged by their own drops so far.
    DropAware,
    /// All that are free, as Linux 6.1 does: each packet is cut at once into one fragment for each line that is free, however short
    /// the fragments become, in shares by the speeds of the serial ports (`serial_bps`, equal unless given). A line is free while
    /// `tty_bytes` and two fragments besides have room; a packet waits while fewer than half of the lines are free, and is dropped
    /// while no line is up. `packets`, `line_packets`, `min_fragment_bytes`, `modem_bytes` and `serial_bytes` have no meaning then.
    /// The receiver is that of Linux unless `receiver` says otherwise.
    Linux,
}

/// A line that has room, as a scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) line: usize,
    /// Bytes that have not left yet.
    pub(super) waiting_bytes: u64,
    /// When the packet would arrive over it.
    pub(super) arrival: Time,
    /// Drops per second of up time so far.
    pub(super) drop_rate: f64,
}

/// What a drop costs: TCP's timeout over such a bundle (Zaghloul, table 6.1: T_0 = 60 s).
const DROP_COST_S: f64 = 60.0;

impl Scheduler {
    /// Which line the schedule begins with, where `turn` is the line behind the one that was taken last.
    pub(super) fn begins_with(self, turn: usize) -> usize {
        if self == Scheduler::RoundRobin { turn } else { 0 }
    }

    /// The best of the lines, which come in order from the one that the schedule begins with; [`Scheduler::Redundant`] takes all with
    /// room from the first on.
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
    /// The same line, arriving so much later.
    pub(super) fn later(self, by: Time) -> Self {
        Candidate { arrival: self.arrival + by, ..self }
    }

    /// Time until it is there, in s, with that which a drop on the way would cost.
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
    fn only_round_robin_goes_on_where_it_was() {
        assert_eq!(Scheduler::RoundRobin.begins_with(3), 3);
        assert_eq!(Scheduler::EarliestDelivery.begins_with(3), 0);
        assert_eq!(Scheduler::RoundRobin.choose(Time::ZERO, [].into_iter()), None);
    }
}
