//! Trace files: NumPy archives (`.npz`) of a few named arrays, one of which, `meta`, holds a line of JSON.
//!
//! | kind | arrays |
//! |---|---|
//! | `delivery` | `opportunity_s`, `bytes_per_opportunity` (scalar); `duration_s` in `meta` |
//! | `rate` | `time_s`, `rate_bps`; `duration_s` in `meta` |
//! | `delay` | `time_s`, `delay_s`; `duration_s` in `meta` |
//! | `power` | `power_w`, `blocked` (0 or 1 per sample, optional); `duration_s` in `meta` |
//! | `ber` | `ber`; `duration_s` in `meta` |
//! | `packet-loss` | `lost` (0 or 1 per frame) |
//! | `bit-errors` | `position` (ascending), `bits` (scalar) |
//!
//! `meta` has `farlink_trace` = 1 and `kind`, and says for people `title`, `source`, `licence` and `units`.
//!
//! The archive is read by the `zip` crate, the arrays (NPY format 1.0 and 2.0, little-endian, at most one dimension) here:
//! such a header is a line to take apart, and a general parser of Python literals would recurse as deep as a file asks.

mod npy;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::sync::{Arc, Mutex, PoisonError};

use farlink_core::trace::{Trace, TraceError, TraceSource};
use serde::Deserialize;
use zip::ZipArchive;
use zip::result::ZipError;

use npy::Array;

/// The largest array that is read, in bytes: a file is not trusted to say how much memory it needs.
const LARGEST_ARRAY: u64 = 1 << 30;

/// Trace files by path, each read once.
#[derive(Debug, Default)]
pub struct TraceFiles {
    read: Mutex<BTreeMap<String, Arc<Trace>>>,
}

impl TraceFiles {
    /// None read yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl TraceSource for TraceFiles {
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError> {
        // A reader that panicked left whole entries behind.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trace) = read.get(file) {
            return Ok(Arc::clone(trace));
        }
        let unreadable = |error: std::io::Error| TraceError::Unreadable { file: file.into(), reason: words(&error) };
        if !std::fs::metadata(file).map_err(unreadable)?.is_file() {
            return Err(TraceError::Unreadable { file: file.into(), reason: "it is not a file".into() });
        }
        let open = File::open(file).map_err(unreadable)?;
        let trace = read_trace(BufReader::new(open))
            .map(Arc::new)
            .map_err(|reason| TraceError::Malformed { file: file.into(), reason })?;
        read.insert(file.into(), Arc::clone(&trace));
        Ok(trace)
    }
}

/// What the system said, without its error number.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// Reads a trace from the bytes of a trace file.
///
/// # Errors
/// What is wrong with it, in words. Any bytes give a trace or an error.
pub(crate) fn read_trace(input: impl Read + Seek) -> Result<Trace, String> {
    let mut archive = Archive::open(input)?;
    let meta: Meta = serde_json::from_str(&archive.array("meta")?.text().map_err(|why| format!("meta {why}"))?)
        .map_err(|error| format!("meta is not as it should be: {error}"))?;
    if meta.farlink_trace != 1 {
        return Err(format!("its format version is {}; this farlink reads 1", meta.farlink_trace));
    }
    let duration_s = || meta.duration_s.ok_or("meta has no duration_s");
    let trace = match meta.kind.as_str() {
        "delivery" => Trace::Delivery {
            opportunity_s: archive.floats("opportunity_s")?,
            bytes_per_opportunity: archive
                .scalar("bytes_per_opportunity")?
                .try_into()
                .map_err(|_| format!("bytes_per_opportunity is not allowed; allowed: 1 to {}", u32::MAX))?,
            duration_s: duration_s()?,
        },
        "rate" => Trace::Rate {
            time_s: archive.floats("time_s")?,
            rate_bps: archive.floats("rate_bps")?,
            duration_s: duration_s()?,
        },
        "delay" => Trace::Delay {
            time_s: archive.floats("time_s")?,
            delay_s: archive.floats("delay_s")?,
            duration_s: duration_s()?,
        },
        "power" => Trace::Power {
            power_w: archive.floats("power_w")?,
            blocked: if archive.has("blocked") { archive.flags("blocked")? } else { Vec::new() },
            is_relative: meta.relative_power,
            duration_s: duration_s()?,
        },
        "ber" => Trace::BitErrorRate { ber: archive.floats("ber")?, duration_s: duration_s()? },
        "packet-loss" => Trace::PacketLoss { lost: archive.flags("lost")? },
        "bit-errors" => Trace::BitErrors { position: archive.integers("position")?, bits: archive.scalar("bits")? },
        other => {
            return Err(format!(
                "its kind is {other:?}; allowed: delivery, rate, delay, power, ber, packet-loss, bit-errors"
            ));
        }
    };
    trace.check()?;
    Ok(trace)
}

/// What the engine needs to know of `meta`; the rest is for people.
#[derive(Deserialize)]
struct Meta {
    farlink_trace: u32,
    kind: String,
    duration_s: Option<f64>,
    /// The unit of a power is not known.
    #[serde(default)]
    relative_power: bool,
}

struct Archive<R>(ZipArchive<R>);

impl<R: Read + Seek> Archive<R> {
    fn open(mut input: R) -> Result<Self, String> {
        let is_empty = input.read(&mut [0]).map_err(|error| words(&error))? == 0;
        if is_empty {
            return Err("it is empty".into());
        }
        ZipArchive::new(input).map(Archive).map_err(|error| format!("it is not a whole .npz archive ({error})"))
    }

    fn array(&mut self, name: &str) -> Result<Array, String> {
        let entry = match self.0.by_name(&format!("{name}.npy")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Err(format!("it has no array {name}")),
            Err(error) => return Err(format!("the array {name} cannot be read ({error})")),
        };
        let mut bytes = Vec::new();
        entry
            .take(LARGEST_ARRAY + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("the array {name} cannot be read ({error})"))?;
        if bytes.len() as u64 > LARGEST_ARRAY {
            return Err(format!("the array {name} is larger than {LARGEST_ARRAY} bytes"));
        }
        Array::parse(bytes).map_err(|why| format!("the array {name} {why}"))
    }

    fn has(&self, name: &str) -> bool {
        self.0.index_for_name(&format!("{name}.npy")).is_some()
    }

    fn floats(&mut self, name: &str) -> Result<Vec<f64>, String> {
        self.array(name)?.floats().map_err(|why| format!("the array {name} {why}"))
    }

    fn integers(&mut self, name: &str) -> Result<Vec<u64>, String> {
        self.array(name)?.integers().map_err(|why| format!("the array {name} {why}"))
    }

    fn scalar(&mut self, name: &str) -> Result<u64, String> {
        match *self.integers(name)? {
            [value] => Ok(value),
            ref values => Err(format!("the array {name} has {} entries, not one", values.len())),
        }
    }

    fn flags(&mut self, name: &str) -> Result<Vec<bool>, String> {
        let flag = |value| match value {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("the array {name} holds {other}; allowed: 0 and 1")),
        };
        self.integers(name)?.into_iter().map(flag).collect()
    }
}

#[cfg(test)]
mod tests;
