//! Keys that apply to one congestion control only.

use crate::ConfigError;
use crate::protocol::tcp::congestion::CongestionControl;

use super::TcpConfig;

/// Checks that they are given only with that congestion control, and that they agree with each other.
pub(super) fn check(config: &TcpConfig) -> Result<(), ConfigError> {
    use CongestionControl::{Bbr, Bbr3, Cubic, Hybla, Reno, Vegas};
    let chosen = config.congestion_control;
    let owned: [(&str, bool, &[CongestionControl]); 5] = [
        ("cubic", config.cubic.is_some(), &[Cubic]),
        ("hybla", config.hybla.is_some(), &[Hybla]),
        ("vegas", config.vegas.is_some(), &[Vegas]),
        ("bbr", config.bbr.is_some(), &[Bbr, Bbr3]),
        ("hystart", config.hystart.is_some(), &[Cubic, Reno]),
    ];
    for (key, is_given, owners) in owned {
        if is_given && !owners.contains(&chosen) {
            let what = format!("congestion_control = \"{}\" has no such setting", chosen.name());
            let owners: Vec<String> = owners.iter().map(|owner| format!("\"{}\"", owner.name())).collect();
            let remedy = format!("leave it out, or choose {}", owners.join(" or "));
            return Err(ConfigError::new(key, what, remedy));
        }
    }
    config.vegas.map_or(Ok(()), |vegas| vegas.check().map_err(|error| error.within("vegas")))
}
