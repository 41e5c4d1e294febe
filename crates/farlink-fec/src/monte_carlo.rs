//! Error rates by simulation.
