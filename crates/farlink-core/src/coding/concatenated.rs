//! An outer code around an inner one.

use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, CodeKind, Unfit};

/// Two codes: the outer one mends the bursts that the inner one leaves behind.
///
/// Usual: Reed-Solomon (255, 223), interleaved, around the convolutional code of K = 7. Forney, "Concatenated Codes", MIT
/// Press (1966); CCSDS 131.0-B.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concatenated {
    /// The code that the data meet first, `reed-solomon`.
    pub outer: Box<CodeKind>,
    /// The code next to the channel, `convolutional`.
    pub inner: Box<CodeKind>,
}

impl CodeConfig for Concatenated {
    fn build(&self) -> Result<scheme::Coding, Unfit> {
        let _outer = self.outer.build().map_err(|unfit| unfit.within("outer"))?;
        let _inner = self.inner.build().map_err(|unfit| unfit.within("inner"))?;
        todo!()
    }
}
