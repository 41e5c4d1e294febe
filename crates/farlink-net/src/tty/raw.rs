//! The keys of a configuration, with their defaults.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use farlink_core::ppp::Proof;
use farlink_core::ppp::lcp::DEFAULT_MRU;
use ipnet::IpNet;
use serde::Deserialize;

use crate::privileged::DeviceName;

/// A bundle of lines to one peer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    /// Name of this end, which the peer knows it by.
    pub(super) name: String,
    /// File with the secrets of this end and of peers.
    pub(super) secrets: Option<PathBuf>,
    /// How the peer has to prove itself: "chap", "pap", the best first. Empty: anybody may join.
    #[serde(default = "by_chap")]
    pub(super) require: Vec<Way>,
    /// Whether this end shows its password in the clear to a peer that asks for PAP.
    #[serde(default)]
    pub(super) allow_pap: bool,
    /// Name of the TUN device.
    pub(super) device: Option<DeviceName>,
    /// Address of this end; none: the peer gives one.
    pub(super) local: Option<Ipv4Addr>,
    /// Address of the peer; none: it has one of its own.
    pub(super) remote: Option<Ipv4Addr>,
    /// Whether IP version 6 is carried, too.
    #[serde(default)]
    pub(super) ipv6: bool,
    /// Further addresses of the device, with the lengths of their networks' prefixes.
    #[serde(default)]
    pub(super) addresses: Vec<IpNet>,
    /// Destinations that are reached through the device.
    #[serde(default)]
    pub(super) routes: Vec<IpNet>,
    /// Whether packets may leave outside the device while the bundle is down.
    #[serde(default)]
    pub(super) fallback: bool,
    /// Where metrics are served.
    pub(super) metrics: Option<SocketAddr>,
    /// Longest frame that this end takes on a line, bytes.
    #[serde(default = "usual_mru")]
    pub(super) mru_bytes: u16,
    /// Longest packet that this end puts together, bytes.
    #[serde(default = "usual_mru")]
    pub(super) mrru_bytes: u16,
    /// Whether the peer is asked to send numbers of 12 bits.
    #[serde(default)]
    pub(super) short_numbers: bool,
    /// Control characters that lines do not carry, as bits of a map (RFC 1662, section 7.1).
    #[serde(default)]
    pub(super) escape_map: u32,
    /// From a request of PPP to its repetition, seconds: longer than the round trip.
    #[serde(default = "usual_restart")]
    pub(super) restart_s: f64,
    /// Requests without an answer until a try is given up.
    #[serde(default = "usual_tries")]
    pub(super) tries: u32,
    /// From an echo to the next, seconds; 0: none.
    #[serde(default = "usual_echo")]
    pub(super) echo_interval_s: f64,
    /// Echoes without an answer until a line is given up.
    #[serde(default = "usual_failures")]
    pub(super) echo_failures: u8,
    /// From the end of a try to the next, seconds.
    #[serde(default = "usual_retry")]
    pub(super) retry_s: f64,
    /// How long the network stays without any line, seconds.
    #[serde(default)]
    pub(super) linger_s: f64,
    /// How long a small packet may wait behind others, seconds.
    #[serde(default = "usual_latency")]
    pub(super) latency_s: f64,
    /// How much may wait for the lines, in seconds of their nominal rates.
    #[serde(default = "usual_queue")]
    pub(super) queue_s: f64,
    /// File for what the lines carry, for Wireshark.
    pub(super) pcap: Option<PathBuf>,
    /// Its lines.
    #[serde(rename = "line", default)]
    pub(super) lines: Vec<Line>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Its name; its number in the file if it has none.
    #[serde(default)]
    pub name: String,
    /// A serial port or a pseudo-terminal, or a Unix socket that somebody else listens at; none: the operator of the bundle hands over a
    /// terminal for each call.
    pub port: Option<PathBuf>,
    /// Rate over the air, bit/s: no more is written to the port.
    pub rate_bps: f64,
    /// Speed of a serial port, bit/s.
    #[serde(default = "usual_baud")]
    pub baud: u32,
    /// Whether the port has RTS and CTS.
    #[serde(default)]
    pub rts_cts: bool,
    /// Whether the port shows carrier (DCD). Otherwise a port that can be read has carrier.
    #[serde(default)]
    pub dcd: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    Chap,
    Pap,
}

impl Way {
    pub(super) const fn proof(self) -> Proof {
        match self {
            Way::Chap => Proof::ChapMd5,
            Way::Pap => Proof::Pap,
        }
    }
}

fn by_chap() -> Vec<Way> {
    vec![Way::Chap]
}

const fn usual_mru() -> u16 {
    DEFAULT_MRU
}

const fn usual_restart() -> f64 {
    8.0
}

const fn usual_tries() -> u32 {
    10
}

const fn usual_echo() -> f64 {
    10.0
}

const fn usual_failures() -> u8 {
    3
}

const fn usual_retry() -> f64 {
    5.0
}

const fn usual_latency() -> f64 {
    1.0
}

const fn usual_queue() -> f64 {
    2.0
}

pub(crate) const fn usual_baud() -> u32 {
    19_200
}
