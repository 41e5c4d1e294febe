//! Conversion of the properties of convolutional codes to Python.

use farlink_core::ConfigError;
use farlink_core::coding::OperatingPoint;
use farlink_fec::convolutional::{Code, KNOWN, Puncturing, Spectrum, bounds};
use farlink_fec::modulation::{Decision, Modulation};
use farlink_fec::scheme;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::BoundaryError;

/// Generators, constraint length, outputs, free distance and source of the codes of the literature.
pub(crate) fn known() -> Vec<(&'static str, u32, usize, u32, &'static str)> {
    let facts = |octal| Code::from_octal(octal).map(|code: Code| (code.constraint_length(), code.outputs()));
    KNOWN
        .iter()
        .filter_map(|known| {
            facts(known.octal).ok().map(|(k, n)| (known.octal, k, n, known.free_distance, known.source))
        })
        .collect()
}

/// A convolutional code and its first terms, as a dictionary.
pub(crate) fn spectrum_to_dict<'py>(
    py: Python<'py>,
    point: &OperatingPoint,
    terms: usize,
) -> Result<Bound<'py, PyDict>, BoundaryError> {
    let (code, puncturing) = convolutional(point)?;
    let spectrum = py.detach(|| spectrum(&code, &puncturing, terms))?;
    let dict = PyDict::new(py);
    dict.set_item("constraint_length", code.constraint_length())?;
    dict.set_item("outputs", code.outputs())?;
    dict.set_item("rate", spectrum.rate())?;
    dict.set_item("period_bits", spectrum.period())?;
    dict.set_item("free_distance", spectrum.free_distance())?;
    let rows =
        |row: fn(&farlink_fec::convolutional::Term) -> u64| spectrum.terms().iter().map(row).collect::<Vec<u64>>();
    dict.set_item("distance", rows(|term| term.distance as u64))?;
    dict.set_item("events", rows(|term| term.events))?;
    dict.set_item("data_bits", rows(|term| term.data_bits))?;
    Ok(dict)
}

/// The union bound on the bit error rate; `None` for a modulation for which it is not valid.
pub(crate) fn union_bound(point: &OperatingPoint, terms: usize) -> Result<Option<f64>, BoundaryError> {
    let (code, puncturing) = convolutional(point)?;
    let scheme = scheme(point)?;
    if !matches!(scheme.modulation(), Modulation::Bpsk | Modulation::Qpsk) {
        return Ok(None);
    }
    let spectrum = spectrum(&code, &puncturing, terms)?;
    let ebn0_db = point.ebn0_db.get();
    Ok(Some(match scheme.decision() {
        Decision::Soft => bounds::bit_error_rate_soft(&spectrum, ebn0_db),
        Decision::Hard => bounds::bit_error_rate_hard(&spectrum, scheme.channel_bit_error_rate(ebn0_db)),
    }))
}

fn convolutional(point: &OperatingPoint) -> Result<(Code, Puncturing), ConfigError> {
    match scheme(point)?.coding() {
        scheme::Coding::Convolutional(inner) => Ok((inner.code.clone(), inner.pattern())),
        _ => Err(ConfigError::new(
            "code.kind",
            "not a convolutional code",
            "distance spectra are of convolutional codes",
        )),
    }
}

fn spectrum(code: &Code, puncturing: &Puncturing, terms: usize) -> Result<Spectrum, ConfigError> {
    Spectrum::new(code, puncturing, terms)
        .map_err(|error| ConfigError::new("code", error, "give a pattern that fits the code"))
}

fn scheme(point: &OperatingPoint) -> Result<scheme::Scheme, ConfigError> {
    point.scheme()
}
