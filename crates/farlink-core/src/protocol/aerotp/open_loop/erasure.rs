//! Erasure coding across packets: its keys in a scenario, and its residual loss.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::{Count, PositiveSeconds};

/// Largest number of packets of a block, a limit of the code over GF(256).
const MOST_SYMBOLS: u64 = 256;

/// Repair packets for blocks of packets: any lost packets of a block can be recovered from as many repair packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Number of data packets in a block.
    #[schemars(extend("maximum" = MOST_SYMBOLS - 1))]
    pub source: Count,
    /// Number of repair packets after them; data and repair packets together are at most 256.
    #[schemars(extend("maximum" = MOST_SYMBOLS - 1))]
    pub repair: Count,
    /// Time after which a block that is not full is closed, in seconds. It gets repair packets in proportion to its length.
    #[serde(default = "default_timeout")]
    pub timeout_s: PositiveSeconds,
}

fn default_timeout() -> PositiveSeconds {
    PositiveSeconds::new(0.1).expect("a constant within its range")
}

impl Erasure {
    pub(in super::super) fn check(&self) -> Result<(), ConfigError> {
        let symbols = self.source.whole() + self.repair.whole();
        if symbols <= MOST_SYMBOLS {
            return Ok(());
        }
        let what = format!("{symbols} packets in a block are more than the code has");
        Err(ConfigError::new("erasure", what, format!("give at most {MOST_SYMBOLS} for source and repair together")))
    }

    /// Residual loss of data packets if packets are lost independently with probability `loss`: the lost packets of blocks that
    /// lose more packets than they have repair packets.
    ///
    /// A data packet stays lost if it is lost together with at least as many others of its block as there are repair packets.
    pub fn residual_loss(&self, loss: f64) -> f64 {
        let (source, repair) = (self.source.whole() as u32, self.repair.whole() as u32);
        loss * super::strength::binomial_tail(source + repair - 1, repair - 1, loss)
    }
}
