//! Operating points, at which error events are collected.

use farlink_fec::{modulation, scheme};
use serde::{Deserialize, Serialize};

use super::{CodeKind, Coding, Decision, Effort, Modulation};
use crate::ConfigError;
use crate::units::EnergyToNoise;

/// All parameters that determine the error events at a decoder's output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperatingPoint {
    /// Modulation, with Gray labelling.
    pub modulation: Modulation,
    /// What the demodulator hands to the decoder.
    pub decision: Decision,
    /// Energy per information bit over noise density.
    pub ebn0_db: EnergyToNoise,
    /// The code.
    pub code: CodeKind,
    /// How many events are collected.
    pub effort: Effort,
}

impl OperatingPoint {
    /// A text that identifies the point: equal points have equal texts, and different points different ones.
    pub fn key(&self) -> String {
        serde_json::to_string(self).expect("a point has only text as keys")
    }

    /// Modulation, decisions and code, in the form that the simulation of codes takes.
    ///
    /// # Errors
    /// If no code has these parameters, or code, modulation and decision cannot be combined.
    pub fn scheme(&self) -> Result<scheme::Scheme, ConfigError> {
        let code = self.code.build().map_err(|unfit| unfit.within("code"))?;
        scheme::Scheme::new(code, self.modulation.into(), self.decision.into())
            .map_err(|error| ConfigError::new("code", error, "change the code, the modulation or the decision"))
    }
}

impl Coding {
    /// The operating point at a given Eb/N0.
    ///
    /// # Errors
    /// If no code has these parameters, or code, modulation and decision cannot be combined.
    pub fn at(&self, ebn0_db: EnergyToNoise) -> Result<OperatingPoint, ConfigError> {
        let Coding { modulation, decision, ref code, effort, .. } = *self;
        let point = OperatingPoint { modulation, decision, ebn0_db, code: code.clone(), effort };
        point.scheme()?;
        Ok(point)
    }
}

impl From<Modulation> for modulation::Modulation {
    fn from(modulation: Modulation) -> Self {
        match modulation {
            Modulation::Bpsk => modulation::Modulation::Bpsk,
            Modulation::Qpsk => modulation::Modulation::Qpsk,
            Modulation::Psk8 => modulation::Modulation::Psk8,
            Modulation::Qam16 => modulation::Modulation::Qam16,
        }
    }
}

impl From<Decision> for modulation::Decision {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Soft => modulation::Decision::Soft,
            Decision::Hard => modulation::Decision::Hard,
        }
    }
}

/// Why error events are not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// None are collected, because the scenario is only checked.
    #[error("no error events are collected here")]
    NotCollected,
    /// The user stopped the collection before it was complete.
    #[error("stopped before the error events were complete")]
    Stopped,
    /// They cannot be collected.
    #[error("{message}")]
    Impossible {
        /// Why.
        message: String,
        /// What to do about it.
        remedy: String,
    },
}
