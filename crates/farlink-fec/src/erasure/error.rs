//! Errors of erasure codes that a caller can cause.

/// Why blocks cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MdsError {
    /// No data or no parity.
    #[error("k = {k} data blocks and m = {m} parity blocks; both must be at least 1")]
    Empty {
        /// Data blocks.
        k: usize,
        /// Parity blocks.
        m: usize,
    },
    /// More blocks than the field has elements.
    #[error("k + m = {k} + {m} blocks exceed {max}, the most that this code has; make smaller groups")]
    TooManyBlocks {
        /// Data blocks.
        k: usize,
        /// Parity blocks.
        m: usize,
        /// Most blocks of a group.
        max: usize,
    },
    /// More blocks than the transforms support.
    #[error(
        "k = {k} and m = {m} blocks, one of the two rounded up to a power of two, exceed {max}; make smaller groups"
    )]
    TooManyRounded {
        /// Data blocks.
        k: usize,
        /// Parity blocks.
        m: usize,
        /// Most blocks of a group.
        max: usize,
    },
    /// A block has no bytes.
    #[error("block_bytes is 0; a block has at least 1 byte")]
    NoBytes,
    /// A buffer of another length.
    #[error("{name} has {bytes} bytes; {blocks} blocks of {block_bytes} bytes are needed, after each other")]
    Length {
        /// Which buffer.
        name: &'static str,
        /// Its length.
        bytes: usize,
        /// Blocks that it must hold.
        blocks: usize,
        /// Bytes of each.
        block_bytes: usize,
    },
    /// The number of flags is not that of the blocks.
    #[error("lost has {flags} flags; it has one for each of the k + m = {k} + {m} blocks")]
    Flags {
        /// Flags given.
        flags: usize,
        /// Data blocks.
        k: usize,
        /// Parity blocks.
        m: usize,
    },
    /// More blocks are lost than the code can recover.
    #[error("{lost} of k + m = {k} + {m} blocks are lost; the code recovers at most m = {m}")]
    TooManyLost {
        /// Blocks lost, data and parity.
        lost: usize,
        /// Data blocks.
        k: usize,
        /// Parity blocks.
        m: usize,
    },
}

impl MdsError {
    /// Checks that a buffer holds exactly `blocks` blocks.
    pub(super) fn check_length(
        name: &'static str,
        bytes: usize,
        blocks: usize,
        block_bytes: usize,
    ) -> Result<(), MdsError> {
        if block_bytes == 0 {
            return Err(MdsError::NoBytes);
        }
        if blocks.checked_mul(block_bytes) != Some(bytes) {
            return Err(MdsError::Length { name, bytes, blocks, block_bytes });
        }
        Ok(())
    }

    /// Checks that there is one flag per block and that at most m are set.
    pub(super) fn check_lost(flags: &[bool], k: usize, m: usize) -> Result<(), MdsError> {
        if flags.len() != k + m {
            return Err(MdsError::Flags { flags: flags.len(), k, m });
        }
        let lost = flags.iter().filter(|&&is_lost| is_lost).count();
        if lost > m {
            return Err(MdsError::TooManyLost { lost, k, m });
        }
        Ok(())
    }
}
