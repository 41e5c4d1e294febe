//! Batches on all cores, their results in order.

use rayon::prelude::*;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    Exhausted,
    Interrupted,
}

/// Makes up to `batches` batches by their numbers and hands them over in order.
///
/// `take` says whether that is enough, and whether to go on otherwise. Batches are begun a few at a time; those behind the
/// one that was enough are thrown away, so that the result does not depend on how many threads there are.
pub(crate) fn run<T: Send>(
    batches: u64,
    make: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(T, u64) -> (bool, bool),
) -> Ended {
    let at_once = 2 * rayon::current_num_threads() as u64;
    let mut next = 0;
    while next < batches {
        let end = batches.min(next + at_once);
        let made: Vec<T> = (next..end).into_par_iter().map(&make).collect();
        for (batch, made) in (next..end).zip(made) {
            match take(made, batch) {
                (true, _) => return Ended::Done,
                (false, false) => return Ended::Interrupted,
                (false, true) => {}
            }
        }
        next = end;
    }
    Ended::Exhausted
}
