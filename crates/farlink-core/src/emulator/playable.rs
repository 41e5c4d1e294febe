//! Features of scenarios that real packets cannot play.

use crate::ConfigError;
use crate::bundle::OnDrop;
use crate::scenario::Scenario;

/// Checks that real packets can take the path of a scenario.
///
/// # Errors
/// If a key of it does to packets what only the simulator does.
pub fn check_playable(scenario: &Scenario) -> Result<(), ConfigError> {
    for (name, hop) in scenario.hops() {
        let table = scenario.table_of(name);
        if hop.gateway.is_some() {
            let what = "the emulator carries packets and does not split connections, as gateways do";
            return Err(ConfigError::new(format!("{table}.gateway"), what, "remove it"));
        }
        if hop.paths.is_some() {
            let what = "the emulator plays one path, and a bundle of paths runs over several";
            let remedy = "emulate each path by itself, and run \"farlink bundle carry\" over them";
            return Err(ConfigError::new(format!("{table}.paths"), what, remedy));
        }
        if hop.bundle.as_ref().is_some_and(|bundle| bundle.what_on_drop() == OnDrop::DuplicateAcks) {
            let what = "the emulator makes no acknowledgements in the name of receivers";
            return Err(ConfigError::new(format!("{table}.bundle.on_drop"), what, "give \"requeue\" or \"lose\""));
        }
    }
    Ok(())
}

/// How many classes of service, from 0 on, every hop of a path knows.
pub fn classes_of(scenario: &Scenario) -> usize {
    let hops = scenario.hops();
    let both = hops.iter().flat_map(|(_, hop)| [hop.forward().service.classes(), hop.back().service.classes()]);
    both.min().unwrap_or(1)
}
