//! The delay to a satellite that passes over.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::series::Steps;
use super::setting::{DelayConfig, PreparedDelay};
use crate::coding::Unfit;
use crate::time::Time;
use crate::trace::{TraceError, TraceSource};
use crate::units::{Elevation, LowAltitude, PositiveSeconds};

const SPEED_OF_LIGHT_MPS: f64 = 299_792_458.0;
/// Mean radius of the Earth, m (IUGG).
const EARTH_RADIUS_M: f64 = 6_371_000.0;
/// Gravity of the Earth, m^3/s^2 (WGS 84).
const GRAVITY: f64 = 3.986_004_418e14;

/// A satellite on a circular orbit passes over a station on a spherical Earth that stands still; from the horizon on, where
/// it sets, the delay stays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Height of the orbit above the ground, in m.
    pub altitude_m: LowAltitude,
    /// Elevation at the highest point of the pass.
    #[serde(default = "zenith")]
    pub max_elevation_deg: Elevation,
    /// Elevation at the start of a run.
    #[serde(default = "low")]
    pub start_elevation_deg: Elevation,
    /// Whether the satellite rises or falls at the start of a run.
    #[serde(default)]
    pub direction: Direction,
    /// How often the delay is computed anew.
    #[serde(default = "often")]
    pub step_s: PositiveSeconds,
}

/// On which side of its highest point a pass begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Before it.
    #[default]
    Rising,
    /// Behind it.
    Falling,
}

const RANGE: &str = "a constant within its range";

fn zenith() -> Elevation {
    Elevation::new(90.0).expect(RANGE)
}

fn low() -> Elevation {
    Elevation::new(5.0).expect(RANGE)
}

fn often() -> PositiveSeconds {
    PositiveSeconds::new(0.01).expect(RANGE)
}

/// Steps that a pass may have: 16 MB.
const MAX_STEPS: f64 = 1e6;

impl DelayConfig for Pass {
    fn check(&self) -> Result<(), Unfit> {
        self.orbit()?;
        Ok(())
    }

    fn prepare(&self, _traces: &dyn TraceSource) -> Result<PreparedDelay, TraceError> {
        let orbit =
            self.orbit().map_err(|unfit| TraceError::Malformed { file: "pass".into(), reason: unfit.message })?;
        let step = self.step_s.get();
        let count = (orbit.sets_at_s() / step).ceil() as usize + 1;
        let time_s: Vec<f64> = (0..count).map(|at| at as f64 * step).collect();
        let sets_at = orbit.sets_at_s();
        let delay = |time: &f64| Time::from_secs_f64(orbit.seen_at(time.min(sets_at)).1 / SPEED_OF_LIGHT_MPS);
        let delays: Arc<[Time]> = time_s.iter().map(delay).collect();
        // Nothing comes after the satellite has set: the last step lasts as long as any run.
        Ok(PreparedDelay::steps(Steps::new(&time_s, 1e7), delays))
    }
}

impl Pass {
    /// Where the satellite is over time.
    ///
    /// # Errors
    /// If it never is as high as at the start, or the steps are too many.
    pub fn orbit(&self) -> Result<Orbit, Unfit> {
        let (start, highest) = (self.start_elevation_deg.get(), self.max_elevation_deg.get());
        if start > highest {
            let message = format!("{start} degrees are above max_elevation_deg = {highest}");
            return Err(Unfit::new(
                "start_elevation_deg",
                message,
                "start no higher than the highest point of the pass",
            ));
        }
        let orbit = Orbit::new(self);
        let steps = orbit.sets_at_s() / self.step_s.get();
        if steps > MAX_STEPS {
            let message = format!("{} s makes {steps:.0} steps until the satellite sets", self.step_s.get());
            return Err(Unfit::new("step_s", message, "give a longer step_s; at most 1e6 steps are kept"));
        }
        Ok(orbit)
    }
}

/// The geometry of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Orbit {
    radius_m: f64,
    /// Angle at the Earth's centre between station and satellite at the highest point.
    least_angle: f64,
    /// Angle per second along the orbit.
    rate: f64,
    /// Angle along the orbit at the start, from the highest point on.
    phase: f64,
}

impl Orbit {
    fn new(pass: &Pass) -> Self {
        let radius_m = EARTH_RADIUS_M + pass.altitude_m.get();
        let angle = |elevation: f64| {
            let elevation = elevation.to_radians();
            libm::acos(EARTH_RADIUS_M * libm::cos(elevation) / radius_m) - elevation
        };
        let least_angle = angle(pass.max_elevation_deg.get());
        let start = angle(pass.start_elevation_deg.get());
        let before = libm::acos((libm::cos(start) / libm::cos(least_angle)).min(1.0));
        let phase = match pass.direction {
            Direction::Rising => -before,
            Direction::Falling => before,
        };
        Orbit { radius_m, least_angle, rate: (GRAVITY / radius_m.powi(3)).sqrt(), phase }
    }

    /// Elevation in degrees and slant range in m at a time in s.
    pub fn seen_at(&self, time_s: f64) -> (f64, f64) {
        let cosine = libm::cos(self.least_angle) * libm::cos(self.phase + self.rate * time_s);
        let Orbit { radius_m, .. } = *self;
        let range = (EARTH_RADIUS_M.powi(2) + radius_m.powi(2) - 2.0 * EARTH_RADIUS_M * radius_m * cosine).sqrt();
        let elevation = libm::asin(((radius_m * cosine - EARTH_RADIUS_M) / range).clamp(-1.0, 1.0));
        (elevation.to_degrees(), range)
    }

    /// When the satellite reaches the horizon, s.
    pub fn sets_at_s(&self) -> f64 {
        let horizon = libm::acos((EARTH_RADIUS_M / self.radius_m / libm::cos(self.least_angle)).min(1.0));
        ((horizon - self.phase) / self.rate).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::link::setting::DelaySetting;
    use crate::rng::Rng;
    use crate::trace::MemoryTraces;

    fn pass(keys: &str) -> Pass {
        serde_json::from_str(&format!(r#"{{"altitude_m": 610e3{keys}}}"#)).unwrap()
    }

    /// Ranges to a satellite at 610 km, computed independently: 5 to 90 degrees.
    #[test]
    fn range_follows_elevation() {
        for (elevation, kilometres) in [(5, 2352), (10, 1955), (20, 1412), (30, 1091), (60, 694), (90, 610)] {
            let orbit = pass(&format!(r#", "start_elevation_deg": {elevation}"#)).orbit().unwrap();
            let (seen, range) = orbit.seen_at(0.0);
            assert!((seen - f64::from(elevation)).abs() < 1e-6);
            assert_eq!((range / 1e3).round() as i32, kilometres);
        }
    }

    #[test]
    fn a_pass_rises_culminates_and_sets() {
        let orbit = pass(r#", "start_elevation_deg": 5, "max_elevation_deg": 60"#).orbit().unwrap();
        let highest = -orbit.phase / orbit.rate;
        assert!((orbit.seen_at(highest).0 - 60.0).abs() < 1e-6);
        assert!((orbit.seen_at(2.0 * highest).0 - 5.0).abs() < 1e-6, "as far behind as before");
        assert!(orbit.seen_at(orbit.sets_at_s()).0.abs() < 1e-6);
        // Some ten minutes from horizon to horizon.
        assert!((550.0..750.0).contains(&orbit.sets_at_s()), "{}", orbit.sets_at_s());
        let falling = pass(r#", "start_elevation_deg": 30, "direction": "falling""#).orbit().unwrap();
        assert!(falling.seen_at(1.0).1 > falling.seen_at(0.0).1);
    }

    #[test]
    fn the_delay_is_the_range_over_the_speed_of_light_and_stays_when_it_has_set() {
        let json = r#"{"kind": "pass", "altitude_m": 610e3, "start_elevation_deg": 5, "step_s": 1}"#;
        let setting: DelaySetting = serde_json::from_str(json).unwrap();
        let prepared = setting.prepare(&MemoryTraces::default()).unwrap();
        let mut series = prepared.start(&mut Rng::for_component(1, 0, "delay"));
        let delay = |time_s: f64| series.at(Time::from_secs_f64(time_s)).as_secs_f64();
        let orbit = pass(r#", "start_elevation_deg": 5"#).orbit().unwrap();
        let times = [0.0, 0.99, 100.0, 250.5, 5e3, 5e6];
        let ranges = times.map(delay).map(|delay| delay * SPEED_OF_LIGHT_MPS);
        let expected = times.map(|time| orbit.seen_at(f64::floor(time).min(orbit.sets_at_s())).1);
        for (range, expected) in ranges.into_iter().zip(expected) {
            assert!((range - expected).abs() < 1.0, "{range} instead of {expected}");
        }
    }

    #[test]
    fn what_no_pass_has_is_refused() {
        let unfit = pass(r#", "start_elevation_deg": 50, "max_elevation_deg": 40"#).check().unwrap_err();
        assert_eq!(unfit.message, "50 degrees are above max_elevation_deg = 40");
        assert_eq!(pass(r#", "step_s": 1e-6"#).check().unwrap_err().key, "step_s");
        for json in [r#"{"altitude_m": 36e6}"#, r#"{"altitude_m": 610e3, "start_elevation_deg": -1}"#] {
            assert!(serde_json::from_str::<Pass>(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_pass_has_ranges_between_the_zenith_and_the_horizon(
            altitude in 100e3..2000e3f64, highest in 0.0..=90.0f64, start in 0.0..=1.0f64, time in 0.0..1000.0f64,
        ) {
            let start = start * highest;
            let json = format!(r#"{{"altitude_m": {altitude}, "max_elevation_deg": {highest}, "start_elevation_deg": {start}}}"#);
            let orbit = serde_json::from_str::<Pass>(&json).unwrap().orbit().unwrap();
            let (elevation, range) = orbit.seen_at(time.min(orbit.sets_at_s()));
            let horizon = (orbit.radius_m.powi(2) - EARTH_RADIUS_M.powi(2)).sqrt();
            prop_assert!(range >= altitude * (1.0 - 1e-9) && range <= horizon * (1.0 + 1e-6), "{range}");
            prop_assert!((-1e-3..=highest + 1e-3).contains(&elevation), "{elevation}");
        }
    }
}
