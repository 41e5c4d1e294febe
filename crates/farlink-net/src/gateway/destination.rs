//! Where a connection goes: an address or a name, and a port.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A destination, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Host.
    pub host: Host,
    /// Port, never 0.
    pub port: u16,
}

/// Host of a destination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// An address. IPv4 addresses mapped into IPv6 are IPv4 addresses.
    Address(IpAddr),
    /// A name in lower case, without a dot at its end. The far gateway resolves it. `[T4]`
    Name(Box<str>),
}

/// Why a text is no destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDestination {
    /// There is no port.
    #[error("{0:?} has no port from 1 to 65535; write HOST:PORT, for example www.example.org:80 or [2001:db8::1]:443")]
    Port(String),
    /// It is no name of a host.
    #[error("{0:?} is no host; give an address or a name of letters, digits, \"-\", \"_\" and \".\"")]
    Host(String),
}

/// Longest name of a host, as DNS has it (RFC 1035, section 2.3.4, in text).
pub(super) const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

impl Host {
    /// The host of a text: an address or a name.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, NoDestination> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Host::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        let is_label = |label: &str| (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(is_plain);
        if name.len() > LONGEST_NAME || !name.split('.').all(is_label) {
            return Err(NoDestination::Host(text.chars().take(LONGEST_NAME).collect()));
        }
        Ok(Host::Name(name.to_ascii_lowercase().into()))
    }
}

impl FromStr for Destination {
    type Err = NoDestination;

    fn from_str(text: &str) -> Result<Self, NoDestination> {
        let no_port = || NoDestination::Port(text.chars().take(300).collect());
        let (host, port) = text.rsplit_once(':').ok_or_else(no_port)?;
        if host.contains(':') && !host.starts_with('[') {
            return Err(no_port()); // an IPv6 address without brackets
        }
        let port = port.parse().ok().filter(|&port| port != 0).ok_or_else(no_port)?;
        Ok(Destination { host: Host::parse(host)?, port })
    }
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Self {
        Destination { host: Host::Address(address.ip().to_canonical()), port: address.port() }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Address(address) => write!(f, "{address}"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_destinations_come_back() {
        for text in ["192.0.2.1:80", "[2001:db8::1]:443", "www.example.org:1", "a_b-c:65535"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        assert_eq!("WWW.Example.org.:80".parse::<Destination>().unwrap().to_string(), "www.example.org:80");
        assert_eq!("[::ffff:10.0.0.1]:80".parse::<Destination>().unwrap().to_string(), "10.0.0.1:80");
    }

    #[test]
    fn what_is_none_is_refused() {
        let long = format!("{}:80", "a.".repeat(200));
        for text in
            ["", "host", "host:", "host:0", "host:65536", "2001:db8::1:80", ":80", "a..b:80", "a b:80", "é:80", &long]
        {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
