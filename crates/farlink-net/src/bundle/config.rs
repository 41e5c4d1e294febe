//! The configuration of a bundle, a TOML file.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use farlink_core::Time;
use farlink_core::paths::{CLASSES, ClassRules, PathBundleConfig, PathRules, Policy};
use ipnet::IpNet;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::config_file;
use crate::privileged::{Change, DeviceName, LONGEST_MTU, Request, SHORTEST_MTU, check_requests};
use crate::seal::{PresharedKey, PublicKey};
use crate::state::StateFolder;

use super::error::BundleError;
use super::session::{MOST_PATHS, SEAL_BYTES};
use crate::tty::{Line, usual_baud};

/// What a bundle does, checked and with the files that it names.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file.
    pub path: PathBuf,
    /// Folder of the own key.
    pub keys: StateFolder,
    /// The other end.
    pub peer: Peer,
    /// What both ends have beside their keys.
    pub shared: PresharedKey,
    /// The device.
    pub tun: Tun,
    /// What goes through it.
    pub routes: Vec<IpNet>,
    /// Whether packets may leave outside the device while the bundle is down.
    pub fallback: bool,
    /// The paths, in the order in which both ends number them.
    pub paths: Vec<PathConfig>,
    /// Of each DSCP.
    pub classes: [u8; 64],
    /// Whether datagrams have the DSCP of the packet that they carry.
    pub copy_dscp: bool,
    /// Rules of the scheduler.
    pub scheduler: PathBundleConfig,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
}

/// The other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
    /// Where it is, or where this end listens.
    pub at: At,
}

/// Which end calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// This end, which finds the other one here: at most one address of each family, the best first.
    Calls(Vec<SocketAddr>),
    /// The other end, which finds this one here.
    Listens(Vec<SocketAddr>),
}

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
    /// What it may be used for.
    pub rules: PathRules,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    keys: Option<PathBuf>,
    peer: String,
    peer_key: Option<String>,
    address: Option<Addresses>,
    listen: Option<Addresses>,
    psk_file: Option<PathBuf>,
    tun: Tun,
    #[serde(default)]
    routes: Vec<IpNet>,
    #[serde(default)]
    fallback: bool,
    #[serde(default)]
    copy_dscp: bool,
    #[serde(default)]
    path: Vec<RawPath>,
    #[serde(default)]
    class: Vec<RawClass>,
    #[serde(default)]
    limits: RawLimits,
    metrics: Option<SocketAddr>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPath {
    name: String,
    number: Option<u8>,
    interface: Option<DeviceName>,
    source: Option<IpAddr>,
    address: Option<Addresses>,
    serial: Option<PathBuf>,
    rate_bps: Option<f64>,
    #[serde(default = "usual_baud")]
    baud: u32,
    #[serde(default)]
    rts_cts: bool,
    #[serde(default)]
    dcd: bool,
    mtu_bytes: Option<u16>,
    #[serde(default)]
    standby: bool,
    classes: Option<Vec<u8>>,
    #[serde(default = "usual_cost")]
    cost: f64,
    bytes_a_day: Option<f64>,
    minutes_a_day: Option<u32>,
    probe_bytes_a_day: Option<f64>,
    probe_interval_s: Option<f64>,
    queue_s: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClass {
    number: u8,
    #[serde(default)]
    dscp: Vec<u8>,
    #[serde(default)]
    policy: Policy,
    #[serde(default = "usual_ordered")]
    ordered: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    latency_s: Option<f64>,
    spill_s: Option<f64>,
    repeat: Option<u8>,
    repeat_s: Option<f64>,
    wait_s: Option<f64>,
    queue_bytes: Option<usize>,
    reorder_bytes: Option<usize>,
}

/// One address or several.
#[derive(Clone, Debug)]
struct Addresses(Vec<SocketAddr>);

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

/// What fits into 1500 bytes with the headers of IPv4, UDP, seal and bundle, with some to spare for a tunnel beneath.
const fn usual_mtu_bytes() -> u16 {
    1400
}

const fn usual_cost() -> f64 {
    1.0
}

const fn usual_ordered() -> bool {
    true
}

/// Longest datagram on a serial line, with the headers of IP and UDP that it does not have: what needs no search for longer ones.
pub(super) const LONGEST_ON_LINE: u16 = 1200;
/// A frame's flag, check and escapes, in bytes: of random bytes, two in 256 are escaped.
const FRAME_BYTES: u32 = 6;
/// The class of packets without a DSCP that a class names.
pub const USUAL_CLASS: u8 = 4;
/// Longest configuration that is read.
const MOST_BYTES: u64 = 1 << 20;

impl Config {
    /// Reads the configuration, and the files that it names. Relative paths are relative to its folder.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        Self::parse(path, &config_file::read(path, MOST_BYTES)?)
    }

    /// As [`read`](Self::read), with the text of the file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(path: &Path, text: &str) -> Result<Self, BundleError> {
        let raw: Raw = config_file::parse(path, text, "docs/guides/bundle-ship.md")?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let keys = match &raw.keys {
            Some(keys) => StateFolder::new(folder.join(keys)),
            None => StateFolder::usual()?,
        };
        let at = at(path, &raw)?;
        let peer = Peer { key: peer_key(path, &keys, &raw)?, name: raw.peer.clone(), at: at.clone() };
        let shared = match &raw.psk_file {
            None => PresharedKey::default(),
            Some(file) => secret(path, &folder.join(file))?,
        };
        check_tun(path, &raw.tun, &raw.routes)?;
        let metrics = config_file::loopback(path, "metrics", raw.metrics)?;
        let (classes, rules) = classes(path, &raw.class)?;
        let mut scheduler = PathBundleConfig { classes: rules, ..PathBundleConfig::default() };
        raw.limits.put_into(path, &mut scheduler)?;
        Ok(Config {
            path: path.to_owned(),
            paths: paths(path, &at, raw.path)?,
            keys,
            peer,
            shared,
            tun: raw.tun,
            routes: raw.routes,
            fallback: raw.fallback,
            copy_dscp: raw.copy_dscp,
            classes,
            scheduler,
            metrics,
        })
    }

    /// The path with a number.
    pub fn path(&self, number: u8) -> Option<&PathConfig> {
        self.paths.iter().find(|path| path.number == number)
    }

    /// Which numbers paths have, bit by bit.
    pub fn numbers(&self) -> u16 {
        self.paths.iter().fold(0, |all, path| all | 1 << path.number)
    }

    /// What it does, a line each.
    pub fn lines(&self) -> Vec<String> {
        let name = &self.peer.name;
        let mut lines = vec![match &self.peer.at {
            At::Calls(addresses) => format!("calls {name} at {} (UDP)", list(addresses)),
            At::Listens(addresses) => format!("is called by {name} at {} (UDP)", list(addresses)),
        }];
        let device = self.tun.name.as_ref().map_or("a TUN device", DeviceName::as_str);
        lines.push(format!("{device} has {}, MTU {} bytes", list(&self.tun.addresses), self.tun.mtu_bytes));
        for path in &self.paths {
            lines.push(format!("path {}, {}: {}", path.number, path.name, path.describe()));
        }
        if self.copy_dscp {
            lines.push("datagrams have the DSCP of the packets that they carry".to_owned());
        }
        if !self.routes.is_empty() {
            let down = if self.fallback { "they leave by the machine's other routes" } else { "they are unreachable" };
            lines.push(format!(
                "packets to {} go through {device}; while the bundle is down {down}",
                list(&self.routes)
            ));
        }
        lines.extend(self.metrics.map(|at| format!("metrics are served at http://{at}/metrics")));
        lines.extend(self.warnings().into_iter().map(|warning| format!("warning: {warning}")));
        lines
    }

    /// What the system is set to that would keep packets from arriving.
    fn warnings(&self) -> Vec<String> {
        let filters = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"));
            text.is_ok_and(|text| text.trim() == "1")
        };
        let interfaces = self.paths.iter().filter_map(|path| path.interface.as_ref()).map(DeviceName::as_str);
        let strict: Vec<&str> = std::iter::once("all").chain(interfaces).filter(|name| filters(name)).collect();
        let first = strict.first().map(|name| {
            format!(
                "rp_filter of {} is 1, so that the kernel drops what comes over a path that it would not choose itself; sysctl -w net.ipv4.conf.{name}.rp_filter=2",
                strict.join(", ")
            )
        });
        first.into_iter().collect()
    }
}

impl PathConfig {
    fn describe(&self) -> String {
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

fn list<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn at(path: &Path, raw: &Raw) -> Result<At, BundleError> {
    match (&raw.address, &raw.listen) {
        (Some(Addresses(all)), None) => Ok(At::Calls(remotes(path, "address", all)?)),
        (None, Some(Addresses(all))) => {
            if let Some(low) = all.iter().find(|listen| listen.port() < 1024) {
                let what = format!("listen: port {} belongs to the system", low.port());
                return Err(BundleError::config(path, what, "give one from 1024 on, for example 47471"));
            }
            match all.iter().enumerate().find(|(at, listen)| all[..*at].contains(listen)) {
                Some((_, twice)) => {
                    Err(BundleError::config(path, format!("listen: {twice} is there twice"), "give it once"))
                }
                None => Ok(At::Listens(all.clone())),
            }
        }
        (Some(_), Some(_)) => {
            let what = "`address` and `listen` are both given, and one end calls while the other one listens";
            Err(BundleError::config(path, what, "give one of them"))
        }
        (None, None) => {
            let what = "neither `address` nor `listen` is given";
            Err(BundleError::config(
                path,
                what,
                "give the address of the other end, or that at which it calls this one",
            ))
        }
    }
}

/// Addresses of the other end: at most one of each family.
fn remotes(path: &Path, key: &str, all: &[SocketAddr]) -> Result<Vec<SocketAddr>, BundleError> {
    for is_ipv4 in [true, false] {
        let of_family: Vec<&SocketAddr> = all.iter().filter(|address| address.is_ipv4() == is_ipv4).collect();
        if let [one, other, ..] = of_family[..] {
            let what = format!("{key}: {one} and {other} are of one family, and a path goes to one of them");
            return Err(BundleError::config(path, what, "give one of IPv4 and one of IPv6, the better one first"));
        }
    }
    Ok(all.to_vec())
}

fn peer_key(path: &Path, keys: &StateFolder, raw: &Raw) -> Result<PublicKey, BundleError> {
    if let Some(key) = &raw.peer_key {
        return key.parse().map_err(|error| {
            let what = format!("peer_key: {key:?}: {error}");
            BundleError::config(path, what, "give what \"farlink keygen\" prints at the other end")
        });
    }
    keys.trusted()?.key(&raw.peer).ok_or_else(|| {
        let what = format!("peer: the key of {:?} is not known", raw.peer);
        BundleError::config(path, what, format!("give `peer_key`, or: {}", keys.trust_command(&raw.peer)))
    })
}

fn secret(path: &Path, file: &Path) -> Result<PresharedKey, BundleError> {
    let text = crate::gateway::read_secret(file).map_err(|error| {
        let text = error.to_string();
        let (what, remedy) = text.rsplit_once("; ").unwrap_or((&text, "check the file"));
        BundleError::config(path, format!("psk_file: {what}"), remedy)
    })?;
    text.trim().parse().map_err(|error| {
        let remedy = "it has 32 random bytes in base64, as of: head -c 32 /dev/urandom | base64";
        BundleError::config(path, format!("psk_file: {error}"), remedy)
    })
}

fn check_tun(path: &Path, tun: &Tun, routes: &[IpNet]) -> Result<(), BundleError> {
    if !(SHORTEST_MTU..=LONGEST_MTU).contains(&tun.mtu_bytes) {
        let what = format!("tun.mtu_bytes: {} is not within {SHORTEST_MTU} and {LONGEST_MTU}", tun.mtu_bytes);
        return Err(BundleError::config(path, what, "give 1400 for Ethernet"));
    }
    if tun.addresses.is_empty() {
        return Err(BundleError::config(path, "tun.addresses is empty", "give one, for example \"10.77.0.1/24\""));
    }
    let change = Change::Add;
    let addresses =
        tun.addresses.iter().map(|&address| ("tun.addresses", Request::Address { change, address, peer: None }));
    let routes = routes.iter().map(|&to| ("routes", Request::Route { change, to }));
    Ok(check_requests(path, addresses.chain(routes))?)
}

fn paths(path: &Path, at: &At, raw: Vec<RawPath>) -> Result<Vec<PathConfig>, BundleError> {
    if raw.is_empty() || raw.len() > MOST_PATHS {
        let what = format!("there are {} paths, and a bundle has 1 to {MOST_PATHS}", raw.len());
        return Err(BundleError::config(path, what, "add a table [[path]] with `name` for each"));
    }
    let mut paths: Vec<PathConfig> = Vec::new();
    for (n, it) in raw.into_iter().enumerate() {
        let wrong = |key: &str, what: String, remedy: &str| {
            Err(BundleError::config(path, format!("path[{n}].{key}: {what}"), remedy))
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if it.name.is_empty() || it.name.len() > 32 || !it.name.chars().all(is_plain) {
            return wrong(
                "name",
                format!("{:?} is no name", it.name),
                "give 1 to 32 letters, digits, \"-\", \"_\" and \".\"",
            );
        }
        if paths.iter().any(|other| other.name == it.name) {
            return wrong("name", format!("{:?} is there twice", it.name), "give each path a name of its own");
        }
        let number = it.number.unwrap_or(n as u8);
        if usize::from(number) >= MOST_PATHS {
            return wrong("number", format!("{number} is not within 0 and 15"), "give each path a number of its own");
        }
        if let Some(other) = paths.iter().find(|other| other.number == number) {
            let what = format!("{number} is that of {}", other.name);
            return wrong("number", what, "give each path a number of its own, the same at both ends");
        }
        if let Some(serial) = &it.serial {
            if it.interface.is_some() || it.source.is_some() || it.address.is_some() || it.mtu_bytes.is_some() {
                return wrong(
                    "serial",
                    "a serial line has no interface, address and MTU".to_owned(),
                    "leave `interface`, `source`, `address` and `mtu_bytes` out",
                );
            }
            let Some(rate_bps) = it.rate_bps.filter(|rate| (50.0..=1e7).contains(rate)) else {
                let given = it.rate_bps.map_or("is missing".to_owned(), |rate| format!("{rate} is no rate"));
                return wrong("rate_bps", given, "give the line's rate over the air, 50 to 10,000,000 bit/s");
            };
            if paths.iter().any(|other| other.line.as_ref().is_some_and(|line| line.port == it.serial)) {
                return wrong("serial", format!("{} is there twice", serial.display()), "give each path its own port");
            }
            let (port, baud, rts_cts, dcd) = (it.serial.clone(), it.baud, it.rts_cts, it.dcd);
            let line = Line { name: it.name.clone(), port, rate_bps, baud, rts_cts, dcd };
            let rules = it.rules(path, (n, number), FRAME_BYTES)?;
            let mtu_bytes = Some(LONGEST_ON_LINE);
            paths.push(PathConfig {
                name: it.name,
                number,
                interface: None,
                source: None,
                remotes: Vec::new(),
                mtu_bytes,
                line: Some(line),
                rules,
            });
            continue;
        }
        if it.rate_bps.is_some() {
            return wrong(
                "rate_bps",
                "the path is no serial line".to_owned(),
                "give `serial`, its port, or leave it out",
            );
        }
        let remotes = match (at, &it.address) {
            (At::Calls(_), Some(Addresses(own))) => remotes(path, &format!("path[{n}].address"), own)?,
            (At::Calls(addresses), None) => addresses.clone(),
            (At::Listens(_), None) => Vec::new(),
            (At::Listens(_), Some(_)) => {
                return wrong("address", "this end does not call".to_owned(), "give it at the other end");
            }
        };
        match at {
            At::Calls(_) if it.interface.is_none() && it.source.is_none() => {
                return wrong(
                    "interface",
                    "is missing".to_owned(),
                    "give `interface`, or `source`, an address of this machine",
                );
            }
            At::Listens(_) if it.interface.is_some() || it.source.is_some() => {
                return wrong("interface", "this end does not call".to_owned(), "give it at the other end");
            }
            _ => {}
        }
        if let Some(source) = it.source
            && !remotes.is_empty()
            && !remotes.iter().any(|remote| remote.is_ipv4() == source.is_ipv4())
        {
            let what = format!("{source} does not reach {}", list(&remotes));
            return wrong("source", what, "give both as IPv4 or both as IPv6");
        }
        if let Some(bytes) = it.mtu_bytes.filter(|bytes| !(1200..=9000).contains(bytes)) {
            return wrong("mtu_bytes", format!("{bytes} is not within 1200 and 9000"), "give 1500 for Ethernet");
        }
        // Once the peer's address is known the length of its headers counts.
        let is_ipv6 = remotes.first().is_some_and(SocketAddr::is_ipv6);
        let rules = it.rules(path, (n, number), if is_ipv6 { 48 } else { 28 })?;
        paths.push(PathConfig {
            name: it.name,
            number,
            interface: it.interface,
            source: it.source,
            remotes,
            mtu_bytes: it.mtu_bytes,
            line: None,
            rules,
        });
    }
    Ok(paths)
}

impl RawPath {
    fn rules(&self, path: &Path, (n, own): (usize, u8), headers: u32) -> Result<PathRules, BundleError> {
        let usual = PathRules::default();
        let number = |key: &str, value: Option<f64>, most: f64, what: &str| match value {
            Some(value) if !(0.0..=most).contains(&value) => {
                let wrong = format!("path[{n}].{key}: {value} cannot be");
                Err(BundleError::config(path, wrong, format!("give {what}, 0 to {most:e}")))
            }
            value => Ok(value),
        };
        let classes = match &self.classes {
            None => u8::MAX,
            Some(all) => class_bits(path, n, all)?,
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

fn class_bits(path: &Path, n: usize, all: &[u8]) -> Result<u8, BundleError> {
    match all.iter().find(|&&class| usize::from(class) >= CLASSES) {
        Some(class) => {
            let what = format!("path[{n}].classes: there is no class {class}");
            Err(BundleError::config(path, what, "give classes from 0 to 7"))
        }
        None => Ok(all.iter().fold(0, |bits, class| bits | 1 << class)),
    }
}

/// The class of each DSCP, and the rules of each class.
fn classes(path: &Path, raw: &[RawClass]) -> Result<([u8; 64], [ClassRules; CLASSES]), BundleError> {
    let (mut of_dscp, mut rules) = ([USUAL_CLASS; 64], [ClassRules::default(); CLASSES]);
    for (n, class) in raw.iter().enumerate() {
        let Some(own) = rules.get_mut(usize::from(class.number)) else {
            let what = format!("class[{n}].number: there is no class {}", class.number);
            return Err(BundleError::config(path, what, "give a class from 0, which goes first, to 7"));
        };
        *own = ClassRules { policy: class.policy, is_ordered: class.ordered };
        for &dscp in &class.dscp {
            let Some(entry) = of_dscp.get_mut(usize::from(dscp)) else {
                let what = format!("class[{n}].dscp: there is no DSCP {dscp}");
                return Err(BundleError::config(path, what, "give numbers from 0 to 63, for example 46 for EF"));
            };
            *entry = class.number;
        }
    }
    Ok((of_dscp, rules))
}

impl RawLimits {
    fn put_into(&self, path: &Path, scheduler: &mut PathBundleConfig) -> Result<(), BundleError> {
        for (key, value, place) in [
            ("latency_s", self.latency_s, &mut scheduler.latency),
            ("spill_s", self.spill_s, &mut scheduler.spill),
            ("repeat_s", self.repeat_s, &mut scheduler.repeat_within),
            ("wait_s", self.wait_s, &mut scheduler.longest_wait),
        ] {
            let Some(value) = value else { continue };
            if !(0.001..=600.0).contains(&value) {
                let what = format!("limits.{key}: {value} s cannot be");
                return Err(BundleError::config(path, what, "give seconds, 0.001 to 600"));
            }
            *place = Time::from_secs_f64(value);
        }
        scheduler.repeat = self.repeat.unwrap_or(scheduler.repeat);
        for (key, value, least, place) in [
            ("queue_bytes", self.queue_bytes, 10_000, &mut scheduler.queue_bytes),
            ("reorder_bytes", self.reorder_bytes, 200_000, &mut scheduler.reorder_bytes),
        ] {
            let Some(bytes) = value else { continue };
            if !(least..=1 << 30).contains(&bytes) {
                let what = format!("limits.{key}: {bytes} is not within {least} and 1073741824");
                return Err(BundleError::config(path, what, "give a number within these"));
            }
            *place = bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::seal::StaticKey;

    use super::*;

    fn ship() -> String {
        let key = StaticKey::generate().public();
        format!(
            r#"
            keys = "keys"
            peer = "vps"
            peer_key = "{key}"
            address = "203.0.113.5:47471"
            routes = ["0.0.0.0/0"]
            [tun]
            name = "farlink0"
            addresses = ["10.77.0.2/24"]
            [[path]]
            name = "starlink"
            interface = "eth1"
            [[path]]
            name = "iridium"
            interface = "ppp0"
            standby = true
            classes = [0, 1]
            bytes_a_day = 5e6
            probe_bytes_a_day = 50e3
            [[class]]
            number = 0
            dscp = [46]
            policy = "redundant"
            "#
        )
    }

    fn parse(text: &str) -> Result<Config, BundleError> {
        Config::parse(Path::new("ship.toml"), text)
    }

    #[test]
    fn the_example_says_what_it_does() {
        let config = parse(&ship()).unwrap();
        let lines = config.lines().join("\n");
        for part in [
            "calls vps at 203.0.113.5:47471",
            "path 1, iridium: interface ppp0, to 203.0.113.5:47471, only while no other path is up, only classes 0, 1, at most 5000000 bytes a day",
            "while the bundle is down they are unreachable",
        ] {
            assert!(lines.contains(part), "{part} in {lines}");
        }
        assert_eq!((config.classes[46], config.classes[0]), (0, USUAL_CLASS));
        assert_eq!(config.paths[1].rules.overhead_bytes, 28 + 25);
    }

    #[test]
    fn what_is_wrong_is_named_with_a_remedy() {
        let wrong = [
            ("[tun]", "[tunnel]", "tun"),
            ("keys =", "kyes =", "did you mean `keys`?"),
            ("standby = true", "standby = 1", "line 16: invalid type: integer `1`"),
            ("classes = [0, 1]", "classes = [8]", "path[1].classes: there is no class 8; give classes from 0 to 7"),
            ("bytes_a_day = 5e6", "bytes_a_day = -1", "path[1].bytes_a_day: -1 cannot be"),
            ("name = \"iridium\"", "name = \"starlink\"", "is there twice"),
            ("interface = \"ppp0\"", "", "path[1].interface: is missing"),
            ("interface = \"ppp0\"", "interface = \"../x\"", "is no name of an interface"),
            ("[\"10.77.0.2/24\"]", "[]", "tun.addresses is empty"),
            ("[\"10.77.0.2/24\"]", "[\"127.0.0.1/8\"]", "tun.addresses: 127.0.0.1"),
            ("\"0.0.0.0/0\"", "\"10.0.0.1/8\"", "routes: 10.0.0.1/8 has bits beyond its prefix; give 10.0.0.0/8"),
            ("address = \"203", "listen = \"203", "this end does not call"),
            ("\"203.0.113.5:47471\"", "[]", "an address with its port"),
            ("\"203.0.113.5:47471\"", "\"vps.example\"", "an address with its port"),
            ("\"203.0.113.5:47471\"", "[\"203.0.113.5:1\", \"203.0.113.6:1\"]", "are of one family"),
            ("interface = \"ppp0\"", "number = 0\ninterface = \"ppp0\"", "path[1].number: 0 is that of starlink"),
            ("interface = \"ppp0\"", "number = 16\ninterface = \"ppp0\"", "path[1].number: 16 is not within"),
            ("interface = \"ppp0\"", "source = \"fd00::1\"", "path[1].source: fd00::1 does not reach 203"),
            ("dscp = [46]", "dscp = [64]", "there is no DSCP 64"),
            ("policy = \"redundant\"", "policy = \"best\"", "unknown variant"),
            ("routes = [", "metrics = \"0.0.0.0:9\"\nroutes = [", "metrics: other machines reach"),
            ("routes = [", "psk_file = \"none\"\nroutes = [", "psk_file"),
        ];
        for (from, to, expected) in wrong {
            let error = parse(&ship().replacen(from, to, 1)).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(expected) && text.contains("; "), "{to}: {text}");
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn both_families_may_be_given_and_paths_may_have_numbers() {
        let both = "[\"[2001:db8::5]:47471\", \"203.0.113.5:47471\"]";
        let text = ship()
            .replace("\"203.0.113.5:47471\"", both)
            .replace("name = \"iridium\"", "name = \"iridium\"\nnumber = 7");
        let config = parse(&text).unwrap();
        assert_eq!((config.numbers(), config.path(7).unwrap().name.as_str()), (0b1000_0001, "iridium"));
        assert_eq!((config.path(0).unwrap().remotes.len(), config.paths[0].rules.overhead_bytes), (2, 48 + 25));
        let lines = config.lines().join("\n");
        assert!(
            lines.contains("path 7, iridium: interface ppp0, to [2001:db8::5]:47471 or 203.0.113.5:47471"),
            "{lines}"
        );
    }

    #[test]
    fn a_key_that_is_not_known_is_asked_for() {
        let text: String =
            ship().lines().filter(|line| !line.contains("peer_key")).map(|line| format!("{line}\n")).collect();
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("farlink trust KEY vps --keys "), "{error}");
    }
}
