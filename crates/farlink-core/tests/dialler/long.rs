//! Years of a bundle.

use super::bundle;
use super::field::{Field, GREENLAND};

/// Eight lines for so many days. Returns ups and events.
fn run(days: u64) -> (u64, u64) {
    let mut field = Field::new(&bundle(8, r#", "use": 6"#, r#", "least_signal": 2"#), &GREENLAND, 1);
    field.run(days as f64 * 86_400.0);
    (field.modems.iter().map(|modem| modem.ups).sum(), field.events)
}

#[test]
fn a_hundred_days_of_eight_lines() {
    let (ups, events) = run(100);
    assert!(ups > 10_000 && events > 50_000, "{ups} {events}");
}

/// 10,000 days, which are longer than any clock of the core: `make soak`.
#[test]
#[ignore = "half a minute, optimised"]
#[expect(clippy::disallowed_methods, reason = "the test measures its own speed")]
fn ten_thousand_days_of_eight_lines() {
    let start = std::time::SystemTime::now();
    let (ups, events) = run(10_000);
    let took_s = start.elapsed().unwrap().as_secs_f64();
    println!("10,000 days: {ups} connections, {events} events in {took_s:.1} s");
    assert!(ups > 1_000_000 && took_s < 60.0, "{ups} connections in {took_s:.1} s");
}
