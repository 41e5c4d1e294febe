//! RaptorQ, a fountain code (RFC 6330).

use raptorq::{EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder};
use std::collections::BTreeSet;
use std::ops::Range;

/// A source block of k symbols, from which any number of repair symbols can be made.
///
/// Implemented by the crate `raptorq`. Almost any k symbols are enough to recover the block
/// ([`raptorq_failure`](super::theory::raptorq_failure) gives the probability that they are not).
///
/// The source block is alone in its object (Z = 1, N = 1 sub-block) and the symbol alignment Al is 1, which section
/// 4.4.1.2 allows: symbols of 23 or 46 bytes are sent as they are, and nothing is padded. The k' - k padding symbols of
/// section 5.3.1 exist in the coder only.
#[derive(Clone, Debug)]
pub struct RaptorQ {
    k: usize,
    symbol_bytes: usize,
    config: ObjectTransmissionInformation,
}

/// Makes the repair symbols of one source block.
#[derive(Clone, Debug)]
pub struct RaptorQEncoder {
    k: usize,
    symbol_bytes: usize,
    encoder: SourceBlockEncoder,
}

/// Why symbols cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RaptorQError {
    /// No code of this size.
    #[error("k = {0} source symbols; RFC 6330 has source blocks of 1 to {max}", max = RaptorQ::K_MAX)]
    K(usize),
    /// No symbols of this size.
    #[error("symbols of {0} bytes; RFC 6330 has 1 to {max}", max = u16::MAX)]
    SymbolBytes(usize),
    /// A buffer of another length.
    #[error("data has {bytes} bytes; k = {k} symbols of {symbol_bytes} bytes are needed, after each other")]
    DataLength {
        /// Its length.
        bytes: usize,
        /// Source symbols.
        k: usize,
        /// Bytes of each.
        symbol_bytes: usize,
    },
    /// A symbol of another length.
    #[error("symbol {id} has {bytes} bytes; all symbols have {symbol_bytes}")]
    SymbolLength {
        /// The symbol's encoding symbol identifier.
        id: u32,
        /// Its length.
        bytes: usize,
        /// What it should be.
        symbol_bytes: usize,
    },
    /// A number of more than 24 bits.
    #[error("encoding symbol identifier {0}; it must be below {max} (24 bits)", max = RaptorQ::ID_END)]
    Id(u32),
    /// A repair symbol under the number of a source symbol.
    #[error("identifier {id} is that of a source symbol; repair symbols begin with k = {k}")]
    RepairId {
        /// The identifier.
        id: u32,
        /// Source symbols.
        k: usize,
    },
    /// Too few symbols to solve for k unknowns.
    #[error("{received} different symbols; k = {k} or slightly more are needed")]
    TooFew {
        /// Different symbols given.
        received: usize,
        /// Source symbols.
        k: usize,
    },
    /// The given symbols do not determine the block.
    #[error("{received} different symbols do not determine the k = {k} of the source block; wait for one more")]
    Undetermined {
        /// Different symbols given.
        received: usize,
        /// Source symbols.
        k: usize,
    },
}

impl RaptorQ {
    /// Most symbols of a source block: K'_max of RFC 6330, section 5.1.2.
    pub const K_MAX: usize = 56_403;
    /// Encoding symbol identifiers are below (RFC 6330, section 3.2).
    pub const ID_END: u32 = 1 << 24;

    /// The code for source blocks of `k` symbols of `symbol_bytes` bytes.
    ///
    /// # Errors
    /// If RFC 6330 has no such blocks or symbols.
    pub fn new(k: usize, symbol_bytes: usize) -> Result<RaptorQ, RaptorQError> {
        if !(1..=RaptorQ::K_MAX).contains(&k) {
            return Err(RaptorQError::K(k));
        }
        let size = u16::try_from(symbol_bytes).ok().filter(|&bytes| bytes > 0);
        let size = size.ok_or(RaptorQError::SymbolBytes(symbol_bytes))?;
        let transfer_length = (k * symbol_bytes) as u64;
        Ok(RaptorQ { k, symbol_bytes, config: ObjectTransmissionInformation::new(transfer_length, size, 1, 1, 1) })
    }

    /// Source symbols of a block.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Bytes of a symbol.
    pub fn symbol_bytes(&self) -> usize {
        self.symbol_bytes
    }

    /// Prepares the encoder of a source block of k consecutive symbols. These are sent unchanged, with the identifiers 0 to k -
    /// 1.
    ///
    /// # Errors
    /// If the length does not fit.
    pub fn encoder(&self, data: &[u8]) -> Result<RaptorQEncoder, RaptorQError> {
        if data.len() != self.k * self.symbol_bytes {
            return Err(RaptorQError::DataLength { bytes: data.len(), k: self.k, symbol_bytes: self.symbol_bytes });
        }
        let encoder = SourceBlockEncoder::new(0, &self.config, data);
        Ok(RaptorQEncoder { k: self.k, symbol_bytes: self.symbol_bytes, encoder })
    }

    /// The source block, from symbols and their identifiers in any order; of equal identifiers the first counts.
    ///
    /// # Errors
    /// If the symbols do not suffice ([`TooFew`](RaptorQError::TooFew), [`Undetermined`](RaptorQError::Undetermined)), or
    /// one has a wrong length or identifier.
    pub fn decode<'a>(&self, symbols: impl IntoIterator<Item = (u32, &'a [u8])>) -> Result<Vec<u8>, RaptorQError> {
        let mut ids = BTreeSet::new();
        let mut packets = Vec::new();
        for (id, symbol) in symbols {
            if id >= RaptorQ::ID_END {
                return Err(RaptorQError::Id(id));
            }
            if symbol.len() != self.symbol_bytes {
                return Err(RaptorQError::SymbolLength { id, bytes: symbol.len(), symbol_bytes: self.symbol_bytes });
            }
            if ids.insert(id) {
                packets.push(EncodingPacket::new(PayloadId::new(0, id), symbol.to_vec()));
            }
        }
        let (received, k) = (packets.len(), self.k);
        if received < k {
            return Err(RaptorQError::TooFew { received, k });
        }
        let mut decoder = SourceBlockDecoder::new(0, &self.config, self.config.transfer_length());
        decoder.decode(packets).ok_or(RaptorQError::Undetermined { received, k })
    }
}

impl RaptorQEncoder {
    /// Consecutive repair symbols; `ids` are their encoding symbol identifiers, from k on.
    ///
    /// # Errors
    /// If an identifier belongs to a source symbol or exceeds 24 bits.
    pub fn repair(&self, ids: Range<u32>) -> Result<Vec<u8>, RaptorQError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if ids.start < self.k as u32 {
            return Err(RaptorQError::RepairId { id: ids.start, k: self.k });
        }
        // The coder numbers its symbols with the padding among them, in 24 bits too.
        if ids.end > RaptorQ::ID_END {
            return Err(RaptorQError::Id(ids.end - 1));
        }
        let packets = self.encoder.repair_packets(ids.start - self.k as u32, ids.end - ids.start);
        let mut symbols = Vec::with_capacity(packets.len() * self.symbol_bytes);
        for packet in &packets {
            symbols.extend_from_slice(packet.data());
        }
        Ok(symbols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn noise(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .take(len)
        .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_few_symbols_too_many_give_the_block(
            k in 1..120usize, symbol_bytes in prop_oneof![Just(23usize), Just(46), 1..70usize], seed: u64, share in 0.0..1.0f64,
        ) {
            let code = RaptorQ::new(k, symbol_bytes).unwrap();
            let data = noise(k * symbol_bytes, seed);
            let count = k as u32 + 4;
            let repair = code.encoder(&data).unwrap().repair(k as u32..k as u32 + count).unwrap();
            let lost = (share * k as f64) as usize;
            let source = data.chunks(symbol_bytes).enumerate().skip(lost).map(|(id, symbol)| (id as u32, symbol));
            let repairs = repair.chunks(symbol_bytes).enumerate().map(|(i, symbol)| ((k + i) as u32, symbol));
            let symbols: Vec<_> = source.chain(repairs.take(lost + 4)).collect();
            prop_assert_eq!(code.decode(symbols.iter().copied()), Ok(data.clone()));
            let few = code.decode(symbols[..k - 1].iter().chain(&symbols[..k - 1]).copied());
            prop_assert_eq!(few, Err(RaptorQError::TooFew { received: k - 1, k }));
        }

        #[test]
        fn no_symbols_panic(
            k in 1..30usize,
            symbols in prop::collection::vec((0..80u32, prop::collection::vec(any::<u8>(), 5)), 0..60),
        ) {
            let code = RaptorQ::new(k, 5).unwrap();
            let decoded = code.decode(symbols.iter().map(|(id, symbol)| (*id, &symbol[..])));
            let different = symbols.iter().map(|(id, _)| id).collect::<BTreeSet<_>>().len();
            if let Ok(data) = &decoded {
                prop_assert_eq!(data.len(), k * 5);
            }
            prop_assert_eq!(matches!(decoded, Err(RaptorQError::TooFew { .. })), different < k);
        }
    }

    #[test]
    fn errors_name_the_rule() {
        assert_eq!(
            RaptorQ::new(60_000, 23).unwrap_err().to_string(),
            "k = 60000 source symbols; RFC 6330 has source blocks of 1 to 56403"
        );
        assert_eq!(RaptorQ::new(0, 23).unwrap_err(), RaptorQError::K(0));
        assert_eq!(RaptorQ::new(usize::MAX, 23).unwrap_err(), RaptorQError::K(usize::MAX));
        assert_eq!(RaptorQ::new(5, 0).unwrap_err(), RaptorQError::SymbolBytes(0));
        assert_eq!(RaptorQ::new(5, 65_536).unwrap_err().to_string(), "symbols of 65536 bytes; RFC 6330 has 1 to 65535");
        let code = RaptorQ::new(5, 3).unwrap();
        assert_eq!(code.encoder(&[0; 14]).unwrap_err(), RaptorQError::DataLength { bytes: 14, k: 5, symbol_bytes: 3 });
        let encoder = code.encoder(&[0; 15]).unwrap();
        assert_eq!(encoder.repair(4..6).unwrap_err(), RaptorQError::RepairId { id: 4, k: 5 });
        assert_eq!(encoder.repair(5..RaptorQ::ID_END + 1).unwrap_err(), RaptorQError::Id(RaptorQ::ID_END));
        assert_eq!(encoder.repair(9..9), Ok(Vec::new()));
        assert_eq!(code.decode([(1 << 24, &[0u8; 3][..])]), Err(RaptorQError::Id(1 << 24)));
        assert_eq!(
            code.decode([(0, &[0u8; 2][..])]),
            Err(RaptorQError::SymbolLength { id: 0, bytes: 2, symbol_bytes: 3 })
        );
    }
}
