//! Reed-Solomon codes over GF(256).
