//! Fading of received light: bit errors that follow the short-term bit error rate at each instant.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::varying::{AtEnd, Ready, check_end, from_the_start, lost_above};
use super::{ChannelConfig, ChannelError, Prepared, Site};
use crate::ConfigError;
use crate::optics::{Receiver, ReceiverSetting, gain_for_ber};
use crate::trace::{Offset, Trace, TraceError};
use crate::units::{BitRate, ErrorRate, Seconds};

/// The received optical power varies, and with it the bit error rate. A power trace and a model of the receiver give the
/// short-term bit error rate at each instant, and each bit is wrong with the rate of the instant at which it is sent.
///
/// The power is constant from one sample to the next. If both directions of a hop have the same `file` and `offset_s`, they fade
/// together, even if `offset_s` is "random"; their errors are independent. B. Epple, "Performance optimization of free-space
/// optical communication protocols based on results from FSO demonstrations", section 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fading {
    /// A trace file of kind "power", or `"synthetic:NAME"` for a synthetic one (`farlink trace synthesize --list`).
    pub file: String,
    /// The receiver: its name, or a table of its parameters.
    #[serde(default)]
    pub receiver: ReceiverSetting,
    /// Long-term bit error rate to which the power is scaled: the mean over all samples that are not blocked. By default the
    /// power is used as recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ber: Option<ErrorRate>,
    /// Where in the recording a run starts: in seconds (default 0), or "random" for another place in each run.
    #[serde(default = "from_the_start")]
    pub offset_s: Offset<Seconds>,
    /// What happens in a run that is longer than the recording.
    #[serde(default)]
    pub at_end: AtEnd,
    /// Frames sent at a short-term bit error rate above this are lost, because the receiver does not detect them.
    #[serde(default = "lost_above")]
    pub lost_above_ber: ErrorRate,
}

impl ChannelConfig for Fading {
    fn prepare(&self, site: &Site<'_>) -> Result<Arc<dyn Prepared>, ChannelError> {
        let trace = site.traces.load(&self.file)?;
        let Trace::Power { power_w, blocked, is_relative, duration_s } = &*trace else {
            return Err(TraceError::wrong_kind(&self.file, &trace, "power").into());
        };
        let mut notes = Vec::new();
        check_end(&self.file, self.at_end, self.offset_s, *duration_s, site.duration, &mut notes)?;
        let receiver = self.receiver.receiver();
        notes.extend(self.rate_note(&receiver, site.rate));
        let gain = match self.ber {
            None if *is_relative => {
                return Err(ChannelError::Key(ConfigError::new(
                    "",
                    format!(
                        "the power of {} is relative, without a unit, and there is no ber to scale it to",
                        self.file
                    ),
                    "give ber, the long-term bit error rate, or import the record with its unit",
                )));
            }
            None => 1.0,
            Some(ber) => gain_for_ber(&receiver, power_w, blocked, ber.get()).map_err(|error| {
                ChannelError::Key(ConfigError::new(
                    "",
                    format!("{}: {error}", self.file),
                    "give another ber, or mark what is no part of the channel as blocked \
                             (farlink trace calibrate --help)",
                ))
            })?,
        };
        let ber = |power: &f64| receiver.ber(power * gain);
        let series = power_w.iter().map(ber);
        Ok(Arc::new(Ready::new(series, *duration_s, self.lost_above_ber.get(), self.offset_s, site.rate, notes)))
    }
}

impl Fading {
    /// A note if a receiver is used at another bit rate than the one that its model was made for.
    fn rate_note(&self, receiver: &Receiver, rate: Option<BitRate>) -> Option<String> {
        let (made_for, rate) = (receiver.rate_bps?.get(), rate?.get());
        ((rate / made_for - 1.0).abs() > 0.02).then(|| {
            format!(
                "the receiver model {} holds at {made_for:e} bit/s only, and the link sends at {rate:e} bit/s: its bit \
                 errors are those of a receiver as good at this rate",
                self.receiver
            )
        })
    }
}

#[cfg(test)]
mod tests;
