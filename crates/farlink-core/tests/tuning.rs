//! The reader of look-up tables: the same choices as Python's, and properties of all tables.

use farlink_core::tuning::{
    Axis, Condition, NoCondition, NoPath, NoShare, OutsideTable, Path, PathTable, Row, Standing, Status, Table,
    TableError, Warning,
};
use proptest::prelude::*;
use serde::Deserialize;

/// Written by `python -m tests.tuning`; Python's tests compare them with its own reader.
const VECTORS: &str = include_str!("../../../tests/vectors/tuning.json");

#[derive(Deserialize)]
struct Vectors {
    rows: Vec<Row>,
    picks: Vec<Asked>,
    /// Bandwidth, C/N0, and share and step of the row.
    bandwidths: Vec<(f64, f64, f64, i32)>,
    paths: Vec<OverPaths>,
}

#[derive(Deserialize)]
struct OverPaths {
    rows: Vec<Row>,
    queries: Vec<Query>,
}

#[derive(Deserialize)]
struct Query {
    round_trip_s: Option<f64>,
    buffer_bdp: Option<f64>,
    warnings: usize,
    rows: Vec<Reached>,
}

/// Share, flows, C/N0, status, step, thresholds, code, goodput and reason of a row.
type Reached = (f64, u32, f64, Status, i32, Option<f64>, Option<f64>, Option<String>, Option<f64>, String);

#[derive(Deserialize)]
struct Asked {
    cn0_dbhz: f64,
    share: f64,
    flows: u32,
    current: Option<Stood>,
    picked: Picked,
    warnings: usize,
}

#[derive(Deserialize)]
struct Stood {
    share: f64,
    flows: u32,
    step: i32,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Picked {
    share: f64,
    flows: u32,
    cn0_dbhz: f64,
    step: i32,
    status: Status,
    code: Option<String>,
}

fn vectors() -> Vectors {
    serde_json::from_str(VECTORS).unwrap()
}

fn condition(cn0_dbhz: f64) -> Condition {
    Condition { cn0_dbhz, share: 1.0, flows: 1 }
}

#[test]
fn choices_match_the_python_implementation() {
    let Vectors { rows, picks, .. } = vectors();
    let table = Table::new(rows).unwrap();
    assert!(picks.len() > 400);
    for Asked { cn0_dbhz, share, flows, current, picked, warnings } in picks {
        let current = current.map(|Stood { share, flows, step }| Standing {
            share,
            flows,
            round_trip_s: None,
            buffer_bdp: None,
            step,
        });
        let found = table.pick(Condition { cn0_dbhz, share, flows }, current).unwrap();
        let row = found.row.clone();
        let ours = Picked {
            share: row.share,
            flows: row.flows,
            cn0_dbhz: row.cn0_dbhz,
            step: row.step,
            status: row.status,
            code: row.code,
        };
        assert_eq!(ours, picked, "{cn0_dbhz} dBHz, share {share}, {flows} flows, at {current:?}");
        assert_eq!(found.warnings.len(), warnings, "{cn0_dbhz} dBHz, share {share}, {flows} flows");
    }
}

#[test]
fn tables_of_paths_match_the_python_implementation() {
    let mut between = 0;
    for OverPaths { rows, queries } in vectors().paths {
        let table = PathTable::new(rows).unwrap();
        for Query { round_trip_s, buffer_bdp, warnings, rows } in queries {
            let path = Path { round_trip_s, buffer_bdp };
            let (found, outside) = table.on_path(path).unwrap();
            assert_eq!(outside.len(), warnings, "{path:?}");
            between += i32::from(round_trip_s.is_some_and(|value| !table.round_trips_s().contains(&value)));
            for (share, flows, cn0_dbhz, status, step, down_dbhz, up_dbhz, code, goodput_bps, reason) in rows {
                let ours = found.rows(share, flows).find(|row| row.cn0_dbhz == cn0_dbhz).unwrap();
                assert_eq!((ours.status, ours.step, &ours.code), (status, step, &code), "{path:?}, {cn0_dbhz} dBHz");
                assert_eq!((ours.down_dbhz, ours.up_dbhz), (down_dbhz, up_dbhz), "{path:?}, {cn0_dbhz} dBHz");
                assert_eq!(ours.reason, reason);
                match (ours.goodput_bps, goodput_bps) {
                    (Some(ours), Some(theirs)) => {
                        assert!((ours / theirs - 1.0).abs() < 1e-12, "{ours} beside {theirs}")
                    }
                    (ours, theirs) => assert_eq!(ours, theirs),
                }
            }
        }
    }
    assert!(between > 10);
}

#[test]
fn shares_of_bandwidths_match_the_python_implementation() {
    let Vectors { rows, bandwidths, .. } = vectors();
    let table = Table::new(rows.clone()).unwrap();
    for (bandwidth_hz, cn0_dbhz, share, step) in bandwidths {
        let asked = Condition { share: table.share_of_bandwidth(bandwidth_hz).unwrap(), ..condition(cn0_dbhz) };
        let row = table.pick(asked, None).unwrap().row;
        assert_eq!((row.share, row.step), (share, step), "{bandwidth_hz} symbol/s, {cn0_dbhz} dBHz");
    }
    for wrong in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(table.share_of_bandwidth(wrong), Err(NoShare::OutOfRange(wrong)));
    }
    assert!(matches!(table.share_of_bandwidth(f64::NAN), Err(NoShare::OutOfRange(_))));
    let mut mixed = rows;
    let last = mixed.len() - 1;
    mixed[last].symbol_rate_hz = Some(2e6);
    let refused = Table::new(mixed).unwrap().share_of_bandwidth(1e6).unwrap_err();
    assert_eq!(refused, NoShare::SymbolRates(vec![1e6, 2e6]));
}

#[test]
fn paths_outside_the_table_use_its_ends_with_a_warning() {
    let OverPaths { rows, .. } = vectors().paths.swap_remove(0);
    let table = PathTable::new(rows).unwrap();
    let (low, high) = (table.round_trips_s()[0], table.round_trips_s()[2]);
    let buffer_bdp = Some(table.buffers_bdp()[1]);
    let far = Path { round_trip_s: Some(1e3), buffer_bdp };
    let (clamped, outside) = table.on_path(far).unwrap();
    assert_eq!(outside, [OutsideTable { axis: Axis::RoundTrip, asked: 1e3, low, high }]);
    assert_eq!(outside[0].to_string(), format!("a round trip of 1000 s is outside the table, {low} to {high} s"));
    assert_eq!(clamped, table.on_path(Path { round_trip_s: Some(high), buffer_bdp }).unwrap().0);
}

#[test]
fn invalid_paths_are_refused() {
    let OverPaths { rows, .. } = vectors().paths.swap_remove(0);
    let table = PathTable::new(rows.clone()).unwrap();
    assert!(matches!(table.on_path(Path::default()), Err(NoPath::Missing(Axis::RoundTrip))));
    let of = |buffer_bdp| table.on_path(Path { round_trip_s: Some(0.5), buffer_bdp });
    assert!(matches!(of(None), Err(NoPath::Missing(Axis::Buffer))));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(of(Some(wrong)), Err(NoPath::OutOfRange { axis: Axis::Buffer, .. })));
    }
    assert!(matches!(Table::new(rows.clone()), Err(TableError::SeveralPaths)));
    assert!(matches!(PathTable::new(vectors().rows), Err(TableError::OnePath)));
    assert!(matches!(PathTable::new(rows[1..].to_vec()), Err(TableError::Grid { .. })));
    let with = |change: fn(&mut Row)| {
        let mut rows = rows.clone();
        let at = rows.iter().position(|row| row.status == Status::Candidate).unwrap();
        change(&mut rows[at]);
        PathTable::new(rows).unwrap_err()
    };
    assert!(matches!(with(|row| row.goodput_bps = Some(0.0)), TableError::Goodput { .. }));
    assert!(matches!(with(|row| row.buffer_bdp = Some(-1.0)), TableError::OutOfRange { .. }));
    assert!(matches!(with(|row| row.status = Status::Ok), TableError::Twice { .. }));
    let twice = [rows.clone(), vec![rows.iter().find(|row| row.status == Status::Candidate).unwrap().clone()]].concat();
    assert!(matches!(PathTable::new(twice), Err(TableError::Twice { .. })));
}

#[test]
fn a_choice_on_another_path_is_ignored() {
    let OverPaths { rows, .. } = vectors().paths.swap_remove(0);
    let table = PathTable::new(rows).unwrap();
    let on = |buffer_bdp| table.on_path(Path { round_trip_s: Some(table.round_trips_s()[0]), buffer_bdp }).unwrap().0;
    let (here, there) = (on(Some(table.buffers_bdp()[0])), on(Some(table.buffers_bdp()[1])));
    for cn0_dbhz in [60.0, 61.1, 61.3, 62.0, 62.5] {
        let high = there.pick(condition(62.5), None).unwrap().standing();
        assert_eq!(here.pick(condition(cn0_dbhz), Some(high)), here.pick(condition(cn0_dbhz), None));
    }
}

#[test]
fn a_table_is_read_from_what_farlink_writes() {
    let table = Table::from_json(VECTORS).unwrap();
    assert_eq!(table, Table::new(vectors().rows).unwrap());
}

#[test]
fn conditions_outside_the_table_use_its_ends_with_a_warning() {
    let table = Table::new(vectors().rows).unwrap();
    let below = table.pick(condition(10.0), None).unwrap();
    assert_eq!((below.row.cn0_dbhz, below.row.status), (60.0, Status::NoTransmission));
    let outside = Warning::CarrierToNoise { asked_dbhz: 10.0, low_dbhz: 60.0, high_dbhz: 68.0 };
    assert_eq!(below.warnings, [outside]);
    assert_eq!(outside.to_string(), "C/N0 of 10 dBHz is outside the table, 60 to 68 dBHz");
    assert_eq!(table.pick(condition(f64::INFINITY), None).unwrap().row.cn0_dbhz, 68.0);
}

#[test]
fn invalid_conditions_are_refused() {
    let table = Table::new(vectors().rows).unwrap();
    for wrong in [
        condition(f64::NAN),
        Condition { share: 0.0, ..condition(63.0) },
        Condition { share: f64::INFINITY, ..condition(63.0) },
        Condition { flows: 0, ..condition(63.0) },
    ] {
        let NoCondition(refused) = table.pick(wrong, None).unwrap_err();
        assert_eq!(refused.flows, wrong.flows);
    }
}

#[test]
fn invalid_rows_are_refused() {
    let rows = vectors().rows;
    assert!(matches!(Table::new(vec![]), Err(TableError::Empty)));
    assert!(matches!(Table::new(vec![rows[3].clone(), rows[3].clone()]), Err(TableError::Twice { .. })));
    let falling = Row { cn0_dbhz: 99.0, step: 0, ..rows[3].clone() };
    assert!(matches!(Table::new(vec![rows[3].clone(), falling]), Err(TableError::Steps { .. })));
    let nowhere = Row { share: -1.0, ..rows[3].clone() };
    assert!(matches!(Table::new(vec![nowhere]), Err(TableError::OutOfRange { .. })));
    for text in ["", "[]", "{\"rows\": [{}]}", "{\"rows\": [{\"share\": 1, \"flows\": 1.5}]}"] {
        assert!(matches!(Table::from_json(text), Err(TableError::Json(_))), "{text}");
    }
}

/// Rows of one share and number of flows: the code at each condition, with margin and hysteresis.
fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    (prop::collection::vec(0u8..4, 1..12), 0.0..2.0, 0.0..3.0).prop_map(|(codes, margin, hysteresis)| {
        let mut rows: Vec<Row> = Vec::new();
        let (mut step, mut down) = (0, None);
        for (at, &code) in codes.iter().enumerate() {
            let cn0_dbhz = 60.0 + at as f64;
            if at > 0 && code != codes[at - 1] {
                step += 1;
                down = Some(cn0_dbhz + margin);
            }
            let text = format!(
                "{{\"share\": 1, \"flows\": 1, \"cn0_dbhz\": {cn0_dbhz}, \"status\": \"ok\", \"step\": {step}}}"
            );
            let row: Row = serde_json::from_str(&text).unwrap();
            let up_dbhz = down.map(|down| down + hysteresis);
            rows.push(Row { down_dbhz: down, up_dbhz, code: Some(code.to_string()), ..row });
        }
        rows
    })
}

proptest! {
    #[test]
    fn a_step_is_kept_between_its_thresholds(
        rows in any_rows(),
        walk in prop::collection::vec(55.0..80.0f64, 1..30),
    ) {
        let (low, high) = (rows[0].cn0_dbhz, rows[rows.len() - 1].cn0_dbhz);
        let ends = |step: i32| rows.iter().find(|row| row.step == step).map(|row| (row.down_dbhz, row.up_dbhz)).unwrap();
        let table = Table::new(rows.clone()).unwrap();
        let mut standing = table.pick(condition(walk[0]), None).unwrap().standing();
        for &cn0 in &walk[1..] {
            let before = standing;
            let found = table.pick(condition(cn0), Some(before)).unwrap();
            standing = found.standing();
            let at = cn0.clamp(low, high);
            prop_assert!(ends(standing.step).0.is_none_or(|down| at >= down));
            if standing.step > before.step {
                prop_assert!(ends(standing.step).1.is_some_and(|up| at >= up));
            }
            if standing.step < before.step {
                prop_assert!(ends(before.step).0.is_some_and(|down| at < down));
            }
            // A repeated query gives the same answer.
            prop_assert_eq!(table.pick(condition(cn0), Some(standing)).unwrap().row, found.row);
        }
    }

    #[test]
    fn more_signal_never_lowers_the_step(rows in any_rows(), a in 55.0..80.0f64, b in 55.0..80.0f64) {
        let table = Table::new(rows).unwrap();
        let step = |cn0| table.pick(condition(cn0), None).unwrap().row.step;
        prop_assert!(step(a.min(b)) <= step(a.max(b)));
    }
}
