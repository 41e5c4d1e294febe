//! Conversion of codes without a link, to and from Python.

use farlink_core::ConfigError;
use farlink_core::coding::{Coding, OperatingPoint};
use farlink_core::units::EnergyToNoise;
use farlink_fec::events::{BurstStatistics, ErrorEvents};
use farlink_fec::monte_carlo::{ErrorRate, Estimate, Status};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::BoundaryError;

/// A coding from JSON, at an Eb/N0 in dB.
pub(crate) fn operating_point(coding_json: &str, ebn0_db: f64) -> Result<OperatingPoint, BoundaryError> {
    let coding = Coding::from_json(coding_json)?;
    let ebn0 = EnergyToNoise::new(ebn0_db)
        .map_err(|error| ConfigError::new("ebn0_db", error, format!("give {}", error.allowed)))?;
    Ok(coding.at(ebn0)?)
}

/// Bit error rate of hard decisions before any decoder.
pub(crate) fn channel_ber(coding_json: &str, ebn0_db: f64) -> Result<f64, BoundaryError> {
    let point = operating_point(coding_json, ebn0_db)?;
    let scheme = point.scheme()?;
    Ok(scheme.channel_bit_error_rate(point.ebn0_db.get()))
}

/// An error rate; `is_interrupted` if Ctrl-C came when it was just known.
pub(crate) fn rate_to_dict<'py>(
    py: Python<'py>,
    rate: &ErrorRate,
    is_interrupted: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let estimate = |estimate: &Estimate| (estimate.value, estimate.low, estimate.high);
    let dict = PyDict::new(py);
    dict.set_item("bits", rate.bits)?;
    dict.set_item("wrong_bits", rate.wrong_bits)?;
    dict.set_item("events", rate.events)?;
    dict.set_item("gave_up", rate.gave_up)?;
    dict.set_item("packets", rate.packets)?;
    dict.set_item("wrong_packets", rate.wrong_packets)?;
    dict.set_item("packet_bits", rate.packet_bits)?;
    dict.set_item("bit_error_rate", estimate(&rate.bit_error_rate))?;
    dict.set_item("event_rate", estimate(&rate.event_rate))?;
    dict.set_item("packet_error_rate", estimate(&rate.packet_error_rate))?;
    dict.set_item("interrupted", is_interrupted || rate.status == Status::Interrupted)?;
    dict.set_item("reached", rate.status == Status::Reached)?;
    Ok(dict)
}

pub(crate) fn bursts_to_dict<'py>(py: Python<'py>, bursts: &BurstStatistics) -> PyResult<Bound<'py, PyDict>> {
    let columns = |pairs: &[(u64, u64)]| {
        let (lengths, counts): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
        (PyArray1::from_vec(py, lengths), PyArray1::from_vec(py, counts))
    };
    let dict = PyDict::new(py);
    dict.set_item("gap_bits", bursts.gap_bits)?;
    dict.set_item("bits", bursts.bits)?;
    dict.set_item("bursts", bursts.bursts)?;
    dict.set_item("wrong_bits", bursts.wrong_bits)?;
    dict.set_item("bit_error_rate", bursts.bit_error_rate())?;
    dict.set_item("bursts_per_bit", bursts.bursts_per_bit())?;
    dict.set_item("mean_span_bits", bursts.mean_span_bits)?;
    dict.set_item("mean_span_error_bits", bursts.mean_span_error_bits)?;
    dict.set_item("longest_span_bits", bursts.longest_span_bits)?;
    dict.set_item("mean_wrong_bits", bursts.mean_wrong_bits)?;
    dict.set_item("reach_bits", bursts.reach_bits)?;
    let (span, count) = columns(&bursts.spans);
    dict.set_item("span_bits", span)?;
    dict.set_item("span_bursts", count)?;
    let (size, count) = columns(&bursts.sizes);
    dict.set_item("wrong_bits_per_burst", size)?;
    dict.set_item("wrong_bits_bursts", count)?;
    Ok(dict)
}

pub(crate) fn events_to_dict<'py>(py: Python<'py>, events: &ErrorEvents) -> PyResult<Bound<'py, PyDict>> {
    let mut position = Vec::new();
    let mut start = vec![0];
    for event in (0..events.len()).map(|at| events.event(at)) {
        position.extend(event.iter().map(|&at| u64::from(at)));
        start.push(position.len() as u64);
    }
    let dict = PyDict::new(py);
    dict.set_item("position", PyArray1::from_vec(py, position))?;
    dict.set_item("start", PyArray1::from_vec(py, start))?;
    dict.set_item("gap_min_bits", events.gap_min_bits())?;
    dict.set_item("gap_mean_bits", events.gap_mean_bits())?;
    dict.set_item("bit_error_rate", events.bit_error_rate())?;
    Ok(dict)
}
