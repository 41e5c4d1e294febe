//! The congestion controls that a scenario may name: one line each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Gives another macro the list of congestion controls: the name of each and its running state.
macro_rules! congestion_controls {
    ($declare:ident) => {
        $declare! {
            /// Slow start and congestion avoidance (RFC 5681).
            Reno = "reno" => reno::Reno,
            /// A cubic function of the time since the last loss (RFC 9438).
            Cubic = "cubic" => cubic::Cubic,
            /// Reno's growth per second instead of per round trip (Caini and Firrincieli 2004).
            Hybla = "hybla" => hybla::Hybla,
            /// Reno's growth; after a loss the window is the bandwidth estimate times the least round trip (Westwood+; Grieco and
            /// Mascolo 2004).
            Westwood = "westwood" => westwood::Westwood,
            /// Keeps a few segments in the queue, measured by the delay they cause (Brakmo and Peterson 1995).
            Vegas = "vegas" => vegas::Vegas,
            /// BBR version 1, as Linux has it: sends at the measured bandwidth regardless of losses (Cardwell et al. 2016). Needs
            /// selective acknowledgements and uses pacing.
            Bbr = "bbr" => bbr::v1::Bbr,
            /// BBR version 3 (draft-ietf-ccwg-bbr): as version 1, but slows down if more than 2 % is lost. Needs selective
            /// acknowledgements and uses pacing.
            Bbr3 = "bbr3" => bbr::v3::Bbr3,
            /// None: the window is always the largest (RFC 793 has no other).
            None = "none" => none::None,
        }
    };
}
pub(super) use congestion_controls;

/// Declares the names.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal => $state:path,)+) => {
        /// How TCP's window grows and shrinks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum CongestionControl {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
        }

        impl CongestionControl {
            /// All congestion controls.
            pub const ALL: &'static [CongestionControl] = &[$(CongestionControl::$name),+];

            /// Its name in a scenario.
            pub const fn name(self) -> &'static str {
                match self { $(CongestionControl::$name => $text,)+ }
            }
        }
    };
}

congestion_controls!(names);

impl CongestionControl {
    /// Whether it sends at measured rates, for which it needs selective acknowledgements and pacing.
    pub const fn measures_rates(self) -> bool {
        matches!(self, CongestionControl::Bbr | CongestionControl::Bbr3)
    }
}
