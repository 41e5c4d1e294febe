//! PPP between two ends: lines open, prove who they are, join, carry packets, drop and come back.

mod bundles;
mod latency;
mod lines;
mod model_drops;
mod model_lcp;
mod random;
pub(crate) mod wires;
