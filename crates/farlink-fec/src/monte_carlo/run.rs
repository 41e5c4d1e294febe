//! Runs batches on all cores and returns their results in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::Watch;
use crate::scheme::GoesOn;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    Exhausted,
    Interrupted,
}

/// Makes as many numbered batches as contain `bits` bits, and passes them to `take` in order.
///
/// `take` returns whether that is enough, and otherwise whether to continue; it gets the watch to ask. Batches are started a few
/// at a time. Those after the one that was enough are discarded, so that the result does not depend on the number of threads.
/// While they run, the watch is called with its latest arguments, so that slow batches can be stopped; then all of them are
/// discarded.
pub(crate) fn run<T: Send>(
    bits: u64,
    batch_bits: u64,
    watch: Watch<'_>,
    make: impl Fn(u64, GoesOn<'_>) -> T + Sync,
    mut take: impl FnMut(T, u64, Watch<'_>) -> (bool, bool),
) -> Ended {
    let batches = bits.div_ceil(batch_bits);
    let at_once = 2 * rayon::current_num_threads() as u64;
    let is_stopped = AtomicBool::new(false);
    let told: Mutex<(u64, u64)> = Mutex::new((0, bits));
    let asks = || {
        let (done, total) = *told.lock().unwrap_or_else(PoisonError::into_inner);
        watch(done, total)
    };
    let goes_on = || {
        if !is_stopped.load(Ordering::Relaxed) && !asks() {
            is_stopped.store(true, Ordering::Relaxed);
        }
        !is_stopped.load(Ordering::Relaxed)
    };
    let tell = |done, total| {
        *told.lock().unwrap_or_else(PoisonError::into_inner) = (done, total);
        watch(done, total)
    };
    let mut next = 0;
    while next < batches {
        let end = batches.min(next + at_once);
        let made: Vec<T> = (next..end).into_par_iter().map(|batch| make(batch, &goes_on)).collect();
        if is_stopped.load(Ordering::Relaxed) {
            return Ended::Interrupted;
        }
        for (batch, made) in (next..end).zip(made) {
            match take(made, batch, &tell) {
                (true, _) => return Ended::Done,
                (false, false) => return Ended::Interrupted,
                (false, true) => {}
            }
        }
        next = end;
    }
    Ended::Exhausted
}
