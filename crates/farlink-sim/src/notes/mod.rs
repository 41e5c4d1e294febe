//! Remarks on scenarios that can be run but probably do not do what the user intends, and refusals of those that cannot be run.
//!
//! A remark is a rule in a file of its own and a line in [`RULES`]. It names the key, its effect as a number, and the remedy. A
//! rule looks at one grid point, and its computing time does not depend on the number of points.

mod acknowledgements;
mod aerotp;
mod bbr;
mod bundles;
mod classes;
mod first_timers;
mod growth;
mod legs;
mod lowered;
mod offers;
mod packets;
mod passes;
mod queues;
mod rates;
mod repeats;
mod round_trips;
mod timers;
mod windows;

use std::collections::BTreeMap;

use farlink_core::scenario::Scenario;

use crate::engine::Setup;

pub(crate) use lowered::{FirstLowered, lowered_rates};
pub(crate) use timers::check_timers;

/// Number of remarks on one key that are shown in full, because those of many grid points differ only in a number.
const MOST_ALIKE: usize = 3;

/// A grid point.
#[derive(Clone, Copy)]
pub(crate) struct Point<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) setup: &'a Setup,
}

impl Point<'_> {
    /// The table of a hop.
    fn table(&self, hop: &farlink_core::hop::HopSetup) -> String {
        if self.scenario.link.is_some() { "link".to_owned() } else { format!("hop.{}", hop.name) }
    }
}

/// A remark of a rule.
struct Remark {
    /// The key that it is about. Only a few remarks are shown for each key.
    key: String,
    text: String,
}

impl Remark {
    /// A remark that begins with its key.
    fn new(key: impl Into<String>, rest: impl AsRef<str>) -> Self {
        let (key, rest) = (key.into(), rest.as_ref());
        debug_assert!(!rest.contains("  "), "a text broken over two lines of source without its backslash: {rest}");
        Remark { text: format!("{key} {rest}"), key }
    }
}

/// A rule, which examines one grid point.
type Rule = fn(Point<'_>) -> Vec<Remark>;

/// All rules, in the order in which their remarks are shown.
const RULES: &[Rule] = &[
    timers::below_the_round_trip,
    first_timers::before_the_first_answer,
    rates::above_the_bottleneck,
    offers::above_the_path,
    passes::over_before_the_end,
    windows::below_the_path,
    windows::beside_waiting_answers,
    aerotp::short_windows,
    bbr::measures_all_the_time,
    queues::without_limit,
    queues::below_a_packet,
    growth::longer_than_the_run,
    bundles::slow_ports,
    acknowledgements::above_the_way_back,
    acknowledgements::rarer_than_the_window_needs,
    repeats::far_above_the_round_trip,
    packets::mostly_headers,
    of_channels,
];

/// The notes on all points of a study, each once.
pub(crate) fn notes(study: &[Point<'_>]) -> Vec<String> {
    let mut all = Notes::default();
    for point in study {
        for (number, rule) in RULES.iter().enumerate() {
            rule(*point).into_iter().for_each(|remark| all.add(number, remark));
        }
    }
    let mut all = all.finish();
    all.extend(classes::idle_classes(study).map(|remark| remark.text));
    all
}

/// The notes of channels.
fn of_channels(point: Point<'_>) -> Vec<Remark> {
    let hops = point.setup.forward.iter().chain(&point.setup.back);
    let of_hop = |hop: &farlink_core::hop::HopSetup| {
        let key = hop.name.clone();
        hop.channel.notes().into_iter().map(move |text| Remark { key: key.clone(), text })
    };
    hops.flat_map(of_hop).collect()
}

/// Remarks in the order of arrival; further similar ones are only counted.
#[derive(Default)]
struct Notes {
    shown: Vec<String>,
    /// For each rule and key: the texts shown, as indices into `shown`, and the number of further ones.
    alike: BTreeMap<(usize, String), (Vec<usize>, u64)>,
}

impl Notes {
    fn add(&mut self, rule: usize, remark: Remark) {
        let (shown, others) = self.alike.entry((rule, remark.key)).or_default();
        if shown.iter().any(|&index| self.shown[index] == remark.text) {
            return;
        }
        if shown.len() == MOST_ALIKE {
            *others += 1;
            return;
        }
        shown.push(self.shown.len());
        self.shown.push(remark.text);
    }

    fn finish(self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut more: BTreeMap<usize, (String, u64)> = BTreeMap::new();
        for ((_, key), (shown, others)) in self.alike {
            if let Some(&last) = shown.last().filter(|_| others > 0) {
                more.insert(last, (key, others));
            }
        }
        for (index, text) in self.shown.into_iter().enumerate() {
            all.push(text);
            if let Some((key, others)) = more.remove(&index) {
                let points = if others == 1 { "point says" } else { "points say" };
                all.push(format!("{key}: {others} more {points} the same with other figures"));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
