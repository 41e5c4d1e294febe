//! A wish to stop that any thread may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// A token that stops long work: any thread may set it, at any time, and all work that was given it stops.
#[pyclass(frozen, from_py_object, module = "farlink._core")]
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Cancel::default()
    }

    /// Asks the work to stop.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("Cancel({})", if self.is_set() { "set" } else { "not set" })
    }
}
