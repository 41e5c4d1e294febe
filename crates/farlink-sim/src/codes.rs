//! Codes on their own, without a link: error rates and where the wrong bits lie.

use farlink_core::coding::OperatingPoint;
use farlink_core::scenario::ScenarioError;
use farlink_fec::events::{self, ErrorEvents, Trace};
use farlink_fec::monte_carlo::{self, Effort, ErrorRate};
use farlink_fec::scheme::Scheme;

use crate::error_events::Sources;
use crate::study::{Options, Progress, RunError, thread_pool};

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
    let scheme = scheme(point)?;
    let watch = |done, total| progress(done, total).is_continue();
    let rate =
        thread_pool(options.threads)?.install(|| monte_carlo::error_rate(&scheme, point.ebn0_db.get(), effort, &watch));
    rate.map_err(|error| ScenarioError::new("effort", error, "give a number in its range").into())
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
    let scheme = scheme(point)?;
    let watch = |done, total| progress(done, total).is_continue();
    Ok(thread_pool(options.threads)?.install(|| events::trace(&scheme, point.ebn0_db.get(), bits, seed, &watch)))
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

    scheme(point)?;
    const STEPS: f64 = 1000.0;
    let sources = Sources::new(options.codes.clone());
    let share = |share: f64| progress((share * STEPS) as u64, STEPS as u64);
    match thread_pool(options.threads)?.install(|| sources.obtain(point, &share)) {
        Ok(events) => Ok(((*events).clone(), sources.notes())),
        Err(Stopped) => Err(RunError::Stopped),
        Err(Impossible { message, remedy }) => Err(ScenarioError::new("", message, remedy).into()),
        Err(other) => Err(ScenarioError::new("", other, "try again").into()),
    }
}

fn scheme(point: &OperatingPoint) -> Result<Scheme, ScenarioError> {
    point.scheme().map_err(|unfit| ScenarioError::new(unfit.key, unfit.message, unfit.remedy))
}
