//! Why a live run failed.

use std::io;

use farlink_core::ConfigError;

use crate::emulate::EmulateError;
use crate::io::BindError;

/// Why a live run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The scenario cannot be played.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The emulator failed.
    #[error(transparent)]
    Emulate(#[from] EmulateError),
    /// A thread could not enter a namespace.
    #[error("cannot enter the namespace of the {end} end: {error}; run it as root")]
    Namespace {
        /// Which end.
        end: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A socket of a flow could not be made.
    #[error("the flow {flow}: {what}: {error}; {remedy}")]
    Socket {
        /// Which flow.
        flow: String,
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
        /// The remedy.
        remedy: &'static str,
    },
    /// An endpoint of AeroTP could not be made.
    #[error("the flow {flow}: {error}")]
    Bind {
        /// Which flow.
        flow: String,
        /// Why.
        error: BindError,
    },
}
