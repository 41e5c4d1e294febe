//! The delay to a satellite during a pass, and its outages.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::channel::{Prepared, chain, outage};
use crate::time::Time;
use crate::units::{Altitude, Elevation, Inclination, PositiveSeconds, Seconds};

const SPEED_OF_LIGHT_MPS: f64 = 299_792_458.0;
/// Mean radius of the Earth, m (IUGG).
const EARTH_RADIUS_M: f64 = 6_371_000.0;
/// Gravity of the Earth, m^3/s^2 (WGS 84).
const GRAVITY: f64 = 3.986_004_418e14;
/// Angular rate of the Earth's rotation (WGS 84), rad/s.
const EARTH_TURNS: f64 = 7.292_115e-5;
/// Radius of the geostationary orbit, m.
const GEOSTATIONARY_RADIUS_M: f64 = 42_164_170.0;
/// An equatorial orbit within this distance of it counts as geostationary.
const KEPT_WITHIN_M: f64 = 20_000.0;
/// From this altitude on, an orbit is equatorial unless given otherwise.
const HIGH_M: f64 = 35e6;
/// The link is down below this elevation unless given otherwise.
const LOWEST_DEG: f64 = 5.0;
/// In a tenth of a millisecond the range changes by less than a metre.
const SHORTEST_STEP_S: f64 = 1e-4;

/// A satellite on a circular orbit passes over a station on a spherical Earth. The link is down while the satellite is lower than
/// `min_elevation_deg`. After the pass it stays down, unless `revisit_s` or `handover_s` say that another satellite follows.
///
/// The ground track is a great circle. The Earth rotates below it: along the track, the satellite moves with its own angular rate
/// less the Earth's times the cosine of the inclination (Ali, Al-Dhahir and Hershey, "Doppler characterization for LEO
/// satellites", IEEE Trans. Communications 46(3), 1998). That holds for passes much shorter than a day. Compared with SGP4, the
/// duration of a pass agrees to 1.5 % at 550 and 780 km, to 0.2 % at 8,062 km over the equator, to 3 % at 15,000 km, and only to
/// 20 % at 20,180 km and 55 degrees, where passes of six hours follow no great circle. A satellite at 35,786 km in the plane of
/// the equator stands still at `start_elevation_deg`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    /// Altitude of the orbit above the ground, in m.
    pub altitude_m: Altitude,
    /// Elevation at the highest point of the pass.
    #[serde(default = "zenith")]
    pub max_elevation_deg: Elevation,
    /// Lowest elevation at which the link is up; unless given 5, or `start_elevation_deg` if that is lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_elevation_deg: Option<Elevation>,
    /// Elevation at the start of a run; `min_elevation_deg` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_elevation_deg: Option<Elevation>,
    /// Whether the satellite rises or falls at the start of a run.
    #[serde(default)]
    pub direction: Direction,
    /// Angle between the planes of the orbit and of the equator; above 90 the satellite moves against the Earth's rotation.
    /// Unless given 90, where the rotation has no effect, and 0 from 35,000 km on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclination_deg: Option<Inclination>,
    /// Time between successive satellites on the same track: each repeats the pass of the one before, this much later. A
    /// satellite serves until it sets; then the next one serves, as soon as it has risen. If only `handover_s` is given, the
    /// length of the pass plus `handover_s`; if neither is given, no other satellite follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisit_s: Option<PositiveSeconds>,
    /// Shortest outage when the next satellite takes over; 0 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover_s: Option<Seconds>,
    /// Interval at which the delay is computed.
    #[serde(default = "often")]
    #[schemars(extend("minimum" = SHORTEST_STEP_S))]
    pub step_s: PositiveSeconds,
}

/// The part of the pass in which a run starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Before the highest point.
    #[default]
    Rising,
    /// After the highest point.
    Falling,
}

const RANGE: &str = "a constant within its range";

fn zenith() -> Elevation {
    Elevation::new(90.0).expect(RANGE)
}

fn often() -> PositiveSeconds {
    PositiveSeconds::new(0.01).expect(RANGE)
}

impl Pass {
    /// The position of the satellite over time.
    ///
    /// # Errors
    /// If it never reaches the required elevation.
    pub fn orbit(&self) -> Result<Orbit, ConfigError> {
        let (start, lowest, highest) = (self.start_deg(), self.lowest_deg(), self.max_elevation_deg.get());
        if start > highest {
            let message = format!("{start} degrees are above max_elevation_deg = {highest}");
            let remedy = "start no higher than the highest point of the pass";
            return Err(ConfigError::new("start_elevation_deg", message, remedy));
        }
        if lowest > highest {
            let message = format!("the satellite culminates at {highest} degrees, and the link is up from {lowest} on");
            return Err(ConfigError::new(
                "max_elevation_deg",
                message,
                "give a lower min_elevation_deg, or a higher pass",
            ));
        }
        if start < lowest && self.direction == Direction::Falling {
            let message = format!("it has set: {start} degrees are below min_elevation_deg = {lowest}");
            return Err(ConfigError::new(
                "start_elevation_deg",
                message,
                "start higher, or with direction = \"rising\"",
            ));
        }
        let orbit = Orbit::new(self);
        if orbit.rate == 0.0 && start < lowest {
            let message = format!("the satellite stands still at {start} degrees, below min_elevation_deg = {lowest}");
            return Err(ConfigError::new("start_elevation_deg", message, "give the elevation at which it stands"));
        }
        Ok(orbit)
    }

    /// This satellite and those that follow it.
    ///
    /// # Errors
    /// As [`Pass::orbit`], and if the next satellite cannot follow in this way.
    pub fn passes(&self) -> Result<Passes, ConfigError> {
        let orbit = self.orbit()?;
        if self.step_s.get() < SHORTEST_STEP_S {
            let message = format!("{:e} s: in that time the range changes by less than a metre", self.step_s.get());
            return Err(ConfigError::new("step_s", message, format!("give at least {SHORTEST_STEP_S:e}")));
        }
        let visible_s = orbit.sets_at_s() - orbit.rises_at_s();
        let handover_s = self.handover_s.map_or(0.0, Seconds::get);
        let key = if self.revisit_s.is_some() { "revisit_s" } else { "handover_s" };
        if (self.revisit_s.is_some() || self.handover_s.is_some()) && visible_s == f64::INFINITY {
            let message = "the satellite stands still and never sets: no other takes over";
            return Err(ConfigError::new(key, message, format!("leave {key} out")));
        }
        let period_s = match (self.revisit_s, self.handover_s) {
            (None, None) => None,
            (Some(revisit), _) => Some(revisit.get()),
            (None, Some(_)) => Some(visible_s + handover_s),
        };
        if let Some(period_s) = period_s.filter(|&period_s| period_s <= handover_s || period_s < SHORTEST_STEP_S) {
            let message = format!(
                "satellites that follow each other after {period_s} s, with handover_s = {handover_s}, never serve"
            );
            return Err(ConfigError::new(key, message, "give a revisit_s above handover_s"));
        }
        let next = period_s.map(|period_s| Next { period_s, down_s: (period_s - visible_s).max(handover_s) });
        Ok(Passes { orbit, next })
    }

    /// Lowest elevation at which the link is up, degrees.
    pub fn lowest_deg(&self) -> f64 {
        let start = self.start_elevation_deg.map_or(LOWEST_DEG, Elevation::get);
        self.min_elevation_deg.map_or(start.min(LOWEST_DEG), Elevation::get)
    }

    fn start_deg(&self) -> f64 {
        self.start_elevation_deg.map_or(self.lowest_deg(), Elevation::get)
    }
}

/// The geometry of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Orbit {
    radius_m: f64,
    /// Angle at the Earth's centre between station and satellite at the highest point.
    least_angle: f64,
    /// Angle along the track between the highest point and the lowest elevation at which the link is up.
    reach: f64,
    /// Angle per second along the track; 0 for a geostationary satellite.
    rate: f64,
    /// Angle along the track at the start, measured from the highest point.
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
        // The angle along the track at an elevation, which is at most that of the highest point.
        let along = |elevation| libm::acos((libm::cos(angle(elevation)) / libm::cos(least_angle)).min(1.0));
        let before = along(pass.start_deg());
        let phase = match pass.direction {
            Direction::Rising => -before,
            Direction::Falling => before,
        };
        let is_high = pass.altitude_m.get() >= HIGH_M;
        let inclination = pass.inclination_deg.map_or(if is_high { 0.0 } else { 90.0 }, Inclination::get);
        let is_kept = inclination == 0.0 && (radius_m - GEOSTATIONARY_RADIUS_M).abs() < KEPT_WITHIN_M;
        let own = (GRAVITY / radius_m.powi(3)).sqrt();
        // Exactly zero at the default of 90 degrees.
        let turning = if inclination == 90.0 { 0.0 } else { EARTH_TURNS * libm::cos(inclination.to_radians()) };
        let rate = if is_kept { 0.0 } else { (own - turning).abs() };
        Orbit { radius_m, least_angle, reach: along(pass.lowest_deg()), rate, phase }
    }

    /// Elevation in degrees and slant range in m at a time in s.
    pub fn seen_at(&self, time_s: f64) -> (f64, f64) {
        let cosine = libm::cos(self.least_angle) * libm::cos(self.phase + self.rate * time_s);
        let Orbit { radius_m, .. } = *self;
        let range = (EARTH_RADIUS_M.powi(2) + radius_m.powi(2) - 2.0 * EARTH_RADIUS_M * radius_m * cosine).sqrt();
        let elevation = libm::asin(((radius_m * cosine - EARTH_RADIUS_M) / range).clamp(-1.0, 1.0));
        (elevation.to_degrees(), range)
    }

    /// When the satellite rises above the lowest elevation, s; negative if that is before the start.
    pub fn rises_at_s(&self) -> f64 {
        if self.rate == 0.0 { f64::NEG_INFINITY } else { (-self.reach - self.phase) / self.rate }
    }

    /// When the satellite sets below the lowest elevation, s; infinite for a geostationary one.
    pub fn sets_at_s(&self) -> f64 {
        if self.rate == 0.0 { f64::INFINITY } else { ((self.reach - self.phase) / self.rate).max(0.0) }
    }
}

/// A satellite, and those that follow it on the same track.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    orbit: Orbit,
    next: Option<Next>,
}

/// The succession of satellites.
#[derive(Clone, Copy, Debug)]
struct Next {
    period_s: f64,
    /// Duration of the outage between two of them.
    down_s: f64,
}

impl Passes {
    /// When the link goes down for good; `Time::NEVER` if satellites follow or the satellite is geostationary.
    pub fn ends_at(&self) -> Time {
        if self.next.is_some() { Time::NEVER } else { Time::from_secs_f64(self.orbit.sets_at_s()) }
    }

    /// The delay to the satellite that serves or, during an outage, to the one that served last or will serve first.
    fn delay_at(&self, time_s: f64) -> Time {
        let (rises, sets) = (self.orbit.rises_at_s(), self.orbit.sets_at_s());
        let of_its_own = match self.next {
            Some(Next { period_s, .. }) if time_s > sets => time_s - ((time_s - sets) / period_s).ceil() * period_s,
            _ => time_s,
        };
        // Not `clamp`, because after rounding it may set before it rises.
        Time::from_secs_f64(self.orbit.seen_at(of_its_own.max(rises).min(sets)).1 / SPEED_OF_LIGHT_MPS)
    }

    /// The outages, if there are any before `end`.
    pub(super) fn outages(&self, end: Time) -> Option<Arc<dyn Prepared>> {
        let rises = Time::from_secs_f64(self.orbit.rises_at_s());
        let sets = Time::from_secs_f64(self.orbit.sets_at_s());
        let before = (rises > Time::ZERO).then_some((Time::ZERO, rises));
        let after = (sets < end).then_some((sets, Time::NEVER));
        match self.next {
            Some(Next { period_s, down_s }) if sets < end && Time::from_secs_f64(down_s) > Time::ZERO => {
                let between = outage::periodic(sets, Time::from_secs_f64(period_s), Time::from_secs_f64(down_s));
                Some(match before {
                    None => between,
                    Some(before) => chain::both(outage::scheduled([before]), between),
                })
            }
            None if before.or(after).is_some() => Some(outage::scheduled(before.into_iter().chain(after))),
            _ => before.map(|before| outage::scheduled([before])),
        }
    }
}

/// The delay of a pass in one run.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    passes: Passes,
    step: Time,
    /// What is added to the propagation delay.
    more: Time,
    /// The number of the latest step, and its delay.
    kept: (u64, Time),
}

impl Overhead {
    pub(super) fn new(passes: Passes, step: Time) -> Self {
        Overhead { passes, step, more: Time::ZERO, kept: (0, passes.delay_at(0.0)) }
    }

    /// Adds to all delays.
    pub(super) fn delay_more(&mut self, more: Time) {
        self.more += more;
        self.kept.1 += more;
    }

    fn number(&self, time: Time) -> u64 {
        time.as_ps() / self.step.as_ps()
    }

    fn compute(&self, number: u64) -> Time {
        self.passes.delay_at(self.step.times(number).as_secs_f64()) + self.more
    }

    /// The delay of a frame that is sent at `time`.
    #[inline]
    pub(super) fn at(&mut self, time: Time) -> Time {
        let number = self.number(time);
        if number != self.kept.0 {
            self.kept = (number, self.compute(number));
        }
        self.kept.1
    }

    /// As [`at`](Self::at), without changing the state.
    pub(super) fn looked_up(&self, time: Time) -> Time {
        let number = self.number(time);
        if number == self.kept.0 { self.kept.1 } else { self.compute(number) }
    }

    /// A time until which the delay is certainly as at `time`.
    pub(super) fn next_change(&self, time: Time) -> Time {
        let begun = self.step.times(self.number(time));
        if self.passes.orbit.rate == 0.0 || begun >= self.passes.ends_at() {
            return Time::NEVER;
        }
        begun + self.step
    }

    /// The longest delay: at the lowest elevation, or that of a geostationary satellite.
    pub(super) fn longest(&self) -> Time {
        let Orbit { rate, .. } = self.passes.orbit;
        let lowest = if rate == 0.0 { 0.0 } else { self.passes.orbit.sets_at_s() };
        self.passes.delay_at(lowest) + self.more
    }

    /// The shortest delay: at the highest point.
    pub(super) fn shortest(&self) -> Time {
        let Orbit { rate, phase, .. } = self.passes.orbit;
        let is_past = phase >= 0.0 && self.passes.next.is_none();
        let highest = if rate == 0.0 || is_past { 0.0 } else { -phase / rate };
        let (_, range) = self.passes.orbit.seen_at(highest);
        Time::from_secs_f64(range / SPEED_OF_LIGHT_MPS) + self.more
    }
}

#[cfg(test)]
mod tests;
