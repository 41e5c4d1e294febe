//! A code, a modulation and decisions: everything between data bits and data bits.

mod convolutional;
mod link;
mod uncoded;

use std::fmt;

use crate::awgn;
use crate::convolutional::Code;
use crate::modulation::{Decision, Modulation};

pub(crate) use link::{Link, Outcome};

/// How data are protected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coding {
    /// Not at all.
    Uncoded,
    /// A convolutional code, one continuous stream.
    Convolutional(Convolutional),
}

/// A convolutional code and how it is decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolutional {
    /// The mother code.
    pub code: Code,
    /// Steps after which the decoder decides; `None` is 5 K, and with puncturing as many more as there are fewer coded bits.
    pub traceback: Option<usize>,
}

/// A code, a modulation and decisions, checked to fit each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    coding: Coding,
    modulation: Modulation,
    decision: Decision,
}

/// Why parts make no scheme.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// A trace-back of nothing.
    #[error("trace-back of 0 steps; at least 1, usually 5 K = {usual}")]
    Traceback {
        /// 5 K.
        usual: usize,
    },
}

impl Convolutional {
    /// Steps after which the decoder decides.
    pub fn traceback(&self) -> usize {
        self.traceback.unwrap_or(5 * self.code.constraint_length() as usize)
    }

    /// Data bits for each coded bit.
    pub fn rate(&self) -> f64 {
        1.0 / self.code.outputs() as f64
    }
}

impl Scheme {
    /// A scheme from its parts. Without a convolutional code there is nothing that soft decisions could help.
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

    /// Right bits that end an error event, so many that the next event does not depend on the last: 5 K for a convolutional
    /// code, a frame for a block code, the bits of a symbol without a code (none if each bit has noise of its own).
    pub fn event_gap_bits(&self) -> u64 {
        match &self.coding {
            Coding::Uncoded if self.modulation.is_antipodal() => 0,
            Coding::Uncoded => u64::from(self.modulation.bits_per_symbol()),
            Coding::Convolutional(inner) => 5 * u64::from(inner.code.constraint_length()),
        }
    }

    /// The running simulation at an Eb/N0 in dB.
    pub(crate) fn link(&self, eb_n0_db: f64) -> Box<dyn Link> {
        let es_n0_db = self.es_n0_db(eb_n0_db);
        match &self.coding {
            Coding::Uncoded => Box::new(uncoded::Uncoded::new(self.modulation, es_n0_db)),
            Coding::Convolutional(inner) => {
                Box::new(convolutional::Stream::new(inner, self.modulation, self.decision, es_n0_db))
            }
        }
    }
}

impl Coding {
    fn rate(&self) -> f64 {
        match self {
            Coding::Uncoded => 1.0,
            Coding::Convolutional(inner) => inner.rate(),
        }
    }

    fn check(&self) -> Result<(), SchemeError> {
        match self {
            Coding::Uncoded => Ok(()),
            Coding::Convolutional(inner) => inner.check(),
        }
    }
}

impl Convolutional {
    fn check(&self) -> Result<(), SchemeError> {
        if self.traceback == Some(0) {
            return Err(SchemeError::Traceback { usual: 5 * self.code.constraint_length() as usize });
        }
        Ok(())
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coding::Uncoded => f.write_str("uncoded"),
            Coding::Convolutional(inner) => inner.fmt(f),
        }
    }
}

impl fmt::Display for Convolutional {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "convolutional K={} ", self.code.constraint_length())?;
        for (at, generator) in self.code.generators().iter().enumerate() {
            write!(f, "{}{generator:o}", if at == 0 { "" } else { "," })?;
        }
        write!(f, " rate 1/{}", self.code.outputs())?;
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
