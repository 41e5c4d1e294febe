//! Error events of a convolutional code that are too rare for plain simulation.
//!
//! J. S. Sadowsky, "A new method for Viterbi decoder simulation using importance sampling", IEEE Trans. Commun. 38(9), 1990: the
//! noise is biased so that one of the likely error events begins at a known step; the decoder's output counts, with the weight of
//! the likelihood ratio, if an event does begin there. With a short traceback, the serial decoder also chooses wrong paths that
//! have not merged with the right one when it decides; the noise is biased towards these as well. The fast decoder looks further
//! back and sees all of a sample at once.

mod unmerged;

use crate::awgn::{Antipodal, Channel, Noise, Sampler};
use crate::convolutional::{Encoder, Ending, Puncturing, PuncturingError, Spectrum, bounds, events_up_to};
use crate::modulation::Decision;
use crate::scheme::{Convolutional, Decoder, GoesOn, Scheme};
use crate::{Soft, bits};

use unmerged::{Search, unmerged_paths};

/// Most events that the noise is biased towards, and most paths that have not joined, over all phases of the pattern.
const EVENTS_MAX: u64 = 2000;
const UNMERGED_MAX: usize = 2000;
/// Share of samples whose noise is not biased at all: it bounds the weights.
const UNBIASED: f64 = 0.02;

/// Samples error events that begin at one step.
pub(super) struct Importance {
    encoder: Encoder,
    decoder: Decoder,
    outputs: usize,
    puncturing: Puncturing,
    channel: Channel,
    silent: Sampler,
    /// Likelihood of each received symbol -127..=127, towards what was sent, with biased noise over that with true noise.
    ratios: [f64; 255],
    /// For each phase, what the noise is biased towards.
    phases: Vec<Vec<Component>>,
    /// Steps before the one where an event is to begin, without the phase; a multiple of the period.
    lead: usize,
    /// Steps before it where the noise may be biased too, a multiple of the period; none if all paths have joined when a bit is
    /// decided.
    before: usize,
    /// Steps that a sample decodes.
    steps: usize,
    gap: usize,
}

/// An error event to bias the noise towards.
struct Component {
    /// Bits that differ among those sent, counted from the first sent of those where noise may be biased.
    places: Vec<u32>,
    share: f64,
    /// Shares of this and all before it.
    cumulated: f64,
}

/// The result of one sample.
pub(super) struct Sampled {
    /// Its likelihood ratio.
    pub(super) weight: f64,
    /// Wrong bits, counted from the first.
    pub(super) event: Vec<u32>,
}

impl Importance {
    /// For a convolutional code with BPSK or QPSK.
    ///
    /// # Errors
    /// If the puncturing pattern does not fit the code.
    pub(super) fn new(scheme: &Scheme, coding: &Convolutional, eb_n0_db: f64) -> Result<Importance, PuncturingError> {
        let puncturing = coding.puncturing.clone().unwrap_or_else(|| Puncturing::none(coding.code.outputs()));
        let spectrum = Spectrum::new(&coding.code, &puncturing, 12)?;
        let mut events = 0;
        let within = |term: &&crate::convolutional::Term| {
            events += term.events;
            events <= EVENTS_MAX
        };
        let weight =
            spectrum.terms().iter().take_while(within).last().map_or(spectrum.free_distance(), |term| term.distance);
        let es_n0_db = scheme.es_n0_db(eb_n0_db);
        let channel = Channel::new(scheme.modulation(), scheme.decision(), es_n0_db);
        let likelihood = |distance: usize| match scheme.decision() {
            Decision::Hard => bounds::pairwise_hard(distance, channel.bit_error_rate()),
            Decision::Soft => bounds::pairwise_soft(distance, spectrum.rate(), eb_n0_db),
        };
        let mut phases: Vec<Vec<Component>> = (0..puncturing.period()).map(|_| Vec::new()).collect();
        let mut longest = 0;
        let period = puncturing.period();
        let is_decided_at_traceback = coding.is_decided_at_traceback();
        let before = if is_decided_at_traceback { coding.traceback().next_multiple_of(period) } else { 0 };
        let mut bias = |phase: usize, places: Vec<u32>| {
            let share = likelihood(places.len());
            phases[phase].push(Component { places, share, cumulated: 0.0 });
        };
        for event in events_up_to(&coding.code, &puncturing, weight)? {
            longest = longest.max(event.steps);
            let sent: Vec<usize> = sent_places(&puncturing, event.phase, event.steps);
            let place =
                |coded: &u32| sent.binary_search(&(*coded as usize)).expect("an event differs in bits sent") as u32;
            // After the bits that are sent before the event begins.
            let sent_before = (0..before).map(|step| puncturing.sent_at(event.phase + step).count_ones()).sum::<u32>();
            bias(event.phase, event.coded_bits.iter().map(|coded| sent_before + place(coded)).collect());
        }
        let per_phase = UNMERGED_MAX.div_ceil(period);
        for phase in (0..period).filter(|_| is_decided_at_traceback) {
            let steps = before + coding.traceback() + 1;
            let search = Search { code: &coding.code, puncturing: &puncturing, phase, decided: before, steps };
            unmerged_paths(&search, per_phase).into_iter().for_each(|places| bias(phase, places));
        }
        for components in &mut phases {
            let total: f64 = components.iter().map(|component| component.share).sum();
            let mut cumulated = 0.0;
            for component in components {
                component.share *= (1.0 - UNBIASED) / total;
                cumulated += component.share;
                component.cumulated = cumulated;
            }
        }
        let bit = Antipodal::new(scheme.modulation(), scheme.decision(), es_n0_db);
        // A symbol that the true noise cannot produce (a probability of 0 after rounding) is never drawn.
        let ratios = std::array::from_fn(|at| if bit.sent[at] > 0.0 { bit.silent[at] / bit.sent[at] } else { 0.0 });
        let gap = scheme.event_gap_bits() as usize;
        let settle = 10 * coding.code.constraint_length() as usize + coding.traceback();
        let lead = (gap + before + settle).div_ceil(period) * period;
        let steps = (lead + period + longest + 2 * gap + settle).next_multiple_of(8);
        Ok(Importance {
            encoder: Encoder::new(&coding.code),
            decoder: Decoder::new(coding, scheme.decision(), scheme.deviation(es_n0_db), steps),
            outputs: coding.code.outputs(),
            channel,
            silent: Sampler::new(&bit.silent),
            ratios,
            phases,
            lead,
            before,
            steps,
            puncturing,
            gap,
        })
    }

    /// Trellis steps that a sample decodes.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Runs `count` samples, and returns those in which an error event began at the intended step.
    pub(super) fn samples(&self, count: u64, noise: &mut Noise, goes_on: GoesOn<'_>) -> Vec<Sampled> {
        let mut symbols = Vec::with_capacity(count as usize * self.steps * self.outputs);
        let sent: Vec<Sent> = (0..count).map(|_| self.send(noise, &mut symbols)).collect();
        let decoded = self.decoder.decode(&symbols, goes_on);
        sent.iter()
            .zip(decoded.chunks_exact(self.steps / 8))
            .filter_map(|(sent, data)| self.judge(sent, data))
            .collect()
    }

    /// Sends random data with noise biased towards an event, and appends what is received.
    fn send(&self, noise: &mut Noise, symbols: &mut Vec<Soft>) -> Sent {
        let phase = noise.below(self.phases.len() as u64) as usize;
        let mut data = vec![0; self.steps / 8];
        noise.fill(&mut data);
        let coded = self.puncturing.puncture(&self.encoder.encode(&data, self.steps, Ending::Truncated), self.steps);
        let sent_bits = self.puncturing.sent_bits(self.steps);
        let mut received = Vec::with_capacity(sent_bits);
        self.channel.carry(&coded, sent_bits, noise, &mut received);

        let first = self.puncturing.sent_bits(self.lead + phase - self.before);
        let u = noise.uniform();
        let components = &self.phases[phase];
        if let Some(component) = components.get(components.partition_point(|component| component.cumulated <= u)) {
            let mut drawn = vec![0; component.places.len()];
            self.silent.fill(noise, &mut drawn);
            for (place, drawn) in component.places.iter().zip(drawn) {
                received[first + *place as usize] = drawn;
            }
        }
        symbols.extend(self.puncturing.depuncture(&received, self.steps).expect("as many symbols as were sent"));
        // Towards what was sent: a wrong sign becomes negative.
        let towards = |(at, &symbol): (usize, &Soft)| if bits::get(&coded, at) { -symbol } else { symbol };
        let towards = received.iter().enumerate().map(towards).skip(first).collect();
        Sent { phase, data, towards }
    }

    /// The event that begins at the intended step, if there is one, and its weight.
    fn judge(&self, sent: &Sent, decoded: &[u8]) -> Option<Sampled> {
        let begin = self.lead + sent.phase;
        let wrong = bits::differences(&sent.data, decoded, self.steps);
        let mut wrong = wrong.skip_while(|at| at + self.gap < begin).peekable();
        // That bit must be wrong, and the correct bits before it must be enough to end an earlier event.
        wrong.next_if_eq(&begin)?;
        let mut event = vec![0];
        let mut last = begin;
        while let Some(at) = wrong.next_if(|at| at - last - 1 < self.gap) {
            event.push((at - begin) as u32);
            last = at;
        }
        let ratio = |place: u32| self.ratios[(127 + i32::from(sent.towards[place as usize])) as usize];
        let mixture: f64 = self.phases[sent.phase]
            .iter()
            .map(|component| component.share * component.places.iter().map(|&place| ratio(place)).product::<f64>())
            .sum();
        Some(Sampled { weight: 1.0 / (UNBIASED + mixture), event })
    }
}

/// The sent bits and received symbols of a sample.
struct Sent {
    phase: usize,
    data: Vec<u8>,
    /// What was received from the first bit on whose noise may be biased, positive for what was sent.
    towards: Vec<Soft>,
}

/// Places of the bits sent among all coded bits of `steps` steps, from a phase of the pattern on.
fn sent_places(puncturing: &Puncturing, phase: usize, steps: usize) -> Vec<usize> {
    let outputs = puncturing.outputs();
    let sent = |step: usize| (0..outputs).filter(move |j| puncturing.sent_at(phase + step) >> j & 1 == 1);
    (0..steps).flat_map(|step| sent(step).map(move |j| step * outputs + j)).collect()
}
