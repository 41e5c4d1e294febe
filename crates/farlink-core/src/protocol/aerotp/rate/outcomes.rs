//! What became of transmissions.

use crate::origin::instants;
use crate::time::Time;

/// What became of one transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Outcome {
    /// When it was sent, in ticks.
    pub(in super::super) sent: u64,
    /// 1 if it arrived, 0 if it was lost; between them if only the number of losses among several is known.
    pub(in super::super) arrived: f32,
}

instants! { Outcome: ; ticks: sent; fixed: arrived }

/// What became of transmissions since the last answer, if the rate is learnt from it.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Outcomes {
    pub(in super::super) is_wanted: bool,
    list: Vec<Outcome>,
    /// Set by a report in a mode without acknowledgements: when the next one is overdue.
    report: Option<Time>,
}

instants! { Outcomes: list; fixed: is_wanted, report }

impl Outcomes {
    /// A transmission arrived, or was lost.
    #[inline]
    pub(in super::super) fn add(&mut self, sent: u64, arrived: f32) {
        if self.is_wanted {
            self.list.push(Outcome { sent, arrived });
        }
    }

    /// A report has come, and the next one is overdue after `timeout`.
    pub(in super::super) fn reported(&mut self, timeout: Time) {
        self.report = Some(timeout);
    }

    pub(super) fn take_report(&mut self) -> Option<Time> {
        self.report.take()
    }

    pub(super) fn take(&mut self) -> std::vec::Drain<'_, Outcome> {
        self.list.drain(..)
    }
}
