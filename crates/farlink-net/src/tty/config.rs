//! The description of a bundle of lines, in TOML, checked.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use farlink_core::ppp::{Accm, Addresses, BundleConfig, Discriminator, EchoConfig, LcpConfig, Limits, LinkConfig};
use farlink_core::ppp::{Multilink, Proof};
use farlink_core::{BitRate, Time};
use ipnet::IpNet;

use super::TtyError;
pub use super::raw::Line;
use super::raw::Raw;
use super::secrets::identities;
use crate::config_file;
use crate::privileged::{Change, DeviceName, Request, check_requests};

/// A bundle of lines to one peer, with the files that its configuration names.
#[derive(Clone, Debug)]
pub struct TtyConfig {
    /// The file.
    pub path: PathBuf,
    /// Name of the TUN device; the kernel chooses one if there is none.
    pub device: Option<DeviceName>,
    /// Addresses of the device beside the one that PPP agrees on.
    pub addresses: Vec<IpNet>,
    /// Destinations that are reached through it.
    pub routes: Vec<IpNet>,
    /// Whether packets may leave outside the device while the bundle is down.
    pub fallback: bool,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// File for what the lines carry.
    pub pcap: Option<PathBuf>,
    /// Its lines, each with a name.
    pub lines: Vec<Line>,
    /// The bundle of the core.
    pub bundle: BundleConfig,
    demands: Vec<Proof>,
    name: String,
}

/// Least bytes of a queue: a few packets fit, whatever the rates.
const LEAST_QUEUE_BYTES: usize = 4 * 1500;
/// More than any bundle of modems; memory of a hostile peer is bounded by its lines.
const MOST_LINES: usize = 64;
/// Longest name of a line, in bytes.
const LONGEST_NAME: usize = 64;
/// Longest configuration that is read.
const MOST_BYTES: u64 = 1 << 20;
/// The page with an example of all keys.
const GUIDE: &str = "docs/guides/bundle-ppp.md";
const DAY_S: f64 = 86_400.0;

impl TtyConfig {
    /// Reads a configuration, and the file of secrets that it names. Relative paths are relative to its folder.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do. Errors show no secret.
    pub fn read(path: &Path) -> Result<Self, TtyError> {
        Self::parse(path, &config_file::read(path, MOST_BYTES)?)
    }

    /// As [`read`](Self::read), with the text of the file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(path: &Path, text: &str) -> Result<Self, TtyError> {
        let raw: Raw = config_file::parse(path, text, GUIDE)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let lines = named(path, &raw.lines)?;
        let metrics = config_file::loopback(path, "metrics", raw.metrics)?;
        check_networks(path, &raw)?;
        let demands: Vec<Proof> = raw.require.iter().map(|way| way.proof()).collect();
        let secrets = raw.secrets.as_ref().map(|file| folder.join(file));
        let identities = identities(path, &raw.name, secrets.as_deref(), demands.clone(), raw.allow_pap)?;
        let bundle = BundleConfig { identities, ..bundle(path, &raw)? };
        Ok(TtyConfig {
            path: path.to_owned(),
            device: raw.device,
            addresses: raw.addresses,
            routes: raw.routes,
            fallback: raw.fallback,
            metrics,
            pcap: raw.pcap.map(|file| folder.join(file)),
            lines,
            bundle,
            demands,
            name: raw.name,
        })
    }

    /// A summary for people, line by line.
    pub fn describe(&self) -> Vec<String> {
        let device = self.device.as_ref().map_or("a TUN device", DeviceName::as_str);
        let address = |given: Ipv4Addr, none: &str| {
            if given.is_unspecified() { none.to_owned() } else { given.to_string() }
        };
        let mut all = Vec::new();
        if let Some(Addresses { own, peer }) = self.bundle.ipv4 {
            let own = address(own, "an address that the peer gives");
            all.push(format!("{device} has {own}, the peer {}", address(peer, "one of its own")));
        }
        for line in &self.lines {
            let port = line.port.as_ref().map_or("handed over for each call".to_owned(), |it| it.display().to_string());
            all.push(format!("line {}: {port}, {} bit/s", line.name, line.rate_bps));
        }
        let known = self.bundle.identities.peers.len();
        let ways: Vec<&str> = self.demands.iter().map(|way| if *way == Proof::Pap { "PAP" } else { "CHAP" }).collect();
        all.push(match ways.as_slice() {
            [] => "anybody may join: no peer has to prove itself".to_owned(),
            ways => format!("a peer proves itself by {}; known peers: {known}", ways.join(" or ")),
        });
        let proves = if self.bundle.identities.own.is_some() { "and can prove it" } else { "without a secret" };
        all.push(format!("this end is called {}, {proves}", self.name));
        if !self.routes.is_empty() {
            let down = if self.fallback { "they leave by the machine's other routes" } else { "they are unreachable" };
            let routes: Vec<String> = self.routes.iter().map(ToString::to_string).collect();
            all.push(format!("packets to {} go through {device}; while the bundle is down {down}", routes.join(", ")));
        }
        all.extend(self.metrics.map(|at| format!("metrics are served at http://{at}/metrics")));
        all.extend(self.wait_warning().map(|warning| format!("warning: {warning}")));
        all
    }

    /// Whether packets are too long for `latency_s`: a small one waits until the packet in front of it is on its way.
    fn wait_warning(&self) -> Option<String> {
        let bytes_per_s: f64 = self.bundle.rates.iter().map(|rate| rate.get() / 8.0).sum();
        let longest = self.bundle.link.lcp.multilink.as_ref().map_or(1500, |it| it.mrru);
        let least_s = f64::from(longest) / bytes_per_s;
        let latency_s = self.bundle.latency.as_secs_f64();
        (least_s > latency_s).then(|| {
            let fitting = ((latency_s * bytes_per_s / 2.0) as u16).max(128);
            format!(
                "latency_s = {latency_s} cannot be kept: a packet of {longest} bytes takes {least_s:.1} s on all lines together; give both ends mrru_bytes = {fitting}, or a larger latency_s"
            )
        })
    }
}

/// Lines with a name each: the one that is given, or their number.
fn named(path: &Path, lines: &[Line]) -> Result<Vec<Line>, TtyError> {
    if lines.is_empty() || lines.len() > MOST_LINES {
        let what = format!("there are {} lines, and a bundle has 1 to {MOST_LINES}", lines.len());
        return Err(TtyError::config(path, what, "add a table [[line]] with `port` and `rate_bps` for each"));
    }
    let mut all: Vec<Line> = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let wrong = |key: &str, what: String, remedy: &str| {
            Err(TtyError::config(path, format!("line[{n}].{key}: {what}"), remedy))
        };
        let mut line = line.clone();
        if line.name.is_empty() {
            line.name = n.to_string();
        }
        if line.name.len() > LONGEST_NAME || line.name.chars().any(|c| c.is_control() || c == '"' || c == '\\') {
            return wrong("name", format!("{:?} is no name", line.name), "give 1 to 64 letters and digits");
        }
        if all.iter().any(|other| other.name == line.name) {
            return wrong("name", format!("{:?} is there twice", line.name), "give each line a name of its own");
        }
        if line.port.is_some() && all.iter().any(|other| other.port == line.port) {
            return wrong("port", "it is that of another line, too".to_owned(), "give each line a port of its own");
        }
        if !(50.0..=1e7).contains(&line.rate_bps) {
            return wrong(
                "rate_bps",
                format!("{} is not within 50 and 10,000,000 bit/s", line.rate_bps),
                "give the rate over the air, for example 2400 for a satellite telephone",
            );
        }
        all.push(line);
    }
    Ok(all)
}

fn check_networks(path: &Path, raw: &Raw) -> Result<(), TtyError> {
    let change = Change::Add;
    let own = raw.local.filter(|own| !own.is_unspecified());
    let peer = raw.remote.filter(|peer| !peer.is_unspecified());
    if own.is_some() && own == peer {
        let what = format!("remote: {} is that of the own end, too", peer.unwrap_or(Ipv4Addr::UNSPECIFIED));
        return Err(TtyError::config(path, what, "give the peer another one"));
    }
    let address = |address| Request::Address { change, address, peer: None };
    let host = |host: Ipv4Addr| address(IpNet::from(IpAddr::V4(host)));
    let ends = [("local", own), ("remote", peer)].into_iter().filter_map(|(key, it)| Some((key, host(it?))));
    let others = raw.addresses.iter().map(|&it| ("addresses", address(it)));
    let routes = raw.routes.iter().map(|&to| ("routes", Request::Route { change, to }));
    Ok(check_requests(path, ends.chain(others).chain(routes))?)
}

/// The bundle of the core, without identities.
fn bundle(path: &Path, raw: &Raw) -> Result<BundleConfig, TtyError> {
    let span = |key: &str, seconds: f64, least: f64| {
        if (least..=DAY_S).contains(&seconds) {
            return Ok(Time::from_secs_f64(seconds));
        }
        let what = format!("{key}: {seconds} is not within {least} and {DAY_S} s");
        Err(TtyError::config(path, what, "give seconds within"))
    };
    let packet = |key: &str, bytes: u16| {
        let what = format!("{key}: {bytes} is not within 128 and 16384 bytes");
        let is_good = (128..=16_384).contains(&bytes);
        is_good.then_some(bytes).ok_or_else(|| TtyError::config(path, what, "give 1500, as Ethernet has"))
    };
    let count = |key: &str, given: u32| {
        let what = format!("{key}: {given} is not within 1 and 255");
        let good = u8::try_from(given).ok().filter(|&given| given > 0);
        good.ok_or_else(|| TtyError::config(path, what, "give a number within"))
    };
    let bits = |line: &Line| BitRate::new(line.rate_bps).map_err(|error| error.to_string());
    let rates: Result<Vec<BitRate>, String> = raw.lines.iter().map(bits).collect();
    let rates = rates.map_err(|error| TtyError::config(path, format!("line.rate_bps: {error}"), "give bit/s"))?;
    let discriminator = Discriminator::new(1, &raw.name.as_bytes()[..raw.name.len().min(Discriminator::LONGEST)]);
    let multilink = Multilink {
        mrru: packet("mrru_bytes", raw.mrru_bytes)?,
        short_numbers: raw.short_numbers,
        discriminator: discriminator.unwrap_or_default(),
    };
    let lcp = LcpConfig {
        mru: packet("mru_bytes", raw.mru_bytes)?,
        receive_map: Accm(raw.escape_map),
        multilink: Some(multilink),
        ..LcpConfig::default()
    };
    let limits = Limits {
        restart: span("restart_s", raw.restart_s, 0.1)?,
        max_configure: count("tries", raw.tries)?,
        ..Limits::default()
    };
    let interval = span("echo_interval_s", raw.echo_interval_s, 0.0)?;
    let echo = EchoConfig { interval, failures: count("echo_failures", raw.echo_failures.into())? };
    let bytes_per_s: f64 = rates.iter().map(|rate| rate.get() / 8.0).sum();
    let queue = span("queue_s", raw.queue_s, 0.01)?.as_secs_f64();
    Ok(BundleConfig {
        link: LinkConfig {
            lcp,
            limits,
            echo: (interval > Time::ZERO).then_some(echo),
            retry: span("retry_s", raw.retry_s, 0.1)?,
        },
        rates,
        ipv4: Some(Addresses {
            own: raw.local.unwrap_or(Ipv4Addr::UNSPECIFIED),
            peer: raw.remote.unwrap_or(Ipv4Addr::UNSPECIFIED),
        }),
        ipv6: raw.ipv6,
        linger: span("linger_s", raw.linger_s, 0.0)?,
        latency: span("latency_s", raw.latency_s, 0.01)?,
        queue_bytes: ((bytes_per_s * queue) as usize).max(LEAST_QUEUE_BYTES),
        ..BundleConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const LINES: &str = "[[line]]\nport = \"/dev/ttyUSB0\"\nrate_bps = 2400\n";

    fn written(config: &str, secrets: Option<(&str, u32)>) -> Result<TtyConfig, TtyError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle.toml");
        fs::write(&path, config).unwrap();
        if let Some((text, mode)) = secrets {
            fs::write(folder.path().join("keys"), text).unwrap();
            fs::set_permissions(folder.path().join("keys"), fs::Permissions::from_mode(mode)).unwrap();
        }
        TtyConfig::read(&path)
    }

    #[test]
    fn a_configuration_says_all_of_a_bundle() {
        let text = format!(
            "name = \"ship\"\nsecrets = \"keys\"\nlocal = \"10.0.0.1\"\nrequire = [\"chap\", \"pap\"]\nroutes = [\"0.0.0.0/0\"]\n{LINES}"
        );
        let config = written(&text, Some(("own = \"canary\"\n[peer]\nvps = \"b\"\n", 0o600))).unwrap();
        assert_eq!((config.bundle.rates.len(), config.bundle.identities.peers.len()), (1, 1));
        assert_eq!(config.bundle.identities.demands, [Proof::ChapMd5, Proof::Pap]);
        assert_eq!(config.lines[0].name, "0");
        let said = config.describe().join("\n");
        for part in
            ["10.0.0.1, the peer one of its own", "CHAP or PAP; known peers: 1", "unreachable", "warning: latency_s"]
        {
            assert!(said.contains(part), "{said}");
        }
        assert!(!format!("{config:?}{said}").contains("canary"));
    }

    #[test]
    fn mistakes_are_named_with_their_remedy() {
        let own = "name = \"ship\"\nrequire = []\n";
        let cases = [
            (format!("name = \"ship\"\n{LINES}"), None, "require = []"),
            (format!("{own}retry_s = 0\n{LINES}"), None, "retry_s: 0 is not within 0.1"),
            (format!("{own}retry_s = nan\n{LINES}"), None, "retry_s: NaN is not"),
            (format!("{own}mrru_bytes = 60\n{LINES}"), None, "mrru_bytes: 60 is not within 128"),
            (format!("{own}tries = 0\n{LINES}"), None, "tries: 0"),
            (format!("{own}{}", LINES.replace("2400", "0")), None, "line[0].rate_bps: 0"),
            (format!("{own}{LINES}{LINES}"), None, "line[1].port: it is that of another line"),
            (
                format!("{own}{LINES}name = \"a\"\n[[line]]\nname = \"a\"\nrate_bps = 60\n"),
                None,
                "\"a\" is there twice",
            ),
            (own.to_owned(), None, "there are 0 lines"),
            (format!("{own}metrics = \"0.0.0.0:9472\"\n{LINES}"), None, "127.0.0.1"),
            (format!("{own}routes = [\"10.0.0.1/8\"]\n{LINES}"), None, "routes: 10.0.0.1/8 has bits beyond"),
            (format!("{own}local = \"127.0.0.1\"\n{LINES}"), None, "local: 127.0.0.1"),
            (format!("{own}local = \"10.0.0.1\"\nremote = \"10.0.0.1\"\n{LINES}"), None, "remote: 10.0.0.1"),
            (format!("{own}device = \"a b\"\n{LINES}"), None, "no name of an interface"),
            (format!("{own}{}", LINES.replace("rate", "reate")), None, "did you mean `rate_bps`?"),
            (format!("name = \"ship\"\nrequire = [\"eap\"]\n{LINES}"), None, "eap"),
            (format!("name = \"ship\"\nsecrets = \"keys\"\n{LINES}"), Some(("own = \"a\"\n", 0o600)), "[peer]"),
            (format!("name = \"ship\"\nsecrets = \"keys\"\n{LINES}"), Some(("own = \"a\"\n", 0o644)), "chmod 600"),
            (format!("name = \"ship\"\nsecrets = \"keys\"\n{LINES}"), None, "keys: cannot be read"),
        ];
        for (text, secrets, wanted) in cases {
            let error = written(&text, secrets).unwrap_err();
            assert!(error.to_string().contains(wanted) && error.to_string().contains("; "), "{wanted}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn errors_show_no_secret() {
        let text = format!("name = \"ship\"\nsecrets = \"keys\"\n{LINES}");
        for keys in ["own = \"canary\nx", "canary", "own = [\"canary\"]", "own = \"x\"\ncanary = \"canary\""] {
            let error = written(&text, Some((keys, 0o600))).unwrap_err();
            let shown = format!("{error} {error:?}").replace("unknown field `canary`", "");
            assert!(!shown.contains("canary"), "{shown}");
        }
    }
}
