//! State that applications and the driver of an endpoint share.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

use farlink_core::event::{Abort, Event};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::mux::{ConnectionId, Mux};

use super::clock::Clock;

/// Bytes that a connection takes ahead of what it has sent. A faster writer waits until half of them have gone, which at 800 Mb/s is as much
/// as a driver sends that wakes up 5 ms late.
pub(crate) const UNSENT_BYTES: u64 = 1 << 20;

/// State that applications and the driver share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// An application did something that the driver has to act on.
    pub(super) wake_driver: Notify,
    /// A connection was accepted, or the endpoint is over.
    pub(super) accepted: Notify,
    /// Datagrams have arrived, or the endpoint is over.
    pub(super) datagrams: Notify,
    /// Connections have ended, or all datagrams or last acknowledgements were sent.
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
    /// Whether datagrams waited to be sent.
    pub(super) has_datagrams: bool,
    /// How many wait for the end of everything. They look after each turn of the driver.
    pub(super) finishing: usize,
    /// The task that drives the socket.
    pub(super) driver: Option<JoinHandle<()>>,
}

/// Tasks that wait for a connection, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
    /// Waits until the peer has answered.
    pub(super) opener: Option<Waker>,
    /// Waits until the peer has everything.
    pub(super) closer: Option<Waker>,
    pub(super) written: u64,
    /// Whether the peer has answered.
    pub(super) is_connected: bool,
    pub(super) end: Option<End>,
    /// No application uses it any more.
    pub(super) is_abandoned: bool,
    /// The end of the program does not wait for its end.
    pub(super) is_left: bool,
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
    /// Tasks that wait for what happens without an event: the closer for acknowledgements, the writer for room.
    pub(super) fn satisfied(&mut self, mux: &Mux, id: ConnectionId) -> impl Iterator<Item = Waker> {
        let has_room = self.writer.is_some() && mux.unsent_bytes(id) <= UNSENT_BYTES / 2;
        let writer = if has_room { self.writer.take() } else { None };
        // A task that is woken for nothing wakes the driver, which would wake it again.
        let is_settled = self.closer.is_some() && mux.state(id).is_none_or(|it| it.settled_bytes >= self.written);
        let closer = if is_settled { self.closer.take() } else { None };
        closer.into_iter().chain(writer)
    }

    /// Tasks that wait for an event.
    pub(super) fn concerned(&mut self, event: Event) -> impl Iterator<Item = Waker> {
        let waiting = match event {
            Event::Readable => [self.reader.take(), None, None, None],
            Event::Writable => [self.writer.take(), None, None, None],
            _ => self.all(),
        };
        waiting.into_iter().flatten()
    }

    pub(super) fn wake(&mut self) {
        self.all().into_iter().flatten().for_each(Waker::wake);
    }

    fn all(&mut self) -> [Option<Waker>; 4] {
        [self.reader.take(), self.writer.take(), self.opener.take(), self.closer.take()]
    }
}

impl Shared {
    pub(super) fn new(mux: Mux, address: SocketAddr) -> Self {
        let state = State {
            mux,
            clock: Clock::start(),
            connections: HashMap::new(),
            new: VecDeque::new(),
            failure: None,
            has_datagrams: false,
            finishing: 0,
            driver: None,
        };
        Shared {
            state: Mutex::new(state),
            wake_driver: Notify::new(),
            accepted: Notify::new(),
            datagrams: Notify::new(),
            ended: Notify::new(),
            address,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The socket is used no more.
    pub(super) fn fail(&self, why: io::ErrorKind) {
        let mut state = self.lock();
        state.failure = Some(why);
        state.connections.values_mut().for_each(Waiting::wake);
        drop(state);
        self.tell_accepted();
        self.datagrams.notify_waiters();
        self.tell_ended();
    }

    pub(super) fn tell_accepted(&self) {
        self.accepted.notify_waiters();
    }

    pub(super) fn tell_ended(&self) {
        self.ended.notify_waiters();
    }
}
