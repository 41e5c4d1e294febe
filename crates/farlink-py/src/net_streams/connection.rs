//! A connection: attempts to read and write, and waits until another one is worthwhile.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use farlink_net::{Connection, Endpoint, streams};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::net::{address, folder, from_transfer, key, raised};
use crate::waits::{NetWaits, lock, runtime};

use super::{LAST_WORDS, settings, until};

/// Bytes that one attempt to read gives at most.
const MOST_READ: usize = 1 << 20;

/// Wakes who waits until another attempt is worthwhile, even if the wait begins after that.
#[derive(Default)]
struct Signal(Notify);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

/// A connection that both its owner and its listener may close.
pub(super) struct Stream {
    connection: Mutex<Option<Connection>>,
    readable: Arc<Signal>,
    writable: Arc<Signal>,
    is_closed: watch::Sender<bool>,
}

impl Stream {
    fn new(connection: Connection) -> Arc<Self> {
        Arc::new(Stream {
            connection: Mutex::new(Some(connection)),
            readable: Arc::default(),
            writable: Arc::default(),
            is_closed: watch::Sender::new(false),
        })
    }

    fn attempt<T>(
        &self,
        waker: &Waker,
        poll: impl FnOnce(Pin<&mut Connection>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match lock(&self.connection).as_mut() {
            Some(connection) => poll(Pin::new(connection), &mut Context::from_waker(waker)),
            None => Poll::Ready(Err(io::Error::new(io::ErrorKind::NotConnected, "the connection is closed"))),
        }
    }

    /// Waits until `poll` is ready, or the connection is closed.
    async fn wait(&self, mut poll: impl FnMut(Pin<&mut Connection>, &mut Context<'_>) -> Poll<io::Result<()>>) {
        tokio::select! {
            _ = poll_fn(|cx| self.attempt(cx.waker(), &mut poll)) => {}
            () = until(&self.is_closed) => {}
        }
    }

    async fn wait_for(&self, signal: &Signal) {
        tokio::select! {
            () = signal.0.notified() => {}
            () = until(&self.is_closed) => {}
        }
    }

    /// Ends the own direction; what was written is delivered as long as the endpoint is there. Whether it was open.
    pub(super) fn close(&self) -> bool {
        let was_open = lock(&self.connection).take().is_some();
        self.is_closed.send_replace(true);
        was_open
    }
}

/// A connection to another host.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct NetConnection {
    pub(super) stream: Arc<Stream>,
    /// The endpoint of a connection that this side opened, and how long it stays after the connection is closed.
    endpoint: Mutex<Option<(Endpoint, Duration)>>,
    /// Whether nothing is under way any more after the connection was closed. Accepted ones leave that to their listener.
    has_ended: watch::Sender<bool>,
    /// Public key of the peer.
    #[pyo3(get)]
    peer: String,
    remote: Mutex<SocketAddr>,
}

impl NetConnection {
    pub(super) fn new(connection: Connection, endpoint: Option<(Endpoint, Duration)>) -> Option<Self> {
        let (peer, route) = connection.peer()?;
        Some(NetConnection {
            stream: Stream::new(connection),
            has_ended: watch::Sender::new(endpoint.is_none()),
            endpoint: Mutex::new(endpoint),
            peer: peer.to_string(),
            remote: Mutex::new(route.remote),
        })
    }

    fn shut(&self) {
        self.stream.close();
        if let Some((endpoint, patience)) = lock(&self.endpoint).take() {
            runtime().spawn(deliver(endpoint, patience, self.has_ended.clone()));
        }
    }

    /// The outcome of an attempt; `None` if it is to be repeated.
    fn attempt<T: Send>(
        &self,
        py: Python<'_>,
        waker: &Waker,
        poll: impl FnOnce(Pin<&mut Connection>, &mut Context<'_>) -> Poll<io::Result<T>> + Send,
    ) -> PyResult<Option<T>> {
        match py.detach(|| self.stream.attempt(waker, poll)) {
            Poll::Pending => Ok(None),
            Poll::Ready(Ok(value)) => Ok(Some(value)),
            Poll::Ready(Err(error)) => {
                let (text, remote) = (error.to_string(), lock(&self.remote));
                let remedy = if text.contains("; ") { "" } else { "; open another connection" };
                Err(raised(&format!("{remote}: {text}{remedy}"), 1))
            }
        }
    }
}

#[pymethods]
impl NetConnection {
    /// Reads at most so many bytes; none at the end. `None` if nothing has arrived.
    fn try_read<'py>(&self, py: Python<'py>, most_bytes: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let waker = Waker::from(self.stream.readable.clone());
        let mut data = vec![0; most_bytes.min(MOST_READ)];
        let mut out = ReadBuf::new(&mut data);
        let read = self.attempt(py, &waker, |connection, cx| connection.poll_read(cx, &mut out))?;
        Ok(read.map(|()| PyBytes::new(py, out.filled())))
    }

    /// How much of the front of `data` was taken; 0 if there is no room.
    fn try_write(&self, py: Python<'_>, data: &[u8]) -> PyResult<usize> {
        let waker = Waker::from(self.stream.writable.clone());
        self.attempt(py, &waker, |connection, cx| connection.poll_write(cx, data)).map(Option::unwrap_or_default)
    }

    /// Ends the own direction; whether the peer has all of it.
    fn try_finish(&self, py: Python<'_>) -> PyResult<bool> {
        self.attempt(py, Waker::noop(), AsyncWrite::poll_shutdown).map(|done| done.is_some())
    }

    /// Whether the peer has answered.
    fn try_connected(&self, py: Python<'_>) -> PyResult<bool> {
        let connected =
            |connection: Pin<&mut Connection>, cx: &mut Context<'_>| connection.get_mut().poll_connected(cx);
        self.attempt(py, Waker::noop(), connected).map(|done| done.is_some())
    }

    fn until_readable(&self, waits: &NetWaits) -> u64 {
        let stream = self.stream.clone();
        waits.begin(async move { stream.wait_for(&stream.readable).await })
    }

    fn until_writable(&self, waits: &NetWaits) -> u64 {
        let stream = self.stream.clone();
        waits.begin(async move { stream.wait_for(&stream.writable).await })
    }

    fn until_finished(&self, waits: &NetWaits) -> u64 {
        let stream = self.stream.clone();
        waits.begin(async move { stream.wait(AsyncWrite::poll_shutdown).await })
    }

    fn until_connected(&self, waits: &NetWaits) -> u64 {
        let stream = self.stream.clone();
        waits.begin(async move { stream.wait(|connection, cx| connection.get_mut().poll_connected(cx)).await })
    }

    /// Gives the connection up. What was written is delivered behind the scenes.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.shut());
    }

    /// Waits, after `close`, until the peer has ended its direction as well, for a few seconds at most.
    fn until_ended(&self, waits: &NetWaits) -> u64 {
        let has_ended = self.has_ended.clone();
        waits.begin(async move { drop(timeout(LAST_WORDS, until(&has_ended)).await) })
    }

    fn is_closed(&self) -> bool {
        *self.stream.is_closed.borrow()
    }

    /// Where the peer is now, or was last.
    fn remote_address(&self, py: Python<'_>) -> String {
        let remote = py.detach(|| {
            let now = lock(&self.stream.connection).as_ref().and_then(Connection::peer);
            let mut remote = lock(&self.remote);
            *remote = now.map_or(*remote, |(_, route)| route.remote);
            *remote
        });
        remote.to_string()
    }

    /// Round trip in s, rate in bit/s, settled bytes and bytes in flight; `None` once the connection has ended.
    fn statistics(&self, py: Python<'_>) -> Option<(Option<f64>, Option<f64>, u64, u64)> {
        let state = py.detach(|| lock(&self.stream.connection).as_ref().and_then(Connection::state))?;
        let round_trip = state.probe.rtt.map(farlink_core::Time::as_secs_f64);
        Some((round_trip, state.probe.pacing_bps, state.settled_bytes, state.probe.in_flight_bytes.unwrap_or(0)))
    }
}

impl Drop for NetConnection {
    fn drop(&mut self) {
        self.shut();
    }
}

/// Keeps the endpoint of a closed connection until all is delivered.
async fn deliver(endpoint: Endpoint, patience: Duration, has_ended: watch::Sender<bool>) {
    let _ = timeout(patience, endpoint.finish()).await;
    has_ended.send_replace(true);
    // The peer's last packets come again if the answer to them was lost.
    sleep(LAST_WORDS).await;
    endpoint.close().await;
}

/// Opens a connection; nothing is awaited.
#[pyfunction]
#[pyo3(signature = (peer, to, *, port, keys=None, psk=None, rate_bps=None, packet_bytes=1500, damaged_links=false, insecure=None, patience_s=60.0))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn connect_stream(
    py: Python<'_>,
    peer: &str,
    to: &str,
    port: u16,
    keys: Option<PathBuf>,
    psk: Option<&str>,
    rate_bps: Option<f64>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
    patience_s: f64,
) -> PyResult<NetConnection> {
    let settings = settings(port, psk, rate_bps, packet_bytes, damaged_links, insecure, patience_s)?;
    let (folder, peer, to) = (folder(keys)?, key(peer)?, address(to)?);
    let opened = py.detach(|| {
        let _runtime = runtime().enter();
        streams::connect(&folder, &peer, to, &settings)
    });
    let (endpoint, connection) = opened.map_err(|error| from_transfer(&error))?;
    let patience = settings.patience.max(LAST_WORDS);
    Ok(NetConnection::new(connection, Some((endpoint, patience))).expect("its session was just made"))
}
