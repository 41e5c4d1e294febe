//! The five modes (Pathapati, section II.B).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a connection guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Everything arrives, in order, once; end to end.
    #[default]
    Reliable,
    /// As reliable, but from gateway to gateway: the source is acknowledged when the gateway has the data. `[N1]`
    NearReliable,
    /// No acknowledgements: codes in each packet and across packets mend most of what the link does.
    QuasiReliable,
    /// No acknowledgements and no codes, in order: what is lost is skipped.
    Unreliable,
    /// Messages by themselves, without a connection.
    Datagram,
}

impl Mode {
    /// All of them, by their number on the wire.
    pub const ALL: [Mode; 5] =
        [Mode::Reliable, Mode::NearReliable, Mode::QuasiReliable, Mode::Unreliable, Mode::Datagram];

    /// Its number on the wire, in three bits. `[L4]`
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The mode of a number on the wire.
    pub fn from_number(number: u8) -> Option<Mode> {
        Mode::ALL.get(usize::from(number)).copied()
    }

    /// Whether every byte is acknowledged, and what is lost sent again.
    pub const fn is_acknowledged(self) -> bool {
        matches!(self, Mode::Reliable | Mode::NearReliable)
    }
}
