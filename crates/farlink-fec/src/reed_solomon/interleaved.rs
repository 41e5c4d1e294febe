//! Symbol interleaving, which distributes a burst over several words.

use super::{BatchDecoder, BatchEncoder, Code, Outcome};
use crate::simd::Simd;

/// Why a block cannot be interleaved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterleavingError {
    /// The depth is out of range.
    #[error("interleaving depth {0}: it must lie between 1 (none) and 255; CCSDS allows 1, 2, 3, 4, 5 and 8")]
    Depth(usize),
}

/// Blocks of `depth` words, whose symbols are sent in turn (CCSDS 131.0-B, section 4.4.1).
///
/// Symbol s of word i is byte `s * depth + i` of a block. A burst of b bytes affects at most b/depth symbols of each word,
/// rounded up.
#[derive(Clone, Debug)]
pub struct Interleaved {
    depth: usize,
    code: Code,
    encoder: BatchEncoder,
    decoder: BatchDecoder,
    /// The words of all blocks that are being processed, one after the other.
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
            words: Vec::new(),
        })
    }

    /// Bytes of data in a block.
    pub fn data_bytes(&self) -> usize {
        self.code.k() * self.depth
    }

    /// Length of a block in bytes.
    pub fn block_bytes(&self) -> usize {
        self.code.n() * self.depth
    }

    /// Writes the parity after the data of each of some blocks, one after the other.
    ///
    /// # Panics
    /// If the blocks are not whole.
    pub fn encode(&mut self, blocks: &mut [u8]) {
        self.gather(blocks);
        self.encoder.encode(&mut self.words);
        self.scatter(blocks);
    }

    /// Corrects blocks in place and stores the result of each of their words, block by block. A call with many blocks fills the
    /// lanes better than one block.
    ///
    /// # Panics
    /// If the blocks are not whole or there is not one outcome per word.
    pub fn decode(&mut self, blocks: &mut [u8], outcomes: &mut [Outcome]) {
        self.gather(blocks);
        self.decoder.decode(&mut self.words, outcomes);
        self.scatter(blocks);
    }

    /// Copies the symbols of the blocks to their words.
    fn gather(&mut self, blocks: &[u8]) {
        let (depth, block_bytes) = (self.depth, self.block_bytes());
        assert!(blocks.len().is_multiple_of(block_bytes), "{} bytes are not blocks of {block_bytes}", blocks.len());
        self.words.resize(blocks.len(), 0);
        for (words, block) in self.words.chunks_exact_mut(block_bytes).zip(blocks.chunks_exact(block_bytes)) {
            for (word, symbols) in words.chunks_exact_mut(self.code.n()).enumerate() {
                for (symbol, &sent) in symbols.iter_mut().zip(block[word..].iter().step_by(depth)) {
                    *symbol = sent;
                }
            }
        }
    }

    /// Copies the symbols of the words to their blocks.
    fn scatter(&self, blocks: &mut [u8]) {
        let (depth, block_bytes) = (self.depth, self.block_bytes());
        for (words, block) in self.words.chunks_exact(block_bytes).zip(blocks.chunks_exact_mut(block_bytes)) {
            for (word, symbols) in words.chunks_exact(self.code.n()).enumerate() {
                for (&symbol, sent) in symbols.iter().zip(block[word..].iter_mut().step_by(depth)) {
                    *sent = symbol;
                }
            }
        }
    }
}
