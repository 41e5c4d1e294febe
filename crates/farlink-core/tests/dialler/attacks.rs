//! Events in any state and order, clocks that jump, numbers without measure: a dialler never panics, and goes on afterwards.

use farlink_core::Rng;
use farlink_core::bundle::{BundleEvent, CallState, LineEvent, LineStatus, OperatedDialler, Order, Reason};
use proptest::prelude::*;

use super::field::{operated, orders};
use super::{bundle, config};

fn event() -> impl Strategy<Value = LineEvent> {
    prop_oneof![
        Just(LineEvent::Carrier),
        Just(LineEvent::LinkUp),
        Just(LineEvent::DialFailed),
        any::<bool>().prop_map(|injected| LineEvent::Dropped { injected }),
        Just(LineEvent::ProbeLost),
        Just(LineEvent::ProbeAnswered),
        any::<Option<u64>>().prop_map(LineEvent::Signal),
        (0..6_u64).prop_map(|level| LineEvent::Signal(Some(level))),
        Just(LineEvent::Ring),
        Just(LineEvent::RingEnded),
        Just(LineEvent::ModemFailed),
        Just(LineEvent::PortGone),
        Just(LineEvent::PortBack),
        Just(LineEvent::Hold),
        Just(LineEvent::Release),
        Just(LineEvent::Redial),
        Just(LineEvent::Inject),
    ]
}

fn bundle_event() -> impl Strategy<Value = BundleEvent> {
    let time = prop_oneof![any::<f64>(), 0.0..3e9_f64];
    prop_oneof![
        Just(BundleEvent::Start),
        Just(BundleEvent::Start),
        Just(BundleEvent::Stop),
        Just(BundleEvent::BundleLost),
        (time, any::<f64>()).prop_map(|(unix_s, zone_s)| BundleEvent::WallClock { unix_s, zone_s }),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Line(usize, LineEvent, Option<u64>),
    Bundle(BundleEvent),
    Wait(f64),
    Jump(f64),
    WakeUp,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..8_usize, event(), prop::option::of(0..20_u64)).prop_map(|(line, event, call)| Step::Line(line, event, call)),
        1 => bundle_event().prop_map(Step::Bundle),
        4 => (0.0..100.0_f64).prop_map(Step::Wait),
        4 => Just(Step::WakeUp),
        1 => prop_oneof![0.0..1e10_f64, any::<f64>()].prop_map(Step::Jump),
    ]
}

/// After any steps, a started bundle with ports that nobody holds dials again before long.
fn dials_at_last(dialler: &mut OperatedDialler, mut now_s: f64) {
    let lines = dialler.names().len();
    for line in 0..lines {
        for event in [LineEvent::Release, LineEvent::PortBack, LineEvent::Signal(None)] {
            dialler.handle(now_s, line, event, None, "").unwrap();
        }
    }
    dialler.handle_bundle(now_s, BundleEvent::Start).unwrap();
    let end_s = now_s + 40.0 * 86_400.0;
    // It is up, dials, or waits for a call.
    let is_alive = |line: &LineStatus| {
        matches!(line.state, CallState::Connected | CallState::Connecting) || line.reason == Reason::Listening
    };
    while !dialler.status(now_s).unwrap().iter().any(is_alive) {
        let next_s = dialler.next_wakeup().expect("something is due");
        assert!(next_s < end_s, "nothing is dialled");
        now_s = next_s.max(now_s);
        dialler.advance(now_s).unwrap();
    }
}

proptest! {
    #[test]
    fn no_sequence_of_events_panics_or_ends_dialling(config in config(), steps in prop::collection::vec(step(), 0..200)) {
        let mut dialler = operated(&config);
        let lines = dialler.names().len();
        let mut now_s = 0.0_f64;
        let mut calls = vec![false; lines];
        for step in steps {
            let actions = match step {
                Step::Line(line, event, call) => dialler.handle(now_s, line % lines, event, call, "\u{1b}[31m words").unwrap(),
                Step::Bundle(event) => dialler.handle_bundle(now_s, event).unwrap(),
                Step::Wait(after_s) => {
                    now_s += after_s;
                    dialler.advance(now_s).unwrap()
                }
                Step::WakeUp => {
                    now_s = dialler.next_wakeup().unwrap_or(now_s).max(now_s);
                    dialler.advance(now_s).unwrap()
                }
                Step::Jump(to_s) => match dialler.advance(to_s) {
                    Ok(actions) => {
                        now_s = now_s.max(to_s);
                        actions
                    }
                    Err(_) => {
                        prop_assert!(!(0.0..=1e10).contains(&to_s));
                        continue;
                    }
                },
            };
            for order in orders(&actions) {
                match order {
                    Order::Dial(line) | Order::Answer(line) => calls[line] = true,
                    Order::HangUp(line) => calls[line] = false,
                    _ => {}
                }
            }
            let up = dialler.status(now_s).unwrap().iter().filter(|line| line.is_primary).count();
            prop_assert!(up <= 1);
            prop_assert!(dialler.next_wakeup().is_none_or(|next_s| next_s > now_s));
        }
        if now_s < 9.9e9 {
            dials_at_last(&mut dialler, now_s);
        }
    }

    #[test]
    fn any_history_is_read_or_refused(text in ".{0,200}", number: f64) {
        let config = farlink_core::bundle::DiallerConfig::from_json(&bundle(2, "", "")).unwrap();
        prop_assert!(OperatedDialler::new(&config, Some(&text), 1).is_err());
        let line = format!(r#"{{"connected_s": {number:e}, "drops": 1, "days": [], "months": []}}"#);
        let json = format!(r#"{{"farlink_history": 1, "lines": {{"line0": {line}}}}}"#);
        let read = OperatedDialler::new(&config, Some(&json), 1);
        prop_assert_eq!(read.is_ok(), (0.0..=1e15).contains(&number), "{}", json);
    }
}

/// A clock that goes back counts as its latest reading, and what was due stays due at that time.
#[test]
fn a_clock_that_goes_back_is_held() {
    let mut dialler = operated(&bundle(1, "", ""));
    dialler.handle_bundle(1000.0, BundleEvent::Start).unwrap();
    dialler.handle(1010.0, 0, LineEvent::DialFailed, None, "BUSY").unwrap();
    let due_s = dialler.next_wakeup().unwrap();
    assert!(dialler.advance(500.0).unwrap().is_empty());
    assert_eq!((dialler.next_wakeup(), dialler.clock_steps_back()), (Some(due_s), 1));
    assert_eq!(orders(&dialler.advance(due_s).unwrap()), [Order::Dial(0)]);
    for now_s in [f64::NAN, f64::INFINITY, -1.0, 1e11] {
        assert!(dialler.advance(now_s).is_err());
    }
}

/// A machine that slept wakes its dialler late: what was due is done once, and nothing that was never carried out is given up.
#[test]
fn a_late_wake_up_dials_once() {
    for sleep_s in [1e3, 1e6, 1e9] {
        let mut dialler = operated(&bundle(2, "", ""));
        dialler.handle_bundle(5.0, BundleEvent::Start).unwrap();
        for line in 0..2 {
            dialler.handle(6.0, line, LineEvent::DialFailed, None, "").unwrap();
        }
        assert_eq!(orders(&dialler.advance(sleep_s).unwrap()), [Order::Dial(0), Order::Dial(1)]);
        assert!(dialler.next_wakeup().unwrap() >= sleep_s + 89.0);
    }
}

/// However the clock of budgets is set back and forth, no day has more airtime than its budget.
#[test]
fn a_clock_that_is_set_does_not_give_a_budget_twice() {
    let mut dialler = operated(&bundle(1, "", r#", "budget": {"airtime_s_per_day": 1000}"#));
    let mut rng = Rng::for_component(1, 0, "clock");
    let day = |number: u64| 1.8e9 + 86_400.0 * number as f64;
    let (mut up_s, mut now_s, mut since_s) = (0.0, 0.0, None);
    dialler.handle_bundle(0.0, BundleEvent::WallClock { unix_s: day(0), zone_s: 0.0 }).unwrap();
    let mut actions = dialler.handle_bundle(0.0, BundleEvent::Start).unwrap();
    for _ in 0..2000 {
        let mut is_dialled = false;
        for order in orders(&actions) {
            is_dialled |= order == Order::Dial(0);
            if order == Order::HangUp(0) {
                up_s += since_s.take().map_or(0.0, |since_s| now_s - since_s);
            }
        }
        if is_dialled {
            since_s = Some(now_s);
            dialler.handle(now_s, 0, LineEvent::Carrier, None, "").unwrap();
            dialler.handle(now_s, 0, LineEvent::LinkUp, None, "").unwrap();
        }
        now_s += 50.0 * rng.uniform();
        actions = dialler.advance(now_s).unwrap();
        // The clock shows one of three days, early in the day.
        let unix_s = day(rng.below(3)) + 10.0;
        actions.extend(dialler.handle_bundle(now_s, BundleEvent::WallClock { unix_s, zone_s: 0.0 }).unwrap());
    }
    // Each end of a budget is noticed at most 50 s late here.
    assert!((2700.0..=3150.0).contains(&up_s), "{up_s}");
}
