//! The extensions of SCPS-TP to TCP (CCSDS 714.0-B-2), each of which can be used alone; see [`crate::protocol::scps`].
//!
//! A connection without extensions has no such state, and no packet of a connection with extensions uses the
//! shortcut (feature `trains`).

mod best_effort;
mod compression;
mod connection;
mod report;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::parts::pacer::Pacer;
use crate::protocol::parts::repeats::Repeats;
use crate::time::Time;
use crate::units::BitRate;

use super::config::TcpConfig;
use super::segment::ScpsCapabilities;
use super::span::Span;

use best_effort::Transmissions;
pub(in crate::protocol) use compression::Compressed;
use report::Reporter;

/// The sender's conclusion from a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossMeans {
    /// Congestion: the window is reduced.
    #[default]
    Congestion,
    /// Bit errors: losses do not change the window.
    Corruption,
    /// Bit errors while the receiver, informed by its link, reports that packets arrive damaged; congestion otherwise.
    Signalled,
}

/// Best-effort transport: the delivery of all data is not guaranteed.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct BestEffort {
    /// Largest number of transmissions of a segment; no limit if `None`.
    pub(in crate::protocol) max_transmissions: Option<u32>,
    /// The receiver gives a hole up after this time.
    pub(in crate::protocol) hold: Time,
}

/// Which extensions a connection has.
#[derive(Clone, Debug)]
pub(in crate::protocol) struct ExtensionsConfig {
    pub(in crate::protocol) snack_vector_bytes: usize,
    /// Segments per acknowledgement, and the longest delay of one.
    pub(in crate::protocol) ack_every: u16,
    pub(in crate::protocol) ack_delay: Time,
    pub(in crate::protocol) rate: Option<BitRate>,
    pub(in crate::protocol) loss_means: LossMeans,
    /// For how long the receiver reports corruption after a packet that arrived damaged.
    pub(in crate::protocol) corruption_hold: Time,
    pub(in crate::protocol) best_effort: Option<BestEffort>,
    pub(in crate::protocol) compression: Option<Compressed>,
    /// Number of transmissions of every data segment, and the time between two of them.
    pub(in crate::protocol) copies: u32,
    pub(in crate::protocol) copy_spacing: Time,
}

/// The running state of the extensions.
#[derive(Clone, Debug)]
pub(super) struct Extensions {
    own: ScpsCapabilities,
    /// Capabilities of both sides.
    agreed: u8,
    reporter: Reporter,
    loss_means: LossMeans,
    corruption_hold: Time,
    /// Until then, acknowledgements report that packets arrive damaged.
    corruption_until: Time,
    transmissions: Option<Transmissions>,
    /// When the first hole at the receiver is given up, and whether that is due.
    hold_deadline: Time,
    is_skip_due: bool,
    compression: Option<Compressed>,
    copies: Option<Repeats<Span>>,
    /// The latest time that was passed to it.
    now: Time,
}

impl Extensions {
    /// The extensions that a variant needs without any configuration of its own.
    pub(super) fn of_variant(config: &TcpConfig) -> Option<Box<Self>> {
        config.variant.uses_snack().then(|| Box::new(Self::new(SNACK, super::MOST_SNACK_BYTES)))
    }

    fn new(bits: u8, snack_vector_bytes: usize) -> Self {
        Extensions {
            own: ScpsCapabilities { bits, connection_id: 1 },
            agreed: 0,
            reporter: Reporter::new(snack_vector_bytes),
            loss_means: LossMeans::Congestion,
            corruption_hold: Time::ZERO,
            corruption_until: Time::ZERO,
            transmissions: None,
            hold_deadline: Time::NEVER,
            is_skip_due: false,
            compression: None,
            copies: None,
            now: Time::ZERO,
        }
    }

    fn has(&self, bits: u8) -> bool {
        self.agreed & bits == bits && bits != 0
    }

    /// Whether it uses the link's hints.
    pub(super) fn wants_hints(&self) -> bool {
        self.loss_means == LossMeans::Signalled
    }

    /// When the next action is due; `Time::NEVER` if there is none.
    pub(super) fn next_timeout(&self, pacer: &Pacer) -> Time {
        let copy = self.copies.as_ref().and_then(Repeats::next).unwrap_or(Time::NEVER);
        let copy = if copy != Time::NEVER { copy.max(pacer.next()) } else { copy };
        // A skip that is already due is left to `poll_event`.
        if self.is_skip_due { copy } else { copy.min(self.hold_deadline) }
    }
}

const SNACK: u8 = ScpsCapabilities::SNACK_SHORT | ScpsCapabilities::SNACK_LONG;
