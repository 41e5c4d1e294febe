//! Studies in pieces.

use std::borrow::Cow;
use std::ops::Range;

use farlink_core::ConfigError;
use farlink_core::scenario::Expanded;
use farlink_sim::{Options, Output, Progress, RunError, RunsTableError, StudyError, Table, fluid};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cancel::Cancel;
use crate::columns::{output_to_dict, table_from_dict};
use crate::error::BoundaryError;
use crate::watch::watched_with;

/// A scenario that is ready to run with one engine, piece by piece, from any thread.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct Study(Engine);

enum Engine {
    Packet(farlink_sim::Study<'static>),
    Fluid(fluid::Study<'static>),
}

impl Study {
    /// # Errors
    /// If the scenario is refused, or it was asked to stop.
    pub(crate) fn prepare(
        points: Expanded,
        is_fluid: bool,
        options: &Options,
        progress: Progress<'_>,
    ) -> Result<Self, RunError> {
        let points = Cow::Owned(points);
        Ok(Study(if is_fluid {
            Engine::Fluid(fluid::Study::new(points, options)?)
        } else {
            Engine::Packet(farlink_sim::Study::new(points, options, progress)?)
        }))
    }

    fn run_piece(&self, point: usize, runs: Range<u64>, progress: Progress<'_>) -> Result<Output, RunError> {
        match &self.0 {
            Engine::Packet(study) => study.run(point, runs, progress),
            Engine::Fluid(study) if runs == (0..1) => study.run(point, progress),
            Engine::Fluid(_) => {
                let what = format!("the fluid engine has no runs {} to {}", runs.start, runs.end.saturating_sub(1));
                Err(ConfigError::new("first_run", what, "ask for its only run: first_run = 0, runs = 1").into())
            }
        }
    }
}

#[pymethods]
impl Study {
    /// Number of grid points.
    #[getter]
    fn points(&self) -> usize {
        match &self.0 {
            Engine::Packet(study) => study.points(),
            Engine::Fluid(study) => study.points(),
        }
    }

    /// Runs some runs of a point. If it is stopped, it returns the finished ones.
    #[pyo3(signature = (point, first_run, runs, progress=None, cancel=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        point: usize,
        first_run: u64,
        runs: u64,
        progress: Option<&Bound<'py, PyAny>>,
        cancel: Option<Cancel>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let runs = first_run..first_run.saturating_add(runs);
        let (output, is_late) = watched_with(py, progress, cancel, |progress| self.run_piece(point, runs, progress))?;
        Ok(output_to_dict(py, output?, is_late)?)
    }

    /// The runs that are needed next at a point with these rows, as the first number and the one after the last; None if the rows
    /// are enough.
    fn next_runs(
        &self,
        py: Python<'_>,
        point: usize,
        rows: &Bound<'_, PyDict>,
    ) -> Result<Option<(u64, u64)>, BoundaryError> {
        let rows = table_from_dict(rows)?;
        match &self.0 {
            Engine::Packet(study) => {
                let next = py.detach(|| study.next_runs(point, &rows))?;
                Ok(next.map(|runs| (runs.start, runs.end)))
            }
            Engine::Fluid(_) => Ok((!has_point(&rows, point as u64)).then_some((0, 1))),
        }
    }

    /// Remarks about the study as a whole.
    fn notes(&self) -> Vec<String> {
        match &self.0 {
            Engine::Packet(study) => study.notes(),
            Engine::Fluid(_) => Vec::new(),
        }
    }
}

fn has_point(rows: &Table, point: u64) -> bool {
    rows.columns.iter().any(|(name, column)| match column {
        farlink_sim::Column::Integer(points) => name == "point" && points.contains(&point),
        _ => false,
    })
}

impl From<RunsTableError> for BoundaryError {
    fn from(error: RunsTableError) -> Self {
        BoundaryError::Python(PyValueError::new_err(error.to_string()))
    }
}

impl From<StudyError> for BoundaryError {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Scenario(error) => BoundaryError::Scenario(error),
            other => BoundaryError::Python(PyValueError::new_err(other.to_string())),
        }
    }
}
