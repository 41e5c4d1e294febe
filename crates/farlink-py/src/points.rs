//! The points of a grid, made one by one.

use farlink_core::ConfigError;
use farlink_core::scenario::{self, from_json};
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::error::BoundaryError;

/// The points of a scenario, of which none is checked before it is asked for.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct Points(scenario::Points);

#[pymethods]
impl Points {
    #[new]
    fn new(py: Python<'_>, scenario_json: &str) -> Result<Self, BoundaryError> {
        Ok(py.detach(|| Ok::<_, ConfigError>(Points(scenario::Points::new(&from_json(scenario_json)?)?)))?)
    }

    fn __len__(&self) -> usize {
        self.0.count()
    }

    /// The settings that vary, with their values at a point, as JSON.
    fn settings(&self, number: usize) -> Result<String, BoundaryError> {
        let settings: Map<String, Value> = self.0.settings(number)?.into_iter().collect();
        Ok(Value::Object(settings).to_string())
    }

    /// The scenario at a point as it was written, as JSON: the settings of this point, and no grid.
    fn given(&self, number: usize) -> Result<String, BoundaryError> {
        Ok(self.0.point(number)?.1.to_string())
    }

    /// The scenario at a point with every default written out that has an effect, as JSON, less the keys `without` at its top.
    fn normalised(&self, py: Python<'_>, number: usize, without: Vec<String>) -> Result<String, BoundaryError> {
        Ok(py.detach(|| {
            let mut normalised = self.0.point(number)?.0.normalised();
            if let Value::Object(table) = &mut normalised {
                table.retain(|key, _| !without.iter().any(|left_out| left_out == key));
            }
            Ok::<_, ConfigError>(normalised.to_string())
        })?)
    }
}
