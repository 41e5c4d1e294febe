//! Trace files: NumPy archives (`.npz`) of a few named arrays, one of which, `meta`, contains a line of JSON.
//!
//! | kind | arrays |
//! |---|---|
//! | `delivery` | `opportunity_s`, `bytes_per_opportunity` (scalar); `duration_s` in `meta` |
//! | `rate` | `time_s`, `rate_bps`; `duration_s` in `meta` |
//! | `delay` | `time_s`, `delay_s`, `drop_rate` (optional, not played); `duration_s` in `meta` |
//! | `power` | `power_w`, `blocked` (0 or 1 per sample, optional); `duration_s` in `meta` |
//! | `ber` | `ber`; `duration_s` in `meta` |
//! | `cn0` | `time_s`, `cn0_dbhz`; `duration_s` in `meta`; not played |
//! | `packet-loss` | `lost` (0 or 1 per frame), `segment_start` (optional, not played) |
//! | `bit-errors` | `position` (ascending), `bits` (scalar) |
//!
//! `meta` has `farlink_trace` = 1 and `kind`, and for readers `title`, `source`, `licence` and `units`.
//!
//! The archive is read by the `zip` crate. The arrays (NPY format 1.0 and 2.0, little-endian, at most one dimension) are read
//! here: their header is a line with a simple structure, while a general parser of Python literals could be made to recurse by a
//! malicious file. Python reads trace files through this module, too: see [`Content`].

mod archive;
mod npy;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::sync::{Arc, Mutex, PoisonError};

use farlink_core::trace::{Trace, TraceError, TraceSource};

pub use archive::{Content, LARGEST_TRACE, Values};

/// Trace files by path, each read once.
#[derive(Debug, Default)]
pub struct TraceFiles {
    read: Mutex<BTreeMap<String, Arc<Trace>>>,
}

impl TraceFiles {
    /// No file has been read yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl TraceSource for TraceFiles {
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError> {
        // A reader that panicked has left only complete entries.
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

/// The message of the system without its error number.
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
/// A description of the error. Any input gives a trace or an error.
pub(crate) fn read_trace(input: impl Read + Seek) -> Result<Trace, String> {
    let mut content = Content::read(input)?;
    let duration_s = content.duration_s;
    let duration_s = || duration_s.ok_or("meta has no duration_s");
    let trace = match content.kind {
        "delivery" => Trace::Delivery {
            opportunity_s: content.floats("opportunity_s")?,
            bytes_per_opportunity: content
                .scalar("bytes_per_opportunity")?
                .try_into()
                .map_err(|_| format!("bytes_per_opportunity is not allowed; allowed: 1 to {}", u32::MAX))?,
            duration_s: duration_s()?,
        },
        "rate" => Trace::Rate {
            time_s: content.floats("time_s")?,
            rate_bps: content.floats("rate_bps")?,
            duration_s: duration_s()?,
        },
        "delay" => Trace::Delay {
            time_s: content.floats("time_s")?,
            delay_s: content.floats("delay_s")?,
            duration_s: duration_s()?,
        },
        "power" => Trace::Power {
            power_w: content.floats("power_w")?,
            blocked: content.flags("blocked"),
            is_relative: content.is_relative,
            duration_s: duration_s()?,
        },
        "ber" => Trace::BitErrorRate { ber: content.floats("ber")?, duration_s: duration_s()? },
        "packet-loss" => Trace::PacketLoss { lost: content.flags("lost") },
        "bit-errors" => Trace::BitErrors { position: content.whole("position")?, bits: content.scalar("bits")? },
        kind => {
            return Err(format!(
                "its kind is {kind:?}; a link plays delivery, rate, delay, power, ber, packet-loss, bit-errors"
            ));
        }
    };
    trace.check()?;
    Ok(trace)
}

#[cfg(test)]
mod tests;
