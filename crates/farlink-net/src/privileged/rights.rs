//! Capabilities that are dropped (capabilities(7)).

use std::fs;

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use super::error::PrivilegedError;

/// Drops all capabilities of this thread, and of those that it starts, for good. It has to come before other threads are started: the
/// kernel keeps capabilities by thread.
///
/// # Errors
/// If the kernel refuses it, or another thread of this process has capabilities.
pub fn drop_all() -> Result<(), PrivilegedError> {
    keep(CapabilitySet::empty())
}

/// Whether this thread may change the network, so that a helper that it starts may, too.
pub(crate) fn may_change_network() -> bool {
    capabilities(None).is_ok_and(|own| own.permitted.contains(CapabilitySet::NET_ADMIN))
}

/// Keeps these capabilities and no others.
pub(super) fn keep(kept: CapabilitySet) -> Result<(), PrivilegedError> {
    let refused = |error: Errno| PrivilegedError::Rights(error.to_string());
    for one in CapabilitySet::all().iter().filter(|one| !kept.contains(*one)) {
        match remove_capability_from_bounding_set(one) {
            // A kernel that does not know it; and who may not change the set gets nothing by it, because of no_new_privs.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    set_no_new_privs(true).map_err(refused)?;
    clear_ambient_capability_set().map_err(refused)?;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })
        .map_err(|error| PrivilegedError::Rights(format!("{kept:?} cannot be kept ({error})")))?;
    others_have_none(kept)
}

/// Whether every thread of this process has no more than these capabilities.
fn others_have_none(kept: CapabilitySet) -> Result<(), PrivilegedError> {
    let unreadable = |error: std::io::Error| PrivilegedError::Rights(format!("/proc/self/task: {error}"));
    for thread in fs::read_dir("/proc/self/task").map_err(unreadable)? {
        // A thread that has ended meanwhile.
        let Ok(status) = fs::read_to_string(thread.map_err(unreadable)?.path().join("status")) else { continue };
        let permitted = permitted_in(&status);
        if permitted & !kept.bits() != 0 {
            return Err(PrivilegedError::Rights(format!("another thread of this process has {permitted:x}")));
        }
    }
    Ok(())
}

fn permitted_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permitted_capabilities_are_read() {
        assert_eq!(permitted_in("Name:\tx\nCapInh:\t01\nCapPrm:\t0000000000001000\nCapEff:\t0\n"), 0x1000);
        assert_eq!(CapabilitySet::NET_ADMIN.bits(), 0x1000);
    }
}
