//! The SIMD instructions of this machine, detected at run time.
//!
//! Every algorithm that uses them takes a [`Simd`] and gives the same bits with each: tests force the slower ones.

/// A level of SIMD instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Simd {
    /// Plain Rust, vectorised by the compiler where it can.
    Portable,
    /// x86-64 with AVX2 (and BMI1, BMI2).
    Avx2,
    /// x86-64 with AVX-512 F, BW, VL, DQ, VBMI and GFNI.
    Avx512Gfni,
}

impl Simd {
    /// The best that this machine has.
    pub fn best() -> Simd {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("gfni");
            if avx512 {
                return Simd::Avx512Gfni;
            }
            if avx2 {
                return Simd::Avx2;
            }
        }
        Simd::Portable
    }

    /// All levels that this machine has, slowest first.
    pub fn available() -> Vec<Simd> {
        [Simd::Portable, Simd::Avx2, Simd::Avx512Gfni].into_iter().filter(|&level| level <= Simd::best()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portable_level_is_everywhere() {
        assert_eq!(Simd::available()[0], Simd::Portable);
        assert_eq!(Simd::available().last(), Some(&Simd::best()));
    }
}
