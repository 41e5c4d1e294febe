//! Erasure codes over blocks.

use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, CodeKind, Unfit, uncoded};
use crate::units::Count;

/// An erasure code over blocks of data: to each `k` blocks it adds `m`, and any `k` of all of them give back the data.
///
/// Each block carries a check that finds it damaged, and is then left out. If more than `m` blocks of a group are damaged, the
/// damaged data blocks stay as they are. The code is maximum distance separable (a Cauchy matrix over GF(256)).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Blocks of data in a group.
    pub k: Count,
    /// Blocks of parity added to them.
    pub m: Count,
    /// Bytes of a block.
    pub block_bytes: Count,
    /// The code that the blocks are sent with; none unless given.
    #[serde(default = "uncoded")]
    pub over: Box<CodeKind>,
}

fn uncoded() -> Box<CodeKind> {
    Box::new(CodeKind::Uncoded(uncoded::Uncoded {}))
}

impl CodeConfig for Erasure {
    fn build(&self) -> Result<scheme::Coding, Unfit> {
        let _over = self.over.build().map_err(|unfit| unfit.within("over"))?;
        todo!()
    }
}
