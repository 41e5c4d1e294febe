//! The TCP variants that a scenario may name: one line each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Gives another macro the list of variants: the name of each, its running state, and whether it uses selective acknowledgements.
macro_rules! variants {
    ($declare:ident) => {
        $declare! {
            /// Fast retransmit, then slow start (4.3BSD-Tahoe).
            Tahoe = "tahoe" => tahoe::Tahoe { sack: false },
            /// Fast recovery until the first new acknowledgement (RFC 5681).
            Reno = "reno" => reno::Reno { sack: false },
            /// Fast recovery through partial acknowledgements (RFC 6582).
            NewReno = "newreno" => newreno::NewReno { sack: false },
            /// Recovery from selective acknowledgements (RFC 6675).
            Sack = "sack" => sack::Sack { sack: true },
            /// No fast retransmit; all data is sent again on a timeout (RFC 793).
            None = "none" => none::None { sack: false },
            /// Detects losses by time, with tail loss probes (RFC 8985).
            Rack = "rack" => rack::Rack { sack: true },
            /// Retransmits at once what the receiver reports missing (SNACK of SCPS-TP, CCSDS 714.0-B-2).
            Snack = "snack" => snack::Snack { sack: false },
        }
    };
}
pub(super) use variants;

/// Declares the names.
macro_rules! names {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $state:path { sack: $uses_sack:literal },)+) => {
        /// A TCP variant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Variant {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl Variant {
            /// All variants.
            pub const ALL: &'static [Variant] = &[$(Variant::$variant),+];

            /// Its name in a scenario.
            pub const fn name(self) -> &'static str {
                match self { $(Variant::$variant => $name,)+ }
            }

            /// Whether it negotiates selective acknowledgements.
            pub const fn uses_sack(self) -> bool {
                match self { $(Variant::$variant => $uses_sack,)+ }
            }
        }
    };
}

variants!(names);

impl Variant {
    /// Whether it negotiates selective negative acknowledgements.
    pub const fn uses_snack(self) -> bool {
        matches!(self, Variant::Snack)
    }
}
