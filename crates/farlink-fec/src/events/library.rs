//! Error events of a scheme, gathered to be played back.

use crate::monte_carlo::{Bursts, Effort, EffortError, Ended, Estimate, Status, Watch, run};
use crate::scheme::Scheme;

use super::ErrorEvents;

/// Error events of a scheme, and how they were found.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// The events, to be played back.
    pub events: ErrorEvents,
    /// How they were found.
    pub method: Method,
    /// Right bits that end an event.
    pub gap_bits: u64,
    /// Data bits simulated.
    pub bits: u64,
    /// Events seen; the library may hold fewer of them.
    pub seen: u64,
    /// Events for each data bit.
    pub event_rate: Estimate,
    /// Share of wrong bits.
    pub bit_error_rate: Estimate,
    /// How the run ended.
    pub status: Status,
}

/// How error events were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// By plain simulation.
    Simulated,
}

impl Method {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Method::Simulated => "simulated",
        }
    }
}

/// Why there is no library.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// A number is out of range.
    #[error(transparent)]
    Effort(#[from] EffortError),
    /// Errors are too rare for every method that there is.
    #[error("no error event in {bits} bits of {scheme} at {eb_n0_db} dB; simulate more bits or lower Eb/N0")]
    TooRare {
        /// The scheme in words.
        scheme: String,
        /// Eb/N0 in dB.
        eb_n0_db: f64,
        /// Bits simulated.
        bits: u64,
    },
}

/// Most events that a library holds.
const EVENTS_MAX: usize = 1 << 16;

/// Error events of a scheme at an Eb/N0 in dB, by plain simulation or, where errors are too rare for that, by what suits the
/// scheme; [`Library::method`] says which.
///
/// The effort counts as in [`error_rate`](crate::monte_carlo::error_rate). `watch` is asked with bits done and bits to do,
/// and stops the run by `false`.
///
/// # Errors
/// If a number is out of range, or no event was seen.
pub fn library(scheme: &Scheme, eb_n0_db: f64, effort: &Effort, watch: Watch<'_>) -> Result<Library, LibraryError> {
    effort.check(eb_n0_db)?;
    simulated(scheme, eb_n0_db, effort, watch)
}

fn simulated(scheme: &Scheme, eb_n0_db: f64, effort: &Effort, watch: Watch<'_>) -> Result<Library, LibraryError> {
    let link = scheme.link(eb_n0_db);
    let batch_bits = link.batch_bits();
    let mut gathering = Gathering::new(scheme.event_gap_bits());
    let mut bits = 0;
    let ended = run(&*link, effort.seed, effort.bits_max.div_ceil(batch_bits), |outcome, batch| {
        outcome.wrong.iter().for_each(|&at| gathering.wrong_bit(batch * batch_bits + u64::from(at)));
        bits = (batch + 1) * batch_bits;
        let events = effort.events.map_or(0.0, |events| gathering.rate.sum / events as f64);
        let width = effort
            .relative_half_width
            .map_or(0.0, |wanted| (wanted / gathering.wrong.interval(effort.confidence).relative_half_width()).powi(2));
        let share = events.max(width);
        let left = ((bits as f64 / share.max(1e-9)) as u64).min(effort.bits_max.max(bits));
        (share >= 1.0, watch(bits, if share >= 1.0 { bits } else { left }))
    });
    gathering.close();
    if gathering.rate.sum == 0.0 {
        return Err(LibraryError::TooRare { scheme: scheme.to_string(), eb_n0_db, bits });
    }
    let per_bit = 1.0 / bits as f64;
    let gap_mean = (bits as f64 - gathering.spans) / gathering.rate.sum;
    let gap_min = (gathering.gap as f64).min(gap_mean);
    Ok(Library {
        events: ErrorEvents::new(gathering.events.iter().map(Vec::as_slice), gap_min, gap_mean),
        method: Method::Simulated,
        gap_bits: gathering.gap,
        bits,
        seen: gathering.rate.sum as u64,
        event_rate: gathering.rate.interval(effort.confidence).scaled(per_bit),
        bit_error_rate: gathering.wrong.interval(effort.confidence).scaled(per_bit),
        status: match ended {
            Ended::Done => Status::Reached,
            Ended::Exhausted => Status::OutOfBits,
            Ended::Interrupted => Status::Interrupted,
        },
    })
}

/// Events as they come along.
struct Gathering {
    gap: u64,
    open: Vec<u64>,
    events: Vec<Vec<u32>>,
    rate: Bursts,
    wrong: Bursts,
    /// Bits that all events span.
    spans: f64,
}

impl Gathering {
    fn new(gap: u64) -> Gathering {
        let (rate, wrong) = (Bursts::expecting(1.0), Bursts::expecting(1.0));
        Gathering { gap, open: Vec::new(), events: Vec::new(), rate, wrong, spans: 0.0 }
    }

    fn wrong_bit(&mut self, at: u64) {
        if self.open.last().is_some_and(|last| at - last > self.gap) {
            self.close();
        }
        self.open.push(at);
    }

    fn close(&mut self) {
        let Some(&first) = self.open.first() else { return };
        let event: Vec<u32> = self.open.drain(..).map(|at| (at - first) as u32).collect();
        self.rate.add(1.0);
        self.wrong.add(event.len() as f64);
        self.spans += f64::from(event[event.len() - 1]) + 1.0;
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}
