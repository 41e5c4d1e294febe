//! Which connection of a session.

use farlink_core::protocol::aerotp::Handle;

/// A connection within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    /// This side opened it, at this port of its own.
    Opened(u16),
    /// The peer opened it, to this port.
    Accepted(u16, Handle),
}
