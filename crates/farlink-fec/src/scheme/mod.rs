//! A code, a modulation and decisions: the whole chain from data bits to decoded bits.

mod convolutional;
mod decoder;
mod framed;
mod link;
mod played;
mod uncoded;

use std::fmt;

use crate::awgn;
use crate::convolutional::{Code, Puncturing, PuncturingError};
use crate::events::ErrorEvents;
use crate::modulation::{Decision, Modulation};
use crate::reed_solomon;

pub(crate) use decoder::Decoder;
pub(crate) use link::{GoesOn, Link, Outcome};

/// How data are protected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coding {
    /// No code.
    Uncoded,
    /// A convolutional code, one continuous stream.
    Convolutional(Convolutional),
    /// A Reed-Solomon code over hard decisions, its words interleaved by symbols.
    ReedSolomon(ReedSolomon),
    /// A Reed-Solomon code over a convolutional one.
    Concatenated {
        /// The code next to the data.
        outer: ReedSolomon,
        /// The code next to the channel.
        inner: Convolutional,
    },
    /// A packet erasure code: groups of data and parity blocks, each with a CRC-32.
    ///
    /// A block with a wrong bit is lost (a CRC-32 misses one in 2^32 of these, which is not counted). The data blocks of a
    /// group that lost no more blocks than it has parity blocks are rebuilt; those of any other stay as they were received.
    Erasure {
        /// k: data blocks of a group.
        data_blocks: usize,
        /// m: parity blocks of a group.
        parity_blocks: usize,
        /// Bytes of a block, without the 4 of its CRC-32.
        block_bytes: usize,
        /// The coding of the blocks on the channel: none, or a convolutional code.
        over: Box<Coding>,
    },
}

/// A convolutional code and how it is decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolutional {
    /// The mother code.
    pub code: Code,
    /// Which of its bits are sent; `None` is all.
    pub puncturing: Option<Puncturing>,
    /// Traceback length in steps; `None` is 5 K. Punctured codes have fewer errors with more.
    pub traceback: Option<usize>,
    /// Which decoder is simulated.
    pub decoder: DecoderKind,
}

/// A Reed-Solomon code and how deep its words are interleaved.
#[derive(Clone, Debug)]
pub struct ReedSolomon {
    /// The code.
    pub code: reed_solomon::Code,
    /// Words of a frame: symbol s of word i is byte s x depth + i, the data before the parity. Between 1 and 255.
    pub depth: usize,
}

impl PartialEq for ReedSolomon {
    fn eq(&self, other: &ReedSolomon) -> bool {
        let parts = |code: &ReedSolomon| (code.code.n(), code.code.k(), code.code.parameters(), code.depth);
        parts(self) == parts(other)
    }
}

impl Eq for ReedSolomon {}

impl std::hash::Hash for ReedSolomon {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.code.n(), self.code.k(), self.depth).hash(state);
    }
}

/// Decoders of convolutional codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DecoderKind {
    /// The fast one ([`FrameDecoder`](crate::convolutional::parallel::FrameDecoder)): it decides after the steps of trace-back
    /// or more, and rounds soft symbols to 15 to 31 levels.
    #[default]
    Parallel,
    /// The reference ([`Viterbi`](crate::convolutional::Viterbi)): it decides after exactly the steps of trace-back.
    Serial,
}

/// A code, a modulation and decisions, checked to fit each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    coding: Coding,
    modulation: Modulation,
    decision: Decision,
}

/// Why parts cannot be combined to a scheme.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// A traceback length of 0.
    #[error("trace-back of 0 steps; at least 1, usually 5 K = {usual}")]
    Traceback {
        /// 5 K.
        usual: usize,
    },
    /// A puncturing pattern that does not fit the code.
    #[error(transparent)]
    Puncturing(#[from] PuncturingError),
    /// An interleaving depth out of range.
    #[error("interleaving depth {0}; between 1 and 255 words")]
    Depth(usize),
    /// A number of blocks for which there is no code.
    #[error("{data} data and {parity} parity blocks in a group; at least one of each, and no more than 256 together")]
    Blocks {
        /// Data blocks.
        data: usize,
        /// Parity blocks.
        parity: usize,
    },
    /// A block length of 0, or longer than a batch.
    #[error("blocks of {0} bytes; between 1 and {BLOCK_BYTES_MAX}")]
    BlockBytes(usize),
    /// An inner code that cannot carry the outer one.
    #[error("{outer} over {inner}; it goes over no code or a convolutional one")]
    Over {
        /// The outer code.
        outer: &'static str,
        /// The inner code.
        inner: String,
    },
}

/// Longest block of an erasure code, in bytes.
const BLOCK_BYTES_MAX: usize = 1 << 16;
/// Bytes of a CRC-32.
const CRC_BYTES: usize = 4;

impl Convolutional {
    /// A code with all its bits sent, a trace-back of 5 K and the fast decoder.
    pub fn new(code: Code) -> Convolutional {
        Convolutional { code, puncturing: None, traceback: None, decoder: DecoderKind::Parallel }
    }

    /// The same with fewer bits sent.
    pub fn punctured(self, puncturing: Puncturing) -> Convolutional {
        Convolutional { puncturing: Some(puncturing), ..self }
    }

    /// Steps after which the decoder decides.
    pub fn traceback(&self) -> usize {
        self.traceback.unwrap_or(5 * self.code.constraint_length() as usize)
    }

    /// Data bits for each coded bit.
    pub fn rate(&self) -> f64 {
        self.pattern().rate()
    }

    /// Which bits are sent, all of them without puncturing.
    pub fn pattern(&self) -> Puncturing {
        self.puncturing.clone().unwrap_or_else(|| Puncturing::none(self.code.outputs()))
    }
}

impl Scheme {
    /// A scheme from its parts. Soft decisions need a convolutional code, because the other decoders cannot use them.
    ///
    /// # Errors
    /// If a part is out of range or does not fit the others.
    pub fn new(coding: Coding, modulation: Modulation, decision: Decision) -> Result<Scheme, SchemeError> {
        coding.check()?;
        Ok(Scheme { coding, modulation, decision })
    }

    /// How data are protected.
    pub fn coding(&self) -> &Coding {
        &self.coding
    }

    /// The modulation.
    pub fn modulation(&self) -> Modulation {
        self.modulation
    }

    /// What the demodulator hands over.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Data bits for each coded bit, at most 1.
    pub fn rate(&self) -> f64 {
        self.coding.rate()
    }

    /// Es/N0 in dB at an Eb/N0 in dB.
    pub fn es_n0_db(&self, eb_n0_db: f64) -> f64 {
        awgn::es_n0_db(eb_n0_db, self.rate(), self.modulation.bits_per_symbol())
    }

    /// Number of correct bits that end an error event, such that the next event is independent of it: 5 K for a convolutional
    /// code, a frame for a block code, and the bits of a symbol without a code (0 if each bit has independent noise).
    pub fn event_gap_bits(&self) -> u64 {
        match &self.coding {
            Coding::Uncoded if self.modulation.is_antipodal() => 0,
            Coding::Uncoded => u64::from(self.modulation.bits_per_symbol()),
            Coding::Convolutional(inner) => 5 * u64::from(inner.code.constraint_length()),
            coding => coding.frame_data_bits().unwrap_or(0),
        }
    }

    /// Share of wrong bits among those sent, by hard decisions, at an Eb/N0 in dB.
    pub fn channel_bit_error_rate(&self, eb_n0_db: f64) -> f64 {
        let bits_per_symbol = f64::from(self.modulation.bits_per_symbol());
        self.modulation.bit_error_rate(awgn::ratio(self.es_n0_db(eb_n0_db)) / bits_per_symbol)
    }

    /// Deviation of the noise of a coded bit, in units of its amplitude (of BPSK and QPSK), at an Es/N0 in dB.
    pub(crate) fn deviation(&self, es_n0_db: f64) -> f64 {
        deviation(self.modulation, es_n0_db)
    }

    /// The running simulation at an Eb/N0 in dB.
    pub(crate) fn link(&self, eb_n0_db: f64) -> Box<dyn Link> {
        self.link_over(&self.coding, self.es_n0_db(eb_n0_db), 1)
    }

    /// A part of the coding at an Es/N0 in dB, in batches of a multiple of `frame_bits`.
    fn link_over(&self, coding: &Coding, es_n0_db: f64, frame_bits: u64) -> Box<dyn Link> {
        match coding {
            Coding::Uncoded => Box::new(uncoded::Uncoded::new(self.modulation, es_n0_db, frame_bits)),
            Coding::Convolutional(inner) => {
                Box::new(convolutional::Stream::new(inner, self.modulation, self.decision, es_n0_db, frame_bits))
            }
            block_code => {
                let (frames, inner) = block_code.frames().expect("all others are block codes");
                let inner = self.link_over(&inner, es_n0_db, frames.sent_bits());
                Box::new(framed::Framed::new(frames, inner))
            }
        }
    }

    /// A block code that decodes the error events of its inner link; `None` if the coding is not a block code.
    pub(crate) fn link_played(&self, events: ErrorEvents) -> Option<Box<dyn Link>> {
        let (frames, _) = self.coding.frames()?;
        let inner = Box::new(played::Played::new(events, frames.sent_bits()));
        Some(Box::new(framed::Framed::new(frames, inner)))
    }

    /// The inner scheme that carries the frames of a block code; `None` if the coding is not a block code.
    pub(crate) fn inner(&self) -> Option<Scheme> {
        let (_, coding) = self.coding.frames()?;
        Some(Scheme { coding, modulation: self.modulation, decision: self.decision })
    }
}

fn deviation(modulation: Modulation, es_n0_db: f64) -> f64 {
    (0.5 * f64::from(modulation.bits_per_symbol()) / awgn::ratio(es_n0_db)).sqrt()
}

impl Coding {
    fn rate(&self) -> f64 {
        match self {
            Coding::Uncoded => 1.0,
            Coding::Convolutional(inner) => inner.rate(),
            Coding::ReedSolomon(outer) => outer.rate(),
            Coding::Concatenated { outer, inner } => outer.rate() * inner.rate(),
            Coding::Erasure { data_blocks, parity_blocks, block_bytes, over } => {
                let blocks = *data_blocks as f64 / (data_blocks + parity_blocks) as f64;
                over.rate() * blocks * *block_bytes as f64 / (block_bytes + CRC_BYTES) as f64
            }
        }
    }

    /// The frames of a block code and the coding that carries them.
    fn frames(&self) -> Option<(Box<dyn framed::Frames>, Coding)> {
        match self {
            Coding::Uncoded | Coding::Convolutional(_) => None,
            Coding::ReedSolomon(outer) => Some((Box::new(outer.clone()), Coding::Uncoded)),
            Coding::Concatenated { outer, inner } => {
                Some((Box::new(outer.clone()), Coding::Convolutional(inner.clone())))
            }
            Coding::Erasure { data_blocks, parity_blocks, block_bytes, over } => {
                let group = framed::Group {
                    data_blocks: *data_blocks as u64,
                    parity_blocks: *parity_blocks as u64,
                    block_bits: 8 * *block_bytes as u64,
                    check_bits: 8 * CRC_BYTES as u64,
                };
                Some((Box::new(group), (**over).clone()))
            }
        }
    }

    /// Data bits of a frame; `None` if there are no frames.
    pub fn frame_data_bits(&self) -> Option<u64> {
        self.frames().map(|(frames, _)| frames.data_bits())
    }

    fn check(&self) -> Result<(), SchemeError> {
        match self {
            Coding::Uncoded => Ok(()),
            Coding::Convolutional(inner) => inner.check(),
            Coding::ReedSolomon(outer) => outer.check(),
            Coding::Concatenated { outer, inner } => {
                outer.check()?;
                inner.check()
            }
            &Coding::Erasure { data_blocks: data, parity_blocks: parity, block_bytes, ref over } => {
                if data == 0 || parity == 0 || data.saturating_add(parity) > 256 {
                    return Err(SchemeError::Blocks { data, parity });
                }
                if block_bytes == 0 || block_bytes > BLOCK_BYTES_MAX {
                    return Err(SchemeError::BlockBytes(block_bytes));
                }
                if !matches!(**over, Coding::Uncoded | Coding::Convolutional(_)) {
                    return Err(SchemeError::Over { outer: "an erasure code", inner: over.to_string() });
                }
                over.check()
            }
        }
    }
}

impl ReedSolomon {
    fn rate(&self) -> f64 {
        self.code.k() as f64 / self.code.n() as f64
    }

    fn check(&self) -> Result<(), SchemeError> {
        if (1..=255).contains(&self.depth) { Ok(()) } else { Err(SchemeError::Depth(self.depth)) }
    }
}

impl Convolutional {
    fn check(&self) -> Result<(), SchemeError> {
        if self.traceback == Some(0) {
            return Err(SchemeError::Traceback { usual: 5 * self.code.constraint_length() as usize });
        }
        if let Some(puncturing) = &self.puncturing {
            puncturing.check(&self.code)?;
        }
        Ok(())
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coding::Uncoded => f.write_str("uncoded"),
            Coding::Convolutional(inner) => inner.fmt(f),
            Coding::ReedSolomon(outer) => outer.fmt(f),
            Coding::Concatenated { outer, inner } => write!(f, "{outer} over {inner}"),
            Coding::Erasure { data_blocks, parity_blocks, block_bytes, over } => {
                write!(f, "erasure {data_blocks}+{parity_blocks} blocks of {block_bytes} bytes over {over}")
            }
        }
    }
}

impl fmt::Display for ReedSolomon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reed-Solomon ({},{})", self.code.n(), self.code.k())?;
        if self.depth > 1 { write!(f, " depth {}", self.depth) } else { Ok(()) }
    }
}

impl fmt::Display for Convolutional {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "convolutional K={} ", self.code.constraint_length())?;
        for (at, generator) in self.code.generators().iter().enumerate() {
            write!(f, "{}{generator:o}", if at == 0 { "" } else { "," })?;
        }
        match &self.puncturing {
            Some(pattern) => write!(f, " rate {}/{} ({pattern})", pattern.period(), pattern.sent_per_period())?,
            None => write!(f, " rate 1/{}", self.code.outputs())?,
        }
        match self.traceback {
            Some(steps) => write!(f, " trace-back {steps}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.coding, self.modulation, self.decision)
    }
}
