//! Recorded series that channels and links replay; reading the files is the caller's business.

use std::sync::Arc;

/// Where traces come from: files in the engine, memory in tests.
pub trait TraceSource {
    /// The trace of that name.
    ///
    /// # Errors
    /// If it is missing, unreadable, empty or malformed.
    fn load(&self, file: &str) -> Result<Arc<Trace>, TraceError>;
}

/// A recorded series.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Trace {
    /// Instants at which so many bytes may leave; repeats after `duration_s`.
    Delivery {
        /// Ascending instants, seconds.
        opportunity_s: Vec<f64>,
        /// Bytes that may leave at each.
        bytes_per_opportunity: u32,
        /// When it starts over, seconds.
        duration_s: f64,
    },
    /// A rate that is constant between instants; repeats after `duration_s`.
    Rate {
        /// Ascending instants, seconds; the first is 0.
        time_s: Vec<f64>,
        /// Rate from each instant on, bit/s; 0 is an outage.
        rate_bps: Vec<f64>,
        /// When it starts over, seconds.
        duration_s: f64,
    },
    /// A one-way delay that is constant between instants; repeats after `duration_s`.
    Delay {
        /// Ascending instants, seconds; the first is 0.
        time_s: Vec<f64>,
        /// Delay from each instant on, seconds.
        delay_s: Vec<f64>,
        /// When it starts over, seconds.
        duration_s: f64,
    },
    /// Whether each frame was lost; starts over at its end.
    PacketLoss {
        /// One entry per frame.
        lost: Vec<bool>,
    },
    /// Where the wrong bits of a bit stream were; starts over at its end.
    BitErrors {
        /// Ascending positions.
        position: Vec<u64>,
        /// Length of the stream, bits.
        bits: u64,
    },
}

impl Trace {
    /// Its name in a trace file's metadata.
    pub fn kind(&self) -> &'static str {
        match self {
            Trace::Delivery { .. } => "delivery",
            Trace::Rate { .. } => "rate",
            Trace::Delay { .. } => "delay",
            Trace::PacketLoss { .. } => "packet-loss",
            Trace::BitErrors { .. } => "bit-errors",
        }
    }
}

/// Why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is no such file, or it cannot be opened.
    #[error("cannot read the trace {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// Its content is not what it should be.
    #[error("the trace {file} is not usable: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// It holds something else than is wanted here.
    #[error("the trace {file} holds {found} but {wanted} is wanted here")]
    WrongKind {
        /// The file.
        file: String,
        /// What it holds.
        found: &'static str,
        /// What is wanted.
        wanted: &'static str,
    },
}
