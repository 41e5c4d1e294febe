//! The configuration of CUBIC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Factor, Fraction};

/// CUBIC's constants (RFC 9438, section 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CubicConfig {
    /// Share of the window that remains after a loss (RFC 9438, section 4.6).
    pub beta: Fraction,
    /// How fast the curve rises, in segments per cubic second (RFC 9438, section 5.1).
    pub c: Factor,
    /// After a loss below the window of the previous loss, aim at a smaller window, which leaves room for new flows (RFC 9438,
    /// section 4.7).
    pub fast_convergence: bool,
    /// Let the window grow at least as fast as Reno's (RFC 9438, section 4.3).
    pub reno_friendly: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        CubicConfig {
            //= https://www.rfc-editor.org/rfc/rfc9438#section-4.6
            //# Parameter beta_cubic SHOULD be set to 0.7
            beta: Fraction::new(0.7).expect("a constant within its range"),
            //= https://www.rfc-editor.org/rfc/rfc9438#section-5.1
            //# Therefore, C SHOULD be set to 0.4.
            c: Factor::new(0.4).expect("a constant within its range"),
            fast_convergence: true,
            reno_friendly: true,
        }
    }
}
