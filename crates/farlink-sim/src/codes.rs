//! Codes without a link: error rates and positions of wrong bits.

use std::sync::atomic::{AtomicBool, Ordering};

use farlink_core::ConfigError;
use farlink_core::coding::OperatingPoint;
use farlink_fec::events::{self, BurstCounter, BurstStatistics, ErrorEvents, Trace};
use farlink_fec::monte_carlo::{self, Effort, ErrorRate};

use crate::error_events::Sources;
use crate::options::{Options, RunError, thread_pool};
use crate::watch::Progress;

/// Error rates at a decoder's output, simulated until they have the requested accuracy; if it is stopped, those of the finished
/// part. The effort of the point itself is not used.
///
/// # Errors
/// If the code is invalid, or a number is out of range.
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

/// Positions of the wrong bits among the first `bits` at a decoder's output; if it is stopped, those found before.
///
/// # Errors
/// If the code is invalid.
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

/// The result of [`error_bursts`].
#[derive(Clone, Debug, PartialEq)]
pub struct Bursts {
    /// Statistics of the bursts of all bits that were decoded.
    pub statistics: BurstStatistics,
    /// Number of wrong bits that were written, and the number of bits that contain them: all, unless there were more wrong bits
    /// than may be written.
    pub written: (u64, u64),
    /// Whether it was stopped.
    pub is_interrupted: bool,
}

/// Statistics of the bursts of wrong bits among the first `bits` at a decoder's output. They are those of [`error_trace`],
/// counted without storing the bits, so that memory does not grow with their number. Positions of up to `most` wrong bits are
/// written to `positions` as little-endian numbers of 8 bytes.
///
/// # Errors
/// If the code is invalid, or `positions` cannot be written.
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

/// The error events that the channel `coded` plays, which are stored on disk for the next use, and remarks for the user.
///
/// # Errors
/// If the code is invalid, there are no events, or it was stopped.
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
