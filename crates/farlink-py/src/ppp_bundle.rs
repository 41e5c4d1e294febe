//! Bundles of PPP lines: run until a signal, and what they would do.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use farlink_net::tty::{Event, TtyBundle, TtyConfig, TtyError};
use pyo3::prelude::*;
use serde_json::json;

use crate::ip_bundle::{command_of, until_signal};
use crate::net::raised;

fn from_tty(error: &TtyError) -> PyErr {
    raised(&error.to_string(), error.exit_code())
}

/// Runs a bundle until SIGTERM or Ctrl-C. `helper` is the command of a process that calls `serve_bundle_helper`; `tell` is called with events
/// as JSON. With `is_operated`, an operator orders over standard input which terminals lines have, and its end is that of the bundle. This
/// thread has no capability afterwards.
#[pyfunction]
#[pyo3(signature = (config, helper, tell, capture=None, is_operated=false))]
pub(crate) fn run_ppp_bundle(
    py: Python<'_>,
    config: PathBuf,
    helper: Vec<String>,
    tell: Py<PyAny>,
    capture: Option<PathBuf>,
    is_operated: bool,
) -> PyResult<()> {
    let command = command_of(&helper)?;
    let orders = is_operated.then(|| io::stdin().as_fd().try_clone_to_owned()).transpose();
    let orders = orders.map_err(|error| raised(&format!("standard input: {error}; close other programs"), 2))?;
    let bundle = py.detach(|| TtyBundle::prepare(TtyConfig::read(&config)?, command, capture.as_deref()));
    let bundle = bundle.map_err(|error| from_tty(&error))?;
    let ended = until_signal(py, tell, move |runtime, stopped, tell| {
        runtime.block_on(bundle.run(stopped, orders, |event| tell(event_to_json(&event))))
    })?;
    ended.map_err(|error| from_tty(&error))
}

fn event_to_json(event: &Event) -> String {
    json!({"kind": event.kind, "line": event.line, "text": event.text}).to_string()
}

/// Checks a configuration; says in lines what it does.
#[pyfunction]
pub(crate) fn check_ppp_bundle(py: Python<'_>, config: PathBuf) -> PyResult<Vec<String>> {
    py.detach(|| TtyConfig::read(&config)).map(|config| config.describe()).map_err(|error| from_tty(&error))
}
