//! Options and results of a study.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use farlink_core::ConfigError;

use crate::table::Table;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Number of threads; unless given, the number of cores.
    pub threads: Option<usize>,
    /// Folder of error events; see [`Sources::new`](crate::Sources::new).
    pub codes: Option<PathBuf>,
    /// Called before a study begins that will take long.
    pub announce: Option<Announce>,
    /// Do not store the rows of single runs, so that memory does not grow with their number; the summary is the same.
    pub without_rows: bool,
    /// The runs of each point, in place of those that the scenario asks for.
    pub runs: Option<Range<u64>>,
}

/// A function that is called before a study begins.
#[derive(Clone)]
pub struct Announce(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for Announce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Announce(..)")
    }
}

/// The results of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// A row per point, engine, flow and run; empty if none were requested.
    pub rows: Table,
    /// A row per point, engine and flow.
    pub summary: Table,
    /// Whether it was stopped before its end; the finished runs are included.
    pub interrupted: bool,
    /// Remarks for the user, such as stored files that could not be used.
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
    /// It was stopped before there was any result.
    #[error("stopped before its end")]
    Stopped,
}

/// A pool of `threads` threads, or of one per core.
///
/// # Errors
/// If they cannot be started.
pub fn thread_pool(threads: Option<usize>) -> Result<rayon::ThreadPool, RunError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    pool.map_err(|error| RunError::Threads(error.to_string()))
}
