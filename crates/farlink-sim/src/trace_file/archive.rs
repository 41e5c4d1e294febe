//! The archive of a trace file: its arrays by name and type, read with limits.

use std::io::{Read, Seek};

use zip::ZipArchive;
use zip::result::ZipError;

use super::npy::{Array, BYTES_EACH};

/// Limit of the memory for all numbers of a trace file, with 8 bytes each, because a file is not trusted to state how much it
/// needs. 64 million numbers are two hours of received power at 10 kHz.
pub const LARGEST_TRACE: u64 = 1 << 29;
/// Largest length of the text in `meta`, bytes.
const LARGEST_META: u64 = 1 << 24;
/// Largest number of arrays of a trace file; the known kinds have at most five.
const MOST_ARRAYS: usize = 16;

/// The type of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Floats,
    Whole,
    Flags,
    /// One whole number.
    Scalar,
}

/// Name of a kind, number of its required arrays, and all of its arrays.
type Kind = (&'static str, usize, &'static [(&'static str, Type)]);

/// The arrays of each kind of trace, with the required ones first, and the number of these.
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

/// A trace as stored in its file. The names and types of its arrays are checked, but not their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The text of `meta`: a JSON object, nested at most 128 levels deep.
    pub meta: String,
    /// Its kind.
    pub kind: &'static str,
    /// Duration in s of a trace with a time axis, from `meta`.
    pub duration_s: Option<f64>,
    /// Whether the unit of a power is unknown.
    pub is_relative: bool,
    /// The arrays by name.
    pub arrays: Vec<(&'static str, Values)>,
}

impl Content {
    /// Reads the bytes of a trace file.
    ///
    /// # Errors
    /// A description of the error. Any input gives a trace or an error, and takes no more memory than [`LARGEST_TRACE`] and the
    /// archive's own list of files.
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

    /// Removes an array and returns it as floating-point numbers.
    pub(super) fn floats(&mut self, name: &str) -> Result<Vec<f64>, String> {
        match self.take(name) {
            Some(Values::Floats(values)) => Ok(values),
            _ => Err(format!("it has no array {name}")),
        }
    }

    /// Removes an array and returns it as whole numbers.
    pub(super) fn whole(&mut self, name: &str) -> Result<Vec<u64>, String> {
        match self.take(name) {
            Some(Values::Whole(values)) => Ok(values),
            _ => Err(format!("it has no array {name}")),
        }
    }

    /// Removes a whole number and returns it.
    pub(super) fn scalar(&mut self, name: &str) -> Result<u64, String> {
        match self.take(name) {
            Some(Values::Scalar(value)) => Ok(value),
            _ => Err(format!("it has no array {name}")),
        }
    }

    /// Removes an array of truth values and returns it; empty if there is no such array.
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

/// Kind, duration and whether the power is relative. The whole text is parsed, so that it is valid JSON and not nested too
/// deeply.
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

    /// Refuses arrays that this kind of trace does not have.
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

/// The beginning of a text from an untrusted file.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
