//! Erasure coding across packets: what a scenario says about it, and its residual loss.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::units::{Count, PositiveSeconds};

/// Packets of a block, at most: what the code over GF(256) has.
const MOST_SYMBOLS: u64 = 256;

/// Repair packets for blocks of packets: any that are lost are replaced by as many repair packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Packets with data in a block.
    #[schemars(extend("maximum" = MOST_SYMBOLS - 1))]
    pub source: Count,
    /// Repair packets behind them; with those at most 256.
    #[schemars(extend("maximum" = MOST_SYMBOLS - 1))]
    pub repair: Count,
    /// A block that has not been filled in so long is closed, with repair packets in proportion.
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

    /// Share of the packets with data that stay lost, if each packet is with probability `loss`, independently: those that
    /// are lost in blocks that lose more than they have repair packets.
    ///
    /// A packet is lost, and at least as many of the others of its block as there are repair packets.
    pub fn residual_loss(&self, loss: f64) -> f64 {
        let (source, repair) = (self.source.whole() as u32, self.repair.whole() as u32);
        loss * super::strength::binomial_tail(source + repair - 1, repair - 1, loss)
    }
}
