//! placeholder
pub mod trace_file;
