//! Modems in the field, which answer a dialler at random, and what must hold whatever they do.

use std::collections::BTreeMap;

use farlink_core::Rng;
use farlink_core::bundle::{
    Action, BundleEvent, CallState, DiallerConfig, LineEvent, LineStatus, OperatedDialler, Order, PrimaryRule, Reason,
    Role,
};

/// How modems answer, as probabilities and mean times in s.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) connects: f64,
    pub(crate) says_nothing: f64,
    pub(crate) nonsense: f64,
    pub(crate) link_comes_up: f64,
    pub(crate) up_s: f64,
    pub(crate) goes_deaf: f64,
    /// Between two readings of the signal.
    pub(crate) signal_s: f64,
    /// Between two things that people, or cables, do to a line.
    pub(crate) trouble_s: f64,
}

/// Like Iridium in Greenland: a drop in 50 minutes, a dial in four fails.
pub(crate) const GREENLAND: Answers = Answers {
    connects: 0.75,
    says_nothing: 0.02,
    nonsense: 0.01,
    link_comes_up: 0.95,
    up_s: 3000.0,
    goes_deaf: 0.05,
    signal_s: 3600.0,
    trouble_s: 86_400.0,
};

/// What happens at a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Happening {
    /// Of its call of this number.
    OfCall(u64, LineEvent),
    /// At any time.
    OfLine(LineEvent),
    Reading,
    Trouble,
}

/// A line as the world sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modem {
    /// The call that is made or lasts.
    busy: Option<u64>,
    pub(crate) dials: u64,
    pub(crate) ups: u64,
    pub(crate) drops: Vec<f64>,
    /// Failed dials since it was connected, blocked, released or redialled by hand.
    failures: u64,
    blocked_until: f64,
    is_held: bool,
    has_port: bool,
    carrier_s: Option<f64>,
    /// Airtime by day of the calendar.
    pub(crate) airtime_s: BTreeMap<i64, f64>,
}

pub(crate) struct Field {
    pub(crate) dialler: OperatedDialler,
    config: DiallerConfig,
    answers: Answers,
    pub(crate) modems: Vec<Modem>,
    pub(crate) now_s: f64,
    queue: BTreeMap<(u64, u64), (usize, Happening)>,
    queued: u64,
    rng: Rng,
    pub(crate) primary: Option<usize>,
    /// The wall clock less the monotonic one.
    pub(crate) wall_offset_s: f64,
    pub(crate) events: u64,
    is_started: bool,
}

impl Field {
    pub(crate) fn new(config: &str, answers: &Answers, seed: u64) -> Self {
        let config = DiallerConfig::from_json(config).unwrap();
        let dialler = OperatedDialler::new(&config, None, seed).unwrap();
        let modem = Modem { has_port: true, ..Modem::default() };
        let mut field = Field {
            dialler,
            answers: answers.clone(),
            modems: vec![modem; config.lines.len()],
            config,
            now_s: 0.0,
            queue: BTreeMap::new(),
            queued: 0,
            rng: Rng::for_component(seed, 0, "field"),
            primary: None,
            wall_offset_s: 1.8e9,
            events: 0,
            is_started: false,
        };
        for line in 0..field.modems.len() {
            field.later(line, 1.0, Happening::Reading);
            let trouble_s = field.rng.exponential(answers.trouble_s);
            field.later(line, trouble_s, Happening::Trouble);
        }
        field.tell_time();
        field.is_started = true;
        field.of_bundle(BundleEvent::Start);
        field
    }

    fn later(&mut self, line: usize, after_s: f64, what: Happening) {
        self.queued += 1;
        // Times are not negative, so that their bits have their order.
        self.queue.insert(((self.now_s + after_s).to_bits(), self.queued), (line, what));
    }

    pub(crate) fn of_bundle(&mut self, event: BundleEvent) {
        let actions = self.dialler.handle_bundle(self.now_s, event).unwrap();
        self.carry_out(actions);
    }

    pub(crate) fn tell_time(&mut self) {
        self.of_bundle(BundleEvent::WallClock { unix_s: self.wall_offset_s + self.now_s, zone_s: 0.0 });
    }

    pub(crate) fn tell(&mut self, line: usize, event: LineEvent, call: Option<u64>) {
        self.events += 1;
        let actions = self.dialler.handle(self.now_s, line, event, call, "").unwrap();
        self.carry_out(actions);
    }

    /// Lets the world go on for so long.
    pub(crate) fn run(&mut self, for_s: f64) {
        let end_s = self.now_s + for_s;
        loop {
            let due_s = self.dialler.next_wakeup().unwrap_or(f64::INFINITY);
            let happens_s = self.queue.keys().next().map_or(f64::INFINITY, |(bits, _)| f64::from_bits(*bits));
            let next_s = due_s.min(happens_s);
            if next_s > end_s {
                self.now_s = end_s;
                return;
            }
            self.now_s = self.now_s.max(next_s);
            if due_s <= happens_s {
                self.events += 1;
                let actions = self.dialler.advance(self.now_s).unwrap();
                self.carry_out(actions);
                let again_s = self.dialler.next_wakeup();
                assert!(again_s.is_none_or(|again_s| again_s > self.now_s), "awake for ever at {}", self.now_s);
            } else if let Some((_, (line, what))) = self.queue.pop_first() {
                self.happen(line, what);
            }
        }
    }

    fn happen(&mut self, line: usize, what: Happening) {
        match what {
            Happening::OfCall(call, event) if self.modems[line].busy == Some(call) => {
                self.happen_to_call(line, call, event)
            }
            Happening::OfCall(..) => {}
            Happening::OfLine(event) => self.happen_to_line(line, event),
            Happening::Reading => {
                let level = self.rng.below(6);
                self.tell(line, LineEvent::Signal((level > 0).then_some(level)), None);
                let after_s = self.rng.exponential(self.answers.signal_s);
                self.later(line, after_s, Happening::Reading);
                if line == 0 {
                    self.tell_time();
                }
                if self.config.lines[line].role == Role::Answer && self.rng.chance(0.5) {
                    self.tell(line, LineEvent::Ring, None);
                }
            }
            Happening::Trouble => {
                let end_s = self.rng.exponential(600.0);
                match self.rng.below(6) {
                    0 => {
                        self.happen_to_line(line, LineEvent::Hold);
                        self.later(line, end_s, Happening::OfLine(LineEvent::Release));
                    }
                    1 => {
                        self.happen_to_line(line, LineEvent::PortGone);
                        self.later(line, end_s, Happening::OfLine(LineEvent::PortBack));
                    }
                    2 => self.happen_to_line(line, LineEvent::Redial),
                    3 => self.happen_to_line(line, LineEvent::Inject),
                    4 => self.happen_to_line(line, LineEvent::ModemFailed),
                    _ => self.of_bundle(BundleEvent::BundleLost),
                }
                let after_s = self.rng.exponential(self.answers.trouble_s);
                self.later(line, after_s, Happening::Trouble);
            }
        }
    }

    fn happen_to_line(&mut self, line: usize, event: LineEvent) {
        let modem = &mut self.modems[line];
        // Nothing is released that is not held, and a held line is not redialled.
        let forgives = event == LineEvent::Release && modem.is_held || event == LineEvent::Redial && !modem.is_held;
        match event {
            LineEvent::Hold => modem.is_held = true,
            LineEvent::Release => modem.is_held = false,
            LineEvent::PortGone => modem.has_port = false,
            LineEvent::PortBack => modem.has_port = true,
            _ => {}
        }
        if forgives {
            (modem.failures, modem.blocked_until) = (0, 0.0);
            modem.drops.clear();
        }
        self.tell(line, event, None);
    }

    fn happen_to_call(&mut self, line: usize, call: u64, event: LineEvent) {
        match event {
            LineEvent::Carrier => self.modems[line].carrier_s = Some(self.now_s),
            LineEvent::LinkUp => {
                let modem = &mut self.modems[line];
                (modem.ups, modem.failures) = (modem.ups + 1, 0);
                let up_s = self.rng.exponential(self.answers.up_s);
                if self.rng.chance(self.answers.goes_deaf) {
                    for probe in 0..3 {
                        self.later(line, up_s + 10.0 * f64::from(probe), Happening::OfCall(call, LineEvent::ProbeLost));
                    }
                    if self.rng.chance(0.5) {
                        self.later(line, up_s + 40.0, Happening::OfCall(call, LineEvent::ProbeAnswered));
                    }
                } else {
                    self.later(line, up_s, Happening::OfCall(call, LineEvent::Dropped { injected: false }));
                }
            }
            LineEvent::ProbeAnswered => {
                self.later(line, 500.0, Happening::OfCall(call, LineEvent::Dropped { injected: false }));
            }
            LineEvent::DialFailed | LineEvent::Dropped { .. } => {
                self.count_airtime(line);
                let modem = &mut self.modems[line];
                modem.busy = None;
                if event != LineEvent::DialFailed {
                    modem.drops.push(self.now_s);
                }
            }
            _ => {}
        }
        self.tell(line, event, Some(call));
    }

    fn count_airtime(&mut self, line: usize) {
        let offset_s = self.wall_offset_s;
        let modem = &mut self.modems[line];
        if let Some(mut from_s) = modem.carrier_s.take() {
            while from_s < self.now_s {
                let day = ((offset_s + from_s) / 86_400.0).floor();
                let to_s = self.now_s.min(((day + 1.0) * 86_400.0 - offset_s).max(from_s + 1e-6));
                *modem.airtime_s.entry(day as i64).or_default() += to_s - from_s;
                from_s = to_s;
            }
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::State(status) => self.check_change(&status),
                Action::Do { order, call, .. } => self.carry_out_order(order, call),
            }
        }
        self.check_all();
    }

    fn carry_out_order(&mut self, order: Order, call: u64) {
        let now_s = self.now_s;
        match order {
            Order::Dial(line) | Order::Answer(line) => {
                let modem = &mut self.modems[line];
                assert_eq!(modem.busy, None, "line {line} is dialled twice at {now_s}");
                assert!(!modem.is_held && modem.has_port, "line {line} is dialled though it may not");
                if matches!(order, Order::Dial(_)) {
                    let jitter = self.config.limits.jitter.get() + 1e-9;
                    assert!(
                        now_s + jitter * self.config.limits.blocked_s.get() >= modem.blocked_until,
                        "line {line}: no block"
                    );
                }
                modem.busy = Some(call);
                modem.dials += 1;
                let kind = self.rng.uniform();
                let after_s = 10.0 + 50.0 * self.rng.uniform();
                let Answers { connects, says_nothing, nonsense, .. } = self.answers;
                let event = match kind {
                    _ if kind < connects => LineEvent::Carrier,
                    _ if kind < connects + says_nothing => return,
                    _ if kind < connects + says_nothing + nonsense => LineEvent::ModemFailed,
                    _ => LineEvent::DialFailed,
                };
                self.later(line, after_s, Happening::OfCall(call, event));
            }
            Order::StartLink(line) => {
                assert_eq!(self.modems[line].busy, Some(call));
                let event =
                    if self.rng.chance(self.answers.link_comes_up) { LineEvent::LinkUp } else { LineEvent::DialFailed };
                let after_s = 2.0 + 6.0 * self.rng.uniform();
                self.later(line, after_s, Happening::OfCall(call, event));
            }
            Order::HangUp(line) => {
                self.count_airtime(line);
                self.modems[line].busy = None;
            }
            Order::Primary(line) => self.primary = line,
            Order::TearDown | Order::Alert(_) => {}
        }
    }

    fn check_change(&mut self, status: &LineStatus) {
        let modem = &mut self.modems[status.line];
        let limits = &self.config.limits;
        match status.state {
            CallState::Failed => {
                modem.failures += 1;
                assert!(modem.failures < limits.attempts.whole(), "too many attempts");
            }
            CallState::Blocked => {
                assert_eq!(modem.failures + 1, limits.attempts.whole(), "blocked too early or too late");
                modem.failures = 0;
                modem.blocked_until = self.now_s + limits.blocked_s.get();
            }
            _ => {}
        }
    }

    /// What holds after each event.
    fn check_all(&mut self) {
        let lines = self.dialler.status(self.now_s).unwrap();
        let limits = &self.config.limits;
        let use_lines = self.config.use_lines.map_or(lines.len(), |wanted| wanted.whole() as usize);
        let mut in_use = 0;
        for status in &lines {
            let modem = &mut self.modems[status.line];
            let dials = self.config.lines[status.line].role == Role::Dial;
            let has_call = matches!(status.state, CallState::Connecting | CallState::Connected | CallState::Silent);
            assert_eq!(modem.busy.is_some(), has_call, "line {} at {}: {status:?}", status.line, self.now_s);
            in_use += usize::from(has_call && dials && !status.is_trial);
            // Never stuck: it is up, or something ends its state.
            let end_s = status.until_s.unwrap_or(f64::INFINITY);
            match (status.state, status.reason) {
                (CallState::Connected, _) => {}
                (CallState::Held, reason) => assert!(modem.is_held && reason == Reason::ByHand),
                (CallState::Waiting, Reason::Listening) => assert!(!dials),
                (CallState::Waiting, Reason::NotStarted) => assert!(!self.is_started),
                (CallState::Waiting, Reason::PortGone) => assert!(!modem.has_port),
                (CallState::Waiting, Reason::Spare | Reason::Primary | Reason::LostPrimary) => {}
                _ => assert!(end_s > self.now_s && end_s.is_finite(), "stuck: {status:?}"),
            }
            let longest_s = limits.blocked_s.get().max(limits.flap_window_s.get()).max(32.0 * 86_400.0);
            assert!(!end_s.is_finite() || end_s < self.now_s + 2.0 * longest_s, "{status:?}");
            assert!(status.expected_up_s.is_finite() && status.expected_up_s > 0.0);
        }
        assert!(lines.iter().filter(|status| status.is_trial).count() <= 1);
        assert!(in_use <= use_lines, "{in_use} lines in use of {use_lines}");
        self.check_shared(&lines, in_use, use_lines);
    }

    /// Lines that wait for others wait for something that happens.
    fn check_shared(&self, lines: &[LineStatus], in_use: usize, use_lines: usize) {
        let any = |is: &dyn Fn(&LineStatus) -> bool| lines.iter().any(is);
        for status in lines.iter().filter(|status| status.state == CallState::Waiting) {
            match status.reason {
                Reason::Spare => {
                    let pausing = |other: &&LineStatus| other.state == CallState::Dropped;
                    assert!(in_use + lines.iter().filter(pausing).count() >= use_lines);
                }
                // Another line is tried, or barred for a reason of its own.
                Reason::Primary => assert!(any(&|other| {
                    other.role == Role::Dial && (other.state, other.reason) != (CallState::Waiting, Reason::Primary)
                })),
                Reason::LostPrimary => assert!(any(&|other| {
                    other.line != status.line && matches!(other.state, CallState::Connected | CallState::Silent)
                })),
                _ => {}
            }
        }
        let primaries: Vec<usize> = lines.iter().filter(|status| status.is_primary).map(|status| status.line).collect();
        assert!(primaries.len() <= 1);
        assert_eq!(self.primary, primaries.first().copied(), "the primary line is not told");
        if self.config.primary == PrimaryRule::PassesOn {
            let up = any(&|status| status.state == CallState::Connected);
            let is_connected = |line: usize| lines[line].state == CallState::Connected;
            assert!(!up || self.primary.is_some_and(is_connected), "a line is up, but not the primary one");
        }
        let window_s = self.config.limits.flap_window_s.get();
        // Lines that answer are not damped.
        let dialled = lines.iter().filter(|status| status.role == Role::Dial);
        for modem in dialled.map(|status| &self.modems[status.line]) {
            let recent = modem.drops.iter().rev().take_while(|at| **at > self.now_s - window_s).count();
            assert!(recent <= self.config.limits.flaps.whole() as usize, "{recent} drops in {window_s} s");
        }
    }

    /// Counts the airtime of calls that last. Nothing may happen any more.
    pub(crate) fn end(&mut self) {
        for line in 0..self.modems.len() {
            self.count_airtime(line);
        }
    }

    /// No day has more airtime than its budget, neither of a line nor of all lines together.
    pub(crate) fn check_budgets(&self) {
        let mut together = BTreeMap::<i64, f64>::new();
        for (day, airtime_s) in self.modems.iter().flat_map(|modem| &modem.airtime_s) {
            *together.entry(*day).or_default() += airtime_s;
        }
        let budget = &self.config.budget;
        for (day, airtime_s) in &together {
            assert!(
                budget.airtime_s_per_day.is_none_or(|most| *airtime_s <= most.get() + 0.05),
                "{day}: {airtime_s} s"
            );
        }
        // No field lasts from one month to another and back.
        let all_s: f64 = together.values().sum();
        let months = 1.0 + self.now_s / (27.0 * 86_400.0);
        assert!(budget.airtime_s_per_month.is_none_or(|most| all_s <= months.ceil() * most.get() + 0.05), "{all_s} s");
        for (modem, rules) in self.modems.iter().zip(&self.config.lines) {
            if let Some(most) = rules.budget.airtime_s_per_day {
                for (day, airtime_s) in &modem.airtime_s {
                    assert!(*airtime_s <= most.get() + 0.01, "day {day}: {airtime_s} s");
                }
            }
        }
    }
}

/// A dialler without any modem.
pub(crate) fn operated(config: &str) -> OperatedDialler {
    OperatedDialler::new(&DiallerConfig::from_json(config).unwrap(), None, 1).unwrap()
}

/// The orders of actions.
pub(crate) fn orders(actions: &[Action]) -> Vec<Order> {
    let order = |action: &Action| match action {
        Action::Do { order, .. } => Some(*order),
        Action::State(_) => None,
    };
    actions.iter().filter_map(order).collect()
}
