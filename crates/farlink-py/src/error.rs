//! Conversion of errors to Python: one enum, one conversion.

use farlink_core::ConfigError;
use farlink_sim::RunError;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    farlink._core,
    ScenarioError,
    PyValueError,
    "A scenario is refused: `message` says what is wrong, `remedy` how to correct it, `path` where."
);

create_exception!(
    farlink._core,
    EngineError,
    PyRuntimeError,
    "An engine could not run for a reason that is not in the scenario."
);

/// All errors that can occur at the boundary.
pub(crate) enum BoundaryError {
    /// The scenario is refused.
    Scenario(ConfigError),
    /// The engine failed for another reason.
    Engine(RunError),
    /// Python failed, or raised in a callback.
    Python(PyErr),
}

impl From<ConfigError> for BoundaryError {
    fn from(error: ConfigError) -> Self {
        BoundaryError::Scenario(error)
    }
}

impl From<RunError> for BoundaryError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Scenario(error) => BoundaryError::Scenario(error),
            RunError::Stopped => BoundaryError::Python(PyKeyboardInterrupt::new_err(())),
            other => BoundaryError::Engine(other),
        }
    }
}

impl From<PyErr> for BoundaryError {
    fn from(error: PyErr) -> Self {
        BoundaryError::Python(error)
    }
}

impl From<BoundaryError> for PyErr {
    fn from(error: BoundaryError) -> PyErr {
        match error {
            BoundaryError::Scenario(error) => Python::attach(|py| {
                let raised = ScenarioError::new_err(error.message());
                let value = raised.value(py);
                let attributes = [("message", error.message()), ("path", error.path), ("remedy", error.remedy)];
                match attributes.into_iter().try_for_each(|(name, text)| value.setattr(name, text)) {
                    Ok(()) => raised,
                    Err(failure) => failure,
                }
            }),
            BoundaryError::Engine(error) => EngineError::new_err(error.to_string()),
            BoundaryError::Python(error) => error,
        }
    }
}
