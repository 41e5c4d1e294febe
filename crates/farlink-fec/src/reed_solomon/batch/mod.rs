//! Decodes and encodes many words at once, one in each lane of the SIMD registers.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod correct;
#[cfg(target_arch = "x86_64")]
mod decode;
#[cfg(target_arch = "x86_64")]
mod encode;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod syndromes;

use super::Code;
use crate::simd::Simd;

#[cfg(target_arch = "x86_64")]
use self::{avx2::Avx2, avx512::Avx512, decode::Decoder, encode::Encoder};

/// The result for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The word is now a code word.
    Decoded {
        /// Number of corrected symbols.
        corrected: usize,
    },
    /// The decoder gave up and left the word unchanged.
    TooManyErrors,
}

/// A decoder of many words at once, for errors only; words with erasures need [`Code::decode`].
///
/// Each word has the same result as with that function. Words without errors are finished once their syndromes are known; the
/// others wait until they fill a register.
#[derive(Clone)]
pub struct BatchDecoder {
    code: Code,
    engine: DecoderEngine,
}

#[derive(Clone)]
enum DecoderEngine {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Box<Decoder<Avx2>>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Box<Decoder<Avx512>>),
}

impl BatchDecoder {
    /// A decoder for a code with instructions of a level.
    ///
    /// # Panics
    /// If this machine lacks the level.
    pub fn new(code: &Code, simd: Simd) -> BatchDecoder {
        assert!(simd <= Simd::best(), "this machine has no {simd:?}");
        // SAFETY: the machine has the level.
        let engine = match simd {
            Simd::Portable => DecoderEngine::Portable,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => DecoderEngine::Avx2(Box::new(unsafe { Decoder::new(code) })),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Gfni => DecoderEngine::Avx512(Box::new(unsafe { Decoder::new(code) })),
            #[cfg(not(target_arch = "x86_64"))]
            _ => DecoderEngine::Portable,
        };
        BatchDecoder { code: code.clone(), engine }
    }

    /// Corrects words in place, n bytes each, one after the other, and stores the result of each.
    ///
    /// # Panics
    /// If there is not one outcome per word.
    pub fn decode(&mut self, words: &mut [u8], outcomes: &mut [Outcome]) {
        assert_eq!(words.len(), outcomes.len() * self.code.n(), "bytes of {} words", outcomes.len());
        match &mut self.engine {
            DecoderEngine::Portable => {
                for (word, outcome) in words.chunks_exact_mut(self.code.n()).zip(outcomes) {
                    *outcome = match self.code.decode(word, &[]) {
                        Ok(corrected) => Outcome::Decoded { corrected: corrected.errors },
                        Err(_) => Outcome::TooManyErrors,
                    };
                }
            }
            // SAFETY: the machine had the level when the decoder was made; there is an outcome for each word.
            #[cfg(target_arch = "x86_64")]
            DecoderEngine::Avx2(decoder) => unsafe { decode_avx2(decoder, words, outcomes) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            DecoderEngine::Avx512(decoder) => unsafe { decode_avx512(decoder, words, outcomes) },
        }
    }
}

/// An encoder of many words at once.
#[derive(Clone)]
pub struct BatchEncoder {
    code: Code,
    engine: EncoderEngine,
}

#[derive(Clone)]
enum EncoderEngine {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Box<Encoder<Avx2>>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Box<Encoder<Avx512>>),
}

impl BatchEncoder {
    /// An encoder for a code with instructions of a level.
    ///
    /// # Panics
    /// If this machine lacks the level.
    pub fn new(code: &Code, simd: Simd) -> BatchEncoder {
        assert!(simd <= Simd::best(), "this machine has no {simd:?}");
        // SAFETY: the machine has the level.
        let engine = match simd {
            Simd::Portable => EncoderEngine::Portable,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => EncoderEngine::Avx2(Box::new(unsafe { Encoder::new(code) })),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Gfni => EncoderEngine::Avx512(Box::new(unsafe { Encoder::new(code) })),
            #[cfg(not(target_arch = "x86_64"))]
            _ => EncoderEngine::Portable,
        };
        BatchEncoder { code: code.clone(), engine }
    }

    /// Writes the parity of words of n bytes, one after the other, each of which begins with its k bytes of data.
    ///
    /// # Panics
    /// If the words are not whole.
    pub fn encode(&mut self, words: &mut [u8]) {
        let (n, k) = (self.code.n(), self.code.k());
        assert!(words.len().is_multiple_of(n), "{} bytes are not words of {n}", words.len());
        match &mut self.engine {
            EncoderEngine::Portable => {
                for word in words.chunks_exact_mut(n) {
                    let (data, parity) = word.split_at_mut(k);
                    self.code.encode(data, parity);
                }
            }
            // SAFETY: the machine had the level when the encoder was made; the words are whole.
            #[cfg(target_arch = "x86_64")]
            EncoderEngine::Avx2(encoder) => unsafe { encode_avx2(encoder, words) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            EncoderEngine::Avx512(encoder) => unsafe { encode_avx512(encoder, words) },
        }
    }
}

impl std::fmt::Debug for BatchDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchDecoder").field("code", &self.code).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for BatchEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchEncoder").field("code", &self.code).finish_non_exhaustive()
    }
}

/// # Safety
/// The machine has AVX2; there is an outcome for each word.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn decode_avx2(decoder: &mut Decoder<Avx2>, words: &mut [u8], outcomes: &mut [Outcome]) {
    // SAFETY: the caller's.
    unsafe { decoder.decode(words, outcomes) }
}

/// # Safety
/// The machine has the AVX-512 level; there is an outcome for each word.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni,bmi1,bmi2")]
unsafe fn decode_avx512(decoder: &mut Decoder<Avx512>, words: &mut [u8], outcomes: &mut [Outcome]) {
    // SAFETY: the caller's.
    unsafe { decoder.decode(words, outcomes) }
}

/// # Safety
/// The machine has AVX2; the words are whole.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn encode_avx2(encoder: &mut Encoder<Avx2>, words: &mut [u8]) {
    // SAFETY: the caller's.
    unsafe { encoder.encode(words) }
}

/// # Safety
/// The machine has the AVX-512 level; the words are whole.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni,bmi1,bmi2")]
unsafe fn encode_avx512(encoder: &mut Encoder<Avx512>, words: &mut [u8]) {
    // SAFETY: the caller's.
    unsafe { encoder.encode(words) }
}
