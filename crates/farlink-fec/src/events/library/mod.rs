//! Collection of the error events of a scheme, for replay.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::awgn::Noise;
use crate::convolutional::{PuncturingError, Spectrum, bounds};
use crate::modulation::Decision;
use crate::monte_carlo::{Bursts, Effort, EffortError, Ended, Estimate, Status, Watch, run};
use crate::scheme::{Coding, Convolutional, GoesOn, Link, ReedSolomon, Scheme};

use super::importance::{Importance, Sampled};
use super::{ErrorEvents, conditional};

/// Error events of a scheme, and how they were found.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// The events, for replay.
    pub events: ErrorEvents,
    /// How they were found.
    pub method: Method,
    /// Number of correct bits that end an event.
    pub gap_bits: u64,
    /// Data bits simulated.
    pub bits: u64,
    /// Events seen; the library may hold fewer of them.
    pub seen: u64,
    /// Events for each data bit.
    pub event_rate: Estimate,
    /// Share of wrong bits.
    pub bit_error_rate: Estimate,
    /// How the run ended; `Reached` also if so many bits are wrong that more of them would not be kept.
    pub status: Status,
}

/// How error events were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// By plain simulation.
    Simulated,
    /// Convolutional codes: by noise that is biased towards likely events, each event with the weight that corrects for it.
    ImportanceSampled,
    /// Uncoded BPSK and QPSK: from the closed form.
    Exact,
    /// Block codes over another code: by replaying the error events of the inner code, with geometric gaps.
    Played,
    /// Reed-Solomon codes over independent wrong bits: words with more wrong symbols than the code corrects, with their exact
    /// probability.
    Conditional,
}

impl Method {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Method::Simulated => "simulated",
            Method::ImportanceSampled => "importance-sampled",
            Method::Exact => "exact",
            Method::Played => "played",
            Method::Conditional => "conditional",
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
    /// The code has no list of likely events.
    #[error(transparent)]
    Puncturing(#[from] PuncturingError),
    /// Importance sampling needs a channel per bit.
    #[error("{0} has no channel per bit; importance sampling of error events needs BPSK or QPSK")]
    Modulation(crate::modulation::Modulation),
    /// Only convolutional codes have error events to bias noise towards.
    #[error("importance sampling of error events needs a convolutional code alone, not {0}")]
    Coding(String),
    /// Only block codes have an inner link.
    #[error("error events are played into block codes; {0} is none")]
    NoFrames(String),
    /// No error was seen.
    #[error(
        "no error event in {bits:.3e} bits of {scheme} at {eb_n0_db} dB, so fewer than {:.1e} for each bit (95 %)",
        3.0 / *bits as f64
    )]
    TooRare {
        /// The scheme in words.
        scheme: String,
        /// Eb/N0 in dB.
        eb_n0_db: f64,
        /// Bits simulated; not fewer than were asked for.
        bits: u64,
    },
    /// No error can be expected: nothing was simulated, or the error rate is too small for a floating-point number.
    #[error("errors of {scheme} at {eb_n0_db} dB are rarer than 1e-300 for each bit")]
    Never {
        /// The scheme in words.
        scheme: String,
        /// Eb/N0 in dB.
        eb_n0_db: f64,
    },
    /// The run was stopped before the first error event.
    #[error("stopped before an error event was seen")]
    Interrupted,
}

/// Largest number of events in a library.
const EVENTS_MAX: usize = 1 << 16;
/// Number of wrong bits after which the collection ends: by then the error rate is known, and a single event might never end.
const WRONG_BITS_MAX: f64 = 2e7;
/// Bits that an event spans at most; the next wrong bit begins another.
const SPAN_MAX: u64 = 1_000_000;
/// Rates below this count as 0, because smaller likelihoods do not fit a floating-point number.
const RATE_MIN: f64 = 1e-300;
/// Events that importance sampling keeps, drawn by their weights.
const RESAMPLED: usize = 1 << 14;
/// Samples of a batch.
const SAMPLES: u64 = 512;
/// Default number of events in a library, if neither a number nor an interval is requested.
const EVENTS_WANTED: f64 = 400.0;
/// Event rate, for each bit, below which importance sampling is quicker than plain simulation: it decodes 3,000 to 12,000
/// steps for an event's worth (K = 7), each at ten times the cost.
const RATE_SIMULATED: f64 = 1e-5;
/// Event rate above which importance sampling is of no use, because events overlap and no small number of events dominates.
const RATE_BIASED: f64 = 1e-4;

/// Error events of a scheme at an Eb/N0 in dB, by plain simulation or, where errors are too rare for that, by the method that
/// suits the scheme; [`Library::method`] says which.
///
/// The effort counts as in [`error_rate`](crate::monte_carlo::error_rate). `watch` is called with the bits done and the bits to
/// do, or with shares of the whole if one method follows another; it returns `false` to stop the run.
///
/// # Errors
/// If a number is out of range, no event was seen or is to be expected, or it was stopped before the first.
pub fn library(scheme: &Scheme, eb_n0_db: f64, effort: &Effort, watch: Watch<'_>) -> Result<Library, LibraryError> {
    effort.check(eb_n0_db)?;
    match scheme.coding() {
        Coding::Uncoded if scheme.modulation().is_antipodal() => exact(scheme, eb_n0_db),
        Coding::Convolutional(coding) if is_rare(scheme, coding, eb_n0_db, effort)? => {
            importance_sampled(scheme, eb_n0_db, effort, watch)
        }
        Coding::Uncoded | Coding::Convolutional(_) => simulated(scheme, eb_n0_db, effort, watch),
        Coding::ReedSolomon(outer) if scheme.modulation().is_antipodal() => {
            match conditional(scheme, outer, eb_n0_db, effort, watch)? {
                Some(found) => Ok(found),
                None => simulated(scheme, eb_n0_db, effort, watch),
            }
        }
        _ => {
            // Try plain simulation first, with a share of the effort.
            let share = Effort { bits_max: effort.bits_max / SIMULATED_SHARE + 1, ..effort.clone() };
            let told = AtomicU64::new(0);
            let play = || played(scheme, eb_n0_db, effort, &part(watch, &told, 0.1..1.0));
            match simulated(scheme, eb_n0_db, &share, &part(watch, &told, 0.0..0.1)) {
                // Replay is not faster than simulation if errors are frequent.
                Ok(found) if found.status == Status::OutOfBits && found.bit_error_rate.value < BER_PLAYED => {
                    match play() {
                        Err(LibraryError::TooRare { .. }) => Ok(found),
                        done => done,
                    }
                }
                Err(LibraryError::TooRare { .. }) => play(),
                done => done,
            }
        }
    }
}

/// A watch for a part of the work, which reports shares of the whole that never decrease.
fn part<'a>(watch: Watch<'a>, told: &'a AtomicU64, of: Range<f64>) -> impl Fn(u64, u64) -> bool + Sync + 'a {
    const WHOLE: u64 = 1_000_000;
    move |done, total| {
        let share = of.start + (of.end - of.start) * (done as f64 / total.max(1) as f64).min(1.0);
        let now = (share * WHOLE as f64) as u64;
        watch(told.fetch_max(now, Ordering::Relaxed).max(now), WHOLE)
    }
}

/// The fraction 1 / `SIMULATED_SHARE` of an effort's bits is simulated before error events are replayed instead.
const SIMULATED_SHARE: u64 = 8;
/// Bit error rate from which on replay does not take the place of simulation.
const BER_PLAYED: f64 = 1e-2;
/// Number of simulated bits that cost as much as replaying one wrong bit.
const BITS_PER_WRONG_BIT: f64 = 100.0;
/// Largest number of replayed bits per simulated bit, because even a batch of 2^31 bits without errors has a cost.
const PLAYED_PER_SIMULATED_MAX: f64 = 1e6;

/// Whether importance sampling costs less than plain simulation, or plain simulation would not find the requested events. By the
/// union bound, which is below the true rate only by what quantisation and finite trace-back add.
fn is_rare(scheme: &Scheme, coding: &Convolutional, eb_n0_db: f64, effort: &Effort) -> Result<bool, LibraryError> {
    if !scheme.modulation().is_antipodal() {
        return Ok(false);
    }
    let rate = union_bound(scheme, coding, eb_n0_db)?;
    let by_events = effort.events.map_or(f64::INFINITY, |wanted| wanted as f64);
    let by_width = effort.relative_half_width.map_or(f64::INFINITY, |wanted| (2.0 / wanted).powi(2));
    let wanted = Some(by_events.min(by_width)).filter(|wanted| wanted.is_finite()).unwrap_or(EVENTS_WANTED);
    Ok(rate < RATE_SIMULATED || rate < RATE_BIASED && rate * (effort.bits_max as f64) < 2.0 * wanted)
}

/// Error events for each bit, at most, but for what quantisation and finite trace-back add.
fn union_bound(scheme: &Scheme, coding: &Convolutional, eb_n0_db: f64) -> Result<f64, PuncturingError> {
    let spectrum = Spectrum::new(&coding.code, &coding.pattern(), 12)?;
    Ok(match scheme.decision() {
        Decision::Soft => bounds::event_rate_soft(&spectrum, eb_n0_db),
        Decision::Hard => bounds::event_rate_hard(&spectrum, scheme.channel_bit_error_rate(eb_n0_db)),
    })
}

/// The closed form: every wrong bit is an event of its own.
fn exact(scheme: &Scheme, eb_n0_db: f64) -> Result<Library, LibraryError> {
    let p = scheme.channel_bit_error_rate(eb_n0_db);
    if p < RATE_MIN {
        return Err(LibraryError::Never { scheme: scheme.to_string(), eb_n0_db });
    }
    let estimate = Estimate { value: p, low: p, high: p };
    Ok(Library {
        events: ErrorEvents::new([&[0][..]], 0.0, (1.0 - p) / p),
        method: Method::Exact,
        gap_bits: 0,
        bits: 0,
        seen: 0,
        event_rate: estimate,
        bit_error_rate: estimate,
        status: Status::Reached,
    })
}

/// By plain simulation, whatever the scheme.
///
/// # Errors
/// As [`library`].
pub fn simulated(scheme: &Scheme, eb_n0_db: f64, effort: &Effort, watch: Watch<'_>) -> Result<Library, LibraryError> {
    effort.check(eb_n0_db)?;
    let found = gather(&*scheme.link(eb_n0_db), scheme.event_gap_bits(), effort, Method::Simulated, watch);
    found.map_err(|none| none.of(scheme, eb_n0_db))
}

/// By replaying the error events of the inner link of a block code. [`Effort::bits_max`] limits the simulation of the inner link,
/// and as many bits are replayed as cost about the same. The intervals do not include the uncertainty of the inner events.
///
/// # Errors
/// As [`library`], and if the coding is no block code.
pub fn played(scheme: &Scheme, eb_n0_db: f64, effort: &Effort, watch: Watch<'_>) -> Result<Library, LibraryError> {
    effort.check(eb_n0_db)?;
    let Some(inner) = scheme.inner() else { return Err(LibraryError::NoFrames(scheme.coding().to_string())) };
    let inner_eb_n0_db = eb_n0_db + crate::awgn::db(scheme.rate() / inner.rate());
    // If the inner code makes no error, the outer one makes none either, in as many data bits as were requested.
    let bits_max = ((effort.bits_max as f64 * inner.rate() / scheme.rate()).ceil() as u64).clamp(1, 1 << 62);
    let inner_effort = Effort { bits_max, ..effort.clone() };
    let told = AtomicU64::new(0);
    let inner = match library(&inner, inner_eb_n0_db, &inner_effort, &part(watch, &told, 0.0..1.0 / 3.0)) {
        Err(LibraryError::TooRare { .. }) => return Err(Nothing::In(effort.bits_max).of(scheme, eb_n0_db)),
        Err(LibraryError::Never { .. }) => return Err(LibraryError::Never { scheme: scheme.to_string(), eb_n0_db }),
        Ok(found) if found.status == Status::Interrupted => return Err(LibraryError::Interrupted),
        found => found?,
    };
    let played_per_simulated =
        (1.0 / (inner.bit_error_rate.value * BITS_PER_WRONG_BIT)).clamp(1.0, PLAYED_PER_SIMULATED_MAX);
    let bits_max = (effort.bits_max as f64 * played_per_simulated).min(2f64.powi(60)) as u64;
    let (effort, rest) = (Effort { bits_max, ..effort.clone() }, part(watch, &told, 1.0 / 3.0..1.0));
    let link = scheme.link_played(inner.events).expect("a coding with an inner one is a block code");
    let found = gather(&*link, scheme.event_gap_bits(), &effort, Method::Played, &rest);
    found.map_err(|none| none.of(scheme, eb_n0_db))
}

/// No event was seen.
enum Nothing {
    /// In so many bits.
    In(u64),
    /// Before it was stopped.
    Interrupted,
}

impl Nothing {
    fn of(self, scheme: &Scheme, eb_n0_db: f64) -> LibraryError {
        match self {
            Nothing::In(bits) => LibraryError::TooRare { scheme: scheme.to_string(), eb_n0_db, bits },
            Nothing::Interrupted => LibraryError::Interrupted,
        }
    }
}

/// Collects the events of a running link, until there are enough, or more wrong bits than a library holds.
fn gather(link: &dyn Link, gap: u64, effort: &Effort, method: Method, watch: Watch<'_>) -> Result<Library, Nothing> {
    let batch_bits = link.batch_bits();
    let mut gathering = Gathering::new(gap);
    let mut bits = 0;
    let ended = run(
        effort.bits_max,
        batch_bits,
        watch,
        |batch, goes_on| link.run_while(effort.seed, batch, goes_on),
        |outcome, batch, watch| {
            outcome.wrong.iter().for_each(|&at| gathering.wrong_bit(batch * batch_bits + u64::from(at)));
            bits = (batch + 1) * batch_bits;
            let (is_enough, goes_on) = effort.ask(gathering.rate.sum, &gathering.wrong, bits, watch);
            (is_enough || gathering.wrong.sum > WRONG_BITS_MAX, goes_on)
        },
    );
    gathering.close();
    if gathering.rate.sum == 0.0 {
        return Err(if ended == Ended::Interrupted { Nothing::Interrupted } else { Nothing::In(bits) });
    }
    let per_bit = 1.0 / bits as f64;
    // If one event spans the whole run, one bit counts as correct, because a gap of length 0 cannot be replayed.
    let gap_mean = (bits as f64 - gathering.spans).max(1.0) / gathering.rate.sum;
    let gap_min = (gathering.gap as f64).min(gap_mean);
    Ok(Library {
        events: ErrorEvents::new(gathering.events.iter().map(Vec::as_slice), gap_min, gap_mean),
        method,
        gap_bits: gathering.gap,
        bits,
        seen: gathering.rate.sum as u64,
        event_rate: gathering.rate.interval(effort.confidence).scaled(per_bit),
        bit_error_rate: gathering.wrong.interval(effort.confidence).scaled(per_bit),
        status: ended.into(),
    })
}

/// Words of a Reed-Solomon code with too many wrong symbols, where bits are wrong independently; `None` if such words are so
/// frequent that two often meet in a frame.
///
/// # Errors
/// If it was stopped before the first event, or no event can be expected.
fn conditional(
    scheme: &Scheme,
    outer: &ReedSolomon,
    eb_n0_db: f64,
    effort: &Effort,
    watch: Watch<'_>,
) -> Result<Option<Library>, LibraryError> {
    const MEETING: f64 = 3e-3;
    let words = conditional::Words::new(&outer.code, scheme.channel_bit_error_rate(eb_n0_db));
    let tail = words.probability();
    if tail < RATE_MIN {
        return Err(LibraryError::Never { scheme: scheme.to_string(), eb_n0_db });
    }
    if tail * outer.depth as f64 > MEETING {
        return Ok(None);
    }
    let (mut rate, mut wrong) = (Bursts::expecting(1.0), Bursts::expecting(1.0));
    let mut events: Vec<Vec<u32>> = Vec::new();
    let mut words_done = 0;
    let word_bits = 8 * outer.code.k() as u64;
    let ended = run(
        effort.bits_max,
        SAMPLES * word_bits,
        watch,
        |batch, _| {
            let mut noise = Noise::stream(effort.seed, batch);
            (0..SAMPLES).map(|_| words.sample(&mut noise)).collect::<Vec<Vec<u32>>>()
        },
        |sampled, batch, watch| {
            words_done = (batch + 1) * SAMPLES;
            // Wrong bits of a word are `depth` bytes apart in a frame. Without any, only parity was wrong.
            for word in sampled.into_iter().filter(|word| !word.is_empty()) {
                rate.add(1.0);
                wrong.add(word.len() as f64);
                let place = |at: u32| at / 8 * 8 * outer.depth as u32 + at % 8;
                if events.len() < RESAMPLED {
                    events.push(word.iter().map(|&at| place(at) - place(word[0])).collect());
                }
            }
            effort.ask(rate.sum, &wrong, words_done * word_bits, watch)
        },
    );
    if events.is_empty() {
        return if ended == Ended::Interrupted { Err(LibraryError::Interrupted) } else { Ok(None) };
    }
    let per_bit = tail / (words_done * word_bits) as f64;
    let event_rate = rate.interval(effort.confidence).scaled(per_bit);
    let spans: f64 = events.iter().map(|event| f64::from(event[event.len() - 1]) + 1.0).sum();
    let gap_mean = 1.0 / event_rate.value - spans / events.len() as f64;
    Ok(Some(Library {
        events: ErrorEvents::new(events.iter().map(Vec::as_slice), 0.0, gap_mean),
        method: Method::Conditional,
        gap_bits: scheme.event_gap_bits(),
        bits: words_done * word_bits,
        seen: rate.sum as u64,
        event_rate,
        bit_error_rate: wrong.interval(effort.confidence).scaled(per_bit),
        status: ended.into(),
    }))
}

/// By importance sampling, for a convolutional code with BPSK or QPSK; correct at all error rates, but useful only where errors
/// are rare.
///
/// [`Effort::bits_max`] bounds the trellis steps decoded. The intervals treat the weights as those of independent events, which
/// is conservative; they cannot include kinds of events that no sample has had.
///
/// # Errors
/// As [`library`], and if the code or the modulation is another.
pub fn importance_sampled(
    scheme: &Scheme,
    eb_n0_db: f64,
    effort: &Effort,
    watch: Watch<'_>,
) -> Result<Library, LibraryError> {
    effort.check(eb_n0_db)?;
    let Coding::Convolutional(coding) = scheme.coding() else {
        return Err(LibraryError::Coding(scheme.coding().to_string()));
    };
    if !scheme.modulation().is_antipodal() {
        return Err(LibraryError::Modulation(scheme.modulation()));
    }
    let never = || LibraryError::Never { scheme: scheme.to_string(), eb_n0_db };
    if union_bound(scheme, coding, eb_n0_db)? < RATE_MIN {
        return Err(never());
    }
    let importance = Importance::new(scheme, coding, eb_n0_db)?;
    let batch_bits = SAMPLES * importance.steps() as u64;
    let (mut rate, mut wrong) = (Bursts::default(), Bursts::default());
    let mut found: Vec<Sampled> = Vec::new();
    let mut batches_done = 0;
    let sample = |batch, goes_on: GoesOn<'_>| {
        let mut noise = Noise::stream(effort.seed, batch);
        importance.samples(SAMPLES, &mut noise, goes_on)
    };
    let ended = run(effort.bits_max, batch_bits, watch, sample, |sampled, batch, watch| {
        for one in &sampled {
            rate.add(one.weight);
            wrong.add(one.weight * one.event.len() as f64);
        }
        found.extend(sampled);
        batches_done = batch + 1;
        // Number of events of equal weight that would give the same precision.
        let effective = if rate.sum > 0.0 { rate.sum * rate.sum / rate.sum_of_squares } else { 0.0 };
        effort.ask(effective, &wrong, batches_done * batch_bits, watch)
    });
    let bits = batches_done * batch_bits;
    if found.is_empty() {
        let nothing = if ended == Ended::Interrupted { Nothing::Interrupted } else { Nothing::In(bits) };
        return Err(nothing.of(scheme, eb_n0_db));
    }
    let per_sample = 1.0 / (batches_done * SAMPLES) as f64;
    // Weights fall below all numbers before the bound does: their likelihood ratios are products over many bits.
    if !(rate.sum.is_finite() && rate.sum * per_sample > RATE_MIN) {
        return Err(never());
    }
    let event_rate = rate.interval(effort.confidence).scaled(per_sample).at_most(1.0);
    let span = |one: &Sampled| one.weight * (f64::from(one.event[one.event.len() - 1]) + 1.0);
    let mean_span = found.iter().map(span).sum::<f64>() / rate.sum;
    let gap_bits = scheme.event_gap_bits();
    // Two events are at least this many correct bits apart, whatever the estimate.
    let gap_mean = (1.0 / event_rate.value - mean_span).max(gap_bits as f64);
    Ok(Library {
        events: ErrorEvents::new(resample(&found, rate.sum), gap_bits as f64, gap_mean),
        method: Method::ImportanceSampled,
        gap_bits,
        bits,
        seen: found.len() as u64,
        event_rate,
        bit_error_rate: wrong.interval(effort.confidence).scaled(per_sample).at_most(1.0),
        status: ended.into(),
    })
}

/// Draws events in proportion to their weights, at equal steps of the sum of all weights.
fn resample(found: &[Sampled], total: f64) -> impl Iterator<Item = &[u32]> {
    let (mut at, mut until) = (0, found[0].weight);
    (0..RESAMPLED).map(move |step| {
        let place = (step as f64 + 0.5) / RESAMPLED as f64 * total;
        while until < place && at + 1 < found.len() {
            at += 1;
            until += found[at].weight;
        }
        found[at].event.as_slice()
    })
}

/// Events during collection.
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
        let belongs = |first: u64, last: u64| at - last <= self.gap && at - first < SPAN_MAX;
        if self.open.first().is_some_and(|&first| !belongs(first, self.open[self.open.len() - 1])) {
            self.close();
        }
        self.open.push(at);
    }

    fn close(&mut self) {
        let Some(&first) = self.open.first() else { return };
        // No place exceeds `SPAN_MAX`.
        let event: Vec<u32> = self.open.drain(..).map(|at| (at - first) as u32).collect();
        self.rate.add(1.0);
        self.wrong.add(event.len() as f64);
        self.spans += f64::from(event[event.len() - 1]) + 1.0;
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}

#[cfg(test)]
mod tests;
