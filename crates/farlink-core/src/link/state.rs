//! What a link is like at one instant: the source of hints, and what adaptive coding sets.

use crate::channel::SettingId;
use crate::time::Time;
use crate::units::BitRate;

/// A link's properties, constant until the next change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    /// Whether frames can cross at all.
    pub up: bool,
    /// Transmission rate.
    pub rate: BitRate,
    /// One-way delay.
    pub delay: Time,
    /// Carrier to noise density; NaN where the scenario does not say.
    pub cn0_dbhz: f32,
    /// Modulation and coding in use.
    pub setting: SettingId,
}
