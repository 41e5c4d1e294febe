//! The points of a grid, made one by one.

use std::sync::{Mutex, PoisonError};

use farlink_core::scenario::{self, PointTexts, from_json};
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::error::BoundaryError;

/// The points of a scenario, of which none is checked before it is asked for.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct Points {
    points: scenario::Points,
    texts: Mutex<PointTexts>,
}

#[pymethods]
impl Points {
    #[new]
    fn new(py: Python<'_>, scenario_json: &str) -> Result<Self, BoundaryError> {
        let points = py.detach(|| scenario::Points::new(&from_json(scenario_json)?))?;
        Ok(Points { points, texts: Mutex::default() })
    }

    fn __len__(&self) -> usize {
        self.points.count()
    }

    /// The settings that vary, with their values at a point, as JSON.
    fn settings(&self, number: usize) -> Result<String, BoundaryError> {
        let settings: Map<String, Value> = self.points.settings(number)?.into_iter().collect();
        Ok(Value::Object(settings).to_string())
    }

    /// The scenario at a point as it was written, as JSON: the settings of this point, and no grid.
    fn given(&self, number: usize) -> Result<String, BoundaryError> {
        Ok(self.points.point(number)?.1.to_string())
    }

    /// The scenario at a point with every default written out that has an effect, as JSON, less the keys `without` at its top.
    fn normalised(&self, number: usize, without: Vec<String>) -> Result<String, BoundaryError> {
        // A thread that holds the lock also holds the interpreter, so no other one waits for it. A panic leaves nothing half-done.
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(texts.normalised(&self.points, number, &without)?)
    }
}
