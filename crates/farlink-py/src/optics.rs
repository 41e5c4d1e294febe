//! Receivers of light, on their way to and from Python.

use farlink_core::ConfigError;
use farlink_core::link::pass::{Direction, Orbit, Pass};
use farlink_core::optics::{RECEIVERS, Receiver, gain_for_ber};
use farlink_core::units::{Altitude, Elevation, FormFactor, OutOfRange, PositiveSeconds, Power};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::BoundaryError;

/// A receiver from its parameters.
pub(crate) fn receiver(characteristic_power_w: f64, form_factor: f64) -> Result<Receiver, BoundaryError> {
    Ok(Receiver {
        characteristic_power_w: Power::new(characteristic_power_w)
            .map_err(|error| refuse("characteristic_power_w", error))?,
        form_factor: FormFactor::new(form_factor).map_err(|error| refuse("form_factor", error))?,
        rate_bps: None,
    })
}

/// Every receiver that can be named.
pub(crate) fn receivers(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let to_dict = |named: &farlink_core::optics::Named| {
        let dict = PyDict::new(py);
        dict.set_item("name", named.name)?;
        dict.set_item("title", named.title)?;
        dict.set_item("characteristic_power_w", named.characteristic_power_w)?;
        dict.set_item("form_factor", named.form_factor)?;
        dict.set_item("rate_bps", named.rate_bps)?;
        dict.set_item("wavelength_m", named.wavelength_m)?;
        dict.set_item("source", named.source)?;
        Ok(dict)
    };
    RECEIVERS.iter().map(to_dict).collect()
}

/// See [`gain_for_ber`].
pub(crate) fn calibrate(
    receiver: &Receiver,
    power_w: &[f64],
    blocked: &[bool],
    ber: f64,
) -> Result<f64, BoundaryError> {
    let refuse = |path: &str, what: String, remedy: &str| Err(ConfigError::new(path, what, remedy).into());
    if let Some(at) = power_w.iter().position(|power| !(0.0..f64::INFINITY).contains(power)) {
        let what = format!("it is {} W at sample {at}", power_w[at]);
        return refuse("power_w", what, "power is a finite number and at least 0; is its unit dBm?");
    }
    if !blocked.is_empty() && blocked.len() != power_w.len() {
        let what = format!("{} entries for {} samples", blocked.len(), power_w.len());
        return refuse("blocked", what, "give one entry for each sample");
    }
    gain_for_ber(receiver, power_w, blocked, ber).map_err(|error| {
        let remedy =
            "give another long-term bit error rate, or mark blockages as such (farlink trace calibrate --help)";
        ConfigError::new("ber", error, remedy).into()
    })
}

/// See [`Orbit`].
pub(crate) fn pass(
    altitude_m: f64,
    max_elevation_deg: f64,
    start_elevation_deg: f64,
    rising: bool,
) -> Result<Orbit, BoundaryError> {
    let elevation = |key, value| Elevation::new(value).map_err(|error| refuse(key, error));
    let pass = Pass {
        altitude_m: Altitude::new(altitude_m).map_err(|error| refuse("altitude_m", error))?,
        max_elevation_deg: elevation("max_elevation_deg", max_elevation_deg)?,
        min_elevation_deg: None,
        start_elevation_deg: Some(elevation("start_elevation_deg", start_elevation_deg)?),
        direction: if rising { Direction::Rising } else { Direction::Falling },
        inclination_deg: None,
        revisit_s: None,
        handover_s: None,
        step_s: PositiveSeconds::new(1.0).expect("a constant within its range"),
    };
    Ok(pass.orbit()?)
}

fn refuse(key: &str, error: OutOfRange) -> ConfigError {
    ConfigError::new(key, error, format!("give {}", error.allowed))
}
