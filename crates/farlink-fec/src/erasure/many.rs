//! A systematic MDS code for groups of hundreds or thousands of blocks.

use super::MdsError;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// A packet erasure code of k data and m parity blocks by the crate `reed-solomon-simd`: Reed-Solomon over GF(2^16) with
/// fast transforms, whose time per block grows with the logarithm of the group's size where that of
/// [`Cauchy`](super::Cauchy) grows with m.
///
/// Two bytes make an element of that field. Data blocks of an odd number of bytes are padded with a zero, which is not sent;
/// their parity blocks have [one byte more](Many::parity_block_bytes), which no code over so many blocks could avoid.
///
/// Source: Lin, Al-Naffouri, Han, Chung, Novel polynomial basis with fast Fourier transform and its application to
/// Reed-Solomon erasure codes, IEEE Trans. Inf. Theory 62(11) (2016).
pub struct Many {
    k: usize,
    m: usize,
    encoder: Option<ReedSolomonEncoder>,
    decoder: Option<ReedSolomonDecoder>,
    /// One block and the zero after it.
    padded: Vec<u8>,
}

impl Many {
    /// Most blocks of a group, if one of k and m is a power of two; less otherwise.
    pub const BLOCKS_MAX: usize = 65_536;

    /// The code of k data and m parity blocks.
    ///
    /// # Errors
    /// If k or m is zero, or if they sum up to more than [`BLOCKS_MAX`](Many::BLOCKS_MAX) with either of them rounded up
    /// to a power of two.
    pub fn new(k: usize, m: usize) -> Result<Many, MdsError> {
        if k == 0 || m == 0 {
            return Err(MdsError::Empty { k, m });
        }
        if k >= Many::BLOCKS_MAX || m >= Many::BLOCKS_MAX || !ReedSolomonEncoder::supports(k, m) {
            return Err(MdsError::TooManyRounded { k, m, max: Many::BLOCKS_MAX });
        }
        Ok(Many { k, m, encoder: None, decoder: None, padded: Vec::new() })
    }

    /// Data blocks in a group.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Parity blocks in a group.
    pub fn m(&self) -> usize {
        self.m
    }

    /// Bytes of a parity block: those of a data block, made even.
    pub fn parity_block_bytes(block_bytes: usize) -> usize {
        block_bytes.saturating_add(block_bytes % 2)
    }

    /// Writes the parity blocks.
    ///
    /// `data` holds k blocks after each other, `parity` has room for m of
    /// [`parity_block_bytes`](Many::parity_block_bytes).
    ///
    /// # Errors
    /// If a length does not fit.
    pub fn encode(&mut self, data: &[u8], block_bytes: usize, parity: &mut [u8]) -> Result<(), MdsError> {
        let shard_bytes = Many::parity_block_bytes(block_bytes);
        MdsError::check_length("data", data.len(), self.k, block_bytes)?;
        MdsError::check_length("parity", parity.len(), self.m, shard_bytes)?;
        let encoder = match &mut self.encoder {
            Some(encoder) => {
                encoder.reset(self.k, self.m, shard_bytes).expect(CHECKED);
                encoder
            }
            none => none.insert(ReedSolomonEncoder::new(self.k, self.m, shard_bytes).expect(CHECKED)),
        };
        for block in data.chunks_exact(block_bytes) {
            encoder.add_original_shard(pad(&mut self.padded, block)).expect(CHECKED);
        }
        let encoded = encoder.encode().expect(CHECKED);
        for (to, from) in parity.chunks_exact_mut(shard_bytes).zip(encoded.recovery_iter()) {
            to.copy_from_slice(from);
        }
        Ok(())
    }

    /// Recovers the data blocks that are lost, where they belong.
    ///
    /// `blocks` holds the k data blocks and after them the m parity blocks; `lost` says which of them did not arrive, and
    /// what these hold does not matter. Parity blocks are left as they are.
    ///
    /// # Errors
    /// If more than m blocks are lost or a length does not fit; the blocks are then unchanged.
    pub fn decode(&mut self, blocks: &mut [u8], block_bytes: usize, lost: &[bool]) -> Result<(), MdsError> {
        let shard_bytes = Many::parity_block_bytes(block_bytes);
        let data_bytes = self.k.saturating_mul(block_bytes).min(blocks.len());
        let (data, parity) = blocks.split_at_mut(data_bytes);
        MdsError::check_length("the data part of blocks", data.len(), self.k, block_bytes)?;
        MdsError::check_length("the parity part of blocks", parity.len(), self.m, shard_bytes)?;
        MdsError::check_lost(lost, self.k, self.m)?;
        let (data_lost, parity_lost) = lost.split_at(self.k);
        if !data_lost.contains(&true) {
            return Ok(());
        }
        let decoder = match &mut self.decoder {
            Some(decoder) => {
                decoder.reset(self.k, self.m, shard_bytes).expect(CHECKED);
                decoder
            }
            none => none.insert(ReedSolomonDecoder::new(self.k, self.m, shard_bytes).expect(CHECKED)),
        };
        for (j, block) in data.chunks_exact(block_bytes).enumerate().filter(|(j, _)| !data_lost[*j]) {
            decoder.add_original_shard(j, pad(&mut self.padded, block)).expect(CHECKED);
        }
        for (i, block) in parity.chunks_exact(shard_bytes).enumerate().filter(|(i, _)| !parity_lost[*i]) {
            decoder.add_recovery_shard(i, block).expect(CHECKED);
        }
        let decoded = decoder.decode().expect(CHECKED);
        for (j, block) in decoded.restored_original_iter() {
            data[j * block_bytes..][..block_bytes].copy_from_slice(&block[..block_bytes]);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Many {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Many").field("k", &self.k).field("m", &self.m).finish_non_exhaustive()
    }
}

/// Why calls of that crate cannot fail.
const CHECKED: &str = "counts, lengths and losses are checked";

/// The block, or a copy with a zero appended if its length is odd.
fn pad<'a>(padded: &'a mut Vec<u8>, block: &'a [u8]) -> &'a [u8] {
    if block.len().is_multiple_of(2) {
        return block;
    }
    padded.clear();
    padded.extend_from_slice(block);
    padded.push(0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_m_losses_are_recovered(
            k in 1..300usize, m in 1..100usize, block_bytes in 1..=130usize, step in 1..1000usize,
        ) {
            let mut code = Many::new(k, m).unwrap();
            let data: Vec<u8> = (0..k * block_bytes).map(|at| (at * at / 7 + step) as u8).collect();
            let mut blocks = data.clone();
            blocks.resize(k * block_bytes + m * Many::parity_block_bytes(block_bytes), 0);
            let (sent, parity) = blocks.split_at_mut(k * block_bytes);
            code.encode(sent, block_bytes, parity).unwrap();
            let mut lost = vec![false; k + m];
            let mut at = 0;
            for _ in 0..m {
                at = (at + step) % (k + m);
                lost[at] = true;
            }
            for (block, _) in sent.chunks_mut(block_bytes).zip(&lost).filter(|(_, lost)| **lost) {
                block.fill(0xcc);
            }
            code.decode(&mut blocks, block_bytes, &lost).unwrap();
            prop_assert!(blocks[..k * block_bytes] == data);
        }

        #[test]
        fn no_arguments_panic(
            k in 0..20usize, m in 0..20usize, block_bytes in 0..70usize, bytes in 0..1400usize,
            lost in prop::collection::vec(any::<bool>(), 0..40),
        ) {
            let Ok(mut code) = Many::new(k, m) else { return Ok(()) };
            let fits = block_bytes > 0 && bytes == k * block_bytes;
            let mut parity = vec![0; m * Many::parity_block_bytes(block_bytes)];
            prop_assert_eq!(code.encode(&vec![1; bytes], block_bytes, &mut parity).is_ok(), fits);
            prop_assert!(code.decode(&mut vec![1; bytes], block_bytes, &lost).is_err() || block_bytes > 0);
            let mut blocks = vec![1; k * block_bytes + parity.len()];
            let fits = block_bytes > 0 && lost.len() == k + m && lost.iter().filter(|&&is| is).count() <= m;
            prop_assert_eq!(code.decode(&mut blocks, block_bytes, &lost).is_ok(), fits);
        }
    }

    #[test]
    fn errors_name_the_rule() {
        assert_eq!(Many::new(0, 1).unwrap_err(), MdsError::Empty { k: 0, m: 1 });
        assert_eq!(
            Many::new(40_000, 40_000).unwrap_err().to_string(),
            "k = 40000 and m = 40000 blocks, one of the two rounded up to a power of two, exceed 65536; \
             make smaller groups"
        );
        assert!(Many::new(usize::MAX, usize::MAX).is_err());
        let mut code = Many::new(300, 20).unwrap();
        assert_eq!(code.encode(&[0; 300 * 23], 0, &mut []), Err(MdsError::NoBytes));
        assert_eq!(
            code.encode(&[0; 300 * 23], 23, &mut [0; 20 * 23]).unwrap_err().to_string(),
            "parity has 460 bytes; 20 blocks of 24 bytes are needed, after each other"
        );
        assert!(code.encode(&[0; 300], usize::MAX, &mut [0; 20]).is_err());
    }
}
