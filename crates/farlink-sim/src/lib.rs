//! The packet engine.

mod table;

use std::ops::ControlFlow;

use farlink_core::scenario::{Expanded, ScenarioError};

pub use table::{Column, Series, Table};

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Threads; as many as there are cores unless given.
    pub threads: Option<usize>,
}

/// What a scenario gave.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// A row per point, engine, flow and run.
    pub rows: Table,
    /// A row per point, engine and flow.
    pub summary: Table,
    /// Whether it was stopped before its end; the finished runs are there.
    pub interrupted: bool,
}

/// One run, observed.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// Every packet, as a pcapng file.
    pub pcapng: Option<Vec<u8>>,
    /// State over time.
    pub series: Series,
}

/// Why a scenario cannot be run.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario, or a file that it names, is not usable.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Told how many runs are done, of how many; asks to stop with `Break`.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

/// Runs every point of a scenario.
///
/// # Errors
/// If the scenario, or a file that it names, is not usable.
pub fn run(_points: &Expanded, _options: &Options, progress: Progress<'_>) -> Result<Output, RunError> {
    for done in 0..20 {
        if progress(done, 20).is_break() {
            return Ok(Output { interrupted: true, ..Output::default() });
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Ok(Output::default())
}

/// Runs one run again and observes it.
///
/// # Errors
/// As [`run`], and if there is no such point or run.
pub fn trace_run(
    _points: &Expanded,
    _point: usize,
    _run: u64,
    _want_series: bool,
    _want_pcap: bool,
) -> Result<Traced, RunError> {
    Ok(Traced::default())
}
