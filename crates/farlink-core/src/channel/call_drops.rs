//! A dialled line, which is down from each drop of its call until it has been dialled again.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outage::Plan;
use super::random_duration::RandomDuration;
use super::{Channel, ChannelConfig, ChannelError, Prepared, Site};
use crate::ConfigError;
use crate::rng::Rng;

/// A dialled line: it is up for a random time until its call drops, and down for another random time until it is connected again.
/// Frames that are in flight when the call drops, or sent while the line is down, are lost.
///
/// Both directions of a hop drop at the same times if both have this channel with the same values. `farlink bundle fit` computes
/// the keys from a log of calls. Zaghloul, section 5.3, reports exponential up times with a mean of 50 minutes for one Iridium
/// modem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallDrops {
    /// How long a call lasts until it drops.
    pub up: RandomDuration,
    /// How long it takes from a drop until the line is up again.
    pub redial: RandomDuration,
}

/// Least median time between drops. It keeps the number of events in proportion to the length of the run.
const SHORTEST_CYCLE_S: f64 = 1e-6;

impl ChannelConfig for CallDrops {
    fn prepare(&self, _site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let CallDrops { up, redial } = *self;
        if up.median_s() + redial.median_s() < SHORTEST_CYCLE_S {
            return Err(ChannelError::Key(ConfigError::new(
                "",
                "more than one drop per microsecond",
                "give up and redial longer times",
            )));
        }
        Ok(Arc::new(Calls(Plan::Calls { up, redial })))
    }
}

#[derive(Debug)]
struct Calls(Plan);

impl Prepared for Calls {
    fn start(&self, rng: &mut Rng) -> Box<dyn Channel> {
        self.0.start(rng)
    }

    fn start_on_hop(&self, _rng: &mut Rng, hop: &Rng) -> Box<dyn Channel> {
        self.0.start(&mut hop.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::ChannelKind;
    use crate::time::Time;
    use crate::trace::MemoryTraces;

    const CALLS: &str = r#"{"kind": "call-drops", "up": {"distribution": "exponential", "mean_s": 3000},
        "redial": {"distribution": "weibull", "shape": 2, "scale_s": 60}}"#;

    fn prepare(json: &str) -> Result<Arc<dyn Prepared>, ChannelError> {
        serde_json::from_str::<ChannelKind>(json).unwrap().prepare(&Site::anywhere(&MemoryTraces::default()))
    }

    #[test]
    fn up_and_down_times_match_their_distributions() {
        let mut channel = prepare(CALLS).unwrap().start(&mut Rng::for_component(1, 0, "calls"));
        let (mut now, mut up_s, mut down_s, mut drops) = (Time::ZERO, 0.0, 0.0, 0);
        while drops < 4000 {
            let is_up = channel.state(now).up;
            let next = channel.next_change(now);
            *(if is_up { &mut up_s } else { &mut down_s }) += next.since(now).as_secs_f64();
            drops += u32::from(is_up);
            now = next;
        }
        // Standard errors 47 s and 0.44 s; four of them. The mean of the redial times is 60 gamma(1.5) s.
        assert!((up_s / 4000.0 - 3000.0).abs() < 190.0, "{}", up_s / 4000.0);
        assert!((down_s / 4000.0 - 53.17).abs() < 1.8, "{}", down_s / 4000.0);
    }

    #[test]
    fn both_directions_of_a_hop_drop_together() {
        let plan = prepare(CALLS).unwrap();
        let hop = Rng::for_component(1, 0, "hop");
        let drops = |name: &str| {
            let mut channel = plan.start_on_hop(&mut Rng::for_component(1, 0, name), &hop);
            let mut at = vec![channel.next_change(Time::ZERO)];
            (0..9).for_each(|last| at.push(channel.next_change(at[last])));
            at
        };
        assert_eq!(drops("forward"), drops("back"));
    }

    #[test]
    fn times_too_short_are_refused() {
        let json = CALLS.replace("3000", "1e-7").replace("60}", "1e-7}");
        assert!(matches!(prepare(&json), Err(ChannelError::Key(_))));
    }
}
