//! Batches on all cores, their results in order.

use rayon::prelude::*;

use crate::scheme::{Link, Outcome};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    Exhausted,
    Interrupted,
}

/// Runs up to `batches` batches of a seed and hands their outcomes over in order.
///
/// `take` says whether that is enough, and whether to go on otherwise. Batches are begun a few at a time; those behind the
/// one that was enough are thrown away, so that the result does not depend on how many threads there are.
pub(crate) fn run(
    link: &dyn Link,
    seed: u64,
    batches: u64,
    mut take: impl FnMut(Outcome, u64) -> (bool, bool),
) -> Ended {
    let at_once = 2 * rayon::current_num_threads() as u64;
    let mut next = 0;
    while next < batches {
        let end = batches.min(next + at_once);
        let outcomes: Vec<Outcome> = (next..end).into_par_iter().map(|batch| link.run(seed, batch)).collect();
        for (batch, outcome) in (next..end).zip(outcomes) {
            match take(outcome, batch) {
                (true, _) => return Ended::Done,
                (false, false) => return Ended::Interrupted,
                (false, true) => {}
            }
        }
        next = end;
    }
    Ended::Exhausted
}
