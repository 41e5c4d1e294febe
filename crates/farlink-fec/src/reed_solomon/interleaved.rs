//! Symbol interleaving: a burst is shared by several words.

use super::{BatchDecoder, BatchEncoder, Code, Outcome};
use crate::simd::Simd;

/// Why a block cannot be interleaved so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterleavingError {
    /// Not a depth.
    #[error("interleaving depth {0}: it must lie between 1 (none) and 255; CCSDS allows 1, 2, 3, 4, 5 and 8")]
    Depth(usize),
}

/// Blocks of `depth` words, sent by turns symbol by symbol (CCSDS 131.0-B, section 4.4.1).
///
/// Symbol s of word i is byte `s * depth + i` of a block. A burst of b bytes wounds each word in at most
/// b/depth places, rounded up.
#[derive(Clone, Debug)]
pub struct Interleaved {
    depth: usize,
    code: Code,
    encoder: BatchEncoder,
    decoder: BatchDecoder,
    /// A block's words, one after the other.
    words: Vec<u8>,
}

impl Interleaved {
    /// Blocks of `depth` words of a code.
    ///
    /// # Errors
    /// If the depth is 0 or above 255.
    pub fn new(code: &Code, depth: usize, simd: Simd) -> Result<Interleaved, InterleavingError> {
        if !(1..=255).contains(&depth) {
            return Err(InterleavingError::Depth(depth));
        }
        Ok(Interleaved {
            depth,
            code: code.clone(),
            encoder: BatchEncoder::new(code, simd),
            decoder: BatchDecoder::new(code, simd),
            words: vec![0; code.n() * depth],
        })
    }

    /// Bytes of user data in a block.
    pub fn data_bytes(&self) -> usize {
        self.code.k() * self.depth
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.words.len()
    }

    /// Fills in the parity behind the data of a block.
    ///
    /// # Panics
    /// If the block has another length.
    pub fn encode(&mut self, block: &mut [u8]) {
        self.gather(block);
        self.encoder.encode(&mut self.words);
        self.scatter(block);
    }

    /// Corrects a block in place and says for each of its words what became of it.
    ///
    /// # Panics
    /// If the block has another length or there is not one outcome per word.
    pub fn decode(&mut self, block: &mut [u8], outcomes: &mut [Outcome]) {
        self.gather(block);
        self.decoder.decode(&mut self.words, outcomes);
        self.scatter(block);
    }

    fn gather(&mut self, block: &[u8]) {
        assert_eq!(block.len(), self.words.len(), "bytes of a block of {} words", self.depth);
        for (word, symbols) in self.words.chunks_exact_mut(self.code.n()).enumerate() {
            for (symbol, &sent) in symbols.iter_mut().zip(block[word..].iter().step_by(self.depth)) {
                *symbol = sent;
            }
        }
    }

    fn scatter(&self, block: &mut [u8]) {
        for (word, symbols) in self.words.chunks_exact(self.code.n()).enumerate() {
            for (&symbol, sent) in symbols.iter().zip(block[word..].iter_mut().step_by(self.depth)) {
                *sent = symbol;
            }
        }
    }
}
