//! How many random schedules a test plays.

/// `in_make_test`; in `make nightly` and `make soak` four times as many, or `per_case` for each of their random cases if that is more.
pub(crate) fn schedules(in_make_test: u64, per_case: u64) -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u64>().ok());
    cases.map_or(in_make_test, |cases| (cases * per_case).max(4 * in_make_test))
}
