//! Requests to the helper, and which of them it refuses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::config_file::ConfigFault;

/// Shortest MTU of a TUN device, in bytes: what IPv6 asks of each link (RFC 8200, section 5).
pub const SHORTEST_MTU: u16 = 1280;
/// Least MTU that a device may have later, in bytes: what IPv4 asks of each link (RFC 791, section 3.2). Below [`SHORTEST_MTU`] the kernel
/// takes IPv6 off the device.
const LEAST_MTU: u16 = 68;
/// Longest MTU of a TUN device, in bytes.
pub const LONGEST_MTU: u16 = 9000;
/// Ports below belong to the system (RFC 6335, section 6).
const FIRST_USER_PORT: u16 = 1024;

/// A request to the helper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Make the TUN device, and pass it on. It is the first request, and comes once.
    Tun {
        /// Its name; the kernel chooses one if there is none.
        name: Option<DeviceName>,
        /// MTU, in bytes.
        mtu_bytes: u16,
        /// Whether packets may leave outside the device while the bundle is down.
        fallback: bool,
    },
    /// An address of the TUN device.
    Address {
        /// Whether it is added.
        change: Change,
        /// The address, with the length of its network's prefix.
        address: IpNet,
        /// The address of the other end, if the device leads to one host only.
        #[serde(default)]
        peer: Option<Ipv4Addr>,
    },
    /// A route through the TUN device.
    Route {
        /// Whether it is added.
        change: Change,
        /// Where it leads.
        to: IpNet,
    },
    /// Another MTU of the TUN device.
    Mtu {
        /// In bytes.
        bytes: u16,
    },
    /// Serve another bundle of the same process, whose socket comes with the request.
    Share,
    /// Open a UDP socket that does not use the routes of the bundle, and pass it on.
    Bind {
        /// The interface that it is bound to.
        device: Option<DeviceName>,
        /// Its own address.
        address: IpAddr,
        /// Its own port; the kernel chooses one if it is 0.
        port: u16,
    },
}

/// Whether something comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is added.
    Add,
    /// It is removed.
    Remove,
}

impl Request {
    /// Why it is refused whatever the network is like; `None` if it is not.
    pub fn fault(&self) -> Option<String> {
        match self {
            Request::Share => None,
            Request::Tun { mtu_bytes, .. } => mtu_fault(*mtu_bytes, SHORTEST_MTU),
            Request::Mtu { bytes } => mtu_fault(*bytes, LEAST_MTU),
            Request::Address { address, peer, .. } => {
                address_fault(address.addr()).or_else(|| peer.and_then(|peer| address_fault(peer.into())))
            }
            Request::Route { to, .. } => route_fault(to),
            Request::Bind { address, port, .. } => {
                if address.is_multicast() {
                    return Some(format!("{address} is a multicast address; give one of an interface"));
                }
                ((1..FIRST_USER_PORT).contains(port))
                    .then(|| format!("port {port} belongs to the system; give one from {FIRST_USER_PORT} on, or 0"))
            }
        }
    }
}

/// Requests of a configuration that would be refused, each with its key.
pub(crate) fn check_requests<'a>(
    path: &Path,
    all: impl Iterator<Item = (&'a str, Request)>,
) -> Result<(), ConfigFault> {
    let mut before = Vec::new();
    for (key, request) in all {
        if let Some(fault) = request.fault() {
            let (what, remedy) = fault.rsplit_once("; ").unwrap_or((&fault, "give another one"));
            return Err(ConfigFault::new(path, format!("{key}: {what}"), remedy));
        }
        let what = match &request {
            Request::Address { address, .. } => address.to_string(),
            Request::Route { to, .. } => to.to_string(),
            other => format!("{other:?}"),
        };
        if before.contains(&request) {
            return Err(ConfigFault::new(path, format!("{key}: {what} is there twice"), "give it once"));
        }
        before.push(request);
    }
    Ok(())
}

fn mtu_fault(bytes: u16, least: u16) -> Option<String> {
    let is_right = (least..=LONGEST_MTU).contains(&bytes);
    (!is_right).then(|| format!("an MTU of {bytes} bytes is not within {least} and {LONGEST_MTU}; give one within"))
}

fn address_fault(address: IpAddr) -> Option<String> {
    let is_wrong = address.is_unspecified() || address.is_multicast() || address.is_loopback();
    is_wrong.then(|| format!("{address} cannot be the address of a TUN device; give one as 10.77.0.1/24"))
}

fn route_fault(to: &IpNet) -> Option<String> {
    if to.trunc() != *to {
        return Some(format!("{to} has bits beyond its prefix; give {}", to.trunc()));
    }
    let is_wrong = to.prefix_len() > 0 && (to.addr().is_multicast() || to.addr().is_loopback());
    is_wrong.then(|| format!("{to} cannot be routed through a TUN device; give another network"))
}

/// The name of a network interface: 1 to 15 letters, digits, `-`, `_` and `.` (Linux allows more, and takes `.` and `..` for folders).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceName(String);

impl DeviceName {
    /// As a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_kept = matches!(text, "." | ".." | "all" | "default");
        if text.is_empty() || text.len() > 15 || is_kept || !text.chars().all(is_plain) {
            return Err(format!(
                "{text:?} is no name of an interface; give 1 to 15 letters, digits, \"-\", \"_\" and \".\""
            ));
        }
        Ok(DeviceName(text.to_owned()))
    }
}

impl TryFrom<String> for DeviceName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> String {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for text in ["eth0", "wwan0", "ppp-1_a.5", "abcdefghijklmno"] {
            assert_eq!(text.parse::<DeviceName>().unwrap().as_str(), text);
        }
        for text in ["", ".", "..", "all", "default", "a/b", "a b", "abcdefghijklmnop", "\u{e9}th0", "a\0"] {
            text.parse::<DeviceName>().unwrap_err();
            assert!(serde_json::from_str::<DeviceName>(&serde_json::to_string(text).unwrap()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_no_bundle_needs_is_refused() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let address = |text| Request::Address { change: Change::Add, address: net(text), peer: None };
        let pair = |text: &str| Request::Address {
            change: Change::Add,
            address: net("10.0.0.1/32"),
            peer: Some(text.parse().unwrap()),
        };
        let route = |text| Request::Route { change: Change::Add, to: net(text) };
        let bind = |text: &str, port| Request::Bind { device: None, address: text.parse().unwrap(), port };
        let tun = |mtu_bytes| Request::Tun { name: None, mtu_bytes, fallback: false };
        let taken = [
            (address("10.77.0.1/24"), true),
            (address("fd00::1/64"), true),
            (address("127.0.0.1/8"), false),
            (address("224.0.0.1/24"), false),
            (address("::/0"), false),
            (route("0.0.0.0/0"), true),
            (route("::/0"), true),
            (route("10.0.0.0/8"), true),
            (route("10.0.0.1/8"), false),
            (route("127.0.0.0/8"), false),
            (route("ff00::/8"), false),
            (bind("0.0.0.0", 47_471), true),
            (bind("::1", 0), true),
            (bind("10.0.0.1", 53), false),
            (bind("224.0.0.1", 0), false),
            (tun(1280), true),
            (tun(9000), true),
            (tun(1279), false),
            (Request::Mtu { bytes: 9001 }, false),
            (Request::Mtu { bytes: 576 }, true),
            (Request::Mtu { bytes: 67 }, false),
            (pair("10.0.0.2"), true),
            (pair("0.0.0.0"), false),
        ];
        for (request, is_taken) in taken {
            let fault = request.fault();
            assert_eq!(fault.is_none(), is_taken, "{request:?}: {fault:?}");
            assert!(fault.is_none_or(|fault| fault.contains("; give")), "each says what to do");
        }
    }

    #[test]
    fn other_requests_are_none() {
        for text in [
            r#"{"run":{"command":"sh"}}"#,
            r#"{"mtu":{"bytes":1400,"device":"eth0"}}"#,
            r#"{"mtu":{"bytes":-1}}"#,
            r#"{"route":{"change":"flush","to":"0.0.0.0/0"}}"#,
            "[]",
            "",
        ] {
            serde_json::from_str::<Request>(text).unwrap_err();
        }
        let request = Request::Route { change: Change::Remove, to: "10.0.0.0/8".parse().unwrap() };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }
}
