//! The archive of a trace file: its arrays by name and type, read within limits.

use std::io::{Read, Seek};

use zip::ZipArchive;
use zip::result::ZipError;

use super::npy::{Array, BYTES_EACH};

/// Most bytes that all numbers of a trace file may take in memory, each 8: a file is not trusted to say how much it needs. 64 million
/// numbers: two hours of received power at 10 kHz.
pub const LARGEST_TRACE: u64 = 1 << 29;
/// Most bytes of the text in `meta`.
const LARGEST_META: u64 = 1 << 24;
/// Most arrays of a trace file; those that there are have five at most.
const MOST_ARRAYS: usize = 16;

/// What an array of a trace holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Floats,
    Whole,
    Flags,
    /// One whole number.
    Scalar,
}

/// Name of a kind, how many of its arrays it must have, and all of them.
type Kind = (&'static str, usize, &'static [(&'static str, Type)]);

/// The arrays of each kind of trace, the ones it must have first; how many of these there are.
const KINDS: [Kind; 8] = [
    ("delivery", 2, &[("opportunity_s", Type::Floats), ("bytes_per_opportunity", Type::Scalar)]),
    ("rate", 2, &[("time_s", Type::Floats), ("rate_bps", Type::Floats)]),
    ("delay", 2, &[("time_s", Type::Floats), ("delay_s", Type::Floats), ("drop_rate", Type::Floats)]),
    ("power", 1, &[("power_w", Type::Floats), ("blocked", Type::Flags)]),
    ("cn0", 2, &[("time_s", Type::Floats), ("cn0_dbhz", Type::Floats)]),
    ("ber", 1, &[("ber", Type::Floats)]),
    ("packet-loss", 1, &[("lost", Type::Flags), ("segment_start", Type::Whole)]),
    ("bit-errors", 2, &[("position", Type::Whole), ("bits", Type::Scalar)]),
];

/// The numbers of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Floating-point numbers.
    Floats(Vec<f64>),
    /// Whole numbers.
    Whole(Vec<u64>),
    /// 0 and 1.
    Flags(Vec<u8>),
    /// One whole number, an array without dimension.
    Scalar(u64),
}

/// A trace as it lies in its file: what the arrays are called and hold is checked, and nothing else of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The text of `meta`: an object in JSON, nested no deeper than 128.
    pub meta: String,
    /// Its kind.
    pub kind: &'static str,
    /// Duration of a trace with a time axis, in s, as `meta` has it.
    pub duration_s: Option<f64>,
    /// Whether the unit of a power is not known.
    pub is_relative: bool,
    /// The arrays by name.
    pub arrays: Vec<(&'static str, Values)>,
}

impl Content {
    /// Reads the bytes of a trace file.
    ///
    /// # Errors
    /// What is wrong with it, in words. Any bytes give a trace or an error, and take no more memory than [`LARGEST_TRACE`] and
    /// what the archive's own list of files has.
    pub fn read(input: impl Read + Seek) -> Result<Self, String> {
        let mut archive = Archive::open(input)?;
        let text = archive.array("meta")?.text(LARGEST_META).map_err(|why| format!("meta {why}"))?;
        let (kind, duration_s, is_relative) = meta(&text)?;
        let (kind, required, known) = KINDS.into_iter().find(|(name, ..)| *name == kind).ok_or_else(|| {
            let allowed = KINDS.map(|(name, ..)| name).join(", ");
            format!("its kind is {:?}; allowed: {allowed}", shortened(&kind))
        })?;
        archive.check_names(kind, known)?;
        let mut budget = LARGEST_TRACE;
        let mut arrays = Vec::new();
        for (at, &(name, of)) in known.iter().enumerate() {
            if at < required || archive.has(name) {
                let values = archive.values(name, of, budget)?;
                budget -= values.bytes();
                arrays.push((name, values));
            }
        }
        Ok(Content { meta: text, kind, duration_s, is_relative, arrays })
    }

    /// Takes an array out, as floating-point numbers.
    pub(super) fn floats(&mut self, name: &str) -> Result<Vec<f64>, String> {
        match self.take(name) {
            Some(Values::Floats(values)) => Ok(values),
            _ => Err(format!("it has no array {name}")),
        }
    }

    /// Takes an array out, as whole numbers.
    pub(super) fn whole(&mut self, name: &str) -> Result<Vec<u64>, String> {
        match self.take(name) {
            Some(Values::Whole(values)) => Ok(values),
            _ => Err(format!("it has no array {name}")),
        }
    }

    /// Takes a whole number out.
    pub(super) fn scalar(&mut self, name: &str) -> Result<u64, String> {
        match self.take(name) {
            Some(Values::Scalar(value)) => Ok(value),
            _ => Err(format!("it has no array {name}")),
        }
    }

    /// Takes truth values out; none if there is no such array.
    pub(super) fn flags(&mut self, name: &str) -> Vec<bool> {
        match self.take(name) {
            Some(Values::Flags(values)) => values.into_iter().map(|flag| flag == 1).collect(),
            _ => Vec::new(),
        }
    }

    fn take(&mut self, name: &str) -> Option<Values> {
        let at = self.arrays.iter().position(|(own, _)| *own == name)?;
        Some(self.arrays.swap_remove(at).1)
    }
}

impl Values {
    fn bytes(&self) -> u64 {
        let count = match self {
            Values::Floats(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Flags(values) => values.len(),
            Values::Scalar(_) => 0,
        };
        count as u64 * BYTES_EACH
    }
}

/// Kind, duration and whether the power is relative. All of the text is read, so that it is JSON and not nested too deeply.
fn meta(text: &str) -> Result<(String, Option<f64>, bool), String> {
    let wrong = |why: &dyn std::fmt::Display| format!("meta is not as it should be: {why}");
    let meta: serde_json::Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    let meta = meta.as_object().ok_or_else(|| wrong(&"no object"))?;
    match meta.get("farlink_trace") {
        Some(version) if version.as_u64() == Some(1) => {}
        Some(version) => {
            return Err(format!("its format version is {}; this farlink reads 1", shortened(&version.to_string())));
        }
        None => return Err(wrong(&"missing field `farlink_trace`")),
    }
    let kind = meta.get("kind").ok_or_else(|| wrong(&"missing field `kind`"))?;
    let kind = kind.as_str().ok_or_else(|| wrong(&"kind is no text"))?.to_owned();
    let duration_s = match meta.get("duration_s") {
        None | Some(serde_json::Value::Null) => None,
        Some(value) => Some(value.as_f64().ok_or_else(|| wrong(&"duration_s is no number"))?),
    };
    let is_relative = match meta.get("relative_power") {
        None => false,
        Some(value) => value.as_bool().ok_or_else(|| wrong(&"relative_power is neither true nor false"))?,
    };
    Ok((kind, duration_s, is_relative))
}

struct Archive<R>(ZipArchive<R>);

impl<R: Read + Seek> Archive<R> {
    fn open(mut input: R) -> Result<Self, String> {
        let is_empty = input.read(&mut [0]).map_err(|error| super::words(&error))? == 0;
        if is_empty {
            return Err("it is empty".into());
        }
        let archive = ZipArchive::new(input).map_err(|error| format!("it is not a whole .npz archive ({error})"))?;
        if archive.len() > MOST_ARRAYS {
            return Err(format!("it has {} arrays; allowed: up to {MOST_ARRAYS}", archive.len()));
        }
        Ok(Archive(archive))
    }

    /// Refuses arrays that no trace of this kind has.
    fn check_names(&self, kind: &str, known: &[(&str, Type)]) -> Result<(), String> {
        let is_known = |file: &str| {
            file.strip_suffix(".npy").is_some_and(|name| name == "meta" || known.iter().any(|(own, _)| *own == name))
        };
        match self.0.file_names().find(|file| !is_known(file)) {
            Some(other) => {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let other = shortened(other.strip_suffix(".npy").unwrap_or(other));
                Err(format!("{other:?} is no array of a {kind} trace; its arrays are: {}", names.join(", ")))
            }
            None => Ok(()),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.index_for_name(&format!("{name}.npy")).is_some()
    }

    fn array(&mut self, name: &str) -> Result<Array<impl Read>, String> {
        let entry = match self.0.by_name(&format!("{name}.npy")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Err(format!("it has no array {name}")),
            Err(error) => return Err(format!("the array {name} cannot be read ({error})")),
        };
        let length = entry.size();
        Array::open(entry, length).map_err(|why| format!("the array {name} {why}"))
    }

    fn values(&mut self, name: &str, of: Type, most_bytes: u64) -> Result<Values, String> {
        let array = self.array(name)?;
        let values = match of {
            Type::Floats => array.floats(most_bytes).map(Values::Floats),
            Type::Whole => array.integers(most_bytes).map(Values::Whole),
            Type::Flags => array.flags(most_bytes).map(Values::Flags),
            Type::Scalar => array.integers(most_bytes).and_then(|values| match *values {
                [value] => Ok(Values::Scalar(value)),
                ref values => Err(format!("has {} entries, not one", values.len())),
            }),
        };
        values.map_err(|why| format!("the array {name} {why}"))
    }
}

/// The beginning of a text that a stranger chose.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
