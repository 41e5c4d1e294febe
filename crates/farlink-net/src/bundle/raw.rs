//! The keys of a configuration, with their defaults.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use farlink_core::paths::Policy;
use ipnet::IpNet;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::privileged::DeviceName;
use crate::tty::usual_baud;

/// The TUN device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tun {
    /// Its name; the kernel chooses one if there is none.
    pub name: Option<DeviceName>,
    /// Its addresses, with the lengths of their networks' prefixes.
    pub addresses: Vec<IpNet>,
    /// Its MTU, in bytes.
    #[serde(default = "usual_mtu_bytes")]
    pub mtu_bytes: u16,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) keys: Option<PathBuf>,
    pub(super) peer: String,
    pub(super) peer_key: Option<String>,
    pub(super) address: Option<Addresses>,
    pub(super) listen: Option<Addresses>,
    pub(super) psk_file: Option<PathBuf>,
    pub(super) tun: Tun,
    #[serde(default)]
    pub(super) routes: Vec<IpNet>,
    #[serde(default)]
    pub(super) fallback: bool,
    #[serde(default)]
    pub(super) copy_dscp: bool,
    #[serde(default)]
    pub(super) path: Vec<RawPath>,
    #[serde(default)]
    pub(super) class: Vec<RawClass>,
    #[serde(default)]
    pub(super) limits: RawLimits,
    pub(super) metrics: Option<SocketAddr>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPath {
    pub(super) name: String,
    pub(super) number: Option<u8>,
    pub(super) interface: Option<DeviceName>,
    pub(super) source: Option<IpAddr>,
    pub(super) address: Option<Addresses>,
    pub(super) serial: Option<PathBuf>,
    pub(super) rate_bps: Option<f64>,
    #[serde(default = "usual_baud")]
    pub(super) baud: u32,
    #[serde(default)]
    pub(super) rts_cts: bool,
    #[serde(default)]
    pub(super) dcd: bool,
    pub(super) mtu_bytes: Option<u16>,
    #[serde(default)]
    pub(super) standby: bool,
    pub(super) classes: Option<Vec<u8>>,
    #[serde(default = "usual_cost")]
    pub(super) cost: f64,
    pub(super) bytes_a_day: Option<f64>,
    pub(super) minutes_a_day: Option<u32>,
    pub(super) probe_bytes_a_day: Option<f64>,
    pub(super) probe_interval_s: Option<f64>,
    pub(super) queue_s: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawClass {
    pub(super) number: u8,
    #[serde(default)]
    pub(super) dscp: Vec<u8>,
    #[serde(default)]
    pub(super) policy: Policy,
    #[serde(default = "usual_ordered")]
    pub(super) ordered: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimits {
    pub(super) latency_s: Option<f64>,
    pub(super) spill_s: Option<f64>,
    pub(super) repeat: Option<u8>,
    pub(super) repeat_s: Option<f64>,
    pub(super) wait_s: Option<f64>,
    pub(super) queue_bytes: Option<usize>,
    pub(super) reorder_bytes: Option<usize>,
}

/// One address or several.
#[derive(Clone, Debug)]
pub(super) struct Addresses(pub(super) Vec<SocketAddr>);

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Addresses;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "an address with its port, as \"203.0.113.5:47471\" or \"[2001:db8::5]:47471\", or a list of them",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Addresses, E> {
                let address = text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
                Ok(Addresses(vec![address]))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut texts: S) -> Result<Addresses, S::Error> {
                let mut all = Vec::new();
                while let Some(Addresses(one)) = texts.next_element()? {
                    all.extend(one);
                }
                if all.is_empty() { Err(de::Error::invalid_length(0, &self)) } else { Ok(Addresses(all)) }
            }
        }

        deserializer.deserialize_any(Any)
    }
}

/// Length that fits into 1500 bytes with the headers of IPv4, UDP, seal and bundle, with some to spare for a tunnel beneath.
const fn usual_mtu_bytes() -> u16 {
    1400
}

const fn usual_cost() -> f64 {
    1.0
}

const fn usual_ordered() -> bool {
    true
}
