//! What flows send. A kind of traffic is one file and one line.

mod bulk;
mod cbr;
mod file;
mod transfers;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use file::File;
pub use transfers::{Arrivals, Transfer, Transfers};

use crate::ConfigError;

/// What a scenario says about traffic.
pub trait Traffic {
    /// Whether it would go on for ever, so that the scenario must say when to stop.
    fn is_endless(&self) -> bool;

    /// Checks what the types cannot; paths are relative to the traffic's table.
    ///
    /// # Errors
    /// If keys contradict each other, or one is missing.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

crate::registry::registry! {
    /// What a flow sends, by its `kind`.
    traffic: TrafficKind as Traffic {
        Bulk = "bulk" => Bulk,
        File = "file" => File,
        Cbr = "cbr" => Cbr,
        Transfers = "transfers" => Transfers,
    }
}
