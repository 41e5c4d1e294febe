//! What an endpoint tells its application.

/// Something an application may act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection is established (or was from the start, without a handshake).
    Connected,
    /// Data waits in [`crate::Stream::read`].
    Readable,
    /// [`crate::Stream::write`] takes data again after it was full.
    Writable,
    /// The peer will send no more, and everything it sent was read.
    Finished,
    /// So many bytes of the stream were given up and will not come: what is read next stands behind them. Until it is taken
    /// notice of, nothing behind them is read.
    Skipped(u64),
    /// So many bytes were too old to be sent, or sent again, and were given up.
    Expired(u64),
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
    /// Nothing was heard from the peer for too long.
    NoAnswer,
    /// The streams had not ended on both sides within the time set for that.
    NotClosed,
    /// The peer has begun anew and knows nothing of the connection.
    PeerRestarted,
}
