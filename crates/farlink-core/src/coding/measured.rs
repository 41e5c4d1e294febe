//! A code that is known by measured points, such as a turbo or an LDPC code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CodeConfig;
use crate::ConfigError;
use crate::units::{Count, EnergyToNoise, Probability};

/// Share of the bits of a failed block that are wrong, unless it is given.
const USUAL_WRONG_SHARE: f64 = 0.1;
/// Longest block.
const LONGEST_BLOCK: u64 = 1_000_000;
/// Largest number of points.
const MOST_POINTS: usize = 10_000;

/// A block code, for instance a turbo or an LDPC code, by measured points: Eb/N0 and the share of its blocks that fail.
///
/// Blocks follow each other in the stream of bits, without regard to packets, and fail independently of each other. No decoder
/// runs. `modulation`, `decision` and `effort` are those of the measurement, and are not used. Between two points, the logarithm of
/// the block error rate is interpolated; outside the points nothing is known, since many such codes have an error floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Information bits of a block.
    #[schemars(extend("maximum" = LONGEST_BLOCK))]
    pub block_bits: Count,
    /// Eb/N0 in dB and block error rate of each point, by increasing Eb/N0: `[[1.0, 0.3], [1.5, 2e-3], [2.0, 1e-6]]`. The rate
    /// never increases.
    #[schemars(with = "Vec<[f64; 2]>")]
    pub points: Vec<(EnergyToNoise, Probability)>,
    /// Share of the bits that are wrong in a block that fails; at least one bit is. The usual value is an assumption: packets are
    /// lost by it, but a code around packets may correct a few wrong bits.
    #[serde(default = "usual_wrong_share")]
    pub wrong_share: Probability,
}

fn usual_wrong_share() -> Probability {
    Probability::new(USUAL_WRONG_SHARE).expect("a constant within its range")
}

impl CodeConfig for Measured {
    fn build(&self) -> Result<farlink_fec::scheme::Coding, ConfigError> {
        self.check()?;
        let what = "a code by measured points has no decoder that could run";
        Err(ConfigError::new("kind", what, "use it in a scenario's link.coding, or choose a code that farlink decodes"))
    }
}

impl Measured {
    /// Checks the points.
    ///
    /// # Errors
    /// If there are none or too many, Eb/N0 does not increase, or the block error rate increases.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refused = |what: String, remedy: &str| Err(ConfigError::new("points", what, remedy));
        if self.block_bits.whole() > LONGEST_BLOCK {
            let what = format!("{} bits are more than {LONGEST_BLOCK}", self.block_bits.get());
            return Err(ConfigError::new(
                "block_bits",
                what,
                "give the information bits of one block: 32400 in DVB-S2",
            ));
        }
        if self.points.is_empty() || self.points.len() > MOST_POINTS {
            let what = format!("there are {} points; allowed: 1 to {MOST_POINTS}", self.points.len());
            return refused(what, "give pairs of Eb/N0 in dB and block error rate: [[1.0, 0.3], [1.5, 2e-3]]");
        }
        for (at, pair) in self.points.windows(2).enumerate() {
            let [(low, more), (high, less)] = pair else { continue };
            let (first, second) = (at + 1, at + 2);
            if high.get() <= low.get() {
                let what =
                    format!("Eb/N0 is {} dB in point {first} and {} dB in point {second}", low.get(), high.get());
                return refused(what, "give the points by increasing Eb/N0, each once");
            }
            if less.get() > more.get() {
                let what = format!(
                    "the block error rate increases from {} in point {first} to {} in point {second}",
                    more.get(),
                    less.get()
                );
                return refused(what, "give a rate that never increases with Eb/N0; smooth what was measured");
            }
        }
        Ok(())
    }

    /// The block error rate at an Eb/N0.
    ///
    /// # Errors
    /// If the points are not in order, or the Eb/N0 lies outside them.
    pub(crate) fn block_error_rate(&self, ebn0: EnergyToNoise) -> Result<Probability, ConfigError> {
        self.check()?;
        let ebn0_db = ebn0.get();
        let after = self.points.partition_point(|(point, _)| point.get() < ebn0_db);
        if let Some(&(point, rate)) = self.points.get(after)
            && point.get() == ebn0_db
        {
            return Ok(rate);
        }
        let (Some((low, more)), Some((high, less))) =
            (after.checked_sub(1).and_then(|at| self.points.get(at)), self.points.get(after))
        else {
            let ends =
                [self.points.first(), self.points.last()].map(|point| point.map_or(f64::NAN, |(at, _)| at.get()));
            let what = format!(
                "an Eb/N0 of {ebn0_db:.2} dB was not measured; the points are from {} to {} dB",
                ends[0], ends[1]
            );
            return Err(ConfigError::new("points", what, "add points, or choose an Eb/N0 between them"));
        };
        // The logarithm of a rate of 0 has no value: such a stretch is linear.
        let share = (ebn0_db - low.get()) / (high.get() - low.get());
        let (more, less) = (more.get(), less.get());
        let rate = if less > 0.0 { more * libm::pow(less / more, share) } else { more + (less - more) * share };
        Ok(Probability::new(rate.clamp(0.0, 1.0)).expect("a share from 0 to 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(points: &str) -> Measured {
        serde_json::from_str(&format!(r#"{{"block_bits": 1000, "points": {points}}}"#)).unwrap()
    }

    fn rate(points: &str, ebn0_db: f64) -> Result<f64, String> {
        let ebn0 = EnergyToNoise::new(ebn0_db).unwrap();
        measured(points).block_error_rate(ebn0).map(|rate| rate.get()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_logarithm_is_interpolated() {
        let points = "[[1, 0.1], [2, 1e-3], [3, 0]]";
        assert_eq!((rate(points, 1.0), rate(points, 2.0), rate(points, 3.0)), (Ok(0.1), Ok(1e-3), Ok(0.0)));
        assert!((rate(points, 1.5).unwrap() - 1e-2).abs() < 1e-12);
        assert!((rate(points, 2.5).unwrap() - 5e-4).abs() < 1e-12, "no logarithm of 0");
    }

    #[test]
    fn what_was_not_measured_is_refused() {
        let points = "[[1, 0.1], [2, 1e-3]]";
        for ebn0_db in [0.99, 2.01] {
            let error = rate(points, ebn0_db).unwrap_err();
            assert!(
                error.contains(&format!("{ebn0_db:.2} dB was not measured; the points are from 1 to 2 dB")),
                "{error}"
            );
        }
    }

    #[test]
    fn points_out_of_order_are_refused() {
        for (points, what) in [
            ("[]", "there are 0 points"),
            ("[[2, 0.1], [1, 0.01]]", "Eb/N0 is 2 dB in point 1 and 1 dB in point 2"),
            ("[[1, 0.1], [1, 0.01]]", "Eb/N0 is 1 dB in point 1 and 1 dB in point 2"),
            ("[[1, 0.1], [2, 0.2]]", "increases from 0.1 in point 1 to 0.2 in point 2"),
        ] {
            let error = rate(points, 1.0).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
