//! Errors of a whole transfer, each with a remedy, and the exit code of the process.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::remedy::remedy;

use super::printable::printable;

/// Why a transfer ended early. Everything that was fsynced is kept, and the same call later goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The operating system refused something on this side.
    #[error("cannot {action} \"{}\": {source}; {}", printable(path), remedy(source))]
    Local {
        /// The operation, as a verb: "open", "write".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A request of the caller or the other side is against a rule of this side.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The other side refused, and said why.
    #[error("the other side refused: {reason}")]
    RefusedByPeer {
        /// Its message, with control characters escaped.
        reason: String,
        /// Whether it was the network's fault and not that of a side.
        is_network: bool,
    },
    /// The other side speaks another version of the format.
    #[error(
        "the other side speaks version {theirs} of the file format, this one version {ours}; update the older farlink"
    )]
    Version {
        /// Version of the other side.
        theirs: u16,
        /// Version of this side.
        ours: u16,
    },
    /// The stream failed.
    #[error("the stream failed: {0}; run the same command again, it goes on where this one stopped")]
    Stream(#[source] io::Error),
    /// The other side closed the stream before everything was said.
    #[error(
        "the other side closed the stream before the transfer was complete; run the same command again, it goes on \
         where this one stopped"
    )]
    Closed,
    /// Bytes that are against the format.
    #[error("the other side broke the file format: {0}; check that it runs farlink, and run the same command again")]
    Format(#[from] FormatError),
    /// A thread of this transfer ended without a word.
    #[error("the thread that reads and writes files ended early; this is a fault of farlink: please report it")]
    ThreadEnded,
}

impl FilesError {
    pub(crate) fn local(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        FilesError::Local { action, path: path.to_owned(), source: source.into() }
    }

    /// Exit code of a process: 1 when the network failed, 2 when someone has to change something first.
    pub const fn exit_code(&self) -> u8 {
        match self {
            FilesError::Stream(_)
            | FilesError::Closed
            | FilesError::Format(_)
            | FilesError::RefusedByPeer { is_network: true, .. } => 1,
            FilesError::Local { .. }
            | FilesError::Refused(_)
            | FilesError::RefusedByPeer { .. }
            | FilesError::Version { .. }
            | FilesError::ThreadEnded => 2,
        }
    }

    /// The text that the other side may read: paths of this host are left out, but for those below `base`. `None` when the other
    /// side could not be told, or said it itself.
    pub(super) fn for_peer(&self, base: Option<&Path>) -> Option<String> {
        match self {
            FilesError::Local { action, path, source } => {
                let inside =
                    base.and_then(|base| path.strip_prefix(base).ok()).filter(|inside| !inside.as_os_str().is_empty());
                let what = inside
                    .map_or_else(|| "a path of its own".to_owned(), |inside| format!("\"{}\"", printable(inside)));
                Some(format!("it cannot {action} {what}: {source}; {}", remedy(source)))
            }
            FilesError::Refused(refusal) => Some(refusal.to_string()),
            FilesError::Format(fault) => Some(fault.to_string()),
            FilesError::ThreadEnded => Some("a fault inside farlink".to_owned()),
            FilesError::RefusedByPeer { .. }
            | FilesError::Version { .. }
            | FilesError::Stream(_)
            | FilesError::Closed => None,
        }
    }
}

/// Something is against a rule of this side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The request.
    pub value: String,
    /// The rule.
    pub rule: String,
    /// The remedy.
    pub remedy: String,
}

impl Refusal {
    pub(super) fn new(value: impl Into<String>, rule: impl Into<String>, remedy: impl Into<String>) -> Self {
        Refusal { value: value.into(), rule: rule.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.value, self.rule, self.remedy)
    }
}

impl std::error::Error for Refusal {}

/// How bytes of the other side break the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The stream does not begin as the format does.
    #[error("its stream does not begin as one of farlink's files does")]
    NoPreamble,
    /// No frame is of this kind.
    #[error("a frame of the unknown kind {0:#04x}")]
    Kind(u8),
    /// A frame is longer or shorter than its kind may be.
    #[error("a frame of kind {kind:#04x} with {bytes} bytes")]
    Length {
        /// Kind of the frame.
        kind: u8,
        /// Its length.
        bytes: u32,
    },
    /// A frame of a known kind with fields that cannot be.
    #[error("a frame of kind {0:#04x} whose fields make no sense")]
    Fields(u8),
    /// A frame that may not come now.
    #[error("a frame of kind {0:#04x} at the wrong time")]
    Order(u8),
    /// A chunk whose bytes are not those of its hash.
    #[error("a chunk whose bytes are not those of its SHA-256")]
    Damaged,
}

/// Faults that every other file would meet as well: the transfer stops at once, and goes on later.
pub(super) fn is_fatal(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::NOSPC
                | Errno::DQUOT
                | Errno::MFILE
                | Errno::NFILE
                | Errno::NOMEM
                | Errno::IO
                | Errno::ROFS
                | Errno::NOSYS
                | Errno::STALE
        )
    )
}
