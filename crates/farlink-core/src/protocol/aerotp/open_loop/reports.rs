//! When a receiver reports to a sender that learns its rate. `[U10]`

use crate::origin::instants;
use crate::time::Time;

use super::super::config::AerotpConfig;
use super::super::reliable::Pace;

/// Counts what arrives, and says when to tell it, as often as the modes with acknowledgements do. `[A5]`
#[derive(Clone, Debug)]
pub(super) struct Reports {
    pace: Pace,
    /// Number of segments with payload that have arrived; wraps. `[K6]`
    pub(super) arrived: u32,
    /// Number of segments since the last report.
    untold: u64,
    /// When a report is due at the latest.
    pub(super) deadline: Time,
}

instants! { Reports: pace, deadline; fixed: arrived, untold }

impl Reports {
    /// Where the mode learns its rate.
    pub(super) fn new(config: &AerotpConfig) -> Option<Box<Self>> {
        config
            .has_rate_reports()
            .then(|| Box::new(Reports { pace: Pace::new(config), arrived: 0, untold: 0, deadline: Time::NEVER }))
    }

    /// A segment with payload has arrived. Returns whether a report is due.
    pub(super) fn on_segment(&mut self, now: Time) -> bool {
        self.arrived = self.arrived.wrapping_add(1);
        self.pace.on_segment(now);
        self.untold += 1;
        if self.untold == 1 {
            self.deadline = now + self.pace.timeout;
        }
        self.untold >= self.pace.wanted()
    }

    /// Everything so far is reported.
    pub(super) fn on_told(&mut self) {
        (self.untold, self.deadline) = (0, Time::NEVER);
    }
}
