//! Convolutional codes with Viterbi decoding.

use farlink_fec::convolutional::Code;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CodeConfig, Unfit, built::Built};
use crate::units::Count;

/// A convolutional code, punctured or not, with Viterbi decoding.
///
/// `generators = "171,133"` is the usual code of rate 1/2 and constraint length 7 (CCSDS 131.0-B, DVB-S, IEEE 802.11).
/// Usual other ones: "17,15" (K = 4), "133,171,165" (K = 7, rate 1/3), "4335,5723" (K = 12); for distances see Proakis,
/// "Digital Communications", tables 8.2-1 to 8.2-3. A stream without an end is decoded: no tail bits, and the decoder
/// decides on a bit `traceback_bits` later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Convolutional {
    /// Generators in octal with commas between them, the highest bit for the newest bit of the data: "171,133".
    pub generators: String,
    /// Constraint length K: how many bits of the data decide an output bit; as long as the longest generator unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint_length: Option<Count>,
    /// Rate after puncturing with the usual pattern: "2/3", "3/4", "5/6" or "7/8" of a code of rate 1/2; one over the number
    /// of generators, without puncturing, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Own puncturing pattern instead of `rate`: for each generator which of its bits are sent, 1 or 0, over and over; with
    /// slashes between generators: "110/101" makes rate 3/4 of a code of rate 1/2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub puncture: Option<String>,
    /// How many bits later the decoder decides on a bit; 5 K unless given, and more for punctured codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceback_bits: Option<Count>,
}

impl CodeConfig for Convolutional {
    fn build(&self) -> Result<Built, Unfit> {
        let generators = generators(&self.generators)?;
        let longest = generators.iter().map(|g| u32::BITS - g.leading_zeros()).max().unwrap_or(0);
        let k = self.constraint_length.map_or(longest, |k| k.whole().min(u64::from(u32::MAX)) as u32);
        Code::new(k, &generators).map_err(|error| Unfit::new("generators", error, ""))?;
        Ok(Built::Convolutional)
    }
}

fn generators(text: &str) -> Result<Vec<u32>, Unfit> {
    const REMEDY: &str = "write them in octal with commas between them: \"171,133\"";
    let one = |text: &str| {
        u32::from_str_radix(text.trim(), 8)
            .map_err(|_| Unfit::new("generators", format!("{:?} is no octal number", text.trim()), REMEDY))
    };
    text.split(',').map(one).collect()
}
