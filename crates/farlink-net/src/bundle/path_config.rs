//! The paths of a configuration, checked: over an interface, or over a serial line.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use farlink_core::Time;
use farlink_core::paths::{CLASSES, PathRules};

use crate::privileged::DeviceName;
use crate::tty::Line;

use super::error::BundleError;
use super::raw::{Addresses, RawPath};
use super::session::{MOST_PATHS, SEAL_BYTES};

/// Longest datagram on a serial line, with the headers of IP and UDP that it does not have: what needs no search for longer ones.
pub(super) const LONGEST_ON_LINE: u16 = 1200;
/// A frame's flag, check and escapes, in bytes: of random bytes, two in 256 are escaped.
const FRAME_BYTES: u32 = 6;

/// A path.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// Its name.
    pub name: String,
    /// Its number in datagrams, the same at both ends.
    pub number: u8,
    /// The interface of an end that calls.
    pub interface: Option<DeviceName>,
    /// Its own address, of an end that calls.
    pub source: Option<IpAddr>,
    /// The other end's addresses on this path, of an end that calls: at most one of each family, the best first.
    pub remotes: Vec<SocketAddr>,
    /// Longest packet, headers of IP included, in bytes; that of the interface if there is none.
    pub mtu_bytes: Option<u16>,
    /// The serial line that it goes over in place of an interface, at both ends.
    pub line: Option<Line>,
    /// Traffic that it may carry.
    pub rules: PathRules,
}

impl PathConfig {
    pub(super) fn describe(&self) -> String {
        let mut parts = Vec::new();
        if let Some(line) = &self.line {
            let port = line.port.as_ref().map_or(String::new(), |port| port.display().to_string());
            parts.push(format!("serial line {port}, {} bit/s", line.rate_bps));
        }
        match (&self.interface, self.source) {
            _ if self.line.is_some() => {}
            (Some(interface), Some(source)) => parts.push(format!("interface {interface}, address {source}")),
            (Some(interface), None) => parts.push(format!("interface {interface}")),
            (None, Some(source)) => parts.push(format!("address {source}")),
            (None, None) => parts.push("where the other end calls from".to_owned()),
        }
        if !self.remotes.is_empty() {
            parts.push(format!("to {}", list(&self.remotes).replace(", ", " or ")));
        }
        if self.rules.is_standby {
            parts.push("only while no other path is up".to_owned());
        }
        if self.rules.classes != u8::MAX {
            let all: Vec<String> =
                (0..8).filter(|class| self.rules.classes >> class & 1 == 1).map(|class| class.to_string()).collect();
            parts.push(format!("only classes {}", all.join(", ")));
        }
        parts.extend(self.rules.bytes_a_day.map(|bytes| format!("at most {bytes} bytes a day")));
        parts.extend(self.rules.minutes_a_day.map(|minutes| format!("at most {minutes} minutes a day")));
        parts.join(", ")
    }
}

/// Reads the paths. `calls` has where this end calls the other one, if it does.
///
/// # Errors
/// Says which key of which path is wrong, and what to do.
pub(super) fn read(
    path: &Path,
    calls: Option<&[SocketAddr]>,
    raw: Vec<RawPath>,
) -> Result<Vec<PathConfig>, BundleError> {
    if raw.is_empty() || raw.len() > MOST_PATHS {
        let what = format!("there are {} paths, and a bundle has 1 to {MOST_PATHS}", raw.len());
        return Err(BundleError::config(path, what, "add a table [[path]] with `name` for each"));
    }
    let mut paths: Vec<PathConfig> = Vec::new();
    for (n, it) in raw.into_iter().enumerate() {
        let place = Place { path, n };
        let number = place.number(&it, &paths)?;
        let next = match it.serial {
            Some(_) => place.over_serial(it, number, &paths)?,
            None => place.over_ip(it, number, calls)?,
        };
        paths.push(next);
    }
    Ok(paths)
}

/// A table `[[path]]` of a file.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a Path,
    n: usize,
}

impl Place<'_> {
    fn wrong<T>(self, key: &str, what: String, remedy: &str) -> Result<T, BundleError> {
        Err(BundleError::config(self.path, format!("path[{}].{key}: {what}", self.n), remedy))
    }

    /// Checks the name and the number, which no other path may have.
    fn number(self, it: &RawPath, others: &[PathConfig]) -> Result<u8, BundleError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if it.name.is_empty() || it.name.len() > 32 || !it.name.chars().all(is_plain) {
            let what = format!("{:?} is no name", it.name);
            return self.wrong("name", what, "give 1 to 32 letters, digits, \"-\", \"_\" and \".\"");
        }
        if others.iter().any(|other| other.name == it.name) {
            return self.wrong("name", format!("{:?} is there twice", it.name), "give each path a name of its own");
        }
        let number = it.number.unwrap_or(self.n as u8);
        if usize::from(number) >= MOST_PATHS {
            let what = format!("{number} is not within 0 and 15");
            return self.wrong("number", what, "give each path a number of its own");
        }
        if let Some(other) = others.iter().find(|other| other.number == number) {
            let what = format!("{number} is that of {}", other.name);
            return self.wrong("number", what, "give each path a number of its own, the same at both ends");
        }
        Ok(number)
    }

    fn over_serial(self, it: RawPath, number: u8, others: &[PathConfig]) -> Result<PathConfig, BundleError> {
        if it.interface.is_some() || it.source.is_some() || it.address.is_some() || it.mtu_bytes.is_some() {
            return self.wrong(
                "serial",
                "a serial line has no interface, address and MTU".to_owned(),
                "leave `interface`, `source`, `address` and `mtu_bytes` out",
            );
        }
        let Some(rate_bps) = it.rate_bps.filter(|rate| (50.0..=1e7).contains(rate)) else {
            let given = it.rate_bps.map_or("is missing".to_owned(), |rate| format!("{rate} is no rate"));
            return self.wrong("rate_bps", given, "give the line's rate over the air, 50 to 10,000,000 bit/s");
        };
        let twice = |other: &PathConfig| other.line.as_ref().is_some_and(|line| line.port == it.serial);
        if let Some(port) = it.serial.as_ref().filter(|_| others.iter().any(twice)) {
            return self.wrong("serial", format!("{} is there twice", port.display()), "give each path its own port");
        }
        let rules = it.rules(self, number, FRAME_BYTES)?;
        let (port, baud, rts_cts, dcd) = (it.serial, it.baud, it.rts_cts, it.dcd);
        let line = Line { name: it.name.clone(), port, rate_bps, baud, rts_cts, dcd };
        Ok(PathConfig {
            name: it.name,
            number,
            interface: None,
            source: None,
            remotes: Vec::new(),
            mtu_bytes: Some(LONGEST_ON_LINE),
            line: Some(line),
            rules,
        })
    }

    fn over_ip(self, it: RawPath, number: u8, calls: Option<&[SocketAddr]>) -> Result<PathConfig, BundleError> {
        if it.rate_bps.is_some() {
            let what = "the path is no serial line".to_owned();
            return self.wrong("rate_bps", what, "give `serial`, its port, or leave it out");
        }
        let remotes = match (calls, &it.address) {
            (Some(_), Some(Addresses(own))) => remotes(self.path, &format!("path[{}].address", self.n), own)?,
            (Some(addresses), None) => addresses.to_vec(),
            (None, None) => Vec::new(),
            (None, Some(_)) => {
                return self.wrong("address", "this end does not call".to_owned(), "give it at the other end");
            }
        };
        match (calls, it.interface.is_some() || it.source.is_some()) {
            (Some(_), false) => {
                let remedy = "give `interface`, or `source`, an address of this machine";
                return self.wrong("interface", "is missing".to_owned(), remedy);
            }
            (None, true) => {
                return self.wrong("interface", "this end does not call".to_owned(), "give it at the other end");
            }
            _ => {}
        }
        if let Some(source) = it.source
            && !remotes.is_empty()
            && !remotes.iter().any(|remote| remote.is_ipv4() == source.is_ipv4())
        {
            let what = format!("{source} does not reach {}", list(&remotes));
            return self.wrong("source", what, "give both as IPv4 or both as IPv6");
        }
        if let Some(bytes) = it.mtu_bytes.filter(|bytes| !(1200..=9000).contains(bytes)) {
            return self.wrong("mtu_bytes", format!("{bytes} is not within 1200 and 9000"), "give 1500 for Ethernet");
        }
        // Once the peer's address is known the length of its headers counts.
        let is_ipv6 = remotes.first().is_some_and(SocketAddr::is_ipv6);
        let rules = it.rules(self, number, if is_ipv6 { 48 } else { 28 })?;
        Ok(PathConfig {
            name: it.name,
            number,
            interface: it.interface,
            source: it.source,
            remotes,
            mtu_bytes: it.mtu_bytes,
            line: None,
            rules,
        })
    }
}

impl RawPath {
    fn rules(&self, place: Place, own: u8, headers: u32) -> Result<PathRules, BundleError> {
        let usual = PathRules::default();
        let number = |key: &str, value: Option<f64>, most: f64, what: &str| match value {
            Some(value) if !(0.0..=most).contains(&value) => {
                place.wrong(key, format!("{value} cannot be"), &format!("give {what}, 0 to {most:e}"))
            }
            value => Ok(value),
        };
        let classes = match &self.classes {
            None => u8::MAX,
            Some(all) => class_bits(place, all)?,
        };
        let probe_interval = number("probe_interval_s", self.probe_interval_s, 3600.0, "seconds")?;
        let queue = number("queue_s", self.queue_s, 60.0, "seconds")?;
        Ok(PathRules {
            number: Some(own),
            is_standby: self.standby,
            classes,
            cost: number("cost", Some(self.cost), 1e12, "a cost of a byte")?.unwrap_or(1.0),
            overhead_bytes: headers + SEAL_BYTES as u32,
            bytes_a_day: number("bytes_a_day", self.bytes_a_day, 1e15, "bytes")?.map(|bytes| bytes as u64),
            minutes_a_day: self.minutes_a_day,
            probe_bytes_a_day: number("probe_bytes_a_day", self.probe_bytes_a_day, 1e15, "bytes")?
                .map_or(usual.probe_bytes_a_day, |bytes| bytes as u64),
            probe_interval: probe_interval.map_or(usual.probe_interval, Time::from_secs_f64),
            queue: queue.map_or(usual.queue, Time::from_secs_f64),
            ..usual
        })
    }
}

fn class_bits(place: Place, all: &[u8]) -> Result<u8, BundleError> {
    match all.iter().find(|&&class| usize::from(class) >= CLASSES) {
        Some(class) => place.wrong("classes", format!("there is no class {class}"), "give classes from 0 to 7"),
        None => Ok(all.iter().fold(0, |bits, class| bits | 1 << class)),
    }
}

/// Addresses of the other end: at most one of each family.
pub(super) fn remotes(path: &Path, key: &str, all: &[SocketAddr]) -> Result<Vec<SocketAddr>, BundleError> {
    for is_ipv4 in [true, false] {
        let of_family: Vec<&SocketAddr> = all.iter().filter(|address| address.is_ipv4() == is_ipv4).collect();
        if let [one, other, ..] = of_family[..] {
            let what = format!("{key}: {one} and {other} are of one family, and a path goes to one of them");
            return Err(BundleError::config(path, what, "give one of IPv4 and one of IPv6, the better one first"));
        }
    }
    Ok(all.to_vec())
}

/// Items with commas between.
pub(super) fn list<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
