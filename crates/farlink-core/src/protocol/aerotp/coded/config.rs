//! What a scenario says about the coded reliable mode.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::{Count, Fraction, Probability};

use super::super::loss::WORST_LOSS;
use super::MOST_SYMBOLS;

/// Repair instead of repetition: the reliable modes send symbols of a fountain code (RaptorQ, RFC 6330) for what was lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Coded {
    /// Packets of data that are coded together; fewer if a quarter of `receive_buffer_bytes` holds no more.
    #[schemars(extend("maximum" = MOST_SYMBOLS))]
    pub block_symbols: Count,
    /// With this probability, what goes out completes a block; while more data waits, half of the blocks may want more.
    #[schemars(extend("maximum" = MOST_CERTAIN))]
    pub completion: Fraction,
    /// Share of packets that is taken for lost before any answer; the measured loss replaces it.
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

/// Nearer to certainty, a block costs more than another round trip.
const MOST_CERTAIN: f64 = 0.9999;

impl Coded {
    /// Checks what the types cannot; paths are relative to its table.
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
