//! Choice of the MDS code by the size of the group.

use super::{Cauchy, Many, MdsError, Workspace};

/// A systematic MDS packet erasure code: k data blocks, m parity blocks, any k of which give the data.
///
/// Only k and m determine the code, so that both ends agree: [`Cauchy`] as long as its field has enough elements, otherwise
/// [`Many`]. It reuses its working memory.
#[derive(Debug)]
pub struct Mds {
    code: Code,
}

#[derive(Debug)]
enum Code {
    Cauchy(Cauchy, Workspace),
    Many(Box<Many>),
}

impl Mds {
    /// The code of k data and m parity blocks.
    ///
    /// # Errors
    /// If k or m is zero or there are too many blocks: see [`Many::new`].
    pub fn new(k: usize, m: usize) -> Result<Mds, MdsError> {
        let code = if k.saturating_add(m) <= Cauchy::BLOCKS_MAX {
            Code::Cauchy(Cauchy::new(k, m)?, Workspace::default())
        } else {
            Code::Many(Box::new(Many::new(k, m)?))
        };
        Ok(Mds { code })
    }

    /// Data blocks in a group.
    pub fn k(&self) -> usize {
        match &self.code {
            Code::Cauchy(code, _) => code.k(),
            Code::Many(code) => code.k(),
        }
    }

    /// Parity blocks in a group.
    pub fn m(&self) -> usize {
        match &self.code {
            Code::Cauchy(code, _) => code.m(),
            Code::Many(code) => code.m(),
        }
    }

    /// Bytes of a parity block: those of a data block, made even if the group has more than 256 blocks.
    pub fn parity_block_bytes(&self, block_bytes: usize) -> usize {
        match &self.code {
            Code::Cauchy(..) => block_bytes,
            Code::Many(_) => Many::parity_block_bytes(block_bytes),
        }
    }

    /// Writes the parity blocks.
    ///
    /// `data` holds k blocks after each other, `parity` has room for m of
    /// [`parity_block_bytes`](Mds::parity_block_bytes).
    ///
    /// # Errors
    /// If a length does not fit.
    pub fn encode(&mut self, data: &[u8], block_bytes: usize, parity: &mut [u8]) -> Result<(), MdsError> {
        match &mut self.code {
            Code::Cauchy(code, _) => code.encode(data, block_bytes, parity),
            Code::Many(code) => code.encode(data, block_bytes, parity),
        }
    }

    /// Recovers the data blocks that are lost, where they belong.
    ///
    /// `blocks` holds the k data blocks and after them the m parity blocks; `lost` says which of them did not arrive, and
    /// what these hold does not matter. Parity blocks are left as they are.
    ///
    /// # Errors
    /// If more than m blocks are lost or a length does not fit; the blocks are then unchanged.
    pub fn decode(&mut self, blocks: &mut [u8], block_bytes: usize, lost: &[bool]) -> Result<(), MdsError> {
        match &mut self.code {
            Code::Cauchy(code, workspace) => code.decode(blocks, block_bytes, lost, workspace),
            Code::Many(code) => code.decode(blocks, block_bytes, lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_on_either_side_of_the_limit() {
        for (k, m, parity_block_bytes) in [(200, 56, 23), (200, 57, 24), (1000, 100, 24)] {
            let mut code = Mds::new(k, m).unwrap();
            assert_eq!((code.k(), code.m(), code.parity_block_bytes(23)), (k, m, parity_block_bytes));
            let data: Vec<u8> = (0..k * 23).map(|at| (at * at / 5) as u8).collect();
            let mut blocks = data.clone();
            blocks.resize(k * 23 + m * parity_block_bytes, 0);
            let (sent, parity) = blocks.split_at_mut(k * 23);
            code.encode(sent, 23, parity).unwrap();
            let mut lost = vec![false; k + m];
            lost[..m].fill(true);
            sent[..m * 23].fill(0);
            code.decode(&mut blocks, 23, &lost).unwrap();
            assert!(blocks[..k * 23] == data);
            lost[m] = true;
            assert_eq!(code.decode(&mut blocks, 23, &lost), Err(MdsError::TooManyLost { lost: m + 1, k, m }));
        }
        assert_eq!(Mds::new(3, 0).unwrap_err(), MdsError::Empty { k: 3, m: 0 });
    }
}
