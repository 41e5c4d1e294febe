//! Outcomes of transmissions.

use crate::origin::instants;
use crate::time::Time;

/// Outcome of one transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Outcome {
    /// When it was sent, in ticks.
    pub(in super::super) sent: u64,
    /// 1 if it arrived, 0 if it was lost; between them if only the number of losses among several is known.
    pub(in super::super) arrived: f32,
}

instants! { Outcome: ; ticks: sent; fixed: arrived }

/// How reports come. `[U10]`, `[P19]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct ReportTimes {
    /// When the next one is overdue.
    pub(in super::super) timeout: Time,
    /// The usual time between two of them; zero where acknowledgements tell what became of each packet.
    pub(in super::super) spacing: Time,
}

/// Outcomes of transmissions since the last answer, if the rate is learnt from them.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Outcomes {
    pub(in super::super) is_wanted: bool,
    list: Vec<Outcome>,
    /// The latest report, until it is taken.
    report: Option<ReportTimes>,
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

    /// A report has come.
    pub(in super::super) fn on_report(&mut self, report: ReportTimes) {
        self.report = Some(report);
    }

    pub(super) fn take_report(&mut self) -> Option<ReportTimes> {
        self.report.take()
    }

    pub(super) fn take(&mut self) -> std::vec::Drain<'_, Outcome> {
        self.list.drain(..)
    }

    /// The shares that arrived.
    #[cfg(test)]
    pub(in super::super) fn take_shares(&mut self) -> Vec<f32> {
        self.list.drain(..).map(|outcome| outcome.arrived).collect()
    }
}
