//! Additive white Gaussian noise.
