use proptest::prelude::*;
use serde_json::json;

use super::*;

fn length(keys: serde_json::Value) -> Length {
    Length::new(&serde_json::from_value(keys).unwrap(), 20, 8000)
}

fn optimal_bytes(ber: f64) -> u32 {
    libm::round(best_bits(-libm::log1p(-ber), 160.0) / 8.0) as u32
}

#[test]
fn a_genie_applies_hints_to_the_next_frame() {
    let mut length = length(json!({ "estimate": "genie", "rule": "optimal" }));
    assert!(length.wants_hints());
    assert_eq!(length.next_bytes(Time::ZERO), 8000, "before the first hint");
    for (ber, bytes) in [(1e-6, 1571), (1e-5, optimal_bytes(1e-5)), (0.5, 100), (1.0, 100), (0.0, 8000), (1e-6, 1571)] {
        length.set_link_ber(Time::ZERO, ber);
        assert_eq!(length.next_bytes(Time::ZERO), bytes, "{ber}");
    }
    length.on_lost(Time::ZERO, 1000);
    length.on_acknowledged(Time::ZERO, 1, 1000);
    assert_eq!(length.next_bytes(Time::from_secs(9)), 1571, "it does not estimate");
}

#[test]
fn a_measurement_counts_when_its_report_arrives() {
    let keys = json!({ "estimate": "measured", "rule": "optimal", "measurement_delay_s": 0.008, "measurement_interval_s": 0.002 });
    let mut length = length(keys);
    assert!(length.wants_hints());
    length.set_link_ber(Time::from_millis(1), 1e-5);
    assert_eq!(length.next_bytes(Time::from_millis(9)), 8000, "the sample is taken at 2 ms");
    assert_eq!(length.next_bytes(Time::from_millis(10)), optimal_bytes(1e-5));
}

#[test]
fn an_estimator_ignores_hints() {
    let mut length = length(json!({ "rule": "optimal" }));
    assert!(!length.wants_hints());
    length.set_link_ber(Time::ZERO, 1e-3);
    assert_eq!(length.next_bytes(Time::ZERO), 8000);
}

#[test]
fn losses_shorten_frames_and_their_absence_lengthens_them() {
    let mut length = length(json!({ "rule": "optimal", "memory_s": 0.01 }));
    assert_eq!(length.next_bytes(Time::ZERO), 8000);
    let mut before = 8000;
    for k in 1..6 {
        length.on_lost(Time::from_millis(k), 8000);
        let now = length.next_bytes(Time::from_millis(k));
        assert!(now < before, "{now} after {before}");
        before = now;
    }
    assert_eq!(length.next_bytes(Time::from_secs(9)), 8000);
}

#[test]
fn acknowledged_bits_make_frames_longer() {
    let mut length = length(json!({ "rule": "optimal", "memory_s": 1 }));
    length.on_lost(Time::ZERO, 1000);
    let short = length.next_bytes(Time::ZERO);
    length.on_acknowledged(Time::from_millis(20), 1000, 1_000_000);
    let longer = length.next_bytes(Time::from_millis(20));
    assert!(longer > short, "{longer} after {short}");
}

#[test]
fn a_power_of_one_is_the_optimum_and_others_bend_it_around_the_header() {
    let mut same = length(json!({ "estimate": "genie", "rule": "power", "scale": 1, "exponent": 1 }));
    let mut bent = length(json!({ "estimate": "genie", "rule": "power", "scale": 2, "exponent": 0.5 }));
    for ber in [1e-3, 1e-5, 1e-6] {
        same.set_link_ber(Time::ZERO, ber);
        bent.set_link_ber(Time::ZERO, ber);
        assert!(same.next_bytes(Time::ZERO).abs_diff(optimal_bytes(ber).max(100)) <= 1, "{ber}");
        let best = best_bits(-libm::log1p(-ber), 160.0) / 8.0;
        let expected = (2.0 * 20.0 * (best / 20.0).sqrt()) as u32;
        assert!(bent.next_bytes(Time::ZERO).abs_diff(expected.max(100)) <= 1, "{ber}");
    }
}

#[test]
fn two_lengths_depend_on_the_latest_loss_only() {
    let mut length = length(json!({ "rule": "two-lengths", "memory_s": 0.01, "min_bytes": 300 }));
    assert_eq!(length.next_bytes(Time::ZERO), 8000);
    length.on_lost(Time::from_millis(1), 8000);
    assert_eq!(length.next_bytes(Time::from_millis(1)), 300);
    length.on_acknowledged(Time::from_millis(2), 100, 1_000_000);
    assert_eq!(length.next_bytes(Time::from_millis(10)), 300);
    assert_eq!(length.next_bytes(Time::from_millis(11)), 8000);
}

proptest! {
    #[test]
    fn lengths_stay_within_their_bounds(
        rule in prop::sample::select(vec!["optimal", "power", "two-lengths"]),
        estimate in prop::sample::select(vec!["acknowledged", "genie", "measured"]),
        min_bytes in 1_u32..500,
        more in 0_u32..9000,
        (scale, exponent) in (0.01..50.0_f64, 0.01..3.0_f64),
        prior_losses in 0.001..10.0_f64,
        events in proptest::collection::vec((0_u8..3, 0_u64..5_000, 0.0..=1.0_f64), 0..60),
    ) {
        prop_assume!(estimate == "acknowledged" || rule != "two-lengths");
        let config = json!({
            "estimate": estimate, "rule": rule, "min_bytes": min_bytes,
            "memory_s": 0.001, "prior_losses": prior_losses, "scale": scale, "exponent": exponent,
        });
        let max_bytes = min_bytes + more;
        let mut length = Length::new(&serde_json::from_value(config).unwrap(), 20, u64::from(max_bytes));
        let mut now = Time::ZERO;
        for (event, passed_us, share) in events {
            now += Time::from_ps(passed_us * 1_000_000);
            match event {
                0 => length.on_lost(now, (share * f64::from(max_bytes)) as u32),
                1 => length.on_acknowledged(now, 3, (share * 1e6) as u64),
                _ => length.set_link_ber(now, share * share * share),
            }
            let bytes = length.next_bytes(now);
            prop_assert!((min_bytes..=max_bytes).contains(&bytes), "{}", bytes);
        }
    }
}
