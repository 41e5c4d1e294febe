//! Viterbi decoding of many frames at once, one in each SIMD lane.
