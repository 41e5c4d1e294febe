//! Collection of error events: the decoder runs until there are enough of them.

use farlink_core::coding::{EventsError, OperatingPoint};
use farlink_fec::events::{self, ErrorEvents, LibraryError};
use farlink_fec::monte_carlo::{Bursts, Effort, Status};

use super::Share;

/// The user gets a note if fewer events than this were collected, and more were requested.
const FEW: usize = 20;

/// The result of a collection.
pub(super) enum Found {
    Events(ErrorEvents),
    /// No error can be expected; the text says why.
    Never(String),
}

/// Collects the error events of an operating point on the threads of the current pool; the result is empty if no error was seen.
///
/// # Errors
/// If the collection was stopped, or is impossible.
pub(super) fn collect(point: &OperatingPoint, progress: Share<'_>) -> Result<Found, EventsError> {
    let scheme = point
        .scheme()
        .map_err(|unfit| EventsError::Impossible { message: unfit.message(), remedy: unfit.remedy.clone() })?;
    let effort = Effort {
        seed: point.effort.seed.whole(),
        bits_max: point.effort.max_bits.whole(),
        events: Some(point.effort.events.whole()),
        ..Effort::default()
    };
    let watch = |done: u64, total: u64| progress(done as f64 / total.max(1) as f64).is_continue();
    match events::library(&scheme, point.ebn0_db.get(), &effort, &watch) {
        Ok(library) if library.status == Status::Interrupted => Err(EventsError::Stopped),
        Err(LibraryError::Interrupted) => Err(EventsError::Stopped),
        Ok(library) => Ok(Found::Events(library.events)),
        Err(LibraryError::TooRare { .. }) => Ok(Found::Events(none())),
        Err(never @ LibraryError::Never { .. }) => Ok(Found::Never(format!("{never}: played without errors"))),
        Err(error) => Err(EventsError::Impossible {
            message: error.to_string(),
            remedy: "choose Eb/N0 and effort within their ranges".to_owned(),
        }),
    }
}

/// Error events of a decoder without any errors.
pub(super) fn none() -> ErrorEvents {
    ErrorEvents::new([], 0.0, f64::INFINITY)
}

/// A note for the user about few or no events, whether they were collected now or read from disk.
pub(super) fn caution(point: &OperatingPoint, events: &ErrorEvents) -> Option<String> {
    let Ok(scheme) = point.scheme() else { return None };
    let (ebn0_db, bits) = (point.ebn0_db.get(), point.effort.max_bits.get());
    if events.is_empty() {
        return Some(format!(
            "no error in {bits:.3e} bits of {scheme} at {ebn0_db} dB: played without errors; an error event begins with \
             fewer than {:.1e} of all bits (95 %)",
            3.0 / bits
        ));
    }
    let few = (events.len() as u64) < point.effort.events.whole() && events.len() < FEW;
    // A point computed in closed form has exactly one event.
    let is_exact = events.len() == 1 && events.event(0) == [0] && scheme.event_gap_bits() == 0;
    (few && !is_exact).then(|| {
        let seen = events.len() as f64;
        let interval = Bursts { sum: seen, sum_of_squares: seen, greatest: 1.0 }.interval(0.95);
        format!(
            "only {seen} error events of {scheme} at {ebn0_db} dB before effort.max_bits ended the collection: their true \
             rate lies between {:.2} and {:.2} times the one played (95 %); raise effort.max_bits",
            interval.low / seen,
            interval.high / seen
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `seen` events of `asked` give a note.
    fn are_few(seen: usize, asked: u64) -> bool {
        let json = format!(
            r#"{{"modulation": "qpsk", "decision": "soft", "ebn0_db": 3,
                "code": {{"kind": "convolutional", "generators": "171,133"}}, "effort": {{"events": {asked}}}}}"#
        );
        let point = serde_json::from_str(&json).unwrap();
        let event: &[u32] = &[0, 3];
        let note = caution(&point, &ErrorEvents::new(vec![event; seen], 10.0, 100.0));
        let begin = format!("only {seen} error events of ");
        assert!(note.as_ref().is_none_or(|note| note.starts_with(&begin)), "{note:?}");
        note.is_some()
    }

    #[test]
    fn fewer_than_twenty_events_or_than_requested_are_noted() {
        for asked in [21, 100, 2000] {
            assert_eq!(
                [1, 19, 20, 21].map(|seen| are_few(seen, asked)),
                [true, true, false, false],
                "{asked} asked for"
            );
        }
        assert_eq!([4, 5, 6].map(|seen| are_few(seen, 5)), [true, false, false]);
        assert_eq!([18, 19, 20].map(|seen| are_few(seen, 19)), [true, false, false]);
    }
}
