//! Expands a scenario with a grid to one checked scenario per grid point.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::engine::{Approximation, check_keys};
use super::grid::Grid;
use super::near_names::{nearest, suggest};
use super::read::{Refusal, read, show};
use super::{Scenario, check, idle};
use crate::ConfigError;

/// Largest number of points of a grid that is expanded as a whole.
pub const MAX_POINTS: usize = 100_000;

/// Largest number of points of a grid whose points are made one by one.
pub const MOST_SINGLE_POINTS: usize = 10_000_000;

/// A scenario's grid points.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// The points, at least one; the settings that come last in the file vary fastest.
    pub points: Vec<Point>,
    /// Keys that engines run without, because `unsupported = "approximate"`.
    pub approximations: Vec<Approximation>,
    /// The grid, which is part of [`normalised`](Self::normalised).
    grid: Grid,
    grid_zip: Vec<Grid>,
}

/// One point of the grid.
#[derive(Clone, Debug)]
pub struct Point {
    /// The settings that vary, with their values at this point, in file order.
    pub settings: Vec<(String, Value)>,
    /// The scenario at this point.
    pub scenario: Scenario,
}

impl Expanded {
    /// The scenario with every default written out that has an effect at all points; settings that vary have the values of
    /// the first point.
    pub fn normalised(&self) -> Value {
        let mut scenario = self.points[0].scenario.clone();
        scenario.grid = self.grid.clone();
        scenario.grid_zip = self.grid_zip.clone();
        let mut normalised = serde_json::to_value(scenario).expect("a scenario has only text as keys");
        self.points.iter().for_each(|point| idle::strip(&mut normalised, &point.scenario));
        normalised
    }
}

/// Checks a scenario at every point of its grid.
///
/// # Errors
/// The first error that is found.
pub fn expand(scenario: &Value) -> Result<Expanded, ConfigError> {
    let points = Points::within(scenario, MAX_POINTS, "give fewer values, or split the scenario")?;
    let all = 0..points.count();
    points.expanded(all)
}

/// Checks a scenario at some points of its grid, by their numbers, in this order.
///
/// # Errors
/// The first error that is found at these points, or if there is no such point.
pub fn expand_some(scenario: &Value, numbers: &[usize]) -> Result<Expanded, ConfigError> {
    Points::new(scenario)?.expanded(numbers.iter().copied())
}

/// The points of a scenario, made one by one: a grid of a million takes no more memory than its lists of values.
pub struct Points {
    /// The scenario without its grid.
    base: Map<String, Value>,
    pub(super) axes: Vec<Axis>,
    grid: Grid,
    grid_zip: Vec<Grid>,
    count: usize,
}

impl Points {
    /// The points of a scenario, none of which is checked yet.
    ///
    /// # Errors
    /// If the grid itself is refused, or has more than [`MOST_SINGLE_POINTS`].
    pub fn new(scenario: &Value) -> Result<Self, ConfigError> {
        Points::within(scenario, MOST_SINGLE_POINTS, "give fewer values")
    }

    fn within(scenario: &Value, most: usize, remedy: &str) -> Result<Self, ConfigError> {
        let Value::Object(table) = scenario else {
            return Err(ConfigError::new(
                "",
                "a scenario is a table of keys",
                "see `farlink schema` for what is allowed",
            ));
        };
        let axes = axes(table)?;
        let count = axes.iter().try_fold(1_usize, |size, axis| size.checked_mul(axis.length));
        let Some(count) = count.filter(|count| *count <= most) else {
            let lengths: Vec<_> = axes.iter().map(|axis| axis.length.to_string()).collect();
            let what = format!("{} points are more than {most}", lengths.join(" x "));
            return Err(ConfigError::new("grid", what, remedy));
        };
        let mut base = table.clone();
        let grid = base.shift_remove("grid").map_or(Ok(Grid::default()), |grid| read_at("grid", &grid))?;
        let grid_zip = base.shift_remove("grid_zip").map_or(Ok(Vec::new()), |grids| read_at("grid_zip", &grids))?;
        Ok(Points { base, axes, grid, grid_zip, count })
    }

    /// How many there are, at least one.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The settings that vary, with their values at a point, in file order.
    ///
    /// # Errors
    /// If there is no such point.
    pub fn settings(&self, number: usize) -> Result<Vec<(String, Value)>, ConfigError> {
        let index = self.index(number)?;
        let settings = settings_at(&self.axes, &index).into_iter();
        Ok(settings.map(|setting| (setting.path.to_owned(), setting.value.clone())).collect())
    }

    /// A point, checked, and its scenario as it was written: without a grid, with the settings of this point.
    ///
    /// # Errors
    /// If it is refused, or there is no such point.
    pub fn point(&self, number: usize) -> Result<(Point, Value), ConfigError> {
        self.checked(number, &mut Vec::new())
    }

    fn checked(&self, number: usize, approximations: &mut Vec<Approximation>) -> Result<(Point, Value), ConfigError> {
        let index = self.index(number)?;
        let settings = settings_at(&self.axes, &index);
        let (scenario, given) = point(&self.base, &settings)?;
        check_point(&scenario, &given).map_err(|error| blame_check(error, &self.base, &self.axes, &index))?;
        for engine in &scenario.engines {
            for approximation in check_keys(engine.engine(), &given, scenario.unsupported)? {
                if !approximations.contains(&approximation) {
                    approximations.push(approximation);
                }
            }
        }
        let settings = settings.iter().map(|setting| (setting.path.to_owned(), setting.value.clone())).collect();
        Ok((Point { settings, scenario }, given))
    }

    fn expanded(self, numbers: impl Iterator<Item = usize>) -> Result<Expanded, ConfigError> {
        let (mut points, mut approximations) = (Vec::new(), Vec::new());
        for number in numbers {
            points.push(self.checked(number, &mut approximations)?.0);
        }
        if points.is_empty() {
            let remedy = format!("give numbers from 0 to {}", self.count - 1);
            return Err(ConfigError::new("points", "no point is chosen", remedy));
        }
        Ok(Expanded { points, approximations, grid: self.grid, grid_zip: self.grid_zip })
    }

    /// The position of a point on each axis; the last axis varies fastest.
    pub(super) fn index(&self, number: usize) -> Result<Vec<usize>, ConfigError> {
        if number >= self.count {
            let remedy = format!("give numbers from 0 to {}", self.count - 1);
            return Err(ConfigError::new("points", format_args!("there is no point {number}"), remedy));
        }
        let (mut index, mut rest) = (vec![0; self.axes.len()], number);
        for (at, axis) in index.iter_mut().zip(&self.axes).rev() {
            *at = rest % axis.length;
            rest /= axis.length;
        }
        Ok(index)
    }
}

impl Point {
    /// The scenario at this point with every default written out that has an effect.
    pub fn normalised(&self) -> Value {
        let mut normalised = serde_json::to_value(&self.scenario).expect("a scenario has only text as keys");
        idle::strip(&mut normalised, &self.scenario);
        normalised
    }
}

/// One dimension of the grid: settings that vary together.
pub(super) struct Axis {
    pub(super) values: IndexMap<String, Vec<Value>>,
    length: usize,
}

pub(super) struct Setting<'a> {
    path: &'a str,
    value: &'a Value,
}

impl Axis {
    fn settings(&self, at: usize) -> impl Iterator<Item = Setting<'_>> {
        self.values.iter().map(move |(path, values)| Setting { path, value: &values[at] })
    }
}

pub(super) fn settings_at<'a>(axes: &'a [Axis], index: &[usize]) -> Vec<Setting<'a>> {
    axes.iter().zip(index).flat_map(|(axis, &at)| axis.settings(at)).collect()
}

/// `[grid]` gives one axis per path, each `[[grid_zip]]` one for all of its paths; in file order.
fn axes(table: &Map<String, Value>) -> Result<Vec<Axis>, ConfigError> {
    let mut axes: Vec<Axis> = Vec::new();
    for (key, value) in table {
        match key.as_str() {
            "grid" => {
                let grid: Grid = read_at(key, value)?;
                axes.extend(
                    grid.0
                        .into_iter()
                        .map(|(path, values)| Axis { length: values.len(), values: IndexMap::from([(path, values)]) }),
                );
            }
            "grid_zip" => {
                let zips: Vec<Grid> = read_at(key, value)?;
                for (at, zip) in zips.into_iter().enumerate() {
                    axes.extend(zip_axis(at, zip)?);
                }
            }
            _ => {}
        }
    }
    let mut seen = Vec::new();
    for path in axes.iter().flat_map(|axis| axis.values.keys()) {
        if seen.contains(&path) {
            let what = format!("{path:?} varies twice");
            return Err(ConfigError::new("grid", what, "keep it in one place of [grid] and [[grid_zip]]"));
        }
        seen.push(path);
    }
    Ok(axes)
}

fn zip_axis(at: usize, zip: Grid) -> Result<Option<Axis>, ConfigError> {
    let Some((first, values)) = zip.0.first() else { return Ok(None) };
    let length = values.len();
    if let Some((path, values)) = zip.0.iter().find(|(_, values)| values.len() != length) {
        return Err(ConfigError::new(
            format!("grid_zip[{at}]"),
            format_args!("{first:?} has {length} values but {path:?} has {}", values.len()),
            "give every path of one [[grid_zip]] the same number of values, or use [grid] for every combination",
        ));
    }
    Ok(Some(Axis { length, values: zip.0 }))
}

fn read_at<T: serde::de::DeserializeOwned>(path: &str, value: &Value) -> Result<T, ConfigError> {
    read(value).map_err(|refusal: Refusal| {
        ConfigError::new(join(path, &refusal.path()), refusal.what(), "write \"dotted.path\" = [value, value, ...]")
    })
}

/// The scenario at one point, and the keys that were given for it.
fn point(base: &Map<String, Value>, settings: &[Setting<'_>]) -> Result<(Scenario, Value), ConfigError> {
    let mut table = Value::Object(base.clone());
    let mut created = Vec::new();
    for setting in settings {
        set(&mut table, setting, &mut created)?;
    }
    let mut scenario: Scenario = read(&table).map_err(|refusal| blame(&refusal, settings, &created))?;
    scenario.fill_in();
    Ok((scenario, table))
}

pub(super) fn check_point(scenario: &Scenario, given: &Value) -> Result<(), ConfigError> {
    check::check(scenario).and_then(|()| idle::check(scenario, given))
}

/// Writes one value, and adds the paths of tables that did not exist before to `created`.
pub(super) fn set(root: &mut Value, setting: &Setting<'_>, created: &mut Vec<String>) -> Result<(), ConfigError> {
    let names: Vec<&str> = setting.path.split('.').collect();
    if names.iter().any(|name| name.is_empty()) {
        let what = format!("{:?} is not a dotted path", setting.path);
        return Err(ConfigError::new("grid", what, "write names with single dots between them: link.channel.ber"));
    }
    let mut node = root;
    for (depth, name) in names.iter().enumerate() {
        let is_last = depth + 1 == names.len();
        let here = names[..depth].join(".");
        node = match node {
            Value::Object(table) => {
                if !table.contains_key(*name) {
                    if is_named(&here) || (is_last && is_named(&names[..=depth].join("."))) {
                        return Err(no_such_name(setting.path, &names, depth, table));
                    }
                    if !is_last {
                        created.push(names[..=depth].join("."));
                        table.insert((*name).to_owned(), Value::Object(Map::new()));
                    } else {
                        table.insert((*name).to_owned(), Value::Null);
                    }
                }
                table.get_mut(*name).expect("it was just inserted")
            }
            Value::Array(items) => {
                let length = items.len();
                match name.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                    Some(item) => item,
                    None => {
                        let what = format!("{:?} does not exist: {here} is a list of {length}", setting.path);
                        return Err(ConfigError::new("grid", what, "write the number of an entry, from 0"));
                    }
                }
            }
            other => {
                let what = format!("{:?} does not exist: {here} is {}, not a table", setting.path, show(other));
                return Err(ConfigError::new("grid", what, format!("vary {here} itself, or make it a table")));
            }
        };
    }
    *node = setting.value.clone();
    Ok(())
}

/// Whether the keys of a table are names that the scenario chooses. A grid varies existing entries of such a table and adds none.
fn is_named(path: &str) -> bool {
    matches!(path, "transport" | "flow" | "hop")
}

fn no_such_name(path: &str, names: &[&str], depth: usize, table: &Map<String, Value>) -> ConfigError {
    let family = names[0];
    let name = names.get(1).copied().unwrap_or_default();
    let known = if depth == 0 { Vec::new() } else { table.keys().map(String::as_str).collect() };
    let remedy = match nearest(name, known.iter().copied()) {
        Some(near) => {
            let meant: Vec<_> = [family, near].into_iter().chain(names.iter().skip(2).copied()).collect();
            format!("did you mean \"{}\"? {family}s: {}", meant.join("."), known.join(", "))
        }
        None => suggest(name, &format!("{family}s"), known.iter().copied()),
    };
    ConfigError::new("grid", format_args!("{path:?} does not exist: there is no [{family}.{name}]"), remedy)
}

/// Turns a refusal that a grid value caused into one that names the grid path and the value.
fn blame(refusal: &Refusal, settings: &[Setting<'_>], created: &[String]) -> ConfigError {
    let path = refusal.path();
    // The last setting that could be the cause: its path contains the refused path or is contained in it.
    let cause = settings.iter().rev().find(|setting| is_within(&path, setting.path));
    let made = created.iter().rev().find(|made| is_within(&path, made));
    match (cause, made) {
        (Some(setting), _) if path == setting.path && refusal.is_unknown_key() => {
            let remedy = match refusal.nearest_path() {
                Some(near) => format!("did you mean {near:?}? {}", list_only(&refusal.remedy())),
                None => refusal.remedy(),
            };
            ConfigError::new("grid", format_args!("{path:?} does not exist"), remedy)
        }
        (Some(setting), _) => {
            let inside = path[setting.path.len()..].trim_start_matches('.');
            let what = match inside {
                "" => refusal.what(),
                inside => format!("in {}: {inside}: {}", show(setting.value), refusal.what()),
            };
            ConfigError::new(format!("grid.{:?}", setting.path), what, refusal.remedy())
        }
        (None, Some(made)) => {
            let full =
                settings.iter().rev().find(|setting| is_within(setting.path, made)).map_or("", |setting| setting.path);
            let (why, remedy) = match refusal.nearest_path() {
                Some(near) => {
                    let meant = format!("{near}{}", &full[path.len().min(full.len())..]);
                    (
                        format!("the scenario has no [{made}]"),
                        format!("did you mean \"{meant}\"? {}", list_only(&refusal.remedy())),
                    )
                }
                None if refusal.is_missing_key() => (
                    format!("the scenario has no [{made}]"),
                    format!("write [{made}] with its required keys, then vary {full}"),
                ),
                None if refusal.is_unknown_key() => (format!("the scenario has no [{made}]"), refusal.remedy()),
                None => (format!("{made} is not a table"), format!("vary {made} itself: {}", refusal.remedy())),
            };
            ConfigError::new("grid", format_args!("{full:?} does not exist: {why}"), remedy)
        }
        (None, None) => refusal.clone().into(),
    }
}

/// Adds the values of varying keys to an error about keys that contradict each other.
fn blame_check(error: ConfigError, base: &Map<String, Value>, axes: &[Axis], index: &[usize]) -> ConfigError {
    let causes = (0..axes.len()).filter(|&axis| matters(axis, &error, base, axes, index));
    let at: Vec<_> = causes
        .flat_map(|axis| axes[axis].settings(index[axis]))
        .map(|setting| format!("{} = {}", setting.path, show(setting.value)))
        .collect();
    if at.is_empty() {
        return error;
    }
    ConfigError { what: format!("{} (at {})", error.what, at.join(", ")), ..error }
}

/// Whether the error disappears or changes at some other value of an axis. An axis with one value matters if it sets the refused
/// key.
fn matters(axis: usize, error: &ConfigError, base: &Map<String, Value>, axes: &[Axis], index: &[usize]) -> bool {
    /// Number of values to try, which is enough for an axis of any length.
    const MOST_TRIED: usize = 100;
    if axes[axis].length == 1 {
        return axes[axis]
            .settings(0)
            .any(|setting| is_within(&error.path, setting.path) || is_within(setting.path, &error.path));
    }
    let mut index = index.to_vec();
    let here = index[axis];
    (0..axes[axis].length).filter(|&at| at != here).take(MOST_TRIED).any(|at| {
        index[axis] = at;
        // A point that cannot be read says nothing about this axis.
        let there = point(base, &settings_at(axes, &index));
        there.is_ok_and(|(scenario, given)| check_point(&scenario, &given).err().as_ref() != Some(error))
    })
}

/// Whether `path` is `outer` or lies inside it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The remedy without its suggestion of a near name.
fn list_only(remedy: &str) -> &str {
    remedy.split_once("? ").map_or(remedy, |(_, list)| list)
}

fn join(path: &str, rest: &str) -> String {
    match rest.chars().next() {
        None => path.to_owned(),
        Some('[') => format!("{path}{rest}"),
        Some(_) => format!("{path}.{rest}"),
    }
}
