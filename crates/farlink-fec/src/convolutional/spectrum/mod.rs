//! Distance spectra: the number of error events of each weight, and the events themselves.

use super::trellis::PuncturedTrellis;
use super::{Code, Puncturing, PuncturingError};

/// The beginning of a code's distance spectrum.
///
/// An error event leaves the correct path and later joins it again. Its distance is the number of sent bits in which the two
/// differ. Events are counted over the positions in a period where one can begin, as in the literature on punctured codes (D.
/// Haccoun and G. Bégin, "High-rate punctured convolutional codes for Viterbi and sequential decoding", IEEE Trans. Commun. 37,
/// 1989); without puncturing the period is 1.
///
/// An event ends where the paths join. The literature treats a punctured code as one of rate k/n and lets an event end only with
/// a period, so that two successive events can count as a third: from twice the free distance on, its counts are larger, by 1 in
/// 10,000 at rate 2/3. The bounds do not need such events.
///
/// ```
/// use farlink_fec::convolutional::{Code, Puncturing, Spectrum};
///
/// let spectrum = Spectrum::new(&Code::from_octal("7,5")?, &Puncturing::none(2), 3)?;
/// assert_eq!(spectrum.free_distance(), 5);
/// assert_eq!(spectrum.terms().iter().map(|term| (term.events, term.data_bits)).collect::<Vec<_>>(), [(1, 1), (2, 4), (4, 12)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spectrum {
    period: usize,
    sent_per_period: usize,
    terms: Vec<Term>,
}

/// The error events of one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// d: the distance of these events.
    pub distance: usize,
    /// a_d: number of events per period.
    pub events: u64,
    /// c_d: number of wrong data bits in all of them.
    pub data_bits: u64,
}

/// The number of paths of one weight from the correct path to each node, and the wrong data bits of all of them.
#[derive(Clone)]
struct Paths {
    count: Vec<u64>,
    data_bits: Vec<u64>,
}

impl Spectrum {
    /// The terms from the free distance on, `terms` of them (at least one), of which some may be 0. There are fewer if a count
    /// exceeds 2^64; for K = 7 at rate 1/2 this happens after about 70 terms.
    ///
    /// The paths of weight w to each state follow from those of smaller weight, according to the transfer function (Viterbi
    /// 1971). The effort is proportional to the number of states and the distance: K = 15 takes milliseconds.
    ///
    /// # Errors
    /// If the pattern does not fit the code or makes it catastrophic ([`Puncturing::check`]).
    pub fn new(code: &Code, puncturing: &Puncturing, terms: usize) -> Result<Spectrum, PuncturingError> {
        let trellis = PuncturedTrellis::new(code, puncturing)?;
        let none = Paths { count: vec![0; trellis.nodes()], data_bits: vec![0; trellis.nodes()] };
        // The weights w, w - 1, ... w - n, each at its weight modulo n + 1.
        let mut layers = vec![none; code.outputs() + 1];
        let mut made =
            Spectrum { period: puncturing.period(), sent_per_period: puncturing.sent_per_period(), terms: Vec::new() };
        for weight in 0.. {
            let Some(term) = extend(&trellis, &mut layers, weight) else { break };
            if term.events > 0 || !made.terms.is_empty() {
                made.terms.push(term);
            }
            if made.terms.len() >= terms.max(1) {
                break;
            }
        }
        Ok(made)
    }

    /// The least distance of two coded sequences, d_free.
    pub fn free_distance(&self) -> usize {
        self.terms[0].distance
    }

    /// Number of errors among the sent bits that a maximum-likelihood decoder always corrects.
    pub fn errors_mended(&self) -> usize {
        (self.free_distance() - 1) / 2
    }

    /// The terms, in ascending order of distance without gaps.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Data bits of a period, to which a_d and c_d refer.
    pub fn period(&self) -> usize {
        self.period
    }

    /// Data bits per sent bit.
    pub fn rate(&self) -> f64 {
        self.period as f64 / self.sent_per_period as f64
    }
}

/// Counts the paths of the next weight; `None` if there are too many to count.
fn extend(trellis: &PuncturedTrellis, layers: &mut [Paths], weight: usize) -> Option<Term> {
    let kept = layers.len();
    for node in trellis.order() {
        let bit = u64::from(trellis.bit(node));
        let (mut count, mut data_bits) = (0u64, 0u64);
        for (from, step) in trellis.steps_to(node) {
            if trellis.state(from) == 0 {
                // An event begins here.
                count += u64::from(step == weight);
                data_bits += u64::from(step == weight);
            } else if step <= weight {
                let paths = &layers[(weight - step) % kept];
                count = count.checked_add(paths.count[from])?;
                data_bits = data_bits.checked_add(paths.data_bits[from])?.checked_add(bit * paths.count[from])?;
            }
        }
        let paths = &mut layers[weight % kept];
        (paths.count[node], paths.data_bits[node]) = (count, data_bits);
    }
    let mut term = Term { distance: weight, events: 0, data_bits: 0 };
    for phase in 0..trellis.period() {
        let joins = trellis.steps_to(trellis.origin(phase));
        for (from, step) in joins.into_iter().filter(|&(from, step)| trellis.state(from) != 0 && step <= weight) {
            let paths = &layers[(weight - step) % kept];
            term.events = term.events.checked_add(paths.count[from])?;
            term.data_bits = term.data_bits.checked_add(paths.data_bits[from])?;
        }
    }
    Some(term)
}

/// An error event: the difference between a path that leaves the correct path and later joins it, and the correct path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorEvent {
    /// Step of the puncturing period in which it leaves the correct path.
    pub phase: usize,
    /// Number of steps until it has joined.
    pub steps: usize,
    /// Wrong data bits, as steps after the first one, which is itself wrong.
    pub data_bits: Vec<u32>,
    /// Wrong bits among those sent, as positions among the coded bits of the steps before puncturing.
    pub coded_bits: Vec<u32>,
}

impl ErrorEvent {
    /// Its distance: the number of sent bits that differ.
    pub fn weight(&self) -> usize {
        self.coded_bits.len()
    }
}

/// All error events up to a weight, for every step of the period in which they can begin, in ascending order of weight and then
/// of phase.
///
/// [`Spectrum`] gives their number beforehand: it doubles or triples with each further bit of weight.
///
/// # Errors
/// If the pattern does not fit the code or makes it catastrophic ([`Puncturing::check`]).
pub fn events_up_to(code: &Code, puncturing: &Puncturing, weight: usize) -> Result<Vec<ErrorEvent>, PuncturingError> {
    let trellis = PuncturedTrellis::new(code, puncturing)?;
    let to_join = weights_to_join(&trellis);
    let outputs = code.outputs();
    let mut events = Vec::new();
    for phase in 0..trellis.period() {
        // Paths that are still open: their data bits so far and the remaining weight. Each branches to 1 and 0.
        let mut open = vec![(vec![true], trellis.step(trellis.origin(phase), true), weight)];
        while let Some((path, (node, step), left)) = open.pop() {
            if step + to_join[node] > left {
                continue;
            }
            let left = left - step;
            if trellis.state(node) == 0 {
                events.push(event(code, puncturing, phase, &path, outputs));
                continue;
            }
            for bit in [true, false] {
                let mut path = path.clone();
                path.push(bit);
                open.push((path, trellis.step(node, bit), left));
            }
        }
    }
    events.sort_by_key(ErrorEvent::weight);
    Ok(events)
}

fn event(code: &Code, puncturing: &Puncturing, phase: usize, path: &[bool], outputs: usize) -> ErrorEvent {
    let mut state = 0;
    let mut coded_bits = Vec::new();
    for (step, &bit) in path.iter().enumerate() {
        let window = u32::from(bit) << (code.constraint_length() - 1) | state;
        let sent = code.output(window) & u32::from(puncturing.sent_at(phase + step));
        coded_bits.extend((0..outputs).filter(|j| sent >> j & 1 == 1).map(|j| (step * outputs + j) as u32));
        state = window >> 1;
    }
    let data_bits = path.iter().enumerate().filter(|(_, bit)| **bit).map(|(step, _)| step as u32).collect();
    ErrorEvent { phase, steps: path.len(), data_bits, coded_bits }
}

/// The least weight with which each node can still join state 0 (0 for state 0 itself): Dijkstra's algorithm backwards from
/// there, with the nodes in buckets of equal weight.
fn weights_to_join(trellis: &PuncturedTrellis) -> Vec<usize> {
    let mut weights = vec![usize::MAX; trellis.nodes()];
    let mut buckets = vec![(0..trellis.period()).map(|phase| trellis.origin(phase)).collect::<Vec<_>>()];
    buckets[0].iter().for_each(|&node| weights[node] = 0);
    let mut weight = 0;
    while weight < buckets.len() {
        while let Some(node) = buckets[weight].pop() {
            if weights[node] < weight {
                continue;
            }
            for (from, step) in trellis.steps_to(node) {
                let through = weight + step;
                if through < weights[from] {
                    weights[from] = through;
                    buckets.resize(buckets.len().max(through + 1), Vec::new());
                    buckets[through].push(from);
                }
            }
        }
        weight += 1;
    }
    weights
}

#[cfg(test)]
mod tests;
