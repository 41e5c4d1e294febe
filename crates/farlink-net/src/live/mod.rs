//! The flows of a scenario for real: the kernel's TCP, AeroTP and UDP between two network namespaces, over the emulated path.
//!
//! [`Plan`] says which flows there are, and refuses what no socket can play. [`play`] runs them beside an
//! [emulator](crate::emulate) whose packets a [`Tap`] counts, and gives a [`Row`] for each flow.

mod aerotp;
mod ends;
mod error;
mod meter;
mod plan;
mod play;
mod tap;
mod tcp;
mod udp;

pub use ends::EndPlace;
pub use error::LiveError;
pub use plan::{LiveFlow, Plan};
pub use play::{Machine, Run, play};
pub use tap::Tap;

/// Results of one flow, or of all. Bytes and packets are those since the end of the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name; `all` of all flows together.
    pub flow: String,
    /// The name of its transport.
    pub transport: String,
    /// Whether it came to its end, if its traffic has one.
    pub is_done: bool,
    /// Why it did not; empty if it did.
    pub reason: String,
    /// Application data delivered in order, bytes.
    pub delivered_bytes: f64,
    /// Bytes that its sender put on the path, headers included.
    pub sent_bytes: f64,
    /// Application data sent again, if the packets show it.
    pub retransmitted_bytes: Option<f64>,
    /// Mean time from the arrival of a packet at the path to its departure at the far end, s.
    pub arrival_delay_mean_s: Option<f64>,
    /// Mean time from the first transmission of data to its delivery in order, s; and two quantiles of it.
    pub delay_mean_s: Option<f64>,
    /// The median.
    pub delay_p50_s: Option<f64>,
    /// What 99 % stay below.
    pub delay_p99_s: Option<f64>,
    /// Share of its packets that did not leave at the far end, or with wrong bits.
    pub loss_fraction: Option<f64>,
    /// Share of its packets that left with a mark of congestion.
    pub marked_fraction: Option<f64>,
    /// Measured time, s.
    pub duration_s: f64,
    /// From its start to its last byte, s, if its traffic has an end and came to it.
    pub transfer_time_s: Option<f64>,
}
