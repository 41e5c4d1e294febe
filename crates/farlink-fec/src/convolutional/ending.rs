//! How a frame ends.

/// What the encoder does at the end of a frame. It always begins in state 0, but for tail-biting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// K - 1 zeros follow the data: the encoder ends in state 0.
    Terminated,
    /// Nothing follows: the encoder ends in any state, and the last bits are protected less.
    Truncated,
    /// The encoder begins in the state that it will end in: no tail, and no weak end.
    TailBiting,
}

impl Ending {
    /// Trellis steps of a frame of so many data bits.
    pub fn steps(self, data_bits: usize, constraint_length: u32) -> usize {
        match self {
            Ending::Terminated => data_bits + constraint_length as usize - 1,
            Ending::Truncated | Ending::TailBiting => data_bits,
        }
    }
}
