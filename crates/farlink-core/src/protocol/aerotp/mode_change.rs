//! Changes of a connection's mode at given times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::origin::OriginShift;
use crate::time::Time;
use crate::units::Seconds;

use super::mode::Mode;

/// A change of mode at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeChange {
    /// When it begins, in seconds after the start of the run.
    pub at_s: Seconds,
    /// The new mode: `quasi-reliable` or `unreliable`.
    pub mode: Mode,
}

impl ModeChange {
    /// Whether its time has come by a clock whose origin has been moved since the start of the run.
    pub(super) fn is_due(&self, now: Time, moved: OriginShift) -> bool {
        (self.at_s.get() * 1e12 + 0.5) as u128 <= moved.unmoved_ps(now)
    }
}

/// Checks changes from a mode on. `[U7]`
pub(super) fn check(first: Mode, changes: &[ModeChange]) -> Result<(), ConfigError> {
    let refused = |what: String, remedy: &str| Err(ConfigError::new("mode_changes", what, remedy));
    if !changes.is_empty() && !first.may_change() {
        let what = format!("a connection that is {} keeps its mode", first.name());
        return refused(what, "choose mode = \"quasi-reliable\" or \"unreliable\", or leave it out");
    }
    let mut before = (None, first);
    for &ModeChange { at_s, mode } in changes {
        let seconds = at_s.get();
        if !mode.may_change() {
            let what = format!("no connection becomes {} under way, at {seconds} s", mode.name());
            return refused(what, "give \"quasi-reliable\" or \"unreliable\"");
        }
        if mode == before.1 {
            return refused(format!("at {seconds} s the mode is {} already", mode.name()), "leave this change out");
        }
        if before.0.is_some_and(|earlier| seconds <= earlier) {
            return refused(
                format!("{seconds} s is not after the change before it"),
                "give the changes in the order of time",
            );
        }
        before = (Some(seconds), mode);
    }
    Ok(())
}
