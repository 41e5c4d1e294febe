//! A token that any thread can use to stop work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// A token that stops long work. Any thread may set it at any time; all work that was given the token then stops.
#[pyclass(frozen, from_py_object, module = "farlink._core")]
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Cancel::default()
    }

    /// Requests that the work stops.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("Cancel({})", if self.is_set() { "set" } else { "not set" })
    }
}
