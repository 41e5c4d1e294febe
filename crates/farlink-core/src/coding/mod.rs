//! The keys of a scenario that describe a link's modulation and coding.
//!
//! A code is one file and one line in `codes!`. This module decodes nothing: [`Coding::at`] gives an [`OperatingPoint`], and a
//! [`TraceSource`](crate::trace::TraceSource) provides the error events of a decoder at that point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::scenario::read::read;
use crate::units::{CarrierToNoise, Count, CountToMillion, EnergyToNoise, Whole};

pub mod concatenated;
pub mod convolutional;
pub mod erasure;
pub mod measured;
mod point;
pub mod reed_solomon;
pub mod uncoded;

pub use point::{EventsError, OperatingPoint};

/// The bits of a link pass through a modulation, noise, a demodulator and a code's decoder. The residual errors of the decoder
/// come in bursts.
///
/// The noise is white and Gaussian. The code protects the stream of bits, not each packet: a burst may begin in one packet and
/// end in the next one. The error events come from a decoder of the code: they are collected once, kept on disk, and replayed in
/// random order with a random number of correct bits between them. A run starts at a random position. `rate_bps` is the
/// information rate that packets see: a code of rate 1/2 sends twice as many bits over the channel, but the channel's bit rate is
/// not a key of the scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coding {
    /// Modulation, with Gray labelling.
    #[serde(default)]
    pub modulation: Modulation,
    /// What the demodulator hands to the decoder.
    #[serde(default)]
    pub decision: Decision,
    /// Energy per information bit over noise density, Eb/N0, in dB. Give this or `cn0_dbhz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebn0_db: Option<EnergyToNoise>,
    /// Carrier power over noise density, C/N0, in dBHz, instead of `ebn0_db`. Only for links of constant rate, because Eb/N0 =
    /// C/N0 - 10 log10(`rate_bps`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cn0_dbhz: Option<CarrierToNoise>,
    /// The code.
    pub code: CodeKind,
    /// How wrong bits are distributed.
    #[serde(default)]
    pub errors: Errors,
    /// How many error events are collected.
    #[serde(default)]
    pub effort: Effort,
}

impl Coding {
    /// Reads a table of these keys from JSON text.
    ///
    /// # Errors
    /// If the text is not JSON, or the value of a key is not allowed.
    pub fn from_json(text: &str) -> Result<Coding, ConfigError> {
        Ok(read(&crate::scenario::from_json(text)?)?)
    }
}

/// A modulation, with Gray labelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Modulation {
    /// Binary phase-shift keying, 1 bit per symbol.
    #[default]
    #[serde(rename = "bpsk")]
    Bpsk,
    /// Quaternary phase-shift keying, 2 bits per symbol. At the same Eb/N0 its bit error rate is that of `bpsk`.
    #[serde(rename = "qpsk")]
    Qpsk,
    /// Phase-shift keying with 8 phases, 3 bits per symbol.
    #[serde(rename = "8psk")]
    Psk8,
    /// Quadrature amplitude modulation with 16 points, 4 bits per symbol.
    #[serde(rename = "16qam")]
    Qam16,
}

/// What the demodulator hands to the decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Soft decisions: the reliability of each bit, in 8 bits.
    #[default]
    Soft,
    /// Hard decisions: one bit.
    Hard,
}

/// How wrong bits are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Errors {
    /// In the bursts of the decoder.
    #[default]
    Bursts,
    /// Independently of each other at the same bit error rate, for comparison.
    Independent,
}

/// How many error events are collected. More events take longer to collect, but only once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Effort {
    /// Error events to collect; the error rate is then known to about 1 / sqrt(`events`) of its value.
    pub events: CountToMillion,
    /// Largest number of bits to decode, even if there are too few events by then.
    pub max_bits: Count,
    /// Seed of the noise and the data.
    pub seed: Whole,
}

impl Default for Effort {
    fn default() -> Self {
        const RANGE: &str = "a constant within its range";
        Effort {
            events: CountToMillion::new(2000.0).expect(RANGE),
            max_bits: Count::new(1e9).expect(RANGE),
            seed: Whole::new(1.0).expect(RANGE),
        }
    }
}

/// The configuration of a code in a scenario.
pub trait CodeConfig {
    /// The code.
    ///
    /// # Errors
    /// If no code has these parameters.
    fn build(&self) -> Result<farlink_fec::scheme::Coding, ConfigError>;
}

crate::registry::registry! {
    /// A code, by its `kind`.
    codes: CodeKind as CodeConfig {
        Uncoded = "uncoded" => uncoded::Uncoded,
        Convolutional = "convolutional" => convolutional::Convolutional,
        ReedSolomon = "reed-solomon" => reed_solomon::ReedSolomon,
        Concatenated = "concatenated" => concatenated::Concatenated,
        Erasure = "erasure" => erasure::Erasure,
        Measured = "measured" => measured::Measured,
    }
}

impl CodeKind {
    /// Builds the code; see [`CodeConfig::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self) -> Result<farlink_fec::scheme::Coding, ConfigError> {
        self.as_dyn().build()
    }
}
