//! Several channels one after the other.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, ChannelConfig, ChannelError, ChannelKind, ChannelState, Fate, Frame, Prepared, Quiet, Site};
use crate::rng::Rng;
use crate::time::Time;

/// Every frame passes through every stage: it is lost if any stage loses it, and a bit is wrong if any stage makes it so.
///
/// For example, bit errors with outages: `stages = [{ kind = "ber", ber = 1e-6 }, { kind = "outage", ... }]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The channels, in order.
    pub stages: Vec<ChannelKind>,
}

impl ChannelConfig for Chain {
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let stages = self.stages.iter().map(|stage| stage.prepare(site)).collect::<Result<_, _>>()?;
        Ok(Arc::new(Ready(stages)))
    }
}

/// Two channels, one after the other.
pub(crate) fn both(first: Arc<dyn Prepared>, second: Arc<dyn Prepared>) -> Arc<dyn Prepared> {
    Arc::new(Ready(vec![first, second]))
}

#[derive(Debug)]
struct Ready(Vec<Arc<dyn Prepared>>);

impl Prepared for Ready {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        Box::new(State(self.0.iter().map(|stage| stage.start(rng)).collect()))
    }

    fn start_on_hop(&self, rng: &mut Rng, hop: &Rng) -> Box<dyn Channel> {
        Box::new(State(self.0.iter().map(|stage| stage.start_on_hop(rng, hop)).collect()))
    }

    fn notes(&self) -> Vec<String> {
        self.0.iter().flat_map(|stage| stage.notes()).collect()
    }
}

struct State(Vec<Box<dyn Channel>>);

impl Channel for State {
    fn quiet(&self) -> Quiet {
        self.0.iter().map(|stage| stage.quiet()).fold(Quiet::FOREVER, |all, one| Quiet {
            frames: all.frames.min(one.frames),
            bits: all.bits.min(one.bits),
            until: all.until.min(one.until),
        })
    }

    fn skip(&mut self, frames: u64, bits: u64) {
        for stage in &mut self.0 {
            stage.skip(frames, bits);
        }
    }

    fn carry(&mut self, frame: &Frame, rng: &mut Rng, errors: &mut Vec<u32>) -> Fate {
        let before = errors.len();
        let mut is_lost = false;
        let mut damaged = 0;
        // A stage also gets the frames that an earlier stage lost, because time and bits pass for it as well.
        for stage in &mut self.0 {
            match stage.carry(frame, rng, errors) {
                Fate::Delivered => {}
                Fate::Damaged => damaged += 1,
                Fate::Lost => is_lost = true,
            }
        }
        if is_lost {
            errors.truncate(before);
            return Fate::Lost;
        }
        if damaged > 1 {
            sort_and_merge(errors, before);
        }
        if damaged > 0 { Fate::Damaged } else { Fate::Delivered }
    }

    fn state(&mut self, now: Time) -> ChannelState {
        self.0.iter_mut().map(|stage| stage.state(now)).fold(ChannelState::UP, |all, one| ChannelState {
            up: all.up && one.up,
            cn0_dbhz: all.cn0_dbhz.or(one.cn0_dbhz),
            // Combine the stages whose error rate is known; a bit that two stages flip counts once.
            ber: match (all.ber, one.ber) {
                (Some(a), Some(b)) => Some(a + b - a * b),
                (a, b) => a.or(b),
            },
        })
    }

    fn next_change(&mut self, now: Time) -> Time {
        self.0.iter_mut().map(|stage| stage.next_change(now)).fold(Time::NEVER, Time::min)
    }
}

/// Sorts the positions from index `from` on and keeps each once.
fn sort_and_merge(errors: &mut Vec<u32>, from: usize) {
    errors[from..].sort_unstable();
    let mut kept = from;
    for i in from..errors.len() {
        if kept == from || errors[kept - 1] != errors[i] {
            errors[kept] = errors[i];
            kept += 1;
        }
    }
    errors.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_leaves_earlier_entries_alone() {
        let mut errors = vec![9, 9, 1, 5, 7, 1, 2, 7];
        sort_and_merge(&mut errors, 2);
        assert_eq!(errors, [9, 9, 1, 2, 5, 7]);
    }
}
