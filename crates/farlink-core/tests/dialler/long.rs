//! Years of a bundle.

use super::bundle;
use super::field::{Field, GREENLAND};

/// Eight lines for so many days, with these budgets of the whole bundle. Returns ups and events.
fn run(days: u64, budgets: &str) -> (u64, u64) {
    let keys = format!(r#", "use": 6, "budget": {{{budgets}}}"#);
    let mut field = Field::new(&bundle(8, &keys, r#", "least_signal": 2"#), &GREENLAND, 1);
    field.run(days as f64 * 86_400.0);
    (field.modems.iter().map(|modem| modem.ups).sum(), field.events)
}

#[test]
fn a_hundred_days_of_eight_lines() {
    let (ups, events) = run(100, "");
    assert!(ups > 10_000 && events > 50_000, "{ups} {events}");
}

#[test]
fn a_hundred_days_with_budgets_of_all_lines() {
    let (free, _) = run(100, "");
    let (ups, events) = run(100, r#""airtime_s_per_day": 200000, "airtime_s_per_month": 5000000"#);
    assert!(ups > 3_000 && ups < free * 3 / 5 && events > 15_000, "{ups} of {free}, {events}");
}

/// 10,000 days, which are longer than any clock of the core: `make soak`.
#[test]
#[ignore = "half a minute, optimised"]
fn ten_thousand_days_of_eight_lines() {
    long(10_000, "");
}

#[test]
#[ignore = "half a minute, optimised"]
fn ten_thousand_days_with_budgets_of_all_lines() {
    long(10_000, r#""airtime_s_per_day": 200000, "airtime_s_per_month": 5000000"#);
}

/// The speed is printed, not judged: other people's work may run on the machine.
#[expect(clippy::disallowed_methods, reason = "the test measures its own speed")]
fn long(days: u64, budgets: &str) {
    let start = std::time::SystemTime::now();
    let (ups, events) = run(days, budgets);
    let took_s = start.elapsed().unwrap().as_secs_f64();
    println!("{days} days: {ups} connections, {events} events in {took_s:.1} s");
    assert!(ups > 30 * days, "{ups} connections");
}
