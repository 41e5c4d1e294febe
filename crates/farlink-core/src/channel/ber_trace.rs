//! A recorded bit error rate.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::varying::{AtEnd, Ready, check_end, from_the_start, lost_above};
use super::{ChannelConfig, ChannelError, Prepared, Site};
use crate::trace::{Offset, Trace, TraceError};
use crate::units::{ErrorRate, Seconds};

/// The bit error rate varies as recorded: each bit is wrong with the rate of the instant at which it is sent, independently of
/// other bits. An example is the residual error rate of an adaptive modem during rain (`farlink trace adapt`).
///
/// If both directions of a hop have the same `file` and `offset_s`, they vary together, even if `offset_s` is "random"; their
/// errors are independent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BerTrace {
    /// A trace file of kind "ber".
    pub file: String,
    /// Where in the recording a run starts: in seconds (default 0), or "random" for another place in each run.
    #[serde(default = "from_the_start")]
    pub offset_s: Offset<Seconds>,
    /// What happens in a run that is longer than the recording.
    #[serde(default)]
    pub at_end: AtEnd,
    /// Frames sent at a bit error rate above this are lost, because the receiver does not detect them.
    #[serde(default = "lost_above")]
    pub lost_above_ber: ErrorRate,
}

impl ChannelConfig for BerTrace {
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let trace = site.traces.load(&self.file)?;
        let Trace::BitErrorRate { ber, duration_s } = &*trace else {
            return Err(TraceError::wrong_kind(&self.file, &trace, "ber").into());
        };
        let mut notes = Vec::new();
        check_end(&self.file, self.at_end, self.offset_s, *duration_s, site.duration, &mut notes)?;
        let series = ber.iter().copied();
        Ok(Arc::new(Ready::new(series, *duration_s, self.lost_above_ber.get(), self.offset_s, site.rate, notes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Fate, Frame};
    use crate::rng::Rng;
    use crate::time::Time;
    use crate::trace::MemoryTraces;

    /// Without errors for a second, then every fourth frame of 1000 bits is damaged, then all frames are lost for a second.
    #[test]
    fn errors_follow_the_recording() {
        let ber = vec![0.0, 1.0 - libm::pow(0.75, 1e-3), 0.2];
        let traces = MemoryTraces::default().with("ber", Trace::BitErrorRate { ber, duration_s: 3.0 });
        let config: BerTrace = serde_json::from_str(r#"{"file": "ber"}"#).unwrap();
        for rate in [None, Some(crate::units::BitRate::new(1e7).unwrap())] {
            let prepared = config.prepare(&Site { traces: &traces, rate, duration: None }).unwrap();
            let mut rng = Rng::for_component(1, 0, "ber");
            let mut channel = prepared.start(&mut rng);
            let mut counts = [[0_u32; 3]; 3];
            for number in 0..30_000 {
                let start = Time::from_ps(100_000_000 * number);
                let frame =
                    Frame { start, end: start + Time::from_ps(100_000_000), bits: 1000, setting: Default::default() };
                let fate = match channel.carry(&frame, &mut rng, &mut Vec::new()) {
                    Fate::Delivered => 0,
                    Fate::Damaged => 1,
                    Fate::Lost => 2,
                };
                counts[(number / 10_000) as usize][fate] += 1;
            }
            assert_eq!((counts[0], counts[2]), ([10_000, 0, 0], [0, 0, 10_000]));
            // 2500 are expected, with a standard deviation of 43.
            assert!(counts[1][2] == 0 && counts[1][1].abs_diff(2500) < 190, "{counts:?}");
        }
    }

    #[test]
    fn other_kinds_of_traces_are_refused() {
        let traces = MemoryTraces::default().with("lost", Trace::PacketLoss { lost: vec![true] });
        let config: BerTrace = serde_json::from_str(r#"{"file": "lost"}"#).unwrap();
        let error = config.prepare(&Site { traces: &traces, rate: None, duration: None }).unwrap_err();
        assert!(error.to_string().contains("packet-loss") && error.to_string().contains("ber"), "{error}");
    }
}
