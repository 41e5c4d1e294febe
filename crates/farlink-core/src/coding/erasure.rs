//! Erasure codes over blocks.

use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, CodeKind, uncoded};
use crate::ConfigError;
use crate::units::Count;

/// An erasure code over blocks of data: it adds `m` parity blocks to each group of `k` data blocks, and any `k` blocks of a group
/// are enough to recover the data.
///
/// Each block carries a CRC-32, and a block that fails it counts as erased. If more than `m` blocks of a group are erased, the
/// damaged data blocks stay damaged. The code is maximum distance separable, a Cauchy matrix over GF(256): Bloemer and others,
/// "An XOR-based erasure-resilient coding scheme", ICSI report 95-048 (1995).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Data blocks in a group; `k` and `m` together are at most 256.
    #[schemars(extend("maximum" = MOST_BLOCKS - 1))]
    pub k: Count,
    /// Parity blocks added to each group.
    #[schemars(extend("maximum" = MOST_BLOCKS - 1))]
    pub m: Count,
    /// Length of a block in bytes, without its CRC-32.
    #[schemars(extend("maximum" = LARGEST_BLOCK))]
    pub block_bytes: Count,
    /// The inner code that the blocks are sent with. Defaults to none.
    #[serde(default = "uncoded")]
    pub over: Box<CodeKind>,
}

const MOST_BLOCKS: u64 = 256;
const LARGEST_BLOCK: u64 = 1 << 16;

fn uncoded() -> Box<CodeKind> {
    Box::new(CodeKind::Uncoded(uncoded::Uncoded {}))
}

impl CodeConfig for Erasure {
    fn build(&self) -> Result<scheme::Coding, ConfigError> {
        let over = self.over.build().map_err(|unfit| unfit.within("over"))?;
        if !matches!(over, scheme::Coding::Uncoded | scheme::Coding::Convolutional(_)) {
            let message = format!("{} cannot carry the blocks of an erasure code", self.over.kind());
            return Err(ConfigError::new("over", message, "give convolutional or uncoded"));
        }
        self.carried_by(over)
    }
}

impl Erasure {
    /// The same code with its blocks sent over an inner code.
    pub(super) fn carried_by(&self, over: scheme::Coding) -> Result<scheme::Coding, ConfigError> {
        let (k, m, block_bytes) = (self.k.whole(), self.m.whole(), self.block_bytes.whole());
        if k + m > MOST_BLOCKS {
            let message = format!("{k} + {m} blocks; a code over GF(256) has at most {MOST_BLOCKS} in a group");
            return Err(ConfigError::new("k", message, "make groups smaller; the protection depends on k : m"));
        }
        if block_bytes > LARGEST_BLOCK {
            let message = format!("{block_bytes} bytes are more than {LARGEST_BLOCK}");
            return Err(ConfigError::new(
                "block_bytes",
                message,
                "make blocks smaller, for example as large as a packet",
            ));
        }
        Ok(scheme::Coding::Erasure {
            data_blocks: k as usize,
            parity_blocks: m as usize,
            block_bytes: block_bytes as usize,
            over: Box::new(over),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_at_most_256_blocks_of_data_and_parity_together() {
        let built = |k: f64, m: f64| {
            let [k, m, block_bytes] = [k, m, 100.0].map(|n| Count::new(n).unwrap());
            Erasure { k, m, block_bytes, over: uncoded() }.build()
        };
        assert!(built(200.0, 56.0).is_ok());
        assert!(built(200.0, 57.0).is_err());
        assert!(built(57.0, 200.0).is_err());
    }
}
