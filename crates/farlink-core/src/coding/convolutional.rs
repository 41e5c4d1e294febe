//! Convolutional codes with Viterbi decoding.

use farlink_fec::convolutional::{CONSTRAINT_LENGTHS, Code, CodeError, Puncturing, PuncturingError};
use farlink_fec::scheme;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CodeConfig;
use crate::ConfigError;
use crate::units::Count;

/// A convolutional code, punctured or not, with Viterbi decoding.
///
/// `generators = "171,133"` is the usual code of rate 1/2 and K = 7 (CCSDS 131.0-B, EN 300 421, IEEE 802.11); others: "17,15" (K
/// = 4), "133,145,175" (K = 7, rate 1/3), "4335,5723" (K = 12). Larsen, "Short convolutional codes with maximal free distance for
/// rates 1/2, 1/3, and 1/4", IEEE Transactions on Information Theory 19 (1973). The code is not terminated: it has no tail bits,
/// and the decoder decides on a bit `traceback_bits` later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Convolutional {
    /// Generators in octal with commas between them; the most significant bit belongs to the newest bit of the data.
    pub generators: String,
    /// Constraint length K: the number of data bits that determine a coded bit. Defaults to the length of the longest generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = *CONSTRAINT_LENGTHS.start(), "maximum" = *CONSTRAINT_LENGTHS.end()))]
    pub constraint_length: Option<Count>,
    /// Code rate after puncturing a code of rate 1/2 with the usual pattern: "2/3", "3/4", "5/6" or "7/8". By default the code is
    /// not punctured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// A puncturing pattern, instead of `rate`: a row for each generator, with 1 where its bit is sent, and slashes between rows.
    /// "101/110" is the usual pattern of rate 3/4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub puncture: Option<String>,
    /// Traceback length: how many bits later the decoder decides on a bit. Defaults to 5 K; punctured codes have fewer errors
    /// with more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maximum" = LONGEST_TRACEBACK))]
    pub traceback_bits: Option<Count>,
    /// Which decoder is simulated.
    #[serde(default)]
    pub decoder: Decoder,
}

/// Which Viterbi decoder is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decoder {
    /// Decodes many frames at once. Most bits are decided much later than `traceback_bits`, and soft symbols are rounded to about
    /// 31 levels.
    #[default]
    Parallel,
    /// Decodes bit by bit. Each bit is decided exactly `traceback_bits` later, as in many textbooks and chips. It leaves more
    /// wrong bits (at rate 3/4 with 5 K several times as many), and simulating it takes about fifty times as long.
    Serial,
}

/// Largest traceback length. Longer ones are of no use, and the decoder has to keep this many steps for each of its states.
const LONGEST_TRACEBACK: u64 = 10_000;

impl CodeConfig for Convolutional {
    fn build(&self) -> Result<scheme::Coding, ConfigError> {
        let code = self.code()?;
        let puncturing = self.puncturing(&code)?;
        let traceback = match self.traceback_bits.map(Count::whole) {
            Some(bits) if bits > LONGEST_TRACEBACK => {
                let message = format!("{bits} bits are more than {LONGEST_TRACEBACK}");
                let usual = 5 * code.constraint_length();
                return Err(ConfigError::new(
                    "traceback_bits",
                    message,
                    format!("give about 5 K = {usual}, or leave it out"),
                ));
            }
            traceback => traceback.map(|bits| bits as usize),
        };
        Ok(scheme::Coding::Convolutional(scheme::Convolutional {
            code,
            puncturing,
            traceback,
            decoder: match self.decoder {
                Decoder::Parallel => scheme::DecoderKind::Parallel,
                Decoder::Serial => scheme::DecoderKind::Serial,
            },
        }))
    }
}

impl Convolutional {
    fn code(&self) -> Result<Code, ConfigError> {
        let code = match self.constraint_length.map(Count::whole) {
            None => Code::from_octal(&self.generators),
            Some(k) => Code::from_octal_of_length(k.try_into().unwrap_or(u32::MAX), &self.generators),
        };
        code.map_err(|error| {
            let (key, remedy) = match (&error, self.constraint_length) {
                (CodeError::ConstraintLength(_), Some(_)) => ("constraint_length", "give 3 to 15, or leave it out"),
                (CodeError::ConstraintLength(_), None) => {
                    ("generators", "give generators of 3 to 15 bits: \"171,133\"")
                }
                (CodeError::NotOctal(_) | CodeError::GeneratorCount(_) | CodeError::Zero(_), _) => {
                    ("generators", "write them in octal with commas between them: \"171,133\"")
                }
                (CodeError::Catastrophic { .. }, _) => {
                    ("generators", "take a code of the literature: \"171,133\" for K = 7")
                }
                (_, Some(_)) => {
                    ("generators", "give generators of constraint_length bits, or leave constraint_length out")
                }
                (_, None) => ("generators", "take a code of the literature: \"171,133\" for K = 7"),
            };
            ConfigError::new(key, error, remedy)
        })
    }

    fn puncturing(&self, code: &Code) -> Result<Option<Puncturing>, ConfigError> {
        let outputs = code.outputs();
        let (key, puncturing) = match (&self.rate, &self.puncture) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                let message = "rate and puncture are both given";
                return Err(ConfigError::new("rate", message, "keep one of them; a pattern has its rate"));
            }
            (Some(rate), None) if rate.trim() == format!("1/{outputs}") => return Ok(None),
            (Some(rate), None) => ("rate", Puncturing::usual(rate)),
            (None, Some(pattern)) => ("puncture", pattern.parse()),
        };
        let unfit = |error: PuncturingError| {
            let remedy = match (&error, key) {
                (PuncturingError::Rows { .. }, "rate") => {
                    format!(
                        "leave it out, or give puncture = \"...\": the usual patterns are for 2 generators, not {outputs}"
                    )
                }
                (PuncturingError::TooFew { period, .. }, _) => {
                    format!("send at least {} of them: \"110/101\"", period + 1)
                }
                (PuncturingError::Catastrophic { .. }, _) => "give another pattern, or rate = \"3/4\"".to_owned(),
                (PuncturingError::UnknownRate(_), _) => "give one of these, or puncture = \"...\"".to_owned(),
                _ => format!("give {outputs} rows of 0 and 1 of the same length, slashes between them: \"101/110\""),
            };
            ConfigError::new(key, error, remedy)
        };
        let puncturing = puncturing.map_err(unfit)?;
        puncturing.check(code).map_err(unfit)?;
        Ok(Some(puncturing))
    }
}
