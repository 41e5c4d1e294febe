//! Additive white Gaussian noise: signal-to-noise ratios, modulation, channel and demodulation.

mod channel;
mod discrete;
mod noise;
mod normal;
#[cfg(test)]
mod quantisation;

pub(crate) use channel::Antipodal;
pub use channel::Channel;
pub(crate) use discrete::Sampler;
pub use noise::{Noise, split_mix64};

/// A ratio in decibels as a plain number.
pub fn ratio(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

/// A plain ratio in decibels.
pub fn db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

/// Es/N0 (dB) of a symbol that carries `bits_per_symbol` coded bits, `rate` information bits each, at Eb/N0 (dB) per
/// information bit.
pub fn es_n0_db(eb_n0_db: f64, rate: f64, bits_per_symbol: u32) -> f64 {
    eb_n0_db + db(rate * f64::from(bits_per_symbol))
}

/// Eb/N0 (dB) per information bit at Es/N0 (dB), the inverse of [`es_n0_db`].
pub fn eb_n0_db(es_n0_db: f64, rate: f64, bits_per_symbol: u32) -> f64 {
    es_n0_db - db(rate * f64::from(bits_per_symbol))
}

/// C/N0 (dB Hz) at Eb/N0 (dB) and an information bit rate (bits per second).
pub fn c_n0_dbhz(eb_n0_db: f64, information_bps: f64) -> f64 {
    eb_n0_db + db(information_bps)
}

/// Eb/N0 (dB) at C/N0 (dB Hz) and an information bit rate (bits per second), the inverse of [`c_n0_dbhz`].
pub fn eb_n0_db_at(c_n0_dbhz: f64, information_bps: f64) -> f64 {
    c_n0_dbhz - db(information_bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_a_link_budget() {
        // 2.4 kb/s at 5 dB need 38.8 dB Hz.
        assert!((c_n0_dbhz(5.0, 2400.0) - 38.802).abs() < 1e-3);
        assert!((eb_n0_db_at(38.802, 2400.0) - 5.0).abs() < 1e-3);
        // Rate 1/2 on QPSK carries one information bit a symbol.
        assert!((es_n0_db(4.5, 0.5, 2) - 4.5).abs() < 1e-12);
        assert!((eb_n0_db(es_n0_db(4.5, 0.75, 3), 0.75, 3) - 4.5).abs() < 1e-12);
    }
}
