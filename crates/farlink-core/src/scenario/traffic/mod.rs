//! The traffic of flows. A kind of traffic is one file and one line.

mod bulk;
mod cbr;
mod file;
mod transfers;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use file::File;
pub use transfers::{Arrivals, Transfer, Transfers};

use crate::ConfigError;

/// The configuration of traffic in a scenario.
pub trait Traffic {
    /// Whether it never ends by itself, so that the scenario needs a `duration_s`.
    fn is_endless(&self) -> bool;

    /// Checks the rules between keys that the types of single keys cannot express; paths are relative to the traffic's table.
    ///
    /// # Errors
    /// If keys contradict each other, or one is missing.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

crate::registry::registry! {
    /// The traffic of a flow, by its `kind`.
    traffic: TrafficKind as Traffic {
        Bulk = "bulk" => Bulk,
        File = "file" => File,
        Cbr = "cbr" => Cbr,
        Transfers = "transfers" => Transfers,
    }
}
