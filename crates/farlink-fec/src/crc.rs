//! Cyclic redundancy checks.
