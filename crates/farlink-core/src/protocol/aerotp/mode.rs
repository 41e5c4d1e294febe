//! The five modes (Pathapati, section II.B).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a connection guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// All data arrives in order and exactly once, acknowledged end to end.
    #[default]
    Reliable,
    /// As `reliable`, but acknowledged from gateway to gateway: the gateway acknowledges data to the source before the sink has
    /// it. `[N1]`
    NearReliable,
    /// No acknowledgements: codes within each packet and across packets correct most errors and losses.
    QuasiReliable,
    /// No acknowledgements and no codes: data is delivered in order, and lost data is skipped.
    Unreliable,
    /// Single messages without a connection.
    Datagram,
}

impl Mode {
    /// All modes, in the order of their numbers on the wire.
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

    /// Whether segments of this mode may carry parity. `[F6]`
    pub const fn has_parity(self) -> bool {
        matches!(self, Mode::Reliable | Mode::NearReliable | Mode::QuasiReliable)
    }

    /// Whether a connection of this mode may change to another one of these. `[U7]`
    pub const fn may_change(self) -> bool {
        matches!(self, Mode::QuasiReliable | Mode::Unreliable)
    }

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Reliable => "reliable",
            Mode::NearReliable => "near-reliable",
            Mode::QuasiReliable => "quasi-reliable",
            Mode::Unreliable => "unreliable",
            Mode::Datagram => "datagram",
        }
    }

    /// Whether every byte is acknowledged and lost data is retransmitted.
    pub const fn is_acknowledged(self) -> bool {
        matches!(self, Mode::Reliable | Mode::NearReliable)
    }
}
