//! The dialler of an operated bundle against modems that answer at random: what holds whatever happens.

mod attacks;
mod field;
mod long;
mod stories;

use farlink_core::bundle::Order;
use proptest::prelude::*;

use field::{Answers, Field, GREENLAND};

/// `lines` lines, with further keys of the bundle and of each line.
pub(crate) fn bundle(lines: usize, keys: &str, line_keys: &str) -> String {
    let line = |index: usize| format!(r#"{{"name": "line{index}", "rank": {}{line_keys}}}"#, index % 3);
    let lines: Vec<String> = (0..lines).map(line).collect();
    format!(r#"{{"lines": [{}]{keys}}}"#, lines.join(", "))
}

fn answers() -> impl Strategy<Value = Answers> {
    let chance = || 0.0..1.0_f64;
    (chance(), chance(), chance(), 0.0..5.0_f64, chance(), 1.0..5.0_f64, 1.0..5.0_f64).prop_map(
        |(connects, quiet, comes_up, up, goes_deaf, signal, trouble)| Answers {
            connects,
            says_nothing: (1.0 - connects) * quiet / 2.0,
            nonsense: (1.0 - connects) * quiet / 2.0,
            link_comes_up: comes_up,
            up_s: 10_f64.powf(up),
            goes_deaf,
            signal_s: 10_f64.powf(signal),
            trouble_s: 10_f64.powf(trouble),
        },
    )
}

fn config() -> impl Strategy<Value = String> {
    let rule = prop::sample::select(vec!["passes-on", "none", "ends-bundle", "stays-lost"]);
    let line = prop::sample::select(vec![
        "",
        r#", "least_signal": 3"#,
        r#", "budget": {"airtime_s_per_day": 3000}"#,
        r#", "least_signal": 2, "budget": {"airtime_s_per_month": 50000, "money_per_min": 1.2, "money_per_day": 90}"#,
        r#", "role": "answer", "budget": {"airtime_s_per_day": 5000}"#,
    ]);
    let budget = prop::sample::select(vec![
        "{}",
        "{}",
        r#"{"airtime_s_per_day": 4000}"#,
        r#"{"airtime_s_per_day": 9000, "airtime_s_per_month": 12000}"#,
    ]);
    (1..9_usize, rule, line, budget, 1..9_usize, 1..7_u32, 0.0..0.5_f64, 1..7_u32, 0.0..60.0_f64).prop_map(
        |(lines, rule, line, budget, wanted, attempts, jitter, flaps, dropped_s)| {
            let wanted = wanted.min(lines);
            let keys = format!(
                r#", "use": {wanted}, "primary": "{rule}", "budget": {budget}, "limits": {{"attempts": {attempts},
                "jitter": {jitter}, "flaps": {flaps}, "dropped_s": {dropped_s}, "blocked_s": 900}}"#
            );
            bundle(lines, &keys, line)
        },
    )
}

proptest! {
    /// Never two dials of one line, never stuck, attempts, drops and budgets kept, one primary: the checks of [`Field`].
    #[test]
    fn what_is_promised_holds_whatever_modems_do(config in config(), answers in answers(), seed: u64) {
        let mut field = Field::new(&config, &answers, seed);
        field.run(20_000.0);
        field.end();
        field.check_budgets();
    }

    /// The same events and seed give the same actions.
    #[test]
    fn a_dialler_is_deterministic(config in config(), answers in answers(), seed: u64) {
        let [a, b] = [0, 1].map(|_| {
            let mut field = Field::new(&config, &answers, seed);
            field.run(3_000.0);
            (field.dialler.history(), field.dialler.status(field.now_s).unwrap())
        });
        prop_assert_eq!(a, b);
    }
}

/// If nothing ever connects, each line is dialled again and again: never more than a block, with its random part, lies between.
#[test]
fn a_bundle_never_gives_up_for_good() {
    let nobody = Answers { connects: 0.0, trouble_s: 1e12, ..GREENLAND };
    for rule in ["passes-on", "none", "ends-bundle", "stays-lost"] {
        let mut field =
            Field::new(&bundle(4, &format!(r#", "primary": "{rule}""#), r#", "least_signal": 5"#), &nobody, 3);
        for _ in 0..60 {
            let before: Vec<u64> = field.modems.iter().map(|modem| modem.dials).collect();
            field.run(86_400.0 / 2.0);
            let all: u64 = field.modems.iter().zip(before).map(|(modem, before)| modem.dials - before).sum();
            assert!(all > 0, "{rule}: half a day without a dial");
        }
        assert!(field.modems.iter().all(|modem| modem.dials > 20), "{rule}");
    }
}

/// A modem that reports no signal for ever is dialled all the same, once in the time of a block.
#[test]
fn a_low_signal_delays_but_does_not_end_dialling() {
    let config = bundle(1, "", r#", "least_signal": 3"#);
    let mut dialler = field::operated(&config);
    let mut dials = Vec::new();
    for now_s in 0..20_000 {
        let now_s = f64::from(now_s);
        let mut actions = match now_s {
            0.0 => dialler.handle_bundle(now_s, farlink_core::bundle::BundleEvent::Start).unwrap(),
            _ => dialler.advance(now_s).unwrap(),
        };
        if now_s % 4.0 == 0.0 {
            let event = farlink_core::bundle::LineEvent::Signal(Some(1));
            actions.extend(dialler.handle(now_s, 0, event, None, "").unwrap());
        }
        if field::orders(&actions).contains(&Order::Dial(0)) {
            dials.push(now_s);
            dialler.handle(now_s, 0, farlink_core::bundle::LineEvent::DialFailed, None, "").unwrap();
        }
    }
    let gaps: Vec<f64> = dials.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(dials.len() >= 5 && gaps.iter().all(|gap| (3600.0..3700.0).contains(gap)), "{dials:?}");
}
