//! What applications and the driver of an endpoint share.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

use farlink_core::event::Abort;
use tokio::sync::Notify;

use crate::mux::{ConnectionId, Mux};

use super::clock::Clock;

/// What applications and the driver share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// An application did something that the driver has to act on.
    pub(super) wake_driver: Notify,
    /// A connection was accepted, or the endpoint is over.
    pub(super) accepted: Notify,
    /// Connections have ended.
    pub(super) ended: Notify,
    pub(super) address: SocketAddr,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) mux: Mux,
    pub(super) clock: Clock,
    pub(super) connections: HashMap<ConnectionId, Waiting>,
    pub(super) new: VecDeque<ConnectionId>,
    /// Why the socket cannot be used any more.
    pub(super) failure: Option<io::ErrorKind>,
}

/// Who waits for a connection, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Waits until the peer has everything.
    pub(super) closer: Option<Waker>,
    pub(super) written: u64,
    pub(super) end: Option<End>,
    /// No application uses it any more.
    pub(super) is_abandoned: bool,
}

/// How far a connection has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer writes nothing more.
    Finished,
    /// Both sides have ended.
    Closed,
    Aborted(Abort),
}

impl Waiting {
    pub(super) fn wake(&mut self) {
        let waiting = [self.reader.take(), self.writer.take(), self.closer.take()];
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Shared {
    pub(super) fn new(mux: Mux, address: SocketAddr) -> Self {
        let state =
            State { mux, clock: Clock::start(), connections: HashMap::new(), new: VecDeque::new(), failure: None };
        Shared {
            state: Mutex::new(state),
            wake_driver: Notify::new(),
            accepted: Notify::new(),
            ended: Notify::new(),
            address,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn tell_accepted(&self) {
        self.accepted.notify_waiters();
    }

    pub(super) fn tell_ended(&self) {
        self.ended.notify_waiters();
    }
}
