//! Error events of decoders: collected once, kept on disk, and replayed by the channel `coded`.

mod collect;
mod file;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farlink_core::coding::{EventsError, OperatingPoint};
use farlink_core::trace::{Trace, TraceError, TraceSource};
use farlink_fec::events::ErrorEvents;
use rayon::prelude::*;

use crate::trace_file::TraceFiles;
use collect::{Found, caution, collect, none};
use file::Folder;

/// Weight of the collection of one library in the progress, in runs.
pub(crate) const WORK_PER_POINT: u64 = 100;

/// Events, or the error that prevented their collection.
type Collected = Result<Arc<ErrorEvents>, EventsError>;

/// Callback with the share of the work that is done, from 0 to 1; it returns `Break` to stop.
pub(crate) type Share<'a> = &'a (dyn Fn(f64) -> ControlFlow<()> + Sync);

/// Sources for resolving scenarios: trace files by path, and the error events of operating points, each read or collected once.
#[derive(Debug, Default)]
pub struct Sources {
    files: TraceFiles,
    folder: Option<Folder>,
    events: Mutex<BTreeMap<String, Collected>>,
    notes: Mutex<Vec<String>>,
}

impl Sources {
    /// Empty sources. Error events are kept in `folder`. By default this is `codes` in `$FARLINK_CACHE`, which itself defaults to
    /// `farlink` in `$XDG_CACHE_HOME` or `~/.cache`.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Sources { folder: folder.or_else(default_folder).map(Folder), ..Self::default() }
    }

    /// Notes for the user: files that could not be used, and points with few or no errors.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).clone()
    }

    /// Collects the events of several points on the threads of the current pool. `progress` is called with the work done, from 0
    /// to [`WORK_PER_POINT`] times their number; if it returns `Break`, the collection stops and this returns `Break` too.
    pub(crate) fn collect_all(
        &self,
        points: &[OperatingPoint],
        progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
    ) -> ControlFlow<()> {
        let done = AtomicU64::new(0);
        points.par_iter().try_for_each(|point| {
            let told = AtomicU64::new(0);
            let share = |share: f64| {
                let now = (share.clamp(0.0, 1.0) * WORK_PER_POINT as f64) as u64;
                let more = now.saturating_sub(told.fetch_max(now, Ordering::Relaxed));
                progress(done.fetch_add(more, Ordering::Relaxed) + more)
            };
            // A failure is stored as well, and returned when the events are requested.
            match self.obtain(point, &share) {
                Err(EventsError::Stopped) => ControlFlow::Break(()),
                _ => share(1.0),
            }
        })
    }

    /// Returns the events from memory or from disk, or collects them now. `progress` is called with the share of the work that is
    /// done; it returns `Break` to stop.
    ///
    /// # Errors
    /// If the collection was stopped, or is impossible.
    pub fn obtain(&self, point: &OperatingPoint, progress: Share<'_>) -> Collected {
        let key = point.key();
        if let Some(collected) = lock(&self.events).get(&key) {
            return collected.clone();
        }
        let collected = self.read_or_collect(point, progress).map(Arc::new);
        if collected != Err(EventsError::Stopped) {
            lock(&self.events).insert(key, collected.clone());
        }
        collected
    }

    fn read_or_collect(&self, point: &OperatingPoint, progress: Share<'_>) -> Result<ErrorEvents, EventsError> {
        let kept = self.folder.as_ref().map_or(Ok(None), |folder| folder.read(point)).unwrap_or_else(|why| {
            self.note(format!("error events are collected again: {why}"));
            None
        });
        if let Some(events) = kept {
            caution(point, &events).into_iter().for_each(|caution| self.note(caution));
            return Ok(events);
        }
        let events = match collect(point, progress)? {
            Found::Events(events) => events,
            Found::Never(why) => {
                // This result needs no computation, so it is not kept on disk.
                self.note(why);
                return Ok(none());
            }
        };
        caution(point, &events).into_iter().for_each(|caution| self.note(caution));
        if let Some(Err(why)) = self.folder.as_ref().map(|folder| folder.write(point, &events)) {
            self.note(format!("error events cannot be kept for the next time: {why}"));
        }
        Ok(events)
    }

    fn note(&self, note: String) {
        lock(&self.notes).push(note);
    }
}

impl TraceSource for Sources {
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError> {
        self.files.load(file)
    }

    fn error_events(&self, point: &OperatingPoint) -> Collected {
        self.obtain(point, &|_| ControlFlow::Continue(()))
    }
}

/// For the fuzzer: whether bytes are a valid file of events. With `is_sealed`, the bytes are the content between a correct
/// heading and a correct checksum.
#[cfg(fuzzing)]
pub fn is_kept_file(bytes: &[u8], is_sealed: bool) -> bool {
    let whole = if is_sealed { file::sealed(bytes, "key") } else { bytes.to_vec() };
    file::parse(&whole, "key").is_ok()
}

/// Records which error events are requested and returns empty ones instead; a scenario that was resolved with it must not be run.
pub(crate) struct Asked<'a> {
    sources: &'a Sources,
    points: Mutex<BTreeMap<String, OperatingPoint>>,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(sources: &'a Sources) -> Self {
        Asked { sources, points: Mutex::default() }
    }

    /// The requested operating points, each once.
    pub(crate) fn into_points(self) -> Vec<OperatingPoint> {
        self.points.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }
}

impl TraceSource for Asked<'_> {
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError> {
        self.sources.load(file)
    }

    fn error_events(&self, point: &OperatingPoint) -> Collected {
        lock(&self.points).insert(point.key(), point.clone());
        Ok(Arc::new(none()))
    }
}

/// Locks a mutex. A poisoned one can still be used, because entries are always inserted whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The default folder; `None` without a home directory.
fn default_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The base directory specification: a relative path is to be ignored.
    let base = || folder("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let home = || folder("HOME").or_else(|| folder("USERPROFILE")).map(|home| home.join(".cache"));
    let farlink = folder("FARLINK_CACHE").or_else(|| base().or_else(home).map(|base| base.join("farlink")));
    farlink.map(|farlink| farlink.join("codes"))
}
