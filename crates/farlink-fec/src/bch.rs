//! Binary BCH codes: a code per packet that mends up to t wrong bits.
