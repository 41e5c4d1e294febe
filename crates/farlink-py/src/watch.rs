//! Long work with a live interpreter: progress, signals, Ctrl-C.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use farlink_sim::Progress;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::cancel::Cancel;

/// Interval at which Python is asked for signals and told the progress.
const INTERVAL: Duration = Duration::from_millis(100);

/// State that the work and the watcher share.
#[derive(Default)]
struct Shared {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
    is_finished: AtomicBool,
}

/// Runs `work` on its own thread, with the interpreter released, while this thread calls `callback(done, total)` and checks for
/// signals about ten times a second.
///
/// On Ctrl-C its progress function tells the work to stop; then the result of the work is returned. If the work was finished by then, the
/// interrupt is raised again, behind the result.
///
/// # Errors
/// The exception of the callback or of a signal handler, once the work has stopped.
///
/// # Panics
/// If the work does.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Progress<'_>) -> T + Send,
) -> PyResult<T> {
    raised_again(py, watched_with(py, callback, None, work)?)
}

/// The result of [`watched_with`]. If Ctrl-C came too late for the work, the main thread gets it once more, as soon as it runs Python.
///
/// # Errors
/// If the interpreter has no threads any more.
pub(crate) fn raised_again<T>(py: Python<'_>, (result, is_late): (T, bool)) -> PyResult<T> {
    if is_late {
        py.import("_thread")?.call_method0("interrupt_main")?;
    }
    Ok(result)
}

/// As [`watched`], for work that a token can stop too, without the interpreter. Says besides whether Ctrl-C came when the work could not
/// notice it any more: who runs one work after another would lose it.
///
/// # Errors
/// As [`watched`].
///
/// # Panics
/// As [`watched`].
pub(crate) fn watched_with<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    cancel: Option<Cancel>,
    work: impl FnOnce(Progress<'_>) -> T + Send,
) -> PyResult<(T, bool)> {
    let shared = Shared::default();
    let watcher = thread::current();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // This also happens if the work panics.
            let _finish = Finish { shared: &shared, watcher };
            work(&|done, total| {
                // Threads report in any order; the count only increases.
                shared.done.fetch_max(done, Ordering::Relaxed);
                shared.total.store(total, Ordering::Relaxed);
                if shared.is_cancelled.load(Ordering::Relaxed) || cancel.as_ref().is_some_and(Cancel::is_set) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        });

        let (mut failure, mut is_late) = (None, false);
        loop {
            py.detach(|| thread::park_timeout(INTERVAL));
            let is_finished = shared.is_finished.load(Ordering::Acquire);
            if let Err(error) = py.check_signals().and_then(|()| report(callback, &shared)) {
                shared.is_cancelled.store(true, Ordering::Relaxed);
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    is_late = is_finished;
                } else {
                    failure.get_or_insert(error);
                }
            }
            if is_finished {
                break;
            }
        }
        let result = py.detach(|| worker.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        failure.map_or(Ok((result, is_late)), Err)
    })
}

/// Reports the progress to Python, once the total is known, and not after a stop was requested.
fn report(callback: Option<&Bound<'_, PyAny>>, shared: &Shared) -> PyResult<()> {
    let (done, total) = (shared.done.load(Ordering::Relaxed), shared.total.load(Ordering::Relaxed));
    match callback {
        Some(callback) if total > 0 && !shared.is_cancelled.load(Ordering::Relaxed) => {
            callback.call1((done, total)).map(drop)
        }
        _ => Ok(()),
    }
}

struct Finish<'a> {
    shared: &'a Shared,
    watcher: Thread,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.shared.is_finished.store(true, Ordering::Release);
        self.watcher.unpark();
    }
}
