//! Ending of a frame.

/// The behaviour of the encoder at the end of a frame. It begins in state 0, except with tail-biting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// K - 1 zeros follow the data: the encoder ends in state 0.
    Terminated,
    /// Nothing follows: the encoder ends in any state, and the last bits have less protection.
    Truncated,
    /// The encoder begins in the state in which it will end, so that there is no tail and no weak end.
    TailBiting,
}

impl Ending {
    /// Number of trellis steps of a frame of `data_bits` data bits.
    pub fn steps(self, data_bits: usize, constraint_length: u32) -> usize {
        match self {
            Ending::Terminated => data_bits + constraint_length as usize - 1,
            Ending::Truncated | Ending::TailBiting => data_bits,
        }
    }
}
