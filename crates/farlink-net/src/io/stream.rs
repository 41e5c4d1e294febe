//! A connection as an asynchronous stream of bytes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use farlink_core::event::Abort;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::mux::{ConnectionId, ConnectionState, Route};
use crate::seal::PublicKey;

use super::shared::{End, Shared, State, UNSENT_BYTES};

/// Bytes that one call to write takes at most: enough to keep the lock seldom, little enough to copy at once.
const WRITTEN_BYTES: usize = 1 << 16;

/// A connection: both directions are streams of bytes. Dropping it ends its own direction; what was written is still delivered.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    id: ConnectionId,
    /// Data that was read from the network and not yet by the application.
    rest: Bytes,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, id: ConnectionId) -> Self {
        Connection { shared, id, rest: Bytes::new() }
    }

    /// Key and route of the peer; `None` once the session is over.
    pub fn peer(&self) -> Option<(PublicKey, Route)> {
        self.shared.lock().mux.peer(self.id)
    }

    /// The port to which the peer opened the connection; `None` if this side opened it.
    pub fn accepted_at(&self) -> Option<u16> {
        self.id.accepted_at()
    }

    /// Measurements; `None` once the connection has ended.
    pub fn state(&self) -> Option<ConnectionState> {
        self.shared.lock().mux.state(self.id)
    }

    /// Its class among the connections of its session that have the same settings of the rate, 0 to 7: a lower one goes first. By
    /// default it is 6. The peer sets its own. `[Y25]`
    pub fn set_class(&self, class: u8) {
        self.shared.lock().mux.set_class(self.id, class);
    }

    /// [`Endpoint::finish`](crate::Endpoint::finish) does not wait for it, as the peer loses nothing if it breaks off.
    pub(crate) fn leave(&self) {
        if let Some(waiting) = self.shared.lock().connections.get_mut(&self.id) {
            waiting.is_left = true;
        }
        self.shared.tell_ended();
    }

    /// For somebody who has no part in it.
    pub(crate) fn watch(&self) -> Watch {
        Watch { shared: self.shared.clone(), id: self.id }
    }

    /// Waits until the peer has answered, which an accepted connection need not. Data may be written before.
    ///
    /// # Errors
    /// If it does not answer in time.
    pub async fn connected(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_connected(cx)).await
    }

    /// As [`connected`](Self::connected).
    ///
    /// # Errors
    /// As [`connected`](Self::connected).
    pub fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        let end = end_of(&state, self.id)?;
        let waiting = state.connections.entry(self.id).or_default();
        if waiting.is_connected || end.is_some() || self.id.accepted_at().is_some() {
            return Poll::Ready(Ok(()));
        }
        waiting.opener = Some(cx.waker().clone());
        state.mux.announce(self.id);
        drop(state);
        self.shared.wake_driver.notify_one();
        Poll::Pending
    }
}

/// How far a connection is.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    id: ConnectionId,
}

impl Watch {
    /// For how long nothing has come from the peer; `None` once the session is over.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let state = self.shared.lock();
        let heard = state.mux.last_heard(self.id)?;
        Some(duration(state.clock.now().since(heard)))
    }

    /// The longest silence after which something came again; `None` once the session is over.
    pub(crate) fn longest_silence(&self) -> Option<Duration> {
        self.shared.lock().mux.longest_silence(self.id).map(duration)
    }

    /// The latest round trip of the session, if one is known.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.shared.lock().mux.round_trip(self.id).map(duration)
    }

    /// Asks the peer to show that it is there.
    pub(crate) fn ask(&self) {
        self.shared.lock().mux.ask(self.id);
        self.shared.wake_driver.notify_one();
    }

    /// Bytes that were written, and those of them that will not be sent again.
    pub(crate) fn settled_bytes(&self) -> (u64, u64) {
        let state = self.shared.lock();
        let written = state.connections.get(&self.id).map_or(0, |waiting| waiting.written);
        (written, state.mux.state(self.id).map_or(written, |it| it.settled_bytes))
    }
}

fn duration(time: farlink_core::Time) -> Duration {
    Duration::from_nanos(time.as_ps() / 1_000)
}

/// Gives what is left of a piece, or as much as there is room for.
fn give(rest: &mut Bytes, out: &mut ReadBuf<'_>) {
    let bytes = rest.len().min(out.remaining());
    out.put_slice(&rest[..bytes]);
    rest.advance(bytes);
}

fn end_of(state: &State, id: ConnectionId) -> Result<Option<End>, io::Error> {
    if let Some(kind) = state.failure {
        return Err(io::Error::new(kind, "the socket cannot be used any more"));
    }
    match state.connections.get(&id).and_then(|waiting| waiting.end) {
        Some(End::Aborted(why)) => Err(aborted(why)),
        end => Ok(end),
    }
}

fn aborted(why: Abort) -> io::Error {
    let (kind, what) = match why {
        Abort::NoAnswer => (io::ErrorKind::TimedOut, "the peer does not answer; check address, keys and firewall"),
        Abort::PeerRestarted => (io::ErrorKind::ConnectionReset, "the peer has restarted; connect again"),
        Abort::OtherVersion => (
            io::ErrorKind::Unsupported,
            "the peer has another version of the protocol; use the same farlink on both hosts",
        ),
        _ => (io::ErrorKind::ConnectionReset, "the peer has ended the connection"),
    };
    io::Error::new(kind, what)
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let (room, mut has_read) = (out.remaining(), false);
        give(&mut this.rest, out);
        if out.remaining() > 0 {
            let mut state = this.shared.lock();
            // Takes all arrived data at once: each lock and each call of the driver costs more than many packets.
            while out.remaining() > 0
                && let Some(data) = state.mux.read(this.id)
            {
                this.rest = data;
                give(&mut this.rest, out);
                has_read = true;
            }
            if out.remaining() == room {
                return match end_of(&state, this.id) {
                    Err(error) => Poll::Ready(Err(error)),
                    Ok(Some(_)) => Poll::Ready(Ok(())),
                    Ok(None) => {
                        let waiting = state.connections.entry(this.id).or_default();
                        waiting.reader = Some(cx.waker().clone());
                        Poll::Pending
                    }
                };
            }
        }
        if has_read {
            // Reading may open the window, of which the peer has to be told.
            this.shared.wake_driver.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut state = self.shared.lock();
        if matches!(end_of(&state, self.id)?, Some(End::Closed)) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the connection has ended")));
        }
        let room = UNSENT_BYTES.saturating_sub(state.mux.unsent_bytes(self.id)) as usize;
        let mut piece = Bytes::copy_from_slice(&data[..data.len().min(WRITTEN_BYTES).min(room)]);
        let now = state.clock.now();
        let mut taken = 0;
        while !piece.is_empty() {
            let more = state.mux.write(now, self.id, &mut piece);
            taken += more;
            if more == 0 {
                break;
            }
        }
        let waiting = state.connections.entry(self.id).or_default();
        waiting.written += taken as u64;
        if taken == 0 {
            waiting.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        self.shared.wake_driver.notify_one();
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the own direction, and waits until the peer has all of it.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        let end = end_of(&state, self.id)?;
        let now = state.clock.now();
        let settled = state.mux.state(self.id).map_or(u64::MAX, |connection| connection.settled_bytes);
        let waiting = state.connections.entry(self.id).or_default();
        if end == Some(End::Closed) || settled >= waiting.written {
            state.mux.close(now, self.id);
            drop(state);
            self.shared.wake_driver.notify_one();
            return Poll::Ready(Ok(()));
        }
        waiting.closer = Some(cx.waker().clone());
        state.mux.close(now, self.id);
        drop(state);
        self.shared.wake_driver.notify_one();
        Poll::Pending
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let now = state.clock.now();
        let is_over = match state.connections.get_mut(&self.id) {
            None => true,
            Some(waiting) => {
                waiting.is_abandoned = true;
                matches!(waiting.end, Some(End::Closed | End::Aborted(_)))
            }
        };
        if is_over {
            state.connections.remove(&self.id);
        } else {
            state.mux.close(now, self.id);
        }
        drop(state);
        self.shared.wake_driver.notify_one();
    }
}
