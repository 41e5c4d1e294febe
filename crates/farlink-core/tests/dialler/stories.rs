//! Single stories: what a dialler does in a case that somebody asked for.

use farlink_core::bundle::{
    Action, Alert, BundleEvent, CallState, DiallerConfig, LineEvent, LineStatus, OperatedDialler, Order, Reason,
};

use super::bundle;
use super::field::{operated, orders};

/// A dialler and the time.
struct Story {
    dialler: OperatedDialler,
    now_s: f64,
}

impl Story {
    fn of(config: &str) -> Self {
        let mut story = Story { dialler: operated(config), now_s: 100.0 };
        story.all(BundleEvent::Start);
        story
    }

    fn all(&mut self, event: BundleEvent) -> Vec<Order> {
        orders(&self.dialler.handle_bundle(self.now_s, event).unwrap())
    }

    fn line(&mut self, line: usize, event: LineEvent) -> Vec<Order> {
        orders(&self.dialler.handle(self.now_s, line, event, None, "").unwrap())
    }

    fn connect(&mut self, line: usize) -> Vec<Order> {
        assert_eq!(self.line(line, LineEvent::Carrier), [Order::StartLink(line)]);
        self.line(line, LineEvent::LinkUp)
    }

    /// Lets time pass, with all that is due in it.
    fn wait(&mut self, for_s: f64) -> Vec<Order> {
        let end_s = self.now_s + for_s;
        let mut all = Vec::new();
        while let Some(due_s) = self.dialler.next_wakeup().filter(|due_s| *due_s <= end_s) {
            self.now_s = due_s;
            all.extend(orders(&self.dialler.advance(due_s).unwrap()));
        }
        self.now_s = end_s;
        all
    }

    fn status(&mut self, line: usize) -> LineStatus {
        self.dialler.status(self.now_s).unwrap().swap_remove(line)
    }

    fn is(&mut self, line: usize) -> (CallState, Reason) {
        let status = self.status(line);
        (status.state, status.reason)
    }
}

const DROP: LineEvent = LineEvent::Dropped { injected: false };
/// Three lines of ranks 0, 1 and 2, of which one is in use.
const SHIP: &str = r#", "use": 1, "limits": {"jitter": 0}"#;

/// The line of a lower rank fails, the next one takes its place. Once it is free again it is tried beside it, and replaces it after
/// the delay.
#[test]
fn a_better_line_gets_its_place_back_after_a_delay() {
    let mut story = Story::of(&bundle(3, SHIP, ""));
    assert_eq!(story.is(1), (CallState::Waiting, Reason::Spare));
    assert_eq!(story.line(0, LineEvent::DialFailed), [Order::Dial(1)]);
    assert_eq!(story.connect(1), [Order::Primary(Some(1)), Order::Alert(Alert::BundleUp)]);

    assert_eq!(story.wait(20.0), [Order::Dial(0)]);
    assert!(story.status(0).is_trial);
    assert_eq!(story.connect(0), []);
    assert_eq!(story.wait(59.0), []);
    assert_eq!(story.wait(1.0), [Order::HangUp(1), Order::Primary(Some(0))]);
    assert_eq!(story.is(1), (CallState::Waiting, Reason::Spare));
    assert_eq!(story.status(1).drops, 0);
}

/// A trial that fails changes nothing for the line in use, and pauses as every attempt does.
#[test]
fn a_trial_that_fails_leaves_the_line_in_use_alone() {
    let mut story = Story::of(&bundle(3, SHIP, ""));
    story.line(0, LineEvent::DialFailed);
    story.connect(1);
    assert_eq!(story.wait(20.0), [Order::Dial(0)]);
    assert_eq!(story.line(0, LineEvent::DialFailed), []);
    assert_eq!((story.is(0).0, story.is(1).0), (CallState::Failed, CallState::Connected));
    assert_eq!(story.wait(39.0), []);
    assert_eq!(story.wait(1.0), [Order::Dial(0)]);
}

/// Two lines of one rank: the primary one drops more and more, until the other one takes the role; a drop that was injected does not
/// count.
#[test]
fn a_line_that_becomes_worse_is_demoted() {
    let config = bundle(4, r#", "limits": {"jitter": 0, "flaps": 100}"#, "").replace(r#""rank": 1"#, r#""rank": 0"#);
    let mut story = Story::of(&config);
    story.connect(0);
    story.connect(1);
    story.wait(10_000.0);
    assert_eq!(story.dialler.primary(), Some(0));
    story.line(0, LineEvent::Inject);
    assert_eq!(story.dialler.primary(), Some(1));
    story.wait(5.0);
    story.connect(0);
    story.wait(3000.0);
    assert_eq!((story.dialler.primary(), story.status(0).drops), (Some(1), 0));

    for _ in 0..2 {
        story.line(1, DROP);
        assert_eq!(story.dialler.primary(), Some(0));
        story.wait(5.0);
        story.connect(1);
    }
    story.wait(10_000.0);
    assert_eq!(story.dialler.primary(), Some(0));
    assert!(story.status(0).expected_up_s > 2.0 * story.status(1).expected_up_s);

    // The history is kept over a restart: the better line becomes the primary one although it connects last.
    let (config, kept) = (DiallerConfig::from_json(&config).unwrap(), story.dialler.history());
    let mut story = Story { dialler: OperatedDialler::new(&config, Some(&kept), 1).unwrap(), now_s: 0.0 };
    story.all(BundleEvent::Start);
    story.connect(1);
    story.connect(0);
    assert_eq!(story.dialler.primary(), Some(1));
    assert_eq!(story.wait(60.0), [Order::Alert(Alert::Demoted(1)), Order::Primary(Some(0))]);
}

/// A line answers when it rings, without pauses after a call that came to nothing; held or unstarted it does not.
#[test]
fn a_line_answers() {
    let mut story = Story::of(&bundle(1, "", r#", "role": "answer""#));
    assert_eq!(story.is(0), (CallState::Waiting, Reason::Listening));
    let actions = story.dialler.handle(story.now_s, 0, LineEvent::Ring, None, "camp").unwrap();
    assert!(
        matches!(&actions[1], Action::Do { order: Order::Answer(0), number, .. } if number == "camp"),
        "{actions:?}"
    );
    assert_eq!(story.line(0, LineEvent::RingEnded), []);
    assert_eq!(story.line(0, LineEvent::Ring), [Order::Answer(0)]);
    story.connect(0);
    assert_eq!(story.line(0, LineEvent::Ring), []);
    story.line(0, DROP);
    assert_eq!(story.line(0, LineEvent::Ring), [Order::Answer(0)]);
    assert_eq!(story.line(0, LineEvent::Hold), [Order::HangUp(0)]);
    assert_eq!(story.line(0, LineEvent::Ring), []);
    // A modem that answers by itself is hung up then, and not afterwards.
    assert_eq!(story.line(0, LineEvent::Carrier), [Order::HangUp(0)]);
    story.line(0, LineEvent::Release);
    assert_eq!(story.line(0, LineEvent::Carrier), [Order::StartLink(0)]);
}

/// An event about a call that is over does not touch the next one.
#[test]
fn late_events_are_ignored() {
    let mut story = Story::of(&bundle(1, "", ""));
    story.line(0, LineEvent::DialFailed);
    story.wait(60.0);
    let call = story.status(0).call;
    let late = story.dialler.handle(story.now_s, 0, LineEvent::DialFailed, Some(call - 1), "").unwrap();
    assert_eq!((late.len(), story.dialler.ignored()), (0, 1));
    assert_eq!(story.is(0).0, CallState::Connecting);
}

/// A modem that never says anything, and a link that never comes up, are given up; a deaf line too.
#[test]
fn what_says_nothing_is_given_up() {
    let mut story = Story::of(&bundle(1, r#", "limits": {"jitter": 0}"#, ""));
    assert_eq!(story.wait(90.0), [Order::HangUp(0)]);
    assert_eq!(story.is(0), (CallState::Failed, Reason::AttemptFailed));
    assert_eq!(story.wait(20.0), [Order::Dial(0)]);
    story.line(0, LineEvent::Carrier);
    assert_eq!(story.wait(90.0), [Order::HangUp(0)]);
    assert_eq!(story.wait(40.0), [Order::Dial(0)]);
    story.connect(0);
    for _ in 0..3 {
        story.line(0, LineEvent::ProbeLost);
    }
    assert_eq!(story.is(0), (CallState::Silent, Reason::Probes));
    story.wait(10.0);
    story.line(0, LineEvent::ProbeAnswered);
    assert_eq!((story.is(0).0, story.status(0).drops), (CallState::Connected, 0));
    for _ in 0..3 {
        story.line(0, LineEvent::ProbeLost);
    }
    assert_eq!(story.wait(30.0)[0], Order::HangUp(0));
    assert_eq!((story.is(0), story.status(0).drops), ((CallState::Dropped, Reason::Drop), 1));
}

/// A budget ends a call, and gives the line back at midnight; what was spent is known after a restart.
#[test]
fn a_budget_ends_a_call_until_the_next_day() {
    let config = bundle(1, "", r#", "budget": {"airtime_s_per_day": 1000}"#);
    let mut story = Story::of(&config);
    story.all(BundleEvent::WallClock { unix_s: 86_400.0 * 20_000.0 + 80_000.0, zone_s: 0.0 });
    story.connect(0);
    assert_eq!(story.wait(999.0), []);
    assert_eq!(story.wait(1.0)[0], Order::HangUp(0));
    assert_eq!(story.is(0), (CallState::Waiting, Reason::AirtimeDay));
    assert_eq!(story.status(0).until_s, Some(100.0 + 6400.0));

    let kept = story.dialler.history();
    let config = DiallerConfig::from_json(&config).unwrap();
    let mut again = Story { dialler: OperatedDialler::new(&config, Some(&kept), 1).unwrap(), now_s: 5000.0 };
    again.all(BundleEvent::WallClock { unix_s: 86_400.0 * 20_000.0 + 82_000.0, zone_s: 0.0 });
    again.all(BundleEvent::Start);
    assert_eq!(again.is(0), (CallState::Waiting, Reason::AirtimeDay));
    assert_eq!(again.wait(4400.0), [Order::Dial(0)]);
}

/// A caller who does not speak PPP cannot block a line for others.
#[test]
fn a_caller_without_a_link_does_not_block_the_line() {
    let mut story = Story::of(&bundle(1, r#", "limits": {"attempts": 2}"#, r#", "role": "answer""#));
    for _ in 0..5 {
        assert_eq!(story.line(0, LineEvent::Ring), [Order::Answer(0)]);
        assert_eq!(story.line(0, LineEvent::Carrier), [Order::StartLink(0)]);
        assert_eq!(story.wait(91.0), [Order::HangUp(0)]);
        assert_eq!(story.is(0), (CallState::Waiting, Reason::Listening));
    }
}

/// Two calls use up the budget of all lines twice as fast, and nothing is begun with a minute or less left for each; what was
/// spent is known after a restart, of a line that is gone, too.
#[test]
fn lines_share_the_budget_of_their_bundle() {
    let config = bundle(3, r#", "budget": {"airtime_s_per_day": 1000}"#, "");
    let mut story = Story::of(&config);
    story.all(BundleEvent::WallClock { unix_s: 86_400.0 * 20_000.0, zone_s: 0.0 });
    story.line(1, LineEvent::Hold);
    story.line(2, LineEvent::Hold);
    story.connect(0);
    assert_eq!(story.wait(199.0), []);
    story.line(1, LineEvent::Release);
    story.connect(1);
    // 801 s are left for two.
    assert_eq!(story.wait(400.4), []);
    let ended = story.wait(0.2);
    assert!(ended.contains(&Order::HangUp(0)) && ended.contains(&Order::HangUp(1)), "{ended:?}");
    story.line(2, LineEvent::Release);
    for line in 0..3 {
        assert_eq!(story.is(line), (CallState::Waiting, Reason::BundleAirtimeDay));
    }
    let (today, month) = story.dialler.bundle_costs(story.now_s).unwrap();
    assert!((today.airtime_s - 1000.0).abs() < 0.01 && today == month, "{today:?}");

    let kept = story.dialler.history();
    let config = DiallerConfig::from_json(&config.replace("line0", "other")).unwrap();
    let mut again = Story { dialler: OperatedDialler::new(&config, Some(&kept), 1).unwrap(), now_s: 5000.0 };
    again.all(BundleEvent::WallClock { unix_s: 86_400.0 * 20_000.0 + 80_000.0, zone_s: 0.0 });
    again.all(BundleEvent::Start);
    assert_eq!(again.is(0), (CallState::Waiting, Reason::BundleAirtimeDay));
    assert_eq!(again.wait(6400.0), [Order::Dial(0), Order::Dial(1), Order::Dial(2)]);
}

/// Only lines that cost money are kept from calls by the bundle's money.
#[test]
fn a_line_that_costs_nothing_goes_on_without_money() {
    let lines = r#"{"name": "dear", "budget": {"money_per_min": 6}}, {"name": "free"}"#;
    let mut story = Story::of(&format!(r#"{{"lines": [{lines}], "budget": {{"money_per_month": 30}}}}"#));
    story.connect(0);
    story.connect(1);
    assert_eq!(story.wait(299.9), []);
    assert_eq!(story.wait(0.2)[0], Order::HangUp(0));
    assert_eq!(story.is(0), (CallState::Waiting, Reason::BundleMoneyMonth));
    assert_eq!(story.is(1), (CallState::Connected, Reason::Up));

    let nobody = r#"{"lines": [{"name": "free"}], "budget": {"money_per_month": 30}}"#;
    let refused = DiallerConfig::from_json(nobody).unwrap_err().to_string();
    assert!(refused.contains("no line that dials has a price"), "{refused}");
}

/// What the first version kept has no costs of the bundle: they are those of its lines.
#[test]
fn costs_of_an_old_history_count_for_the_bundle() {
    let spent = r#"{"airtime_s": 600.0, "money": 0.0}"#;
    let line = format!(r#"{{"connected_s": 1, "drops": 0, "days": [[20000, {spent}]], "months": [[657, {spent}]]}}"#);
    let kept = format!(r#"{{"farlink_history": 1, "lines": {{"line0": {line}, "gone": {line}}}}}"#);
    let config = DiallerConfig::from_json(&bundle(1, r#", "budget": {"airtime_s_per_day": 1000}"#, "")).unwrap();
    let mut story = Story { dialler: OperatedDialler::new(&config, Some(&kept), 1).unwrap(), now_s: 5.0 };
    story.all(BundleEvent::WallClock { unix_s: 86_400.0 * 20_000.0, zone_s: 0.0 });
    story.all(BundleEvent::Start);
    assert_eq!(story.is(0), (CallState::Waiting, Reason::BundleAirtimeDay));
}

/// Where the bundle begins anew with its primary line, that line is dialled once by hand, not twice.
#[test]
fn a_primary_line_that_is_redialled_is_dialled_once() {
    let mut story = Story::of(&bundle(2, r#", "primary": "stays-lost", "limits": {"dropped_s": 0}"#, ""));
    assert_eq!(story.line(0, LineEvent::Redial), [Order::HangUp(0), Order::Dial(0)]);
    story.connect(0);
    assert_eq!(story.wait(10.0), []);
    assert_eq!(story.line(0, LineEvent::Redial).iter().filter(|order| **order == Order::Dial(0)).count(), 1);
}
