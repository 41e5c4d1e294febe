//! The engines of farlink that simulate: the packet engine, a discrete-event simulation of the real protocol state machines,
//! and the [`fluid`] engine for the long run of TCP.
//!
//! [`run`] takes a checked scenario and returns a row per grid point, flow and run, and a summary with confidence intervals; a
//! [`Study`] returns any part of them; [`trace_run`] observes one of those runs. Below them, [`engine`] runs one grid point once.
#![forbid(unsafe_code)]

pub mod codes;
mod columns;
pub mod engine;
mod error_events;
mod estimate;
pub mod fluid;
mod layout;
mod model;
mod notes;
mod observe;
mod options;
pub mod pcap;
mod played;
mod point_runs;
mod resolve;
mod rows;
mod runs_table;
pub mod stats;
mod study;
mod table;
mod tally;
mod trace_file;
mod verdict;
mod watch;

pub use error_events::Sources;
#[cfg(fuzzing)]
pub use error_events::is_kept_file;
pub use estimate::Estimate;
pub use model::{ModelRow, model_rows};
pub use observe::{Traced, trace_run};
pub use options::{Announce, Options, Output, RunError, thread_pool};
pub use played::played_path;
pub use resolve::resolve;
pub use runs_table::RunsTableError;
pub use study::{Study, StudyError, estimate, run, summarise};
pub use table::{Column, Series, Table, UnlikeTables};
pub use trace_file::{Content, LARGEST_TRACE, TraceFiles, Values};
pub use watch::Progress;

/// Fingerprint of the code that computes: SHA-256 over the Rust sources of every crate and `Cargo.lock`. Equal fingerprints give
/// equal results.
pub const BUILD: &str = env!("FARLINK_BUILD");
