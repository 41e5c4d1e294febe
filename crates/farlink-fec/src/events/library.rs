//! Error events of a scheme, gathered to be played back.

use crate::awgn::Noise;
use crate::convolutional::{PuncturingError, Spectrum, bounds};
use crate::modulation::Decision;
use crate::monte_carlo::{Bursts, Effort, EffortError, Estimate, Status, Watch, run};
use crate::scheme::{Coding, Convolutional, Link, ReedSolomon, Scheme};

use super::importance::{Importance, Sampled};
use super::{ErrorEvents, conditional};

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
    /// Convolutional codes: by noise that is biased towards likely events, each event with the weight that corrects for it.
    ImportanceSampled,
    /// Uncoded BPSK and QPSK: from the closed form.
    Exact,
    /// Block codes over another: by playing the error events of that one, with gaps that are geometric.
    Played,
    /// Reed-Solomon codes over independent wrong bits: words with more wrong symbols than are mended, times their exact
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
    /// Only block codes have something that carries them.
    #[error("error events are played into block codes; {0} is none")]
    NoFrames(String),
    /// Errors are too rare for every method that there is.
    #[error(
        "no error event in {bits} bits of {scheme} at {eb_n0_db} dB, so fewer than {:.1e} for each bit (95 %); simulate more \
         bits or lower Eb/N0", 3.0 / *bits as f64
    )]
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
/// Events that importance sampling keeps, drawn by their weights.
const RESAMPLED: usize = 1 << 14;
/// Samples of a batch.
const SAMPLES: u64 = 512;
/// Events that a library should have, if neither a number of them nor an interval was asked for.
const EVENTS_WANTED: f64 = 400.0;
/// Event rate, for each bit, below which importance sampling is quicker than plain simulation: it decodes 3,000 to 12,000
/// steps for an event's worth (K = 7), each at ten times the cost.
const RATE_SIMULATED: f64 = 1e-5;
/// Event rate above which it is of no use: events meet, and no few of them make up most.
const RATE_BIASED: f64 = 1e-4;

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
    match scheme.coding() {
        Coding::Uncoded if scheme.modulation().is_antipodal() => exact(scheme, eb_n0_db, effort),
        Coding::Convolutional(coding) if is_rare(scheme, coding, eb_n0_db, effort)? => {
            importance_sampled(scheme, eb_n0_db, effort, watch)
        }
        Coding::Uncoded | Coding::Convolutional(_) => simulated(scheme, eb_n0_db, effort, watch),
        Coding::ReedSolomon(outer) if scheme.modulation().is_antipodal() => {
            match conditional(scheme, outer, eb_n0_db, effort, watch) {
                Some(found) => Ok(found),
                None => simulated(scheme, eb_n0_db, effort, watch),
            }
        }
        _ => {
            // Plain simulation, unless it takes more than its share.
            let share = Effort { bits_max: effort.bits_max / SIMULATED_SHARE + 1, ..effort.clone() };
            match simulated(scheme, eb_n0_db, &share, watch) {
                Ok(found) if found.status == Status::OutOfBits => played(scheme, eb_n0_db, effort, watch).or(Ok(found)),
                Err(LibraryError::TooRare { .. }) => played(scheme, eb_n0_db, effort, watch),
                done => done,
            }
        }
    }
}

/// Of the bits of an effort, the part that is simulated before error events are played instead.
const SIMULATED_SHARE: u64 = 8;
/// Bits that cost as much to simulate as one event to play.
const BITS_PER_EVENT: f64 = 100.0;

/// Whether importance sampling costs less than plain simulation, or that would not see the events that are asked for. By the
/// union bound, which is below the true rate only by what quantisation and finite trace-back add.
fn is_rare(scheme: &Scheme, coding: &Convolutional, eb_n0_db: f64, effort: &Effort) -> Result<bool, LibraryError> {
    if !scheme.modulation().is_antipodal() {
        return Ok(false);
    }
    let spectrum = Spectrum::new(&coding.code, &coding.pattern(), 12)?;
    let rate = match scheme.decision() {
        Decision::Soft => bounds::event_rate_soft(&spectrum, eb_n0_db),
        Decision::Hard => bounds::event_rate_hard(&spectrum, scheme.channel_bit_error_rate(eb_n0_db)),
    };
    let by_events = effort.events.map_or(f64::INFINITY, |wanted| wanted as f64);
    let by_width = effort.relative_half_width.map_or(f64::INFINITY, |wanted| (2.0 / wanted).powi(2));
    let wanted = Some(by_events.min(by_width)).filter(|wanted| wanted.is_finite()).unwrap_or(EVENTS_WANTED);
    Ok(rate < RATE_SIMULATED || rate < RATE_BIASED && rate * (effort.bits_max as f64) < 2.0 * wanted)
}

/// The closed form: every wrong bit is an event of its own.
fn exact(scheme: &Scheme, eb_n0_db: f64, effort: &Effort) -> Result<Library, LibraryError> {
    let p = scheme.channel_bit_error_rate(eb_n0_db);
    if p < 1e-300 {
        return Err(LibraryError::TooRare { scheme: scheme.to_string(), eb_n0_db, bits: effort.bits_max });
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
    found.map_err(|bits| LibraryError::TooRare { scheme: scheme.to_string(), eb_n0_db, bits })
}

/// By playing the error events of what carries a block code. [`Effort::bits_max`] counts for what that takes, and as many bits
/// are played as are worth it; the intervals do not hold what is not known of the inner events.
///
/// # Errors
/// As [`library`], and if the coding is no block code.
pub fn played(scheme: &Scheme, eb_n0_db: f64, effort: &Effort, watch: Watch<'_>) -> Result<Library, LibraryError> {
    effort.check(eb_n0_db)?;
    let Some(inner) = scheme.inner() else { return Err(LibraryError::NoFrames(scheme.coding().to_string())) };
    let inner_eb_n0_db = eb_n0_db + crate::awgn::db(scheme.rate() / inner.rate());
    let inner = library(&inner, inner_eb_n0_db, effort, watch)?;
    let worth = (1.0 / (inner.event_rate.value * BITS_PER_EVENT)).max(1.0);
    let bits_max = (effort.bits_max as f64 * worth).min(2f64.powi(60)) as u64;
    let link = scheme.link_played(inner.events).expect("a coding with an inner one is a block code");
    let found = gather(&*link, scheme.event_gap_bits(), &Effort { bits_max, ..effort.clone() }, Method::Played, watch);
    found.map_err(|bits| LibraryError::TooRare { scheme: scheme.to_string(), eb_n0_db, bits })
}

/// The events of a running link, or the bits in which there was none.
fn gather(link: &dyn Link, gap: u64, effort: &Effort, method: Method, watch: Watch<'_>) -> Result<Library, u64> {
    let batch_bits = link.batch_bits();
    let mut gathering = Gathering::new(gap);
    let mut bits = 0;
    let batches = effort.bits_max.div_ceil(batch_bits);
    let ended = run(
        batches,
        |batch| link.run(effort.seed, batch),
        |outcome, batch| {
            outcome.wrong.iter().for_each(|&at| gathering.wrong_bit(batch * batch_bits + u64::from(at)));
            bits = (batch + 1) * batch_bits;
            effort.ask(gathering.rate.sum, &gathering.wrong, bits, watch)
        },
    );
    gathering.close();
    if gathering.rate.sum == 0.0 {
        return Err(bits);
    }
    let per_bit = 1.0 / bits as f64;
    let gap_mean = (bits as f64 - gathering.spans) / gathering.rate.sum;
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
fn conditional(
    scheme: &Scheme,
    outer: &ReedSolomon,
    eb_n0_db: f64,
    effort: &Effort,
    watch: Watch<'_>,
) -> Option<Library> {
    const MEETING: f64 = 3e-3;
    let words = conditional::Words::new(&outer.code, scheme.channel_bit_error_rate(eb_n0_db));
    let tail = words.probability();
    if tail * outer.depth as f64 > MEETING || tail < 1e-300 {
        return None;
    }
    let (mut rate, mut wrong) = (Bursts::expecting(1.0), Bursts::expecting(1.0));
    let mut events: Vec<Vec<u32>> = Vec::new();
    let mut words_done = 0;
    let word_bits = 8 * outer.code.k() as u64;
    let ended = run(
        effort.bits_max.div_ceil(SAMPLES * word_bits),
        |batch| {
            let mut noise = Noise::stream(effort.seed, batch);
            (0..SAMPLES).map(|_| words.sample(&mut noise)).collect::<Vec<Vec<u32>>>()
        },
        |sampled, batch| {
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
        return None;
    }
    let per_bit = tail / (words_done * word_bits) as f64;
    let event_rate = rate.interval(effort.confidence).scaled(per_bit);
    let spans: f64 = events.iter().map(|event| f64::from(event[event.len() - 1]) + 1.0).sum();
    let gap_mean = 1.0 / event_rate.value - spans / events.len() as f64;
    Some(Library {
        events: ErrorEvents::new(events.iter().map(Vec::as_slice), 0.0, gap_mean),
        method: Method::Conditional,
        gap_bits: scheme.event_gap_bits(),
        bits: words_done * word_bits,
        seen: rate.sum as u64,
        event_rate,
        bit_error_rate: wrong.interval(effort.confidence).scaled(per_bit),
        status: ended.into(),
    })
}

/// By importance sampling, for a convolutional code with BPSK or QPSK; right at all error rates, but of use only where errors
/// are rare.
///
/// [`Effort::bits_max`] bounds the trellis steps decoded. The intervals take the weights for those of independent events,
/// which is conservative; they do not know of kinds of events that no sample has met.
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
    let importance = Importance::new(scheme, coding, eb_n0_db)?;
    let batch_bits = SAMPLES * importance.steps() as u64;
    let (mut rate, mut wrong) = (Bursts::default(), Bursts::default());
    let mut found: Vec<Sampled> = Vec::new();
    let mut batches_done = 0;
    let sample = |batch| {
        let mut noise = Noise::stream(effort.seed, batch);
        importance.samples(SAMPLES, &mut noise)
    };
    let ended = run(effort.bits_max.div_ceil(batch_bits), sample, |sampled, batch| {
        for one in &sampled {
            rate.add(one.weight);
            wrong.add(one.weight * one.event.len() as f64);
        }
        found.extend(sampled);
        batches_done = batch + 1;
        // Events of equal weight that would be known as well.
        let effective = if rate.sum > 0.0 { rate.sum * rate.sum / rate.sum_of_squares } else { 0.0 };
        effort.ask(effective, &wrong, batches_done * batch_bits, watch)
    });
    let bits = batches_done * batch_bits;
    if found.is_empty() {
        return Err(LibraryError::TooRare { scheme: scheme.to_string(), eb_n0_db, bits });
    }
    let per_sample = 1.0 / (batches_done * SAMPLES) as f64;
    let event_rate = rate.interval(effort.confidence).scaled(per_sample).at_most(1.0);
    let span = |one: &Sampled| one.weight * (f64::from(one.event[one.event.len() - 1]) + 1.0);
    let mean_span = found.iter().map(span).sum::<f64>() / rate.sum;
    let gap_mean = (1.0 / event_rate.value - mean_span).max(0.0);
    let gap_bits = scheme.event_gap_bits();
    Ok(Library {
        events: ErrorEvents::new(resample(&found, rate.sum), (gap_bits as f64).min(gap_mean), gap_mean),
        method: Method::ImportanceSampled,
        gap_bits,
        bits,
        seen: found.len() as u64,
        event_rate,
        bit_error_rate: wrong.interval(effort.confidence).scaled(per_sample).at_most(1.0),
        status: ended.into(),
    })
}

/// Events as often as their weights say, at equal steps of the sum of all weights.
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

#[cfg(test)]
mod tests;
