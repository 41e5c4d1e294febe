//! Look-up tables over several round trips and buffers, of which that of one path is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use super::row::{Row, Status};
use super::{CLOSE, Table, TableError, is_positive};

/// A look-up table over several paths.
#[derive(Clone, Debug, PartialEq)]
pub struct PathTable {
    round_trips_s: Vec<f64>,
    buffers_bdp: Vec<f64>,
    entries: Vec<Entry>,
}

/// The rows of one share and number of flows.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// For each round trip and then each buffer, the rows at each C/N0: the chosen one first, then its candidates.
    paths: Vec<Vec<Vec<Row>>>,
}

/// The path for which a table is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// Round trip without the time that a segment takes to be sent, in s. May be left out if the table has one.
    pub round_trip_s: Option<f64>,
    /// Room in the queue, in bandwidth-delay products; likewise.
    pub buffer_bdp: Option<f64>,
}

/// A part of a path that lies outside the table; the nearest end of the table is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutsideTable {
    /// Which part.
    pub axis: Axis,
    /// The requested value.
    pub asked: f64,
    /// The smallest value of the table.
    pub low: f64,
    /// The largest value of the table.
    pub high: f64,
}

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Round trip, in s.
    RoundTrip,
    /// Buffer, in bandwidth-delay products.
    Buffer,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::RoundTrip => "round trip",
            Axis::Buffer => "buffer",
        })
    }
}

impl Axis {
    fn unit(self) -> &'static str {
        match self {
            Axis::RoundTrip => "s",
            Axis::Buffer => "BDP",
        }
    }
}

impl fmt::Display for OutsideTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutsideTable { axis, asked, low, high } = *self;
        let unit = axis.unit();
        write!(f, "a {axis} of {asked} {unit} is outside the table, {low} to {high} {unit}")
    }
}

/// Why there is no table of a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoPath {
    /// The table has several values, and none is asked for.
    #[error("the table is entered by the {0}, which is not given; give it")]
    Missing(Axis),
    /// A value is not above 0.
    #[error("{axis} is {asked}; give a number above 0")]
    OutOfRange {
        /// Which part of the path.
        axis: Axis,
        /// The requested value.
        asked: f64,
    },
    /// The rows do not form a table on this path.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// The part of a file that is used.
#[derive(Deserialize)]
struct File {
    rows: Vec<Row>,
}

/// A value of the table beside a requested one, and its weight.
#[derive(Clone, Copy)]
struct Neighbour {
    at: usize,
    weight: f64,
}

impl PathTable {
    /// Reads a table over several paths from the JSON that `farlink tune STUDY.toml -o table.json` writes.
    ///
    /// # Errors
    /// If the table is invalid, or of one path.
    pub fn from_json(text: &str) -> Result<PathTable, TableError> {
        PathTable::new(serde_json::from_str::<File>(text)?.rows)
    }

    /// A table of these rows, in any order.
    ///
    /// # Errors
    /// If there are none, they are of one path, a path lacks a condition that another one has, or they are no table.
    pub fn new(rows: Vec<Row>) -> Result<PathTable, TableError> {
        if rows.is_empty() || rows.iter().any(|row| row.path().is_none()) {
            return Err(TableError::OnePath);
        }
        for row in &rows {
            check(row)?;
        }
        let (round_trips_s, buffers_bdp) = (values(&rows, |path| path.0), values(&rows, |path| path.1));
        let mut of_each: BTreeMap<(u64, u32), Vec<Row>> = BTreeMap::new();
        for row in rows {
            // Shares are above 0, so that the order of their bits is theirs.
            of_each.entry((row.share.to_bits(), row.flows)).or_default().push(row);
        }
        let mut entries = Vec::new();
        for rows in of_each.into_values() {
            entries.push(Entry::new(rows, &round_trips_s, &buffers_bdp)?);
        }
        Ok(PathTable { round_trips_s, buffers_bdp, entries })
    }

    /// Round trips of the table, in s, ascending.
    pub fn round_trips_s(&self) -> &[f64] {
        &self.round_trips_s
    }

    /// Buffers of the table, in bandwidth-delay products, ascending.
    pub fn buffers_bdp(&self) -> &[f64] {
        &self.buffers_bdp
    }

    /// The look-up table of a path, and the parts of the path that lay outside.
    ///
    /// On a path of the table these are its rows. Between paths, at each C/N0, the logarithm of a setting's goodput is a straight
    /// line over the logarithms of round trip and buffer between the two or four paths around, and the setting of the highest
    /// goodput is taken: only a setting that is usable on each of those paths.
    ///
    /// # Errors
    /// If a value is not above 0, or is left out and the table has several.
    pub fn on_path(&self, path: Path) -> Result<(Table, Vec<OutsideTable>), NoPath> {
        let mut outside = Vec::new();
        let round_trip_s = asked(Axis::RoundTrip, path.round_trip_s, &self.round_trips_s, &mut outside)?;
        let buffer_bdp = asked(Axis::Buffer, path.buffer_bdp, &self.buffers_bdp, &mut outside)?;
        let mut around = Vec::new();
        for row in neighbours(round_trip_s, &self.round_trips_s) {
            for column in neighbours(buffer_bdp, &self.buffers_bdp) {
                let at = row.at * self.buffers_bdp.len() + column.at;
                around.push(Neighbour { at, weight: row.weight * column.weight });
            }
        }
        let mut rows = Vec::new();
        for entry in &self.entries {
            match around[..] {
                [only] => rows.extend(entry.paths[only.at].iter().map(|rows| rows[0].clone())),
                _ => rows.extend(entry.between((round_trip_s, buffer_bdp), &around)?),
            }
        }
        Ok((Table::new(rows)?, outside))
    }
}

impl Entry {
    fn new(rows: Vec<Row>, round_trips_s: &[f64], buffers_bdp: &[f64]) -> Result<Entry, TableError> {
        let (share, flows) = (rows[0].share, rows[0].flows);
        let mut paths = vec![Vec::new(); round_trips_s.len() * buffers_bdp.len()];
        for row in rows {
            let (round_trip_s, buffer_bdp) = row.path().ok_or(TableError::OnePath)?;
            let at = |axis: &[f64], value: f64| axis.iter().position(|&one| one == value).unwrap_or(0);
            paths[at(round_trips_s, round_trip_s) * buffers_bdp.len() + at(buffers_bdp, buffer_bdp)].push(row);
        }
        let mut grouped = Vec::new();
        for mut rows in paths {
            rows.sort_by(|a, b| a.cn0_dbhz.total_cmp(&b.cn0_dbhz).then(is_candidate(a).cmp(&is_candidate(b))));
            let mut at_cn0: Vec<Vec<Row>> = Vec::new();
            for row in rows {
                match at_cn0.last_mut().filter(|rows| rows[0].cn0_dbhz == row.cn0_dbhz) {
                    Some(rows) => rows.push(row),
                    None => at_cn0.push(vec![row]),
                }
            }
            grouped.push(at_cn0);
        }
        let conditions =
            |at_cn0: &Vec<Vec<Row>>| at_cn0.iter().map(|rows| rows[0].cn0_dbhz.to_bits()).collect::<Vec<_>>();
        let is_grid = grouped.iter().all(|one| !one.is_empty() && conditions(one) == conditions(&grouped[0]));
        let is_chosen = grouped.iter().flatten().all(|rows| !is_candidate(&rows[0]));
        if !is_grid || !is_chosen {
            return Err(TableError::Grid { share, flows });
        }
        for rows in grouped.iter().flatten() {
            let chosen = rows.iter().filter(|row| !is_candidate(row)).count();
            let settings: Vec<&Row> = rows.iter().filter(|row| row.status != Status::NoTransmission).collect();
            let is_twice = |(at, row): (usize, &&Row)| settings[..at].iter().any(|other| other.is_set_as(row));
            if chosen > 1 || settings.iter().enumerate().any(is_twice) {
                return Err(TableError::Twice { share, flows, cn0_dbhz: rows[0].cn0_dbhz });
            }
        }
        for at_cn0 in &grouped {
            Table::new(at_cn0.iter().map(|rows| rows[0].clone()).collect())?;
        }
        Ok(Entry { paths: grouped })
    }

    /// Rows on a path between those of the table.
    fn between(&self, place: (f64, f64), around: &[Neighbour]) -> Result<Vec<Row>, TableError> {
        let mut found: Vec<Row> = Vec::new();
        for at in 0..self.paths[0].len() {
            let corners: Vec<(f64, &[Row])> =
                around.iter().map(|one| (one.weight, &self.paths[one.at][at][..])).collect();
            let mut row = best(&corners);
            (row.round_trip_s, row.buffer_bdp) = (Some(place.0), Some(place.1));
            (row.step, row.down_dbhz, row.up_dbhz) = match found.last() {
                None => (0, None, None),
                Some(below) if below.status == row.status && below.is_set_as(&row) => {
                    (below.step, below.down_dbhz, below.up_dbhz)
                }
                Some(below) => {
                    let (down, up) = self.thresholds(at);
                    if down.is_none() {
                        let Row { share, flows, cn0_dbhz, .. } = row;
                        return Err(TableError::Thresholds { share, flows, cn0_dbhz });
                    }
                    (below.step + 1, down, up)
                }
            };
            found.push(row);
        }
        Ok(found)
    }

    /// Thresholds of a step that begins at a C/N0: of a candidate there, or of a step that begins there on any path.
    fn thresholds(&self, at: usize) -> (Option<f64>, Option<f64>) {
        for at_cn0 in &self.paths {
            let begins = at > 0 && at_cn0[at][0].step != at_cn0[at - 1][0].step;
            let of = if begins { at_cn0[at].first() } else { at_cn0[at].iter().find(|row| is_candidate(row)) };
            if let Some(row) = of {
                return (row.down_dbhz, row.up_dbhz);
            }
        }
        (None, None)
    }
}

/// The row of the highest goodput among the settings that every path around has at a C/N0.
fn best(corners: &[(f64, &[Row])]) -> Row {
    let usable = |rows: &'_ [Row], of: &Row| {
        rows.iter().find(|row| row.status != Status::NoTransmission && row.is_set_as(of)).cloned()
    };
    let mut settings: Vec<&Row> = corners[0].1.iter().filter(|row| row.status != Status::NoTransmission).collect();
    settings.sort_by(|a, b| order(a, b));
    let mut best: Option<(f64, f64, &Row)> = None;
    for row in settings {
        let found: Option<Vec<(f64, Row)>> =
            corners.iter().map(|&(weight, rows)| Some((weight, usable(rows, row)?))).collect();
        let Some(each) = found else { continue };
        let value: f64 = each.iter().map(|(weight, one)| weight * libm::log(one.goodput_bps.unwrap_or(1.0))).sum();
        if best.is_none_or(|(highest, ..)| value > highest + CLOSE) {
            let half: f64 = each.iter().map(|(weight, one)| weight * one.goodput_half_width_bps.unwrap_or(0.0)).sum();
            best = Some((value, half, row));
        }
    }
    if let Some((value, half, row)) = best {
        return Row {
            status: Status::Ok,
            goodput_bps: Some(libm::exp(value)),
            goodput_half_width_bps: Some(half),
            ..row.clone()
        };
    }
    let silent = corners.iter().flat_map(|&(_, rows)| rows).find(|row| row.status == Status::NoTransmission);
    let like = silent.unwrap_or(&corners[0].1[0]);
    let reason = if like.reason.is_empty() {
        "no setting is usable on all paths of the table around this one".to_owned()
    } else {
        like.reason.clone()
    };
    Row::of_nothing(like, reason)
}

/// Of equal goodputs the fewest losses come first.
fn order(a: &Row, b: &Row) -> std::cmp::Ordering {
    let numbers = |row: &Row| (row.loss.unwrap_or(0.0), row.symbol_rate_hz.unwrap_or(0.0));
    let ((loss, rate), (other_loss, other_rate)) = (numbers(a), numbers(b));
    let words = |row: &Row| (row.modulation.clone(), row.code.clone(), row.segment_bytes);
    loss.total_cmp(&other_loss).then(rate.total_cmp(&other_rate)).then_with(|| words(a).cmp(&words(b)))
}

/// The values of a part of the path, ascending.
fn values(rows: &[Row], part: fn((f64, f64)) -> f64) -> Vec<f64> {
    let each: BTreeSet<u64> = rows.iter().filter_map(|row| row.path().map(|path| part(path).to_bits())).collect();
    each.into_iter().map(f64::from_bits).collect()
}

/// Refuses a row that cannot be interpolated.
fn check(row: &Row) -> Result<(), TableError> {
    let Row { share, flows, cn0_dbhz, .. } = *row;
    let (round_trip_s, buffer_bdp) = row.path().ok_or(TableError::OnePath)?;
    let is_condition = cn0_dbhz.is_finite() && [share, round_trip_s, buffer_bdp].into_iter().all(is_positive);
    let is_set = row.status == Status::NoTransmission || row.goodput_bps.is_some_and(is_positive);
    match (is_condition && flows > 0, is_set) {
        (true, true) => Ok(()),
        (true, false) => Err(TableError::Goodput { share, flows, cn0_dbhz }),
        (false, _) => Err(TableError::OutOfRange { cn0_dbhz, share, flows }),
    }
}

fn is_candidate(row: &Row) -> bool {
    row.status == Status::Candidate
}

/// A value within the table's range.
fn asked(axis: Axis, value: Option<f64>, known: &[f64], outside: &mut Vec<OutsideTable>) -> Result<f64, NoPath> {
    let (low, high) = (known[0], known[known.len() - 1]);
    let Some(asked) = value else {
        return if known.len() > 1 { Err(NoPath::Missing(axis)) } else { Ok(low) };
    };
    if !is_positive(asked) {
        return Err(NoPath::OutOfRange { axis, asked });
    }
    if !(low * (1.0 - CLOSE)..=high * (1.0 + CLOSE)).contains(&asked) {
        outside.push(OutsideTable { axis, asked, low, high });
    }
    Ok(asked.clamp(low, high))
}

/// The values of the table around one; one value if that is in the table.
fn neighbours(value: f64, axis: &[f64]) -> Vec<Neighbour> {
    if let Some(at) = axis.iter().position(|&one| (value / one - 1.0).abs() <= CLOSE) {
        return vec![Neighbour { at, weight: 1.0 }];
    }
    let above = axis.iter().position(|&one| one > value).unwrap_or(axis.len() - 1);
    let (low, high) = (axis[above - 1], axis[above]);
    let weight = libm::log(value / low) / libm::log(high / low);
    vec![Neighbour { at: above - 1, weight: 1.0 - weight }, Neighbour { at: above, weight }]
}
