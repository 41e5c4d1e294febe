//! Sending files over streams in memory that split, cut and change bytes, and over sockets between processes.

mod hostile;
mod local;
mod processes;
mod resume;
mod round_trip;
mod support;
