//! Modulations: how many bits a symbol carries.

/// A modulation, Gray-labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Modulation {
    /// Binary phase-shift keying, 1 bit a symbol.
    Bpsk,
    /// Quaternary phase-shift keying, 2 bits a symbol.
    Qpsk,
    /// Phase-shift keying with 8 phases, 3 bits a symbol.
    Psk8,
    /// Quadrature amplitude modulation with 16 points, 4 bits a symbol.
    Qam16,
}

impl Modulation {
    /// Bits a symbol carries.
    pub fn bits_per_symbol(self) -> u32 {
        match self {
            Modulation::Bpsk => 1,
            Modulation::Qpsk => 2,
            Modulation::Psk8 => 3,
            Modulation::Qam16 => 4,
        }
    }
}

/// What the demodulator hands to the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// One bit.
    Hard,
    /// Eight bits.
    Soft,
}
