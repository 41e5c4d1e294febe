//! An outer code around an inner one.

use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, CodeKind};
use crate::ConfigError;

/// Two codes: the outer code corrects the bursts of errors that the decoder of the inner code leaves.
///
/// The usual pair is Reed-Solomon (255, 223), interleaved, around the convolutional code of K = 7. Forney, "Concatenated Codes",
/// MIT Press (1966); CCSDS 131.0-B.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Concatenated {
    /// The code that is applied first when encoding: `reed-solomon` or `erasure`.
    pub outer: Box<CodeKind>,
    /// The code next to the channel: `convolutional`.
    pub inner: Box<CodeKind>,
}

impl CodeConfig for Concatenated {
    fn build(&self) -> Result<scheme::Coding, ConfigError> {
        let inner = match self.inner.build().map_err(|unfit| unfit.within("inner"))? {
            scheme::Coding::Convolutional(inner) => inner,
            _ => {
                let message = format!("{} cannot be an inner code", self.inner.kind());
                return Err(ConfigError::new("inner", message, "give convolutional"));
            }
        };
        let whole = match &*self.outer {
            CodeKind::ReedSolomon(outer) => outer.code().map(|outer| scheme::Coding::Concatenated { outer, inner }),
            CodeKind::Erasure(outer) if matches!(*outer.over, CodeKind::Uncoded(_)) => {
                outer.carried_by(scheme::Coding::Convolutional(inner))
            }
            CodeKind::Erasure(_) => {
                let message = "the inner code is given twice";
                return Err(ConfigError::new("outer.over", message, "leave it out, or give the erasure code alone"));
            }
            other => {
                let message = format!("{} cannot be an outer code", other.kind());
                return Err(ConfigError::new("outer", message, "give reed-solomon or erasure"));
            }
        };
        whole.map_err(|unfit| unfit.within("outer"))
    }
}
