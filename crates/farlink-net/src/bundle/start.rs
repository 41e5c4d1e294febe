//! A bundle starts whole or not at all, and gives up its capabilities before it reads the first packet.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use farlink_core::Time;

use crate::privileged::{Change, DeviceName, Helper, PrivilegedError, drop_all, may_change_network};
use crate::state::{CounterFiles, StateFolder};

use super::capture::Capture;
use super::config::{At, Config};
use super::error::BundleError;
use super::session::{Session, SessionConfig};

/// A life of keys that seal much: as that of sessions.
const KEY_LIFE: Time = Time::from_secs(120);

/// A bundle that is ready to run.
pub struct Bundle {
    pub(super) config: Config,
    pub(super) helper: Helper,
    pub(super) tun: OwnedFd,
    pub(super) device: DeviceName,
    pub(super) capture: Option<Capture>,
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
        let key = config.keys.key()?;
        // Another protocol than that of sessions: counters and lock of its own, for each peer.
        let counters = config.keys.path().join("bundle").join(&config.peer.name);
        open_counters(&config, &counters)?;
        if !may_change_network() {
            return Err(PrivilegedError::NotAllowed.into());
        }
        let mut helper = Helper::start(helper)?;
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
        drop_all()?;
        Ok(Bundle { config, helper, tun, device, capture, key, counters })
    }

    pub(super) fn session(&self) -> Result<Session, BundleError> {
        let config = SessionConfig {
            key: self.key.clone(),
            peer: self.config.peer.key,
            shared: self.config.shared.clone(),
            calls: matches!(self.config.peer.at, At::Calls(_)),
            paths: self.config.paths.len() as u8,
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
