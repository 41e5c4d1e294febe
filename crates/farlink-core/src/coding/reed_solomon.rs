//! Reed-Solomon codes.

use farlink_fec::reed_solomon::Code;
use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CodeConfig;
use crate::ConfigError;
use crate::units::Count;

/// A Reed-Solomon code over bytes: n - k bytes of parity correct up to (n - k) / 2 wrong bytes of a codeword.
///
/// Reed and Solomon, "Polynomial codes over certain finite fields", Journal of SIAM 8 (1960). If a decoder finds more wrong bytes
/// than it can correct, it hands out the data as received. Codewords shorter than 255 bytes are shortened ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReedSolomon {
    /// Length of a codeword, in bytes.
    #[schemars(extend("maximum" = LONGEST_CODEWORD))]
    pub n: Count,
    /// Bytes of data in a codeword, less than `n`.
    #[schemars(extend("maximum" = LONGEST_CODEWORD - 1))]
    pub k: Count,
    /// How field elements are written as bytes. This does not change how many errors are corrected.
    #[serde(default)]
    pub basis: Basis,
    /// Interleaving depth: the number of codewords that are sent alternately, byte by byte, so that a burst of errors is spread
    /// over them.
    #[serde(default = "one")]
    #[schemars(extend("maximum" = DEEPEST))]
    pub interleaving: Count,
}

/// How the elements of GF(256) are written as bytes, and the generator polynomial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// As polynomials, field polynomial 0x11d and first root alpha^0 (EN 300 421).
    #[default]
    Conventional,
    /// Berlekamp's dual basis (CCSDS 131.0-B, section 4.3); n - k is 32 or 16.
    Ccsds,
}

/// Longest codeword over GF(256), in bytes.
const LONGEST_CODEWORD: u64 = 255;
/// Largest interleaving depth.
const DEEPEST: u64 = 64;

fn one() -> Count {
    Count::new(1.0).expect("a constant within its range")
}

impl CodeConfig for ReedSolomon {
    fn build(&self) -> Result<scheme::Coding, ConfigError> {
        Ok(scheme::Coding::ReedSolomon(self.code()?))
    }
}

impl ReedSolomon {
    /// The code and its interleaving.
    pub(super) fn code(&self) -> Result<scheme::ReedSolomon, ConfigError> {
        let (n, k, interleaving) = (self.n.whole(), self.k.whole(), self.interleaving.whole());
        if n > LONGEST_CODEWORD {
            let message = format!("{n} bytes; a codeword over GF(256) has at most {LONGEST_CODEWORD}");
            return Err(ConfigError::new("n", message, "give 255 or less: n = 255, k = 223 corrects 16 wrong bytes"));
        }
        if k >= n {
            let message = format!("{k} bytes of data leave no parity in a codeword of n = {n}");
            return Err(ConfigError::new(
                "k",
                message,
                format!("give less than {n}: each wrong byte takes 2 bytes of parity"),
            ));
        }
        if interleaving > DEEPEST {
            let message = format!("{interleaving} codewords are more than {DEEPEST}");
            return Err(ConfigError::new("interleaving", message, "give 1 to 64; CCSDS has 1, 2, 3, 4, 5 and 8"));
        }
        let (n, k) = (n as usize, k as usize);
        let code = match self.basis {
            Basis::Conventional => Code::conventional(n, k),
            Basis::Ccsds => Code::ccsds(n, k, farlink_fec::reed_solomon::Basis::Dual),
        };
        let code =
            code.map_err(|error| ConfigError::new("k", error, "give n - k = 32 or 16, or basis = \"conventional\""))?;
        Ok(scheme::ReedSolomon { code, depth: interleaving as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_64_codewords_take_turns() {
        let built = |interleaving: f64| {
            let [n, k, interleaving] = [255.0, 223.0, interleaving].map(|n| Count::new(n).unwrap());
            ReedSolomon { n, k, basis: Basis::default(), interleaving }.code()
        };
        assert!(built(64.0).is_ok());
        assert!(built(65.0).is_err());
    }
}
