//! Functions of Python that are told events.

use std::ops::ControlFlow;
use std::sync::Mutex;

use pyo3::prelude::*;

/// Calls a function of Python, if there is one. Its first exception is kept as the failure.
pub(crate) fn call(function: Option<&Py<PyAny>>, argument: String, failure: &Mutex<Option<PyErr>>) {
    let Some(function) = function else { return };
    if let Err(error) = Python::attach(|py| function.call1(py, (argument,)).map(drop)) {
        failure.lock().expect("nothing panics").get_or_insert(error);
    }
}

/// The report's outcome, or the end once a function has failed.
pub(crate) fn until_failure(failure: &Mutex<Option<PyErr>>, report: impl Fn() -> ControlFlow<()>) -> ControlFlow<()> {
    match failure.lock().expect("nothing panics").is_some() {
        true => ControlFlow::Break(()),
        false => report(),
    }
}
