//! The keys of the coded reliable mode in a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::{Count, Fraction, Probability};

use super::super::loss::WORST_LOSS;
use super::MOST_SYMBOLS;

/// Coded blocks: instead of retransmitting lost packets, the reliable modes send repair symbols of a fountain code (RaptorQ, RFC
/// 6330).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Coded {
    /// Data packets in a block, which are coded together. Fewer if a quarter of `receive_buffer_bytes` is smaller than that.
    #[schemars(extend("maximum" = MOST_SYMBOLS))]
    pub block_symbols: Count,
    /// Probability that the symbols sent for a block complete it. While more data waits, only half of the blocks have to be
    /// complete.
    #[schemars(extend("maximum" = MOST_CERTAIN))]
    pub completion: Fraction,
    /// Assumed loss rate of packets before the first answer; the measured rate replaces it.
    #[schemars(extend("maximum" = WORST_LOSS))]
    pub expected_loss: Probability,
}

impl Default for Coded {
    fn default() -> Self {
        Coded {
            block_symbols: Count::new(1000.0).expect("a constant within its range"),
            completion: Fraction::new(0.95).expect("a constant within its range"),
            expected_loss: Probability::new(0.01).expect("a constant within its range"),
        }
    }
}

/// Largest completion probability: above it the additional symbols of a block cost more than another round trip.
const MOST_CERTAIN: f64 = 0.9999;

impl Coded {
    /// Checks the rules between keys that the types of single keys cannot express; paths are relative to its table.
    pub(in super::super) fn check(&self) -> Result<(), ConfigError> {
        if self.block_symbols.whole() > MOST_SYMBOLS {
            let what = format!("{} packets are not coded together", self.block_symbols.get());
            return Err(ConfigError::new("block_symbols", what, format!("give at most {MOST_SYMBOLS}")));
        }
        if self.completion.get() > MOST_CERTAIN {
            let what = format!("{} asks for more packets than another round trip costs", self.completion.get());
            return Err(ConfigError::new("completion", what, format!("give at most {MOST_CERTAIN}")));
        }
        if self.expected_loss.get() > WORST_LOSS {
            let what = format!("with {} lost, nothing is worth sending", self.expected_loss.get());
            return Err(ConfigError::new("expected_loss", what, format!("give at most {WORST_LOSS}")));
        }
        Ok(())
    }
}
