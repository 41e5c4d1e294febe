//! The description of a bundle of lines, in TOML.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use farlink_core::ppp::lcp::DEFAULT_MRU;
use farlink_core::ppp::{
    Accm, Addresses, BundleConfig, Credentials, Discriminator, EchoConfig, Identities, LcpConfig, Limits, LinkConfig,
    Multilink, Proof, Secret,
};
use farlink_core::{BitRate, Time};
use serde::Deserialize;

use super::TtyError;
use super::capture::Capture;

/// A bundle of lines to one peer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TtyConfig {
    /// Name of this end, which the peer knows it by.
    name: String,
    /// File with the secrets of this end and of peers.
    secrets: Option<PathBuf>,
    /// How the peer has to prove itself: "chap", "pap", the best first. Empty: anybody may join.
    #[serde(default = "by_chap")]
    require: Vec<Way>,
    /// Whether this end shows its password in the clear to a peer that asks for PAP.
    #[serde(default)]
    allow_pap: bool,
    /// Name of the TUN device.
    #[serde(default = "default_device")]
    device: String,
    /// Address of this end; none: the peer gives one.
    local: Option<Ipv4Addr>,
    /// Address of the peer; none: it has one of its own.
    remote: Option<Ipv4Addr>,
    /// Whether IP version 6 is carried, too.
    #[serde(default)]
    ipv6: bool,
    /// Longest packet that this end puts together, bytes.
    #[serde(default = "default_mrru")]
    mrru_bytes: u16,
    /// Whether the peer is asked to send numbers of 12 bits.
    #[serde(default)]
    short_numbers: bool,
    /// Control characters that lines do not carry, as bits of a map (RFC 1662, section 7.1).
    #[serde(default)]
    escape_map: u32,
    /// From a request of PPP to its repetition, seconds: longer than the round trip.
    #[serde(default = "default_restart")]
    restart_s: f64,
    /// From an echo to the next, seconds; 0: none.
    #[serde(default = "default_echo")]
    echo_interval_s: f64,
    /// Echoes without an answer until a line is given up.
    #[serde(default = "default_failures")]
    echo_failures: u8,
    /// From the end of a try to the next, seconds.
    #[serde(default = "default_retry")]
    retry_s: f64,
    /// How long the network stays without any line, seconds.
    #[serde(default)]
    linger_s: f64,
    /// How long a small packet may wait behind fragments on its line, seconds.
    #[serde(default = "default_latency")]
    latency_s: f64,
    /// How much may wait for the lines, in seconds of their nominal rates.
    #[serde(default = "default_queue")]
    queue_s: f64,
    /// File for what the lines carry, for Wireshark.
    pcap: Option<PathBuf>,
    /// Its lines.
    #[serde(rename = "line")]
    lines: Vec<Line>,
}

/// A line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// A serial port or a pseudo-terminal, or a Unix socket that somebody else listens at.
    pub port: PathBuf,
    /// Rate over the air, bit/s: no more is written to the port.
    pub rate_bps: f64,
    /// Speed of a serial port, bit/s.
    #[serde(default = "default_baud")]
    pub baud: u32,
    /// Whether the port has RTS and CTS.
    #[serde(default)]
    pub rts_cts: bool,
    /// Whether the port shows carrier (DCD). Otherwise a port that can be read has carrier.
    #[serde(default)]
    pub dcd: bool,
}

/// Secrets of this end and of peers, in a file that nobody else may read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerKeys {
    /// The secret that proves this end.
    own: Option<String>,
    /// Secrets of peers, by name.
    #[serde(default)]
    peer: std::collections::BTreeMap<String, String>,
}

impl std::fmt::Debug for PeerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerKeys").field("peer", &self.peer.keys()).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Chap,
    Pap,
}

fn by_chap() -> Vec<Way> {
    vec![Way::Chap]
}

fn default_device() -> String {
    "ppp-farlink".to_owned()
}

fn default_mrru() -> u16 {
    DEFAULT_MRU
}

fn default_restart() -> f64 {
    8.0
}

fn default_echo() -> f64 {
    10.0
}

fn default_failures() -> u8 {
    3
}

fn default_retry() -> f64 {
    5.0
}

fn default_latency() -> f64 {
    1.0
}

fn default_queue() -> f64 {
    2.0
}

fn default_baud() -> u32 {
    19_200
}

/// Of a queue, so that a few packets fit whatever the rates.
const LEAST_QUEUE_BYTES: usize = 4 * 1500;
/// More than any bundle of modems; memory of a hostile peer is bounded by its lines.
const MOST_LINES: usize = 64;
/// Of names and secrets: what PAP's and CHAP's packets have room for.
const LONGEST_NAME: usize = 255;

impl TtyConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// If the file cannot be read or is none.
    pub fn load(path: &Path) -> Result<Self, TtyError> {
        let text = fs::read_to_string(path).map_err(|error| TtyError::Read { path: path.to_owned(), error })?;
        let parse = |error: toml::de::Error| TtyError::Parse { path: path.to_owned(), message: error.to_string() };
        let mut config: TtyConfig = toml::from_str(&text).map_err(parse)?;
        if let (Some(secrets), Some(folder)) = (&config.secrets, path.parent()) {
            config.secrets = Some(folder.join(secrets));
        }
        Ok(config)
    }

    /// Name of the TUN device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The capture, if one is wanted.
    pub(super) fn capture(&self) -> Result<Option<Capture>, TtyError> {
        let names: Vec<String> = self.lines.iter().map(|line| line.port.display().to_string()).collect();
        let create = |path: &PathBuf| {
            Capture::create(path, &names).map_err(|error| TtyError::Read { path: path.clone(), error })
        };
        self.pcap.as_ref().map(create).transpose()
    }

    /// The lines.
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The bundle of the core.
    ///
    /// # Errors
    /// If a value is out of its range, or the secrets are missing.
    pub fn bundle(&self) -> Result<BundleConfig, TtyError> {
        let span = |key, seconds: f64, least: f64| {
            let rule = "seconds, above 0 unless 0 is said to mean none, at most a day";
            let is_good = seconds.is_finite() && (least..=86_400.0).contains(&seconds);
            if is_good {
                Ok(Time::from_secs_f64(seconds))
            } else {
                Err(TtyError::Value { key, value: seconds.to_string(), rule })
            }
        };
        if self.lines.is_empty() || self.lines.len() > MOST_LINES {
            return Err(TtyError::Value { key: "line", value: self.lines.len().to_string(), rule: "1 to 64 lines" });
        }
        let rate = |line: &Line| {
            let rule = "bit/s, from 50 to 10,000,000";
            let value = line.rate_bps.to_string();
            let in_range = (50.0..=1e7).contains(&line.rate_bps);
            BitRate::new(line.rate_bps).ok().filter(|_| in_range).ok_or(TtyError::Value {
                key: "line.rate_bps",
                value,
                rule,
            })
        };
        let rates = self.lines.iter().map(rate).collect::<Result<Vec<_>, _>>()?;
        if !(128..=16_384).contains(&self.mrru_bytes) {
            return Err(TtyError::Value {
                key: "mrru_bytes",
                value: self.mrru_bytes.to_string(),
                rule: "128 to 16384 bytes",
            });
        }
        let identities = self.identities()?;
        let discriminator = Discriminator::new(1, &self.name.as_bytes()[..self.name.len().min(Discriminator::LONGEST)]);
        let multilink = Multilink {
            mrru: self.mrru_bytes,
            short_numbers: self.short_numbers,
            discriminator: discriminator.unwrap_or_default(),
        };
        let lcp = LcpConfig { receive_map: Accm(self.escape_map), multilink: Some(multilink), ..LcpConfig::default() };
        let restart = span("restart_s", self.restart_s, 0.1)?;
        let interval = span("echo_interval_s", self.echo_interval_s, 0.0)?;
        let echo = EchoConfig { interval, failures: self.echo_failures.max(1) };
        let link = LinkConfig {
            lcp,
            limits: Limits { restart, ..Limits::default() },
            echo: (interval > Time::ZERO).then_some(echo),
            retry: span("retry_s", self.retry_s, 0.1)?,
        };
        let bytes_per_s: f64 = rates.iter().map(|rate| rate.get() / 8.0).sum();
        let queue = span("queue_s", self.queue_s, 0.01)?.as_secs_f64();
        Ok(BundleConfig {
            link,
            rates,
            identities,
            ipv4: Some(Addresses {
                own: self.local.unwrap_or(Ipv4Addr::UNSPECIFIED),
                peer: self.remote.unwrap_or(Ipv4Addr::UNSPECIFIED),
            }),
            ipv6: self.ipv6,
            linger: span("linger_s", self.linger_s, 0.0)?,
            latency: span("latency_s", self.latency_s, 0.01)?,
            queue_bytes: ((bytes_per_s * queue) as usize).max(LEAST_QUEUE_BYTES),
            ..BundleConfig::default()
        })
    }

    fn identities(&self) -> Result<Identities, TtyError> {
        let demands: Vec<Proof> = self.require.iter().map(|way| way.proof()).collect();
        let short = |text: &str| {
            let is_short = (1..=LONGEST_NAME).contains(&text.len());
            is_short.then_some(()).ok_or(TtyError::Value {
                key: "a name or secret",
                value: format!("{} bytes", text.len()),
                rule: "1 to 255 bytes",
            })
        };
        short(&self.name)?;
        let Some(path) = &self.secrets else {
            if demands.is_empty() {
                return Ok(Identities::default());
            }
            let rule = "a peer that has to prove itself needs a secret in the file `secrets`; or set require = [] to let anybody join";
            return Err(TtyError::Value { key: "require", value: "no secrets".to_owned(), rule });
        };
        let keys = PeerKeys::load(path)?;
        if keys.peer.is_empty() && !demands.is_empty() {
            let rule = "the file `secrets` needs [peer] with a name and a secret";
            return Err(TtyError::Value { key: "require", value: "no peer is known".to_owned(), rule });
        }
        let credentials = |name: &str, secret: &str| {
            short(name)?;
            short(secret)?;
            Ok::<_, TtyError>(Credentials { name: name.into(), secret: Secret::new(secret) })
        };
        Ok(Identities {
            own: keys.own.as_deref().map(|secret| credentials(&self.name, secret)).transpose()?,
            peers: keys.peer.iter().map(|(name, secret)| credentials(name, secret)).collect::<Result<_, _>>()?,
            demands,
            shows_password: self.allow_pap,
        })
    }
}

impl Way {
    const fn proof(self) -> Proof {
        match self {
            Way::Chap => Proof::ChapMd5,
            Way::Pap => Proof::Pap,
        }
    }
}

impl PeerKeys {
    /// Reads secrets from a file that only its owner may read.
    ///
    /// # Errors
    /// If others may, or it cannot be read. Errors show no secret.
    pub fn load(path: &Path) -> Result<Self, TtyError> {
        let failed = |error| TtyError::Read { path: path.to_owned(), error };
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TtyError::Shared { path: path.to_owned(), mode });
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        // The message of the parser alone: it would show the line otherwise.
        let hidden =
            |error: toml::de::Error| TtyError::Parse { path: path.to_owned(), message: error.message().to_owned() };
        toml::from_str(&text).map_err(hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "[[line]]\nport = \"/dev/ttyUSB0\"\nrate_bps = 2400\n";

    fn written(config: &str, secrets: Option<(&str, u32)>) -> Result<BundleConfig, TtyError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle.toml");
        fs::write(&path, config).unwrap();
        if let Some((text, mode)) = secrets {
            fs::write(folder.path().join("keys"), text).unwrap();
            fs::set_permissions(folder.path().join("keys"), fs::Permissions::from_mode(mode)).unwrap();
        }
        TtyConfig::load(&path)?.bundle()
    }

    #[test]
    fn a_configuration_says_all_of_a_bundle() {
        let text = format!(
            "name = \"ship\"\nsecrets = \"keys\"\nlocal = \"10.0.0.1\"\nrequire = [\"chap\", \"pap\"]\n{LINES}"
        );
        let config = written(&text, Some(("own = \"a\"\n[peer]\nvps = \"b\"\n", 0o600))).unwrap();
        assert_eq!((config.rates.len(), config.identities.peers.len()), (1, 1));
        assert_eq!(config.identities.demands, [Proof::ChapMd5, Proof::Pap]);
        assert!(!format!("{config:?}").contains("canary"));
    }

    #[test]
    fn mistakes_are_named_with_their_remedy() {
        let cases = [
            (format!("name = \"ship\"\n{LINES}"), None, "require = []"),
            (format!("name = \"ship\"\nrequire = []\nretry_s = 0\n{LINES}"), None, "retry_s = 0"),
            (format!("name = \"ship\"\nrequire = []\nmrru_bytes = 60\n{LINES}"), None, "128 to 16384"),
            (format!("name = \"ship\"\nrequire = []\n{}", LINES.replace("2400", "0")), None, "line.rate_bps = 0"),
            ("name = \"ship\"\nrequire = []\nline = []\n".to_owned(), None, "1 to 64 lines"),
            (format!("name = \"ship\"\nrequire = [\"eap\"]\n{LINES}"), None, "eap"),
            (format!("name = \"ship\"\nsecrets = \"keys\"\n{LINES}"), Some(("own = \"a\"\n", 0o600)), "[peer]"),
            (format!("name = \"ship\"\nsecrets = \"keys\"\n{LINES}"), Some(("own = \"a\"\n", 0o644)), "chmod 600"),
            (format!("name = \"ship\"\nsecrets = \"keys\"\n{LINES}"), None, "cannot use"),
        ];
        for (text, secrets, wanted) in cases {
            let error = written(&text, secrets).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
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
