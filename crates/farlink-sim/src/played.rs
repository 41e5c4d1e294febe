//! Paths for an emulator, which plays them with real packets.

use farlink_core::emulator::check_playable;
use farlink_core::path::{Channels, PathSetup};
use farlink_core::scenario::Expanded;
use farlink_core::{ConfigError, Time};

use crate::error_events::{Asked, Sources, WORK_PER_POINT};
use crate::options::{Options, RunError, thread_pool};
use crate::watch::{Progress, Watch};

/// The path of a grid point, for a play of this duration or without end, with the error events of its codings, and notes for the user.
///
/// # Errors
/// If there is no such point, a file that the scenario names is not usable, real packets cannot play the path, or it was stopped.
pub fn played_path(
    points: &Expanded,
    point: usize,
    duration: Option<Time>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<(PathSetup, Vec<String>), RunError> {
    let Some(chosen) = points.points.get(point) else {
        let what = format!("there is no grid point {point}");
        return Err(ConfigError::new("", what, format!("give one from 0 to {}", points.points.len() - 1)).into());
    };
    check_playable(&chosen.scenario)?;
    let (sources, watch) = (Sources::new(options.codes.clone()), Watch::new(progress));
    let asked = Asked::new(&sources);
    let path = PathSetup::resolve(&chosen.scenario, duration, &asked, &mut Channels::default())?;
    let wanted = asked.into_points();
    if wanted.is_empty() {
        return Ok((path, sources.notes()));
    }
    watch.expect(WORK_PER_POINT * wanted.len() as u64);
    let pool = thread_pool(options.threads)?;
    if pool.install(|| sources.collect_all(&wanted, &|done| watch.report(done))).is_break() {
        return Err(RunError::Stopped);
    }
    let path = PathSetup::resolve(&chosen.scenario, duration, &sources, &mut Channels::default())?;
    Ok((path, sources.notes()))
}
