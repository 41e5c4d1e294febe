//! What a scenario says about a link's modulation and coding.
//!
//! A code is one file and one line in `codes!`. Nothing is decoded here: [`Coding::at`] names an [`OperatingPoint`], and a
//! [`TraceSource`](crate::trace::TraceSource) gives the error events that a decoder leaves behind there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::scenario::read::read;
use crate::units::{CarrierToNoise, Count, CountToMillion, EnergyToNoise, Whole};

pub mod concatenated;
pub mod convolutional;
pub mod erasure;
mod point;
pub mod reed_solomon;
pub mod uncoded;

pub use point::{EventsError, OperatingPoint};

/// The bits of a link pass through a modulation, noise, a demodulator and a code's decoder; what the decoder leaves wrong
/// comes in bursts.
///
/// The noise is white and Gaussian. The code protects the stream of bits, not each packet: a burst may begin in one packet
/// and end in the next one. The events that are played are those that a decoder of the code really made: they are collected
/// once, kept on disk, and drawn at random, with a random number of right bits between them; a run starts anywhere in them.
/// `rate_bps` stays the information rate that packets see: a code of rate 1/2 sends twice as many bits over the channel,
/// whose rate appears nowhere in the scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coding {
    /// How bits become symbols, Gray-labelled.
    #[serde(default)]
    pub modulation: Modulation,
    /// What the demodulator tells the decoder.
    #[serde(default)]
    pub decision: Decision,
    /// Energy per information bit over noise density, in dB (this or `cn0_dbhz`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebn0_db: Option<EnergyToNoise>,
    /// Carrier power over noise density, in dBHz, instead of `ebn0_db` and only on a link of constant rate: Eb/N0 = C/N0 - 10
    /// log10(`rate_bps`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cn0_dbhz: Option<CarrierToNoise>,
    /// The code.
    pub code: CodeKind,
    /// How the wrong bits lie.
    #[serde(default)]
    pub errors: Errors,
    /// How carefully the error events are collected.
    #[serde(default)]
    pub effort: Effort,
}

impl Coding {
    /// Reads a table of these keys from JSON text.
    ///
    /// # Errors
    /// If it is not JSON, or a key does not fit.
    pub fn from_json(text: &str) -> Result<Coding, ConfigError> {
        Ok(read(&crate::scenario::from_json(text)?)?)
    }
}

/// How bits become symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Modulation {
    /// Binary phase-shift keying, 1 bit a symbol.
    #[default]
    #[serde(rename = "bpsk")]
    Bpsk,
    /// Quaternary phase-shift keying, 2 bits a symbol; as good as `bpsk` at the same Eb/N0.
    #[serde(rename = "qpsk")]
    Qpsk,
    /// Phase-shift keying with 8 phases, 3 bits a symbol.
    #[serde(rename = "8psk")]
    Psk8,
    /// Quadrature amplitude modulation with 16 points, 4 bits a symbol.
    #[serde(rename = "16qam")]
    Qam16,
}

/// What the demodulator hands to the decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// How sure it is of each bit, in 8 bits.
    #[default]
    Soft,
    /// One bit.
    Hard,
}

/// How the wrong bits lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Errors {
    /// In the bursts that the decoder makes.
    #[default]
    Bursts,
    /// Independent of each other with the same bit error rate, for comparison.
    Independent,
}

/// How carefully error events are collected: more of them take longer, once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Effort {
    /// Error events to collect; the error rate is then known to about 1 / sqrt(`events`) of its value.
    pub events: CountToMillion,
    /// Bits to decode at most, whether there are enough events by then or not.
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

/// What a scenario says about a code.
pub trait CodeConfig {
    /// The code.
    ///
    /// # Errors
    /// If there is no such code.
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
    }
}

impl CodeKind {
    /// See [`CodeConfig::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self) -> Result<farlink_fec::scheme::Coding, ConfigError> {
        self.as_dyn().build()
    }
}
