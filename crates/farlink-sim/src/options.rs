//! How a study is run, and what it gives.

use std::path::PathBuf;
use std::sync::Arc;

use farlink_core::ConfigError;

use crate::table::Table;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads; as many as there are cores unless given.
    pub threads: Option<usize>,
    /// Where error events are kept; see [`Sources::new`](crate::Sources::new).
    pub codes: Option<PathBuf>,
    /// Told before it begins that a study will take long.
    pub announce: Option<Announce>,
    /// Keep no rows of single runs, so that memory does not grow with their number; the summary is the same.
    pub without_rows: bool,
}

/// Something to tell before a study begins.
#[derive(Clone)]
pub struct Announce(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for Announce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Announce(..)")
    }
}

/// What a scenario gave.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// A row per point, engine, flow and run; nothing if none were wanted.
    pub rows: Table,
    /// A row per point, engine and flow.
    pub summary: Table,
    /// Whether it was stopped before its end; the finished runs are there.
    pub interrupted: bool,
    /// What the user should know: kept files that could not be used.
    pub notes: Vec<String>,
}

/// Why a scenario cannot be run.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario, or a file that it names, is not usable.
    #[error(transparent)]
    Scenario(#[from] ConfigError),
    /// There are no threads to run on.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// It was asked to stop before there was anything to give.
    #[error("stopped before its end")]
    Stopped,
}

/// So many threads, or as many as there are cores.
///
/// # Errors
/// If they cannot be started.
pub fn thread_pool(threads: Option<usize>) -> Result<rayon::ThreadPool, RunError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| RunError::Threads(error.to_string()))
}
