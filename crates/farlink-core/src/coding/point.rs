//! Where error events are collected: everything that decides them.

use serde::{Deserialize, Serialize};

use super::{CodeKind, Coding, Decision, Effort, Modulation, Unfit};
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
}

impl Coding {
    /// Where it works at a given Eb/N0.
    ///
    /// # Errors
    /// If its code does not exist.
    pub fn at(&self, ebn0_db: EnergyToNoise) -> Result<OperatingPoint, Unfit> {
        self.code.build().map_err(|unfit| unfit.within("code"))?;
        let Coding { modulation, decision, ref code, effort, .. } = *self;
        Ok(OperatingPoint { modulation, decision, ebn0_db, code: code.clone(), effort })
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
