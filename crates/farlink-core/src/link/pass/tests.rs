use proptest::prelude::*;

use super::*;
use crate::channel::Channel;
use crate::link::setting::{DelayConfig, DelaySetting};
use crate::rng::Rng;
use crate::trace::MemoryTraces;

fn pass(keys: &str) -> Pass {
    serde_json::from_str(&format!(r#"{{"altitude_m": 610e3{keys}}}"#)).unwrap()
}

fn at(altitude_m: f64, keys: &str) -> Pass {
    serde_json::from_str(&format!(r#"{{"altitude_m": {altitude_m}{keys}}}"#)).unwrap()
}

fn channel(pass: &Pass) -> Box<dyn Channel> {
    let outages = pass.outages(None).expect("it is down at some time");
    outages.start(&mut Rng::for_component(1, 0, "pass"))
}

/// Times at which the link goes down or comes up, s.
fn changes(pass: &Pass, count: usize) -> Vec<f64> {
    let mut channel = channel(pass);
    let mut now = Time::ZERO;
    let mut all = Vec::new();
    while all.len() < count && now < Time::NEVER {
        now = channel.next_change(now);
        all.push(now.as_secs_f64());
    }
    all
}

/// Ranges to a satellite at 610 km between 5 and 90 degrees, computed independently.
#[test]
fn range_follows_elevation() {
    for (elevation, kilometres) in [(5, 2352), (10, 1955), (20, 1412), (30, 1091), (60, 694), (90, 610)] {
        let orbit = pass(&format!(r#", "start_elevation_deg": {elevation}"#)).orbit().unwrap();
        let (seen, range) = orbit.seen_at(0.0);
        assert!((seen - f64::from(elevation)).abs() < 1e-6);
        assert_eq!((range / 1e3).round() as i32, kilometres);
    }
}

#[test]
fn a_pass_rises_culminates_and_sets() {
    let orbit = pass(r#", "start_elevation_deg": 5, "min_elevation_deg": 0, "max_elevation_deg": 60"#).orbit().unwrap();
    let highest = -orbit.phase / orbit.rate;
    assert!((orbit.seen_at(highest).0 - 60.0).abs() < 1e-6);
    assert!((orbit.seen_at(2.0 * highest).0 - 5.0).abs() < 1e-6, "as far after as before");
    assert!(orbit.seen_at(orbit.sets_at_s()).0.abs() < 1e-6);
    // About ten minutes from horizon to horizon.
    assert!((550.0..750.0).contains(&orbit.sets_at_s()), "{}", orbit.sets_at_s());
    let falling = pass(r#", "start_elevation_deg": 30, "direction": "falling""#).orbit().unwrap();
    assert!(falling.seen_at(1.0).1 > falling.seen_at(0.0).1);
}

#[test]
fn the_delay_is_range_over_speed_of_light_and_constant_after_the_pass() {
    let json = r#"{"kind": "pass", "altitude_m": 610e3, "start_elevation_deg": 5, "step_s": 1}"#;
    let setting: DelaySetting = serde_json::from_str(json).unwrap();
    let prepared = setting.prepare(&MemoryTraces::default()).unwrap();
    let mut series = prepared.start(&mut Rng::for_component(1, 0, "delay"));
    let delay = |time_s: f64| series.at(Time::from_secs_f64(time_s)).as_secs_f64();
    let orbit = pass(r#", "start_elevation_deg": 5"#).orbit().unwrap();
    let times = [0.0, 0.99, 100.0, 250.5, 5e3, 5e6];
    let ranges = times.map(delay).map(|delay| delay * SPEED_OF_LIGHT_MPS);
    let expected = times.map(|time| orbit.seen_at(f64::floor(time).min(orbit.sets_at_s())).1);
    for (range, expected) in ranges.into_iter().zip(expected) {
        assert!((range - expected).abs() < 1.0, "{range} instead of {expected}");
    }
    let most = prepared.longest().as_secs_f64() * SPEED_OF_LIGHT_MPS;
    assert!(
        (most - 2352e3).abs() < 1e3 && (prepared.shortest().as_secs_f64() * SPEED_OF_LIGHT_MPS - 610e3).abs() < 1.0
    );
}

/// At 780 km from 8.2 degrees up to the zenith and down: by hand, 2 (79.4 degrees less the angle at the satellite) of an orbit of
/// 6,028 s.
#[test]
fn the_link_goes_down_at_the_end_of_the_pass() {
    let iridium = at(780e3, r#", "start_elevation_deg": 8.2, "min_elevation_deg": 8.2"#);
    let seen = 2.0 * ((6371.0 / 7151.0 * 8.2f64.to_radians().cos()).acos().to_degrees() - 8.2) / 360.0;
    let expected_s = seen * std::f64::consts::TAU * (7_151_000f64.powi(3) / GRAVITY).sqrt();
    let [down, up] = changes(&iridium, 2)[..] else { panic!() };
    assert!((down - expected_s).abs() < 1e-6 && (660.0..680.0).contains(&down), "{down} instead of {expected_s}");
    assert!(up > 1e7, "no other satellite follows");
    assert!(iridium.outages(Some(Time::from_secs_f64(expected_s - 1.0))).is_none(), "a run that ends before");
    // Before it has risen the link is down, too.
    let early = at(780e3, r#", "start_elevation_deg": 0, "min_elevation_deg": 8.2"#);
    let [up, down, _] = changes(&early, 3)[..] else { panic!() };
    assert!((down - up - expected_s).abs() < 1e-6 && up > 60.0, "{up} {down}");
}

#[test]
fn the_next_satellite_takes_over() {
    let first = at(780e3, r#", "min_elevation_deg": 8.2"#).orbit().unwrap().sets_at_s();
    // With satellites closer than the length of a pass there is a gap at each handover. With larger distances the link is down
    // until the next has risen.
    for (keys, period, gap) in [
        (r#""revisit_s": 540, "handover_s": 2"#, 540.0, 2.0),
        (r#""revisit_s": 900, "handover_s": 2"#, 900.0, 900.0 - first),
        (r#""handover_s": 0.5"#, first + 0.5, 0.5),
    ] {
        let followed = at(780e3, &format!(r#", "min_elevation_deg": 8.2, {keys}"#));
        let expected = [first, first + gap, first + period, first + period + gap];
        for (found, expected) in changes(&followed, 4).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{keys}: {found} instead of {expected}");
        }
        let passes = followed.passes().unwrap();
        // The next satellite takes over at the end of the pass, at the elevation of the first one at its start.
        let (before, after) = (passes.delay_at(first), passes.delay_at(first + period - 1e-3));
        assert!(before.since(after).max(after.since(before)) < Time::from_millis(1));
        let middle = passes.delay_at(first + period - first / 2.0);
        assert!((middle.as_secs_f64() * SPEED_OF_LIGHT_MPS - 780e3).abs() < 1.0, "{keys}: at the zenith again");
    }
    assert!(at(780e3, r#", "revisit_s": 300"#).outages(None).is_none(), "a handover without a gap");
}

#[test]
fn a_geostationary_satellite_has_a_constant_delay() {
    let geo = at(35_786e3, r#", "start_elevation_deg": 30"#);
    let passes = geo.passes().unwrap();
    assert_eq!(passes.delay_at(0.0), passes.delay_at(1e7));
    assert!(geo.outages(None).is_none());
    // 38,600 km at 30 degrees.
    assert!((passes.delay_at(0.0).as_secs_f64() - 0.12876).abs() < 5e-4, "{}", passes.delay_at(0.0));
    let series = Overhead::new(passes, Time::from_millis(10));
    assert_eq!(series.next_change(Time::ZERO), Time::NEVER);
    // In another plane it moves, though slowly.
    assert!(at(35_786e3, r#", "inclination_deg": 60, "start_elevation_deg": 30"#).orbit().unwrap().rate > 0.0);
}

/// A satellite that moves with the Earth's rotation stays in sight longer, one against it shorter.
#[test]
fn the_inclination_decides_how_long_a_pass_takes() {
    let lasts =
        |inclination: f64| at(780e3, &format!(r#", "inclination_deg": {inclination}"#)).orbit().unwrap().sets_at_s();
    let still = at(780e3, "").orbit().unwrap().sets_at_s();
    assert!(lasts(0.0) > 1.07 * still && lasts(180.0) < 0.94 * still);
    assert_eq!(lasts(90.0), still);
}

#[test]
fn impossible_passes_are_refused() {
    let unfit = pass(r#", "start_elevation_deg": 50, "max_elevation_deg": 40"#).check().unwrap_err();
    assert_eq!(unfit.what, "50 degrees are above max_elevation_deg = 40");
    for (keys, key) in [
        (r#""step_s": 1e-6"#, "step_s"),
        (r#""max_elevation_deg": 20, "min_elevation_deg": 30, "start_elevation_deg": 10"#, "max_elevation_deg"),
        (r#""max_elevation_deg": 3"#, "start_elevation_deg"),
        (r#""direction": "falling", "start_elevation_deg": 3, "min_elevation_deg": 5"#, "start_elevation_deg"),
        (r#""revisit_s": 5, "handover_s": 5"#, "revisit_s"),
    ] {
        assert_eq!(pass(&format!(", {keys}")).check().unwrap_err().path, key, "{keys}");
    }
    let geo = |keys: &str| at(35_786e3, keys).check().unwrap_err().path;
    assert_eq!(geo(r#", "handover_s": 1"#), "handover_s");
    assert_eq!(geo(r#", "start_elevation_deg": 10, "min_elevation_deg": 20"#), "start_elevation_deg");
    for json in [r#"{"altitude_m": 41e6}"#, r#"{"altitude_m": 610e3, "start_elevation_deg": -1}"#] {
        assert!(serde_json::from_str::<Pass>(json).is_err(), "{json}");
    }
}

/// Any pass: altitude, elevations as fractions of the highest, direction, inclination, the next satellite.
fn passes() -> impl Strategy<Value = Pass> {
    let shape = (160e3..36_000e3f64, 0.0..=90.0f64, 0.0..=1.0f64, 0.0..=1.0f64, any::<bool>());
    let followed = prop_oneof![
        Just(String::new()),
        (1.0..1e5f64).prop_map(|revisit| format!(r#", "revisit_s": {revisit}"#)),
        (0.0..100.0f64).prop_map(|gap| format!(r#", "handover_s": {gap}"#)),
        (1.0..1e5f64, 0.0..0.9f64)
            .prop_map(|(revisit, share)| { format!(r#", "revisit_s": {revisit}, "handover_s": {}"#, share * revisit) }),
    ];
    let inclination = prop_oneof![
        Just(String::new()),
        (0.0..=180.0f64).prop_map(|degrees| format!(r#", "inclination_deg": {degrees}"#))
    ];
    (shape, followed, inclination).prop_filter_map("refused", |(shape, followed, inclination)| {
        let (altitude, highest, lowest, start, rises) = shape;
        let direction = if rises { "rising" } else { "falling" };
        let (lowest, start) = (lowest * highest, start * highest);
        let keys = format!(
            r#", "max_elevation_deg": {highest}, "min_elevation_deg": {lowest}, "start_elevation_deg": {start},
               "direction": "{direction}"{followed}{inclination}"#
        );
        Some(at(altitude, &keys)).filter(|pass| pass.check().is_ok())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_pass_has_ranges_between_the_zenith_and_the_horizon(pass in passes(), time in 0.0..=1e6f64) {
        let passes = pass.passes().unwrap();
        let range = passes.delay_at(time).as_secs_f64() * SPEED_OF_LIGHT_MPS;
        let (altitude, radius_m) = (pass.altitude_m.get(), passes.orbit.radius_m);
        let horizon = (radius_m.powi(2) - EARTH_RADIUS_M.powi(2)).sqrt();
        prop_assert!(range >= altitude * (1.0 - 1e-9) && range <= horizon * (1.0 + 1e-6), "{range}");
        let series = Overhead::new(passes, pass.step_s.time());
        prop_assert!(series.shortest() <= passes.delay_at(time) + Time::from_ps(1000));
        prop_assert!(passes.delay_at(time) <= series.longest() + Time::from_ps(1000));
    }

    /// The link is up exactly while the serving satellite is high enough.
    #[test]
    fn the_link_is_up_while_the_satellite_is_high_enough(pass in passes(), share in 0.0..=2.0f64) {
        let passes = pass.passes().unwrap();
        let orbit = passes.orbit;
        let lasts = if orbit.rate == 0.0 { 1e6 } else { orbit.sets_at_s() };
        let time = (lasts * share).min(5e6);
        let is_up = pass.outages(None).is_none_or(|outages| {
            outages.start(&mut Rng::for_component(1, 0, "pass")).state(Time::from_secs_f64(time)).up
        });
        if passes.next.is_none() && (time - orbit.sets_at_s()).abs() > 1e-6 && (time - orbit.rises_at_s()).abs() > 1e-6 {
            // The same satellite comes back after its orbit; by then it has set once, and the model has no second pass of it.
            let above_deg = orbit.seen_at(time).0 - pass.lowest_deg();
            if above_deg.abs() > 1e-6 {
                prop_assert_eq!(is_up, above_deg > 0.0 && time < orbit.sets_at_s());
            }
        }
        // A satellite near the geostationary orbit returns after so long that a period may end behind the last instant of the clock.
        let whole = |next: &Next| orbit.sets_at_s() + 2.0 * next.period_s < Time::NEVER.as_secs_f64();
        if let Some(Next { period_s, down_s }) = passes.next.filter(whole) {
            // In each period the link is up except during its gap.
            let (from, step) = (orbit.sets_at_s() + period_s, period_s / 997.0);
            let mut channel = pass.outages(None).map(|outages| outages.start(&mut Rng::for_component(1, 0, "pass")));
            let mut up = 0;
            for at in 0..997 {
                let now = Time::from_secs_f64(from + step * f64::from(at));
                up += u32::from(channel.as_mut().is_none_or(|channel| channel.state(now).up));
            }
            prop_assert!((f64::from(up) / 997.0 - (1.0 - down_s / period_s)).abs() < 0.003, "{} up of 997", up);
        }
    }

    /// A frame's delay is that of its step, in any order and at any distance of frames.
    #[test]
    fn queries_of_the_state_do_not_change_delays(pass in passes(), times in proptest::collection::vec(0.0..=1e5f64, 1..50)) {
        let mut series = Overhead::new(pass.passes().unwrap(), pass.step_s.time());
        let mut times = times;
        times.sort_by(f64::total_cmp);
        for time in times.into_iter().map(Time::from_secs_f64) {
            let expected = series.looked_up(time);
            let next = series.next_change(time);
            prop_assert!(next > time);
            if next < Time::NEVER {
                prop_assert_eq!(series.looked_up(next - Time::from_ps(1)), expected);
            }
            prop_assert_eq!(series.at(time), expected);
        }
    }
}
