//! The configuration of a gateway, a TOML file.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use farlink_core::BitRate;
use serde::Deserialize;

use crate::config_file;
use crate::seal::{PresharedKey, PublicKey};
use crate::settings::{Insecure, PathSettings};
use crate::state::StateFolder;

use super::allow::AllowList;
use super::custody::{Custody, RawCustody};
use super::destination::Destination;
use super::error::GatewayError;
use super::fields::{parsed, parsed_option, seconds};
use super::passwords::Passwords;
use super::rules::{Mode, Protocol, Rule, Treatment, USUAL_CLASS};

/// Configuration of a gateway, checked and with the files that it names.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file.
    pub path: PathBuf,
    /// Folder of the own key.
    pub keys: StateFolder,
    /// UDP address at which other gateways open sessions; none are taken without it.
    pub listen: Option<SocketAddr>,
    /// Length, rate and protection of packets.
    pub packets: PathSettings,
    /// Sessions survive a silence of this length.
    pub patience: Duration,
    /// Whether destinations are logged.
    pub log_destinations: bool,
    /// Whether marks (DSCP) of clients choose classes where no rule does, and marks that peers tell are those of the packets to destinations.
    pub trust_dscp: bool,
    /// The other gateways, by name.
    pub peers: BTreeMap<String, Peer>,
    /// Where clients are served.
    pub listeners: Vec<Listener>,
    /// The first that applies decides.
    pub rules: Vec<Rule>,
    /// Bounds.
    pub limits: Limits,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Streams that are kept.
    pub custody: Option<Custody>,
}

/// Another gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its key.
    pub key: PublicKey,
    /// Where it is, if this gateway opens connections to it.
    pub address: Option<SocketAddr>,
    /// Destinations that it may reach through this gateway.
    pub allow: AllowList,
    /// Whether a session with it is kept open when nobody uses it, if this gateway opens sessions to it.
    pub ready: bool,
}

/// Where clients are served.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// How.
    pub kind: ListenerKind,
    /// At which address.
    pub address: SocketAddr,
    /// Name of the other gateway.
    pub to: String,
    /// Whether a client is answered only when the far gateway has connected.
    pub wait: bool,
    /// Users and passwords; without them every client that reaches the listener may use it.
    pub passwords: Option<Passwords>,
}

/// How clients are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// Each TCP connection goes to one destination.
    Forward(Destination),
    /// SOCKS5, command CONNECT.
    Socks,
    /// HTTP, method CONNECT.
    Http,
    /// TCP connections to other hosts, which the kernel passes here (TPROXY): each goes where it was meant to go.
    Transparent,
    /// UDP datagrams go to one destination.
    Udp {
        /// The destination.
        destination: Destination,
        /// A client that sends nothing for so long is forgotten.
        idle: Duration,
    },
}

impl ListenerKind {
    /// Where the datagrams of its clients go.
    pub(super) const fn datagrams_to(&self) -> Option<&Destination> {
        match self {
            ListenerKind::Udp { destination, .. } => Some(destination),
            _ => None,
        }
    }
}

/// Bounds of a gateway.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// TCP connections, those of clients and those to destinations together.
    pub connections: u32,
    /// Clients of SOCKS5 and HTTP that have not yet said where to.
    pub requests: u32,
    /// How long their request may take, in seconds.
    pub request_s: f64,
    /// How long a connection to a destination may take to be made, in seconds.
    pub connect_s: f64,
    /// Most bytes that a connection has in flight in each direction.
    pub window_bytes: u32,
    /// Clients of all UDP listeners together, and flows of each peer.
    pub udp_clients: u32,
    /// How long connections may go on after SIGTERM, in seconds.
    pub drain_s: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            requests: 256,
            request_s: 10.0,
            connect_s: 30.0,
            window_bytes: 1 << 20,
            udp_clients: 1024,
            drain_s: 30.0,
        }
    }
}

/// By default outages of a quarter of an hour end nothing.
const USUAL_PATIENCE_S: f64 = 900.0;

/// The file as it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    keys: Option<PathBuf>,
    listen: Option<SocketAddr>,
    #[serde(default)]
    log_destinations: bool,
    #[serde(default)]
    trust_dscp: bool,
    #[serde(default = "usual_patience_s")]
    patience_s: f64,
    #[serde(default)]
    packets: RawPackets,
    #[serde(default)]
    peer: BTreeMap<String, RawPeer>,
    #[serde(default)]
    forward: Vec<RawForward>,
    #[serde(default)]
    socks: Vec<RawProxy>,
    #[serde(default)]
    http: Vec<RawProxy>,
    #[serde(default)]
    transparent: Vec<RawTransparent>,
    #[serde(default)]
    udp: Vec<RawUdp>,
    #[serde(default)]
    rule: Vec<Rule>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    metrics: Option<RawMetrics>,
    custody: Option<RawCustody>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPackets {
    rate_bps: Option<f64>,
    longest_bytes: Option<u16>,
    #[serde(default)]
    damaged_links: bool,
    psk_file: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPeer {
    #[serde(default, deserialize_with = "parsed_option")]
    key: Option<PublicKey>,
    address: Option<SocketAddr>,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default = "usual_ready")]
    ready: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawForward {
    listen: SocketAddr,
    #[serde(deserialize_with = "parsed")]
    destination: Destination,
    to: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProxy {
    listen: SocketAddr,
    to: Option<String>,
    #[serde(default)]
    wait: bool,
    passwords: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTransparent {
    listen: SocketAddr,
    to: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUdp {
    listen: SocketAddr,
    #[serde(deserialize_with = "parsed")]
    destination: Destination,
    to: Option<String>,
    #[serde(default = "usual_udp_idle_s")]
    idle_s: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetrics {
    listen: SocketAddr,
}

const fn usual_ready() -> bool {
    true
}

const fn usual_patience_s() -> f64 {
    USUAL_PATIENCE_S
}

/// As long as NATs remember UDP at least (RFC 4787, section 4.3).
const fn usual_udp_idle_s() -> f64 {
    120.0
}

/// Longest configuration that is read.
const MOST_BYTES: u64 = 4 << 20;

impl Config {
    /// Reads the configuration, and the files that it names. Relative paths are relative to its folder.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        Self::parse(path, &config_file::read(path, MOST_BYTES)?)
    }

    /// As [`read`](Self::read), with the text of the file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(path: &Path, text: &str) -> Result<Self, GatewayError> {
        let raw: Raw = config_file::parse(path, text, "docs/guides/gateway.md")?;
        let wrong = |what: String, remedy: &str| GatewayError::config(path, what, remedy);
        let folder = path.parent().unwrap_or(Path::new(""));
        let keys = match &raw.keys {
            Some(keys) => StateFolder::new(folder.join(keys)),
            None => StateFolder::usual()?,
        };
        let peers = peers(path, &keys, raw.peer)?;
        let mut listeners = Vec::new();
        let peer_of = |key: &str, to: Option<String>| peer_of(path, &peers, key, to);
        for (n, it) in raw.forward.into_iter().enumerate() {
            let to = peer_of(&format!("forward[{n}].to"), it.to)?;
            let kind = ListenerKind::Forward(it.destination);
            listeners.push(Listener { kind, address: it.listen, to, wait: false, passwords: None });
        }
        let proxies = raw.socks.into_iter().map(|it| ("socks", ListenerKind::Socks, it));
        let proxies = proxies.chain(raw.http.into_iter().map(|it| ("http", ListenerKind::Http, it)));
        for (key, kind, it) in proxies {
            let to = peer_of(&format!("{key}.to"), it.to)?;
            let passwords = it.passwords.map(|file| Passwords::read(&folder.join(file))).transpose()?;
            if passwords.is_none() && !it.listen.ip().is_loopback() {
                let what = format!("{key}: other machines reach {} without a password", it.listen);
                return Err(wrong(what, "name a file with passwords, or listen at 127.0.0.1"));
            }
            listeners.push(Listener { kind, address: it.listen, to, wait: it.wait, passwords });
        }
        for (n, it) in raw.transparent.into_iter().enumerate() {
            let to = peer_of(&format!("transparent[{n}].to"), it.to)?;
            let kind = ListenerKind::Transparent;
            listeners.push(Listener { kind, address: it.listen, to, wait: false, passwords: None });
        }
        for (n, it) in raw.udp.into_iter().enumerate() {
            let to = peer_of(&format!("udp[{n}].to"), it.to)?;
            let idle = seconds(path, "udp.idle_s", it.idle_s)?;
            let kind = ListenerKind::Udp { destination: it.destination, idle };
            listeners.push(Listener { kind, address: it.listen, to, wait: false, passwords: None });
        }
        let mut seen = BTreeSet::new();
        let is_udp = |it: &Listener| matches!(it.kind, ListenerKind::Udp { .. });
        if let Some(twice) =
            listeners.iter().find(|it| it.address.port() != 0 && !seen.insert((is_udp(it), it.address)))
        {
            return Err(wrong(
                format!("two listeners have the address {}", twice.address),
                "give each a port of its own",
            ));
        }
        if let Some(metrics) = raw.metrics.as_ref().filter(|it| !it.listen.ip().is_loopback()) {
            let what = format!("metrics.listen: other machines reach {}", metrics.listen);
            return Err(wrong(what, "listen at 127.0.0.1, from where an agent or a forward fetches the metrics"));
        }
        if raw.listen.is_none() && peers.values().all(|peer| peer.address.is_none()) {
            let what = "no gateway opens a session with this one, nor this one with another".to_owned();
            return Err(wrong(what, "give `listen`, a UDP address, or the `address` of a peer"));
        }
        let udp: Vec<&Destination> = listeners.iter().filter_map(|it| it.kind.datagrams_to()).collect();
        for (n, rule) in raw.rule.iter().enumerate() {
            if let Some((key, what, remedy)) = rule.fault(&udp) {
                return Err(wrong(format!("rule[{n}].{key}: {what}"), &remedy));
            }
            if let Some(deadline_s) = rule.deadline_s {
                seconds(path, &format!("rule[{n}].deadline_s"), deadline_s)?;
            }
        }
        raw.limits.check(path)?;
        let addresses = peers.iter().map(|(name, peer)| (name.as_str(), peer.address)).collect();
        let custody = raw.custody.map(|custody| custody.check(path, &addresses)).transpose()?;
        Ok(Config {
            path: path.to_owned(),
            keys,
            listen: raw.listen,
            packets: raw.packets.settings(path, folder)?,
            patience: seconds(path, "patience_s", raw.patience_s)?,
            log_destinations: raw.log_destinations,
            trust_dscp: raw.trust_dscp,
            peers,
            listeners,
            rules: raw.rule,
            limits: raw.limits,
            metrics: raw.metrics.map(|it| it.listen),
            custody,
        })
    }

    /// The peer with a key.
    pub fn peer_of_key(&self, key: &PublicKey) -> Option<(&str, &Peer)> {
        self.peers.iter().find(|(_, peer)| peer.key == *key).map(|(name, peer)| (name.as_str(), peer))
    }

    /// A summary for people, line by line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.push(match self.listen {
            Some(address) => format!("sessions of {} are taken at {address} (UDP)", self.names()),
            None => format!("no sessions are taken; this gateway opens them to {}", self.names()),
        });
        for listener in &self.listeners {
            let Listener { address, to, passwords, .. } = listener;
            let who = if passwords.is_some() { ", with a password" } else { "" };
            lines.push(match &listener.kind {
                ListenerKind::Forward(destination) => format!("{address} leads to {destination}, through {to}"),
                ListenerKind::Socks => format!("{address} is SOCKS5, through {to}{who}"),
                ListenerKind::Http => format!("{address} is HTTP CONNECT, through {to}{who}"),
                ListenerKind::Transparent => {
                    format!("{address} takes what the kernel passes on (TPROXY), through {to}")
                }
                ListenerKind::Udp { destination, .. } => {
                    let mode = self.treatment(Protocol::Udp, destination).mode.name();
                    format!("{address} (UDP) leads to {destination}, through {to}, mode {mode}")
                }
            });
        }
        for (name, peer) in &self.peers {
            let entries: Vec<String> = peer.allow.entries().map(ToString::to_string).collect();
            let reached = if entries.is_empty() { "nothing".to_owned() } else { entries.join(", ") };
            lines.push(format!("{name} reaches {reached} through this gateway"));
        }
        let mib = self.limits.most_bytes().div_ceil(1 << 20);
        lines.push(format!("up to {} connections, whose data take {mib} MiB at most", self.limits.connections));
        lines.extend(self.line_of_flows());
        lines.extend(self.custody.iter().flat_map(Custody::lines));
        lines
    }

    /// Flows of datagrams in connections are no TCP connections, and have a bound of their own.
    fn line_of_flows(&self) -> Option<String> {
        let is_in_connections = |it: &Destination| self.treatment(Protocol::Udp, it).mode != Mode::Datagram;
        let clients = u64::from(self.listeners.iter().filter_map(|it| it.kind.datagrams_to()).any(is_in_connections));
        let peers = if self.listen.is_some() { self.peers.len() as u64 } else { 0 };
        let flows = (clients + peers) * u64::from(self.limits.udp_clients);
        let mib = (flows * self.limits.most_bytes_of_one()).div_ceil(1 << 20);
        (flows > 0)
            .then(|| format!("up to {flows} flows of UDP in connections, whose data take {mib} MiB more at most"))
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.peers.keys().map(String::as_str).collect();
        if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
    }

    /// The first key that differs among those that cannot change while a gateway runs.
    pub(super) fn differs_for_good(&self, other: &Self) -> Option<&'static str> {
        let (packets, limits) = (&self.packets, &self.limits);
        let folder = |config: &Self| config.custody.as_ref().map(|it| it.folder.clone());
        [
            ("keys", self.keys == other.keys),
            ("listen", self.listen == other.listen),
            ("patience_s", self.patience == other.patience),
            ("packets.rate_bps", packets.rate == other.packets.rate),
            ("packets.longest_bytes", packets.packet_bytes == other.packets.packet_bytes),
            ("packets.damaged_links", packets.damaged_links == other.packets.damaged_links),
            ("packets.psk_file", packets.shared.as_bytes() == other.packets.shared.as_bytes()),
            ("metrics.listen", self.metrics == other.metrics),
            ("custody.folder", folder(self) == folder(other)),
            ("limits.connections", limits.connections == other.limits.connections),
            ("limits.requests", limits.requests == other.limits.requests),
            ("limits.window_bytes", limits.window_bytes == other.limits.window_bytes),
        ]
        .into_iter()
        .find_map(|(key, is_same)| (!is_same).then_some(key))
    }

    /// How a connection to a destination, or datagrams to it, are treated.
    pub fn treatment(&self, protocol: Protocol, destination: &Destination) -> Treatment {
        let mut rules = self.rules.iter().enumerate();
        match rules.find(|(_, rule)| rule.applies_to(protocol) && rule.entry.names(destination)) {
            Some((index, rule)) => {
                let mode = rule.mode_of(protocol);
                let has_none = mode == Mode::Datagram;
                Treatment {
                    rule: Some(index),
                    class: rule.class,
                    deadline: rule.deadline_s.filter(|_| !has_none).map(Duration::from_secs_f64),
                    mode,
                }
            }
            None => {
                let mode = if protocol == Protocol::Tcp { Mode::Reliable } else { Mode::Datagram };
                Treatment { rule: None, class: USUAL_CLASS, deadline: None, mode }
            }
        }
    }
}

impl Limits {
    fn check(&self, path: &Path) -> Result<(), GatewayError> {
        for (key, value, range) in [
            ("connections", self.connections, 1..=MOST_CONNECTIONS),
            ("requests", self.requests, 1..=MOST_CONNECTIONS),
            ("window_bytes", self.window_bytes, 1 << 14..=1 << 30),
            ("udp_clients", self.udp_clients, 1..=1 << 16),
        ] {
            if !range.contains(&value) {
                let what = format!("limits.{key}: {value} is not within {} and {}", range.start(), range.end());
                return Err(GatewayError::config(path, what, "give a number within these"));
            }
        }
        for (key, value) in [("request_s", self.request_s), ("connect_s", self.connect_s), ("drain_s", self.drain_s)] {
            seconds(path, &format!("limits.{key}"), value)?;
        }
        Ok(())
    }

    /// Most memory that the data of all connections take, in bytes: under way and unread in both directions, and what is written ahead.
    pub fn most_bytes(&self) -> u64 {
        u64::from(self.connections) * self.most_bytes_of_one()
    }

    fn most_bytes_of_one(&self) -> u64 {
        2 * u64::from(self.window_bytes) + crate::io::UNSENT_BYTES + 64 * 1024
    }
}

/// More connections than a session has ports.
const MOST_CONNECTIONS: u32 = 65_536;

impl RawPackets {
    fn settings(&self, path: &Path, folder: &Path) -> Result<PathSettings, GatewayError> {
        let rate = self.rate_bps.map(BitRate::new).transpose().map_err(|error| {
            GatewayError::config(path, format!("packets.rate_bps: {error}"), "give it in bit/s, for example 10e6")
        })?;
        let shared = match &self.psk_file {
            None => PresharedKey::default(),
            Some(file) => super::passwords::read_secret(&folder.join(file))?.trim().parse().map_err(|error| {
                let remedy = "it has 32 random bytes in base64, as of: head -c 32 /dev/urandom | base64";
                GatewayError::config(path, format!("packets.psk_file: {error}"), remedy)
            })?,
        };
        let packet_bytes = self.longest_bytes.unwrap_or(1500);
        if !(1200..=9000).contains(&packet_bytes) {
            let what = format!("packets.longest_bytes: {packet_bytes} is not within 1200 and 9000");
            return Err(GatewayError::config(path, what, "give 1500 for Ethernet, 9000 for jumbo frames"));
        }
        let damaged_links = self.damaged_links;
        Ok(PathSettings { rate, shared, packet_bytes, damaged_links, insecure: Insecure::No })
    }
}

fn peers(
    path: &Path,
    keys: &StateFolder,
    raw: BTreeMap<String, RawPeer>,
) -> Result<BTreeMap<String, Peer>, GatewayError> {
    let trusted = if raw.values().any(|peer| peer.key.is_none()) { keys.trusted()? } else { Default::default() };
    let mut peers: BTreeMap<String, Peer> = BTreeMap::new();
    for (name, peer) in raw {
        let Some(key) = peer.key.or_else(|| trusted.key(&name)) else {
            let what = format!("peer.{name}: its key is not known");
            return Err(GatewayError::config(path, what, format!("give `key`, or: {}", keys.trust_command(&name))));
        };
        if let Some((other, _)) = peers.iter().find(|(_, other)| other.key == key) {
            let what = format!("peer.{name} has the key of peer.{other}");
            return Err(GatewayError::config(path, what, "give each peer once"));
        }
        let allow = AllowList::parse(peer.allow.iter().map(String::as_str))
            .map_err(|error| error.with_place(&format!("peer.{name}.allow")))
            .map_err(|error| GatewayError::config(path, error.what(), error.remedy()))?;
        peers.insert(name, Peer { key, address: peer.address, allow, ready: peer.ready });
    }
    Ok(peers)
}

/// The gateway that a listener leads to: the only one with an address if none is named.
fn peer_of(path: &Path, peers: &BTreeMap<String, Peer>, key: &str, to: Option<String>) -> Result<String, GatewayError> {
    let mut reachable = peers.iter().filter(|(_, peer)| peer.address.is_some()).map(|(name, _)| name);
    match to {
        Some(to) if peers.get(&to).is_some_and(|peer| peer.address.is_some()) => Ok(to),
        Some(to) if peers.contains_key(&to) => {
            let what = format!("{key}: the peer {to:?} has no address");
            Err(GatewayError::config(path, what, format!("give peer.{to}.address, as 192.0.2.1:47470")))
        }
        Some(to) => {
            let known: Vec<&str> = reachable.map(String::as_str).collect();
            let remedy = format!("give one of: {}", known.join(", "));
            Err(GatewayError::config(path, format!("{key}: there is no peer {to:?}"), remedy))
        }
        None => match (reachable.next(), reachable.next()) {
            (Some(only), None) => Ok(only.clone()),
            (None, _) => {
                let what = format!("{key}: there is no peer with an address");
                Err(GatewayError::config(path, what, "add [peer.NAME] with `address`"))
            }
            _ => Err(GatewayError::config(path, format!("{key} is missing, and there are several peers"), "name one")),
        },
    }
}
