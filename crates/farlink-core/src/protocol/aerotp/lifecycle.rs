//! The states of a connection and their transitions (Pathapati, figure 4; `docs/aerotp.md`, section 4).
//!
//! The state machine has no clock and no data; its owner reports events. A model checker can therefore explore all its states.

/// The state of one side of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// There is no connection.
    #[default]
    Closed,
    /// Waits for a peer.
    Listen,
    /// Has sent ASYN, and perhaps data; no answer has arrived yet.
    AsynSent,
    /// Both sides know of each other, and neither stream has ended.
    Established,
    /// The own stream has ended.
    AfinSent,
    /// The peer's stream has ended, and all data has arrived.
    AfinRcvd,
}

/// One side's view of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lifecycle {
    is_open: bool,
    is_listening: bool,
    /// Whether the peer has shown that it knows this connection.
    is_known_to_peer: bool,
    /// Whether the peer's ASYN, or data that implies it, has arrived.
    has_peer: bool,
    is_end_sent: bool,
    is_end_acknowledged: bool,
    is_peer_ended: bool,
}

impl Lifecycle {
    /// APP_CONNECT. `[C1]`
    pub fn connect(&mut self) {
        *self = Lifecycle { is_open: true, ..Lifecycle::default() };
    }

    /// APP_LISTEN.
    pub fn listen(&mut self) {
        *self = Lifecycle { is_listening: true, ..Lifecycle::default() };
    }

    /// ASYN_RX. Returns whether the peer's stream is open now. `[C4]`
    #[inline]
    pub fn on_asyn(&mut self) -> bool {
        if self.is_listening {
            *self = Lifecycle { is_open: true, has_peer: true, ..Lifecycle::default() };
        } else if self.is_open {
            self.has_peer = true;
        }
        self.is_open
    }

    /// MACK_RX or ASYNACK_RX: the peer knows this connection, and may have acknowledged the end of the stream. `[C5]`
    pub fn on_mack(&mut self, acknowledges_end: bool) {
        if self.is_open {
            self.is_known_to_peer = true;
            self.has_peer = true;
            self.is_end_acknowledged |= acknowledges_end && self.is_end_sent;
        }
    }

    /// The peer sent a segment that shows that it has received one of this side.
    #[inline]
    pub fn on_known(&mut self) {
        self.is_known_to_peer |= self.is_open;
    }

    /// AFIN is sent. `[C8]`
    pub fn on_end_sent(&mut self) {
        self.is_end_sent |= self.is_open;
    }

    /// AFIN_RX, and nothing before it is missing. `[C21]`
    #[inline]
    pub fn on_peer_ended(&mut self) {
        self.is_peer_ended |= self.is_open;
    }

    /// The connection is over, however it ended.
    pub fn end(&mut self) {
        *self = Lifecycle::default();
    }

    /// The state of the specification.
    pub fn state(&self) -> State {
        match self {
            Lifecycle { is_listening: true, .. } => State::Listen,
            Lifecycle { is_open: false, .. } => State::Closed,
            Lifecycle { is_peer_ended: true, .. } => State::AfinRcvd,
            Lifecycle { has_peer: false, is_known_to_peer: false, .. } => State::AsynSent,
            Lifecycle { is_end_sent: true, .. } => State::AfinSent,
            _ => State::Established,
        }
    }

    /// Whether segments still carry ASYN, because none has been answered. `[C2]`
    #[inline]
    pub fn is_opening(&self) -> bool {
        self.is_open && !self.is_known_to_peer
    }

    /// Whether there is a connection.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether it waits for a peer.
    #[inline]
    pub fn is_listening(&self) -> bool {
        self.is_listening
    }

    /// Whether a peer has sent anything.
    #[inline]
    pub fn has_peer(&self) -> bool {
        self.has_peer
    }

    /// Whether the peer's stream has ended and arrived completely.
    #[inline]
    pub fn is_peer_ended(&self) -> bool {
        self.is_peer_ended
    }

    /// Whether both streams have ended and both sides know it. `[C10]`
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_end_acknowledged && self.is_peer_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_mack_establishes_the_connection() {
        let mut side = Lifecycle::default();
        side.connect();
        assert_eq!((side.state(), side.is_opening()), (State::AsynSent, true));
        side.on_mack(false);
        assert_eq!((side.state(), side.is_opening()), (State::Established, false));
    }

    #[test]
    fn a_simultaneous_opening_establishes_one_connection() {
        let mut side = Lifecycle::default();
        side.connect();
        assert!(side.on_asyn());
        assert_eq!(side.state(), State::Established);
        assert!(side.is_opening(), "the peer may not have received anything");
    }

    #[test]
    fn it_closes_when_both_streams_have_ended() {
        let mut side = Lifecycle::default();
        side.listen();
        assert!(side.on_asyn());
        side.on_peer_ended();
        assert_eq!((side.state(), side.is_over()), (State::AfinRcvd, false));
        side.on_mack(true);
        assert!(!side.is_over(), "unsent data is not acknowledged");
        side.on_end_sent();
        side.on_mack(true);
        assert!(side.is_over());
    }

    #[test]
    fn a_closed_side_is_not_opened_again() {
        let mut side = Lifecycle::default();
        assert!(!side.on_asyn());
        side.on_mack(true);
        side.on_peer_ended();
        assert_eq!(side, Lifecycle::default());
    }
}
