//! The decoder of a convolutional code that a simulation uses, for many windows at once.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Soft;
use crate::convolutional::parallel::{self, FrameDecoder};
use crate::convolutional::{Ending, Viterbi};
use crate::modulation::Decision;
use crate::simd::Simd;

use super::{Convolutional, DecoderKind, GoesOn};

impl Convolutional {
    /// Whether each bit is decided after exactly the steps of trace-back; the fast decoder looks further back.
    pub(crate) fn is_decided_at_traceback(&self) -> bool {
        self.decoder == DecoderKind::Serial
    }
}

/// Decodes windows of equal length, whose encoder begins in state 0.
#[derive(Clone)]
pub(crate) struct Decoder {
    kind: Kind,
    symbols: usize,
    bytes: usize,
}

#[derive(Clone)]
enum Kind {
    Serial(Viterbi),
    /// A decoder to copy, and unused copies, which are kept because their memory is large.
    Parallel(Box<FrameDecoder>, Arc<Mutex<Vec<FrameDecoder>>>),
}

impl Decoder {
    /// A decoder for windows of `steps` steps, a multiple of 8. `deviation` is that of a soft symbol's noise, in units of its
    /// amplitude.
    pub(crate) fn new(coding: &Convolutional, decision: Decision, deviation: f64, steps: usize) -> Decoder {
        // Full scale of soft symbols is at 1 + 2 deviations; the coarser costs of this decoder need it at 1 + 1.5.
        let full = 127.0 * (1.0 + 1.5 * deviation) / (1.0 + 2.0 * deviation);
        let symbols_are = match decision {
            Decision::Hard => parallel::Decision::Hard,
            Decision::Soft => parallel::Decision::SoftUpTo(full as u8),
        };
        let kind = match coding.decoder {
            DecoderKind::Parallel => {
                let fast = FrameDecoder::new(&coding.code, Ending::Truncated, steps, symbols_are, Simd::best());
                Kind::Parallel(Box::new(fast.with_traceback(coding.traceback())), Arc::default())
            }
            DecoderKind::Serial => Kind::Serial(Viterbi::new(&coding.code, coding.traceback())),
        };
        Decoder { kind, symbols: steps * coding.code.outputs(), bytes: steps / 8 }
    }

    /// Decodes consecutive windows to packed data. After a request to stop, which the serial decoder checks before each window,
    /// the data of the remaining windows is zero.
    pub(crate) fn decode(&self, symbols: &[Soft], goes_on: GoesOn<'_>) -> Vec<u8> {
        let mut data = vec![0; symbols.len() / self.symbols * self.bytes];
        match &self.kind {
            Kind::Parallel(decoder, unused) => {
                let unused = || unused.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = unused().pop();
                let mut own = kept.unwrap_or_else(|| (**decoder).clone());
                own.decode(symbols, &mut data).expect("whole windows, and room for their data");
                unused().push(own);
            }
            Kind::Serial(viterbi) => {
                let mut viterbi = viterbi.clone();
                for (window, data) in symbols.chunks_exact(self.symbols).zip(data.chunks_exact_mut(self.bytes)) {
                    if !goes_on() {
                        break;
                    }
                    viterbi.decode(window, Ending::Truncated, data).expect("whole steps, and room for their data");
                }
            }
        }
        data
    }
}
