//! A row of a look-up table.

use serde::Deserialize;

/// The setting of a modem for a condition. Without a transmission, all fields of the setting are `None`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    /// Share of the carrier.
    pub share: f64,
    /// Number of TCP connections that the share is divided among.
    pub flows: u32,
    /// Carrier power over noise density, in dBHz.
    pub cn0_dbhz: f64,
    /// Whether there is a transmission.
    pub status: Status,
    /// Number of the step, from 0; neighbouring rows of the same setting have the same one. -1 of a candidate.
    pub step: i32,
    /// C/N0 below which the modem leaves this step, in dBHz; `None` for the lowest. Of a candidate: of a step that would begin here.
    #[serde(default)]
    pub down_dbhz: Option<f64>,
    /// C/N0 at which the modem enters this step, in dBHz.
    #[serde(default)]
    pub up_dbhz: Option<f64>,
    /// Symbols per second of the carrier.
    #[serde(default)]
    pub symbol_rate_hz: Option<f64>,
    /// `bpsk`, `qpsk`, `8psk` or `16qam`.
    #[serde(default)]
    pub modulation: Option<String>,
    /// Family of the code, as named in the modem's description.
    #[serde(default)]
    pub family: Option<String>,
    /// The code.
    #[serde(default)]
    pub code: Option<String>,
    /// Data of a segment, in bytes.
    #[serde(default)]
    pub segment_bytes: Option<u32>,
    /// Rate of segments, headers included, on the share of the carrier, in bit/s.
    #[serde(default)]
    pub information_bps: Option<f64>,
    /// Bit error rate after decoding.
    #[serde(default)]
    pub ber: Option<f64>,
    /// Probability that a segment is lost.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Goodput of all connections together, in bit/s.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// Half-width of its interval, in bit/s; 0 if it is by a closed form.
    #[serde(default)]
    pub goodput_half_width_bps: Option<f64>,
    /// How the carrier is shared.
    #[serde(default)]
    pub access: Access,
    /// Why there is no transmission; empty otherwise.
    #[serde(default)]
    pub reason: String,
    /// Round trip of the path, without the time that a segment takes to be sent, in s; `None` in a table of one path.
    #[serde(default)]
    pub round_trip_s: Option<f64>,
    /// Room in the queue of the path, in bandwidth-delay products; likewise.
    #[serde(default)]
    pub buffer_bdp: Option<f64>,
}

impl Row {
    /// Round trip in s and buffer in bandwidth-delay products, if the table has several paths.
    pub(super) fn path(&self) -> Option<(f64, f64)> {
        self.round_trip_s.zip(self.buffer_bdp)
    }

    /// Whether the modem is set to the same.
    pub(super) fn is_set_as(&self, other: &Row) -> bool {
        self.symbol_rate_hz == other.symbol_rate_hz
            && self.modulation == other.modulation
            && self.code == other.code
            && self.segment_bytes == other.segment_bytes
    }

    /// The row of a condition at which nothing is sent.
    pub(super) fn of_nothing(like: &Row, reason: String) -> Row {
        Row {
            status: Status::NoTransmission,
            symbol_rate_hz: None,
            modulation: None,
            family: None,
            code: None,
            segment_bytes: None,
            information_bps: None,
            ber: None,
            loss: None,
            goodput_bps: None,
            goodput_half_width_bps: None,
            reason,
            ..like.clone()
        }
    }
}

/// Whether there is a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Status {
    /// With the setting of the row.
    #[serde(rename = "ok")]
    Ok,
    /// No transmission.
    #[serde(rename = "no transmission")]
    NoTransmission,
    /// In a table over several paths: a setting that may be used here, and is set at this C/N0 on another path.
    #[serde(rename = "candidate")]
    Candidate,
}

/// The access method of a carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Time division.
    #[default]
    Tdma,
    /// Each connection has its own carrier.
    Scpc,
}
