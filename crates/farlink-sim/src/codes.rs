//! Codes on their own, without a link: error rates and where the wrong bits lie.

use std::sync::atomic::{AtomicBool, Ordering};

use farlink_core::ConfigError;
use farlink_core::coding::OperatingPoint;
use farlink_fec::events::{self, BurstCounter, BurstStatistics, ErrorEvents, Trace};
use farlink_fec::monte_carlo::{self, Effort, ErrorRate};

use crate::error_events::Sources;
use crate::options::{Options, RunError, thread_pool};
use crate::watch::Progress;

/// Error rates at a decoder's output, simulated until they are known as well as asked for; what is finished if it is stopped.
/// The point's own effort does not matter here.
///
/// # Errors
/// If there is no such code, or a number is out of range.
pub fn error_rate(
    point: &OperatingPoint,
    effort: &Effort,
    options: &Options,
    progress: Progress<'_>,
) -> Result<ErrorRate, RunError> {
    let scheme = point.scheme()?;
    let watch = |done, total| progress(done, total).is_continue();
    let rate =
        thread_pool(options.threads)?.install(|| monte_carlo::error_rate(&scheme, point.ebn0_db.get(), effort, &watch));
    rate.map_err(|error| ConfigError::new("effort", error, "give a number in its range").into())
}

/// Positions of the wrong bits among the first `bits` at a decoder's output; those before it was stopped.
///
/// # Errors
/// If there is no such code.
pub fn error_trace(
    point: &OperatingPoint,
    bits: u64,
    seed: u64,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Trace, RunError> {
    let scheme = point.scheme()?;
    let watch = |done, total| progress(done, total).is_continue();
    Ok(thread_pool(options.threads)?.install(|| events::trace(&scheme, point.ebn0_db.get(), bits, seed, &watch)))
}

/// What [`error_bursts`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Bursts {
    /// Statistics of the bursts of all bits that were decoded.
    pub statistics: BurstStatistics,
    /// How many wrong bits were written, and among how many bits they are: all, unless there were more than may be written.
    pub written: (u64, u64),
    /// Whether it was stopped.
    pub is_interrupted: bool,
}

/// Statistics of the bursts of wrong bits among the first `bits` at a decoder's output: those of [`error_trace`], counted as
/// they come, so that memory does not grow with the bits. Positions of up to `most` wrong bits are written to `positions` as
/// little-endian numbers of 8 bytes.
///
/// # Errors
/// If there is no such code, or `positions` cannot be written.
#[expect(clippy::too_many_arguments, reason = "a run, what is counted in it, and where what is kept goes")]
pub fn error_bursts(
    point: &OperatingPoint,
    bits: u64,
    gap_bits: u64,
    seed: u64,
    mut positions: Option<&mut (dyn std::io::Write + Send)>,
    most: u64,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Result<Bursts, std::io::Error>, RunError> {
    let scheme = point.scheme()?;
    let failed = AtomicBool::new(false);
    let watch = |done, total| !failed.load(Ordering::Relaxed) && progress(done, total).is_continue();
    let mut counter = BurstCounter::new(gap_bits);
    let mut failure = None;
    let mut first_left_out = None;
    let visit = |at: u64| {
        if counter.wrong_bits() == most {
            first_left_out = Some(at);
        }
        counter.wrong_bit(at);
        if let (Some(file), None, None) = (&mut positions, first_left_out, &failure)
            && let Err(error) = file.write_all(&at.to_le_bytes())
        {
            failed.store(true, Ordering::Relaxed);
            failure = Some(error);
        }
    };
    let walked =
        thread_pool(options.threads)?.install(|| events::walk(&scheme, point.ebn0_db.get(), bits, seed, &watch, visit));
    if let Some(error) = failure {
        return Ok(Err(error));
    }
    let written = (counter.wrong_bits().min(most), first_left_out.unwrap_or(walked.bits));
    let statistics = counter.finish(walked.bits);
    Ok(Ok(Bursts { statistics, written, is_interrupted: walked.is_interrupted }))
}

/// The error events that the channel `coded` plays, kept on disk for the next time, and what the user should know.
///
/// # Errors
/// If there is no such code, there are no events to be seen, or it was stopped.
pub fn error_events(
    point: &OperatingPoint,
    options: &Options,
    progress: Progress<'_>,
) -> Result<(ErrorEvents, Vec<String>), RunError> {
    use farlink_core::coding::EventsError::{Impossible, Stopped};

    point.scheme()?;
    const STEPS: f64 = 1000.0;
    let sources = Sources::new(options.codes.clone());
    let share = |share: f64| progress((share * STEPS) as u64, STEPS as u64);
    match thread_pool(options.threads)?.install(|| sources.obtain(point, &share)) {
        Ok(events) => Ok(((*events).clone(), sources.notes())),
        Err(Stopped) => Err(RunError::Stopped),
        Err(Impossible { message, remedy }) => Err(ConfigError::new("", message, remedy).into()),
        Err(other) => Err(ConfigError::new("", other, "try again").into()),
    }
}
