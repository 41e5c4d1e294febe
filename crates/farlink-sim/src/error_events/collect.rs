//! Collecting error events: the decoder runs until it has made enough of them.

use farlink_core::coding::{EventsError, OperatingPoint};
use farlink_fec::events::{self, ErrorEvents};
use farlink_fec::monte_carlo::{Effort, Status};

use super::Share;

/// Collects the error events of an operating point, on the threads of the current pool.
///
/// # Errors
/// If it was stopped, or there are none to be seen.
pub(super) fn collect(point: &OperatingPoint, progress: Share<'_>) -> Result<ErrorEvents, EventsError> {
    let scheme = point
        .scheme()
        .map_err(|unfit| EventsError::Impossible { message: unfit.to_string(), remedy: unfit.remedy.clone() })?;
    let effort = Effort {
        seed: point.effort.seed.whole(),
        bits_max: point.effort.max_bits.whole(),
        events: Some(point.effort.events.whole()),
        ..Effort::default()
    };
    let watch = |done: u64, total: u64| progress(done as f64 / total.max(1) as f64).is_continue();
    let library =
        events::library(&scheme, point.ebn0_db.get(), &effort, &watch).map_err(|error| EventsError::Impossible {
            message: error.to_string(),
            remedy: "lower Eb/N0, or raise effort.max_bits; without any error, no coding is needed".to_owned(),
        })?;
    match library.status {
        Status::Interrupted => Err(EventsError::Stopped),
        _ => Ok(library.events),
    }
}
