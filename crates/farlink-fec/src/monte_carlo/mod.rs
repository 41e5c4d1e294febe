//! Error rates by simulation: on all cores, reproducible by seed, with intervals that take bursts into account.

mod count;
mod interval;
mod run;

pub use interval::{Bursts, Estimate};
pub(crate) use run::{Ended, run};

use crate::scheme::{Coding, Scheme};

/// Called with the bits done and the bits to do; `false` stops the run.
pub type Watch<'a> = &'a (dyn Fn(u64, u64) -> bool + Sync);

/// The length of a simulation, and what it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Effort {
    /// Seed of every random number.
    pub seed: u64,
    /// Largest number of data bits, rounded up to whole batches.
    pub bits_max: u64,
    /// Number of error events after which the run ends.
    pub events: Option<u64>,
    /// The run ends when half the interval of the bit error rate is at most this share of it.
    pub relative_half_width: Option<f64>,
    /// Data bits of a packet. `None` is a frame of a block code, or 8,000 bits for other codes.
    pub packet_bits: Option<u64>,
    /// Confidence of all intervals.
    pub confidence: f64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            seed: 1,
            bits_max: 1 << 30,
            events: Some(400),
            relative_half_width: None,
            packet_bits: None,
            confidence: 0.95,
        }
    }
}

/// Why a simulation does not start.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EffortError {
    /// The signal-to-noise ratio is out of range.
    #[error("Eb/N0 of {0} dB; it lies between -30 and 60 dB")]
    EbN0(f64),
    /// The confidence is out of range.
    #[error("confidence {0}; it lies between 0 and 1, ends excluded")]
    Confidence(f64),
    /// The half-width is not positive.
    #[error("relative half-width {0}; it is greater than 0")]
    HalfWidth(f64),
    /// The packets are empty.
    #[error("packets of 0 bits; at least 1")]
    Packet,
    /// There are no bits, or more than positions can count.
    #[error("{0} bits to simulate; between 1 and 2^62")]
    Bits(u64),
    /// The number of events is 0.
    #[error("0 error events to see; at least 1, or none asked for")]
    Events,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The requested number of events, or the requested interval, was reached.
    Reached,
    /// All bits were simulated before that.
    OutOfBits,
    /// The run was stopped; what was finished is counted.
    Interrupted,
}

/// Error rates at a decoder's output.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRate {
    /// Data bits simulated.
    pub bits: u64,
    /// Number of wrong bits among them.
    pub wrong_bits: u64,
    /// Error events: groups of wrong bits with fewer than [`Scheme::event_gap_bits`] correct bits between them.
    pub events: u64,
    /// Number of frames that a decoder gave up.
    pub gave_up: u64,
    /// Number of packets simulated.
    pub packets: u64,
    /// Packets with a wrong bit.
    pub wrong_packets: u64,
    /// Data bits of a packet.
    pub packet_bits: u64,
    /// Share of wrong bits. All intervals treat error events, not bits, as independent; see [`Bursts::interval`].
    pub bit_error_rate: Estimate,
    /// Error events per data bit.
    pub event_rate: Estimate,
    /// Share of wrong packets.
    pub packet_error_rate: Estimate,
    /// How the run ended.
    pub status: Status,
}

/// Simulates a scheme until the error rates have the requested accuracy, or the bits are used up.
///
/// The result depends only on the scheme, Eb/N0 and the effort, not on the number of threads. If no event is seen, the upper end
/// of the bit error rate assumes events of K wrong bits (for a convolutional code), or events of one wrong bit in each symbol or
/// block, as many as a block code does not correct (for a block code).
///
/// # Errors
/// If a number is out of range.
pub fn error_rate(scheme: &Scheme, eb_n0_db: f64, effort: &Effort, watch: Watch<'_>) -> Result<ErrorRate, EffortError> {
    effort.check(eb_n0_db)?;
    let link = scheme.link(eb_n0_db);
    let packet_bits = effort.packet_bits.or(scheme.coding().frame_data_bits()).unwrap_or(8000);
    let mut count = count::Count::new(scheme.event_gap_bits(), packet_bits, typical_event(scheme));
    let batch_bits = link.batch_bits();
    let ended = run(
        effort.bits_max,
        batch_bits,
        watch,
        |batch, goes_on| link.run_while(effort.seed, batch, goes_on),
        |outcome, _, watch| {
            count.add(&outcome, batch_bits);
            effort.ask(count.events() as f64, &count.wrong, count.bits, watch)
        },
    );
    Ok(count.finish(effort.confidence, ended.into()))
}

fn typical_event(scheme: &Scheme) -> f64 {
    match scheme.coding() {
        Coding::Uncoded => 1.0,
        Coding::Convolutional(inner) => f64::from(inner.code.constraint_length()),
        Coding::ReedSolomon(outer) | Coding::Concatenated { outer, .. } => outer.code.t() as f64 + 1.0,
        Coding::Erasure { parity_blocks, .. } => *parity_blocks as f64 + 1.0,
    }
}

impl From<Ended> for Status {
    fn from(ended: Ended) -> Status {
        match ended {
            Ended::Done => Status::Reached,
            Ended::Exhausted => Status::OutOfBits,
            Ended::Interrupted => Status::Interrupted,
        }
    }
}

impl Effort {
    /// Whether the requested accuracy is reached after some bits, and whether the watch lets the run continue.
    pub(crate) fn ask(&self, events: f64, wrong: &Bursts, bits: u64, watch: Watch<'_>) -> (bool, bool) {
        let by_events = self.events.map_or(0.0, |wanted| events / wanted as f64);
        // The width is inversely proportional to the root of the number of bits.
        let by_width = self
            .relative_half_width
            .map_or(0.0, |wanted| (wanted / wrong.interval(self.confidence).relative_half_width()).powi(2));
        let share = by_events.max(by_width);
        if share >= 1.0 {
            return (true, watch(bits, bits));
        }
        let all = (bits as f64 / share.max(1e-12)) as u64;
        (false, watch(bits, all.min(self.bits_max.max(bits))))
    }

    pub(crate) fn check(&self, eb_n0_db: f64) -> Result<(), EffortError> {
        if !(-30.0..=60.0).contains(&eb_n0_db) {
            return Err(EffortError::EbN0(eb_n0_db));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(EffortError::Confidence(self.confidence));
        }
        if let Some(width) = self.relative_half_width.filter(|&width| width.is_nan() || width <= 0.0) {
            return Err(EffortError::HalfWidth(width));
        }
        if self.packet_bits == Some(0) {
            return Err(EffortError::Packet);
        }
        if self.bits_max == 0 || self.bits_max > 1 << 62 {
            return Err(EffortError::Bits(self.bits_max));
        }
        if self.events == Some(0) {
            return Err(EffortError::Events);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
