//! Events that an endpoint reports to its application.

/// An event that an application may act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection is established (or was from the start, without a handshake).
    Connected,
    /// Data waits in [`crate::Stream::read`].
    Readable,
    /// [`crate::Stream::write`] takes data again after it was full.
    Writable,
    /// The peer has ended its stream. Data before the end may still wait in [`crate::Stream::read`], if the protocol
    /// reports the end as soon as it arrives.
    Finished,
    /// This many bytes of the stream were given up and will not arrive. The application can read the bytes after the
    /// gap only once it has taken this event.
    Skipped(u64),
    /// This many bytes were given up because they were too old to be sent or retransmitted.
    Expired(u64),
    /// The path carries less than the rate that was set: the circuit breaker has lowered it to this one, in bit/s (RFC 8084).
    RateLowered(u64),
    /// Everything written was acknowledged and both sides have closed.
    Closed,
    /// The connection was given up.
    Aborted(Abort),
}

/// Why a connection was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abort {
    /// The peer reset it.
    Reset,
    /// Too many retransmissions of the same segment went unanswered.
    TooManyRetries,
    /// No packet arrived from the peer for too long.
    NoAnswer,
    /// The streams of both sides had not ended within the time set for closing.
    NotClosed,
    /// The peer has restarted and lost the state of the connection.
    PeerRestarted,
    /// The peer has no version of the protocol in common with this side.
    OtherVersion,
}
