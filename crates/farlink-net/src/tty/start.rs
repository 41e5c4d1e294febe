//! A bundle of lines starts whole or not at all, and gives up its capabilities before it reads the first byte of a peer.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use super::TtyError;
use super::capture::Capture;
use super::config::TtyConfig;
use crate::privileged::{
    Change, DeviceName, Helper, LONGEST_MTU, PrivilegedError, SHORTEST_MTU, drop_all, may_change_network,
};

/// A bundle that is ready to run.
pub struct TtyBundle {
    pub(super) config: TtyConfig,
    pub(super) helper: Helper,
    pub(super) tun: OwnedFd,
    pub(super) device: DeviceName,
    pub(super) capture: Option<Capture>,
}

impl std::fmt::Debug for TtyBundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TtyBundle").field("device", &self.device).finish_non_exhaustive()
    }
}

impl TtyBundle {
    /// Starts the helper, makes the device with its routes, and drops all capabilities of this thread; `helper` is a command that calls
    /// [`serve`](crate::privileged::serve). What the lines carry is written to `capture`, or to the file that the configuration names.
    ///
    /// # Errors
    /// If a file of this host cannot be used, or the system refuses something.
    pub fn prepare(config: TtyConfig, helper: Command, capture: Option<&Path>) -> Result<Self, TtyError> {
        if !may_change_network() {
            return Err(PrivilegedError::NotAllowed.into());
        }
        let mut helper = Helper::start(helper)?;
        let longest = config.bundle.link.lcp.multilink.as_ref().map_or(SHORTEST_MTU, |it| it.mrru);
        let mtu_bytes = longest.clamp(SHORTEST_MTU, LONGEST_MTU);
        let (tun, device) = helper.tun(config.device.clone(), mtu_bytes, config.fallback)?;
        for &address in &config.addresses {
            helper.address(Change::Add, address)?;
        }
        if !config.fallback {
            for &to in &config.routes {
                helper.route(Change::Add, to)?;
            }
        }
        let capture = capture
            .or(config.pcap.as_deref())
            .map(|path| {
                let failed = |error| TtyError::Output { what: path.display().to_string(), error };
                Capture::create(path, config.lines.iter().map(|line| &*line.name)).map_err(failed)
            })
            .transpose()?;
        drop_all()?;
        Ok(TtyBundle { config, helper, tun, device, capture })
    }
}
