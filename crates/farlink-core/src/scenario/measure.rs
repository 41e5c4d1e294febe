//! What is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Seconds;

/// The measured time series, and when the measurement begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// End of the warm-up, in seconds: events before this instant do not count in the results.
    pub warmup_s: Seconds,
    /// Time series that a traced run records.
    pub series: Vec<SeriesQuantity>,
}

impl Default for Measure {
    fn default() -> Self {
        use SeriesQuantity::{Cwnd, InFlight, Rtt, Ssthresh};
        Measure { warmup_s: Seconds::default(), series: vec![Cwnd, Ssthresh, Rtt, InFlight] }
    }
}

/// A quantity of which a traced run records every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeriesQuantity {
    /// Congestion window, bytes.
    Cwnd,
    /// Slow-start threshold, bytes.
    Ssthresh,
    /// Round-trip time samples, seconds.
    Rtt,
    /// Bytes in flight: sent and not yet acknowledged.
    InFlight,
    /// First byte of each data segment sent for the first time.
    SentSequence,
    /// First byte of each data segment sent again.
    RetransmittedSequence,
    /// First byte not yet acknowledged.
    Acknowledged,
    /// Pacing rate, bits of payload per second.
    PacingRate,
    /// Bandwidth of the path as the congestion control estimates it (BBR), bits of payload per second.
    Bandwidth,
    /// Packets sent since the end of the warm-up.
    SentPackets,
    /// Packets sent since the end of the warm-up that full queues and policers have dropped, without those that channels lost.
    DroppedPackets,
}

impl SeriesQuantity {
    /// Its name in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            SeriesQuantity::Cwnd => "cwnd",
            SeriesQuantity::Ssthresh => "ssthresh",
            SeriesQuantity::Rtt => "rtt",
            SeriesQuantity::InFlight => "in_flight",
            SeriesQuantity::SentSequence => "sent_sequence",
            SeriesQuantity::RetransmittedSequence => "retransmitted_sequence",
            SeriesQuantity::Acknowledged => "acknowledged",
            SeriesQuantity::PacingRate => "pacing_rate",
            SeriesQuantity::Bandwidth => "bandwidth",
            SeriesQuantity::SentPackets => "sent_packets",
            SeriesQuantity::DroppedPackets => "dropped_packets",
        }
    }
}
