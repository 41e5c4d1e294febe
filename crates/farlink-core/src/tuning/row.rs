//! A row of a look-up table.

use serde::Deserialize;

/// What a modem is set to at a condition. Where there is no transmission, everything that a setting has is `None`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    /// Share of the carrier.
    pub share: f64,
    /// TCP connections that the share is divided among.
    pub flows: u32,
    /// Carrier power over noise density, in dBHz.
    pub cn0_dbhz: f64,
    /// Whether anything is sent.
    pub status: Status,
    /// Neighbouring rows of the same setting have the same number, from 0.
    pub step: u32,
    /// C/N0 below which the modem leaves this step, in dBHz; `None` for the lowest.
    #[serde(default)]
    pub down_dbhz: Option<f64>,
    /// C/N0 at which it enters it, in dBHz.
    #[serde(default)]
    pub up_dbhz: Option<f64>,
    /// Symbols per second of the carrier.
    #[serde(default)]
    pub symbol_rate_hz: Option<f64>,
    /// `bpsk`, `qpsk`, `8psk` or `16qam`.
    #[serde(default)]
    pub modulation: Option<String>,
    /// Family of the code, as the modem's description calls it.
    #[serde(default)]
    pub family: Option<String>,
    /// The code.
    #[serde(default)]
    pub code: Option<String>,
    /// Data of a segment, in bytes.
    #[serde(default)]
    pub segment_bytes: Option<u32>,
    /// Bits of segments, headers included, that the share of the carrier takes, in bit/s.
    #[serde(default)]
    pub information_bps: Option<f64>,
    /// Bit error rate behind the code.
    #[serde(default)]
    pub ber: Option<f64>,
    /// Probability that a segment is lost.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Data that all connections together deliver, in bit/s.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// How the carrier is shared.
    #[serde(default)]
    pub access: Access,
    /// Why there is no transmission; empty otherwise.
    #[serde(default)]
    pub reason: String,
}

/// Whether anything is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Status {
    /// As the row says.
    #[serde(rename = "ok")]
    Ok,
    /// Nothing.
    #[serde(rename = "no transmission")]
    NoTransmission,
}

/// How a carrier is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// In time.
    #[default]
    Tdma,
    /// Not: each connection has a carrier of its own.
    Scpc,
}
