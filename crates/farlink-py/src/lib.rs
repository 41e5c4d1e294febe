//! The Python extension `farlink._core`: converts, releases the interpreter, maps errors. No logic.

mod columns;
mod error;
mod watch;

use pyo3::prelude::*;

/// The Rust side of farlink.
#[pymodule]
mod _core {
    use farlink_core::scenario::{self, Expanded, from_json, quantity::QUANTITIES};
    use farlink_sim::Options;
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyDict};
    use serde_json::{Map, Value, json};

    use crate::columns::{series_to_dict, table_to_dict};
    use crate::error::BoundaryError;
    #[pymodule_export]
    use crate::error::ScenarioError;
    use crate::watch::watched;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The JSON Schema of scenarios.
    #[pyfunction]
    fn schema() -> String {
        scenario::schema()
    }

    /// Checks a scenario: its grid points and the scenario with every default written out, as JSON.
    #[pyfunction]
    fn expand(py: Python<'_>, scenario_json: &str) -> Result<String, BoundaryError> {
        py.detach(|| {
            let expanded = read(scenario_json)?;
            let points: Vec<Map<String, Value>> =
                expanded.points.iter().map(|point| point.settings.iter().cloned().collect()).collect();
            let approximations: Vec<Value> = expanded
                .approximations
                .iter()
                .map(|left_out| json!({ "engine": left_out.engine, "path": left_out.path }))
                .collect();
            let scenario = expanded.normalised();
            Ok(json!({ "points": points, "scenario": scenario, "approximations": approximations }).to_string())
        })
    }

    /// Runs a scenario; Ctrl-C gives what is finished.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, threads=None, progress=None))]
    fn run<'py>(
        py: Python<'py>,
        scenario_json: &str,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let expanded = py.detach(|| read(scenario_json))?;
        let options = Options { threads, ..Options::default() };
        let output = watched(py, progress, |progress| farlink_sim::run(&expanded, &options, progress))??;
        let result = PyDict::new(py);
        result.set_item("interrupted", output.interrupted)?;
        result.set_item("rows", table_to_dict(py, output.rows)?)?;
        result.set_item("summary", table_to_dict(py, output.summary)?)?;
        Ok(result)
    }

    /// Runs one run again and observes it; Ctrl-C stops it.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, point, run, series=true, pcap=false))]
    fn trace_run<'py>(
        py: Python<'py>,
        scenario_json: &str,
        point: usize,
        run: u64,
        series: bool,
        pcap: bool,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let expanded = py.detach(|| read(scenario_json))?;
        let traced = watched(py, None, |progress| {
            farlink_sim::trace_run(&expanded, point, run, series, pcap, &|| progress(0, 0).is_break())
        })??;
        let result = PyDict::new(py);
        result.set_item("pcapng", traced.pcapng.map(|bytes| PyBytes::new(py, &bytes)))?;
        result.set_item("series", series_to_dict(py, traced.series)?)?;
        Ok(result)
    }

    /// Name, unit and description of every measured quantity, and when it is unknown.
    #[pyfunction]
    fn quantities() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
        QUANTITIES
            .iter()
            .map(|quantity| (quantity.name, quantity.unit, quantity.description, quantity.unknown))
            .collect()
    }

    fn read(scenario_json: &str) -> Result<Expanded, BoundaryError> {
        Ok(scenario::expand(&from_json(scenario_json)?)?)
    }
}
