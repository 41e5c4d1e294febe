//! The configuration of a bundle, a TOML file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use farlink_core::Time;
use farlink_core::paths::{CLASSES, ClassRules, PathBundleConfig};
use ipnet::IpNet;

use crate::config_file;
use crate::privileged::{Change, DeviceName, LONGEST_MTU, Request, SHORTEST_MTU, check_requests};
use crate::seal::{PresharedKey, PublicKey};
use crate::state::StateFolder;

use super::error::BundleError;
use super::path_config::{self, PathConfig, list, remotes};
use super::raw::{Addresses, Raw, RawClass, RawLimits, Tun};

/// Configuration of a bundle, checked and with the files that it names.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file.
    pub path: PathBuf,
    /// Folder of the own key.
    pub keys: StateFolder,
    /// The other end.
    pub peer: Peer,
    /// The pre-shared key of both ends.
    pub shared: PresharedKey,
    /// The device.
    pub tun: Tun,
    /// Destinations that are reached through it.
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

impl At {
    /// Where this end calls the other one, if it does.
    fn calls(&self) -> Option<&[SocketAddr]> {
        match self {
            At::Calls(addresses) => Some(addresses),
            At::Listens(_) => None,
        }
    }
}

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
            paths: path_config::read(path, at.calls(), raw.path)?,
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

    /// A summary for people, line by line.
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

    /// Settings of the system that would keep packets from arriving.
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
