//! Where error events are collected: everything that decides them.

use farlink_fec::{modulation, scheme};
use serde::{Deserialize, Serialize};

use super::{CodeKind, Coding, Decision, Effort, Modulation};
use crate::ConfigError;
use crate::units::EnergyToNoise;

/// Everything that decides the error events at a decoder's output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperatingPoint {
    /// How bits become symbols.
    pub modulation: Modulation,
    /// What the demodulator tells the decoder.
    pub decision: Decision,
    /// Energy per information bit over noise density.
    pub ebn0_db: EnergyToNoise,
    /// The code.
    pub code: CodeKind,
    /// How carefully the events are collected.
    pub effort: Effort,
}

impl OperatingPoint {
    /// The same text for the same point, and for no other one.
    pub fn key(&self) -> String {
        serde_json::to_string(self).expect("a point has only text as keys")
    }

    /// Modulation, decisions and code, ready to be simulated.
    ///
    /// # Errors
    /// If there is no such code, or the parts do not fit each other.
    pub fn scheme(&self) -> Result<scheme::Scheme, ConfigError> {
        let code = self.code.build().map_err(|unfit| unfit.within("code"))?;
        scheme::Scheme::new(code, self.modulation.into(), self.decision.into())
            .map_err(|error| ConfigError::new("code", error, "change the code, the modulation or the decision"))
    }
}

impl Coding {
    /// Where it works at a given Eb/N0.
    ///
    /// # Errors
    /// If there is no such code, or the parts do not fit each other.
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

/// Why there are no error events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// Nobody collects any here: a scenario is only being checked.
    #[error("no error events are collected here")]
    NotCollected,
    /// It was asked to stop before they were complete.
    #[error("stopped before the error events were complete")]
    Stopped,
    /// They cannot be collected.
    #[error("{message}")]
    Impossible {
        /// Why.
        message: String,
        /// How to mend it.
        remedy: String,
    },
}
