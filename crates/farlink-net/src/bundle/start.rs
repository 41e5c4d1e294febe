//! A bundle starts whole or not at all, and gives up its capabilities before it reads the first packet.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use farlink_core::Time;

use crate::privileged::{Change, DeviceName, Helper, PrivilegedError, drop_all, may_change_network};
use crate::state::{CounterFiles, StateFolder};

use super::capture::Capture;
use super::config::{At, Config};
use super::error::BundleError;
use super::metrics::Pages;
use super::session::{Session, SessionConfig};
use super::together;

/// A life of keys that seal much: as that of sessions.
const KEY_LIFE: Time = Time::from_secs(120);

/// A bundle that is ready to run.
pub struct Bundle {
    pub(super) config: Config,
    pub(super) helper: Helper,
    pub(super) tun: OwnedFd,
    pub(super) device: DeviceName,
    pub(super) capture: Option<Capture>,
    /// The page with its numbers, and the socket at which it is served if no other bundle serves it.
    pub(super) metrics: Option<(Pages, Option<TcpListener>)>,
    key: crate::seal::StaticKey,
    counters: PathBuf,
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Bundle {
    /// Starts the helper, makes the device with its addresses and routes, and drops all capabilities of this thread; `helper` is a command
    /// that calls [`serve`](crate::privileged::serve). What the device carries is written to `capture`.
    ///
    /// # Errors
    /// If a file of this host cannot be used, or the system refuses something.
    pub fn prepare(config: Config, helper: Command, capture: Option<&Path>) -> Result<Self, BundleError> {
        let mut all = Bundle::prepare_all(vec![config], helper, capture)?;
        Ok(all.pop().expect("there is one for each configuration"))
    }

    /// As [`prepare`](Self::prepare), for several peers: each has a device, keys and sockets of its own, and all have one helper. Each is
    /// then run by a thread of its own, so that none waits for another one.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), and if two of them cannot be together.
    pub fn prepare_all(
        configs: Vec<Config>,
        helper: Command,
        capture: Option<&Path>,
    ) -> Result<Vec<Self>, BundleError> {
        together::check(&configs)?;
        if let (Some(capture), [_, second, ..]) = (capture, &configs[..]) {
            let what = format!("a capture in {} is that of one device, and there are several peers", capture.display());
            return Err(BundleError::config(&second.path, what, "capture each device: tcpdump -i DEVICE -w FILE"));
        }
        // Another protocol than that of sessions: counters and lock of its own, for each peer.
        let counters = |config: &Config| config.keys.path().join("bundle").join(&config.peer.name);
        for config in &configs {
            config.keys.key()?;
            open_counters(config, &counters(config))?;
        }
        if !may_change_network() {
            return Err(PrivilegedError::NotAllowed.into());
        }
        let has_peers = configs.len() > 1;
        let mut first = Some(Helper::start(helper)?);
        let mut pages: BTreeMap<SocketAddr, Pages> = BTreeMap::new();
        let mut all: Vec<Bundle> = Vec::new();
        for config in configs {
            let helper = match (first.take(), all.last_mut()) {
                (Some(helper), _) => helper,
                (None, Some(before)) => before.helper.another()?,
                (None, None) => unreachable!("the first bundle has the first helper"),
            };
            let metrics = match config.metrics {
                None => None,
                Some(at) => match pages.get(&at) {
                    Some(page) => Some((page.clone(), None)),
                    None => {
                        let page = pages.entry(at).or_insert(Pages::new(has_peers)).clone();
                        let failed = |error| BundleError::Output { what: format!("metrics at {at}"), error };
                        let listener = TcpListener::bind(at).map_err(failed)?;
                        listener.set_nonblocking(true).map_err(failed)?;
                        Some((page, Some(listener)))
                    }
                },
            };
            let counters = counters(&config);
            all.push(Bundle::make(config, helper, capture, metrics, counters)?);
        }
        drop_all()?;
        Ok(all)
    }

    /// Name of the peer.
    pub fn peer(&self) -> &str {
        &self.config.peer.name
    }

    fn make(
        config: Config,
        mut helper: Helper,
        capture: Option<&Path>,
        metrics: Option<(Pages, Option<TcpListener>)>,
        counters: PathBuf,
    ) -> Result<Self, BundleError> {
        let key = config.keys.key()?;
        let (tun, device) = helper.tun(config.tun.name.clone(), config.tun.mtu_bytes, config.fallback)?;
        for &address in &config.tun.addresses {
            helper.address(Change::Add, address)?;
        }
        if !config.fallback {
            for &to in &config.routes {
                helper.route(Change::Add, to)?;
            }
        }
        let capture = capture.map(|path| Capture::create(path, device.as_str())).transpose()?;
        Ok(Bundle { config, helper, tun, device, capture, metrics, key, counters })
    }

    pub(super) fn session(&self) -> Result<Session, BundleError> {
        let config = SessionConfig {
            key: self.key.clone(),
            peer: self.config.peer.key,
            shared: self.config.shared.clone(),
            calls: matches!(self.config.peer.at, At::Calls(_)),
            paths: self.config.numbers(),
            key_life: KEY_LIFE,
        };
        let counters = open_counters(&self.config, &self.counters)?;
        Ok(Session::new(config, Box::new(counters), crate::io::unix_us))
    }
}

fn open_counters(config: &Config, folder: &Path) -> Result<CounterFiles, BundleError> {
    let folder = StateFolder::new(folder);
    Ok(match config.peer.at {
        At::Calls(_) => folder.counters_to_send()?,
        At::Listens(_) => folder.counters_to_answer()?,
    })
}
