//! Keys without effect, because of other keys of the scenario.

use serde_json::Value;

use super::Scenario;
use crate::ConfigError;

/// Refuses keys of transports that were given and have no effect; `given` is the scenario as it was written. A switch that is set
/// to off is allowed.
pub(super) fn check(scenario: &Scenario, given: &Value) -> Result<(), ConfigError> {
    for (name, transport) in &scenario.transport {
        for idle in transport.as_dyn().idle() {
            let asked = find(&given["transport"][name], &idle.key);
            if !matches!(asked, None | Some(Value::Null | Value::Bool(false))) {
                let path = format!("transport.{name}.{}", idle.key);
                let what = format!("it has no effect: {}", idle.why);
                return Err(ConfigError::new(path, what, format!("leave it out, or give {}", idle.needs)));
            }
        }
    }
    Ok(())
}

/// Removes the keys without effect from a scenario with all defaults written out, so that it can be read again.
pub(super) fn strip(normalised: &mut Value, scenario: &Scenario) {
    for (name, transport) in &scenario.transport {
        for idle in transport.as_dyn().idle() {
            let (table, key) = idle.key.rsplit_once('.').unwrap_or(("", &idle.key));
            let pointer = if table.is_empty() { String::new() } else { format!("/{}", table.replace('.', "/")) };
            let transport = &mut normalised["transport"][name];
            if let Some(Value::Object(table)) = transport.pointer_mut(&pointer) {
                table.shift_remove(key);
            }
        }
    }
}

fn find<'a>(table: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(table, |table, name| table.get(name))
}
