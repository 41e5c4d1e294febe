//! A study that is run in pieces gives the rows and the summary of the whole study, to the bit.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use farlink_sim::{Column, Options, Output, RunsTableError, Study, StudyError, Table, fluid, summarise};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::random::scenarios;
use crate::common::{self, bits, expanded, go_on, integer, run, scenario, set, text};

fn study(changes: &[(&str, Value)]) -> Value {
    let channel = json!({ "kind": "loss", "loss": 0.02 });
    let mut study = scenario(&[("runs", 7.into()), ("duration_s", 5.into()), ("link.channel", channel)]);
    set(&mut study, "grid", json!({ "transport.tcp.variant": ["reno", "sack"] }));
    changes.iter().for_each(|(path, value)| set(&mut study, path, value.clone()));
    study
}

fn with_precision(ci: f64) -> Value {
    let precision = json!({ "quantity": "goodput_bps", "ci": ci, "min_runs": 3, "max_runs": 40 });
    study(&[("runs", Value::Null), ("precision", precision)])
}

fn prepared(study: &Value) -> Study<'static> {
    let options = Options { threads: Some(2), ..Options::default() };
    Study::new(Cow::Owned(expanded(study)), &options, &go_on).unwrap()
}

/// A simple stream of numbers to cut and shuffle by.
fn draw(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

fn shuffled<T>(mut items: Vec<T>, state: &mut u64) -> Vec<T> {
    for last in (1..items.len()).rev() {
        items.swap(last, draw(state, last + 1));
    }
    items
}

/// Runs every point until no more runs are wanted, in pieces cut at random places and in random order.
fn by_the_piece(study: &Study<'_>, seed: u64) -> Table {
    let mut state = seed;
    let mut all = Vec::new();
    for point in shuffled((0..study.points()).collect(), &mut state) {
        let mut of_point = Table::default();
        while let Some(wanted) = study.next_runs(point, &of_point).unwrap() {
            let mut cuts: Vec<u64> = (0..2).map(|_| wanted.start + draw(&mut state, 8) as u64).collect();
            cuts.retain(|cut| wanted.contains(cut));
            cuts.extend([wanted.start, wanted.end]);
            cuts.sort_unstable();
            let pieces: Vec<Range<u64>> =
                cuts.windows(2).map(|cut| cut[0]..cut[1]).filter(|piece| !piece.is_empty()).collect();
            for piece in shuffled(pieces, &mut state) {
                let output = study.run(point, piece, &go_on).unwrap();
                assert!(!output.interrupted);
                of_point.append(output.rows).unwrap();
            }
        }
        all.push(of_point);
    }
    let mut rows = Table::default();
    shuffled(all, &mut state).into_iter().for_each(|table| rows.append(table).unwrap());
    rows
}

/// Rows as sorted texts, so that their order does not matter.
fn sorted_rows(table: &Table) -> Vec<String> {
    let cell = |column: &Column, row: usize| match column {
        Column::Text(values) => values[row].clone(),
        Column::Integer(values) => values[row].to_string(),
        Column::Real(values) => format!("{:x}", values[row].to_bits()),
    };
    let row =
        |row: usize| table.columns.iter().map(|(name, column)| format!("{name}={} ", cell(column, row))).collect();
    let mut rows: Vec<String> = (0..integer(table, "point").len()).map(row).collect();
    rows.sort();
    rows
}

fn assert_same_by_the_piece(scenario: &Value, seed: u64) {
    let whole = run(scenario, 2);
    let rows = by_the_piece(&prepared(scenario), seed);
    assert_eq!(sorted_rows(&rows), sorted_rows(&whole.rows));
    assert_eq!(bits(&summarise(&rows).unwrap()), bits(&whole.summary));
    assert_eq!(bits(&summarise(&whole.rows).unwrap()), bits(&whole.summary));
}

#[test]
fn pieces_in_any_order_give_the_whole_study() {
    for seed in 0..5 {
        assert_same_by_the_piece(&study(&[]), seed);
    }
}

#[test]
fn the_stopping_rule_ends_by_the_piece_where_the_whole_study_ends() {
    for ci in [0.3, 0.03, 0.01, 1e-9] {
        let scenario = with_precision(ci);
        assert_same_by_the_piece(&scenario, 1);
        let ends = run(&scenario, 1);
        assert!(integer(&ends.summary, "runs").iter().all(|runs| (3..=40).contains(runs)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::cases(20)))]
    #[test]
    fn any_scenario_can_be_run_in_pieces(scenario in scenarios(), runs in 1_u64..5, seed in any::<u64>()) {
        let mut scenario = scenario;
        scenario["runs"] = runs.into();
        assert_same_by_the_piece(&scenario, seed);
    }
}

#[test]
fn pieces_run_on_several_threads_at_once() {
    let scenario = study(&[]);
    let prepared = prepared(&scenario);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for worker in 0..4_u64 {
            let (send, prepared) = (send.clone(), &prepared);
            scope.spawn(move || {
                for run in (0..7).filter(|run| run % 4 == worker) {
                    (0..2)
                        .for_each(|point| send.send(prepared.run(point, run..run + 1, &go_on).unwrap().rows).unwrap());
                }
            });
        }
    });
    drop(send);
    let mut rows = Table::default();
    receive.into_iter().for_each(|piece| rows.append(piece).unwrap());
    assert_eq!(bits(&summarise(&rows).unwrap()), bits(&run(&scenario, 1).summary));
}

#[test]
fn fluid_points_one_by_one_give_the_whole_study() {
    let mut scenario = study(&[("runs", Value::Null), ("engines", json!(["fluid"]))]);
    set(&mut scenario, "grid", json!({ "link.channel.loss": [0.001, 0.02, 0.0] }));
    let points = expanded(&scenario);
    let whole = fluid::run(&points, &Options::default(), &go_on).unwrap();
    let study = fluid::Study::new(Cow::Borrowed(&points), &Options::default()).unwrap();
    let (mut rows, mut summary) = (Table::default(), Table::default());
    for point in 0..study.points() {
        let Output { rows: more, summary: of_point, .. } = study.run(point, &go_on).unwrap();
        rows.append(more).unwrap();
        summary.append(of_point).unwrap();
    }
    assert_eq!(bits(&rows), bits(&whole.rows));
    assert_eq!(bits(&summary), bits(&whole.summary));
    assert!(study.run(3, &go_on).unwrap_err().to_string().contains("there is no point 3"));
    let refused = summarise(&rows).unwrap_err();
    assert_eq!(refused, RunsTableError::Engine { row: 0, engine: "fluid".into() });
}

#[test]
fn any_thread_stops_a_piece() {
    let long = study(&[("duration_s", 1e4.into()), ("runs", 1_000_000.into())]);
    let study = prepared(&long);
    let wants_end = AtomicBool::new(false);
    let progress = |done: u64, _: u64| {
        if done > 3 {
            wants_end.store(true, Ordering::Relaxed);
        }
        if wants_end.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(2));
            wants_end.store(true, Ordering::Relaxed);
        });
        study.run(1, 0..10_000, &progress).unwrap()
    });
    assert!(output.interrupted);
    let runs = integer(&output.rows, "run").len() / 2;
    assert!(runs < 1000, "{runs}");
    assert!(integer(&output.rows, "point").iter().all(|&point| point == 1));
}

#[test]
fn limits_hold_for_each_piece() {
    let long = study(&[("duration_s", 1e4.into()), ("runs", 1_000_000.into())]);
    let whole = farlink_sim::run(&expanded(&long), &Options::default(), &go_on).unwrap_err().to_string();
    assert!(whole.contains("more than limits.cpu_s = 86400 allows"), "{whole}");
    let study = prepared(&long);
    assert_eq!(integer(&study.run(0, 999_999..1_000_000, &go_on).unwrap().rows, "run"), [999_999, 999_999]);
    let all = study.run(0, 0..1_000_000, &go_on).unwrap_err().to_string();
    assert!(all.contains("more than limits.cpu_s = 86400 allows"), "{all}");
}

#[test]
fn a_piece_without_runs_has_no_rows() {
    let study = prepared(&study(&[]));
    #[expect(clippy::reversed_empty_ranges, reason = "a caller's mistake, which is nothing to run")]
    for runs in [0..0, 5..5, 7..3] {
        let output = study.run(0, runs, &go_on).unwrap();
        assert_eq!(integer(&output.rows, "run").len(), 0);
        assert!(text(&output.summary, "flow").is_empty());
    }
    assert_eq!(study.next_runs(0, &Table::default()).unwrap(), Some(0..7));
    assert!(text(&summarise(&Table::default()).unwrap(), "flow").is_empty());
}

#[test]
fn runs_beyond_those_of_the_study_can_be_computed() {
    let (few, many) = (prepared(&study(&[])), run(&study(&[("runs", 12.into())]), 1));
    let beyond = few.run(1, 7..12, &go_on).unwrap();
    let rows = sorted_rows(&many.rows);
    assert!(sorted_rows(&beyond.rows).iter().all(|row| rows.contains(row)));
    assert_eq!(few.next_runs(1, &many.rows).unwrap(), None);
}

fn column<'a>(table: &'a mut Table, name: &str) -> &'a mut Column {
    &mut table.columns.iter_mut().find(|(of, _)| of == name).unwrap().1
}

#[test]
fn unusable_rows_are_refused_by_name() {
    let whole = run(&study(&[]), 1).rows;
    let changed = |change: &dyn Fn(&mut Table)| {
        let mut table = whole.clone();
        change(&mut table);
        summarise(&table).unwrap_err().to_string()
    };
    let missing = changed(&|table| table.columns.retain(|(name, _)| name != "seed"));
    assert_eq!(missing, "rows: there is no column seed of whole numbers; give the rows as a run gave them");
    let kind = changed(&|table| *column(table, "goodput_bps") = Column::Text(Vec::new()));
    assert_eq!(kind, "rows: there is no column goodput_bps of numbers; give the rows as a run gave them");
    let uneven = changed(&|table| match column(table, "goodput_bps") {
        Column::Real(values) => values.truncate(3),
        _ => unreachable!(),
    });
    assert_eq!(uneven, "rows: column goodput_bps has 3 entries and column point has 28; give whole rows");
    let status = changed(&|table| match column(table, "status") {
        Column::Text(values) => values[4] = "fine".into(),
        _ => unreachable!(),
    });
    assert_eq!(status, "rows: row 4 has the unknown status fine; it is ok, unfinished or stalled");
    let twice = changed(&|table| table.append(whole.clone()).unwrap());
    assert_eq!(twice, "rows: run 0 of point 0 occurs twice; give each run once");
    let seed = changed(&|table| match column(table, "seed") {
        Column::Integer(values) => values[2..4].fill(9),
        _ => unreachable!(),
    });
    assert_eq!(seed, "rows: run 1 of point 0 has other flows or another seed than expected; give rows of one study");
    let cut = changed(&|table| {
        for (_, column) in &mut table.columns {
            match column {
                Column::Text(values) => drop(values.remove(3)),
                Column::Integer(values) => drop(values.remove(3)),
                Column::Real(values) => drop(values.remove(3)),
            }
        }
    });
    assert_eq!(cut, "rows: run 1 of point 0 is incomplete; its last row is that of the flow all");
}

#[test]
fn only_the_first_runs_of_a_study_decide_whether_to_stop() {
    let study_of = |seed: u64| prepared(&study(&[("seed", seed.into())]));
    let study = study_of(1);
    let later = study.run(0, 2..4, &go_on).unwrap().rows;
    let error = study.next_runs(0, &later).unwrap_err();
    assert!(matches!(error, StudyError::Rows(RunsTableError::Missing { point: 0, run: 0 })), "{error}");
    let foreign = study_of(2).run(0, 0..2, &go_on).unwrap().rows;
    let error = study.next_runs(0, &foreign).unwrap_err();
    assert!(matches!(error, StudyError::Rows(RunsTableError::Foreign { point: 0, run: 0 })), "{error}");
    let error = study.next_runs(2, &later).unwrap_err().to_string();
    assert!(error.contains("there is no point 2"), "{error}");
    // Rows of other points are ignored.
    assert_eq!(study.next_runs(1, &later).unwrap(), Some(0..7));
}
