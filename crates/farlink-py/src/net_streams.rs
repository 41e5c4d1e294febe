//! Streams of bytes between hosts, for asyncio.
//!
//! A wait that asyncio cancels may have ended just before: if data were its result, they would be lost. So no wait has a result. Attempts
//! (`try_read` and so on) return at once, and waits (`until_readable`) only tell when another attempt is worthwhile.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use farlink_net::streams::{self, StreamSettings};
use farlink_net::{Connection, Endpoint};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::net::{address, bit_rate, folder, from_transfer, key, patience, raised, shared};
use crate::waits::{NetWaits, lock, runtime};

/// Bytes that one attempt to read gives at most.
const MOST_READ: usize = 1 << 20;
/// The ends of connections and their last acknowledgements are waited for this long.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// A listener waits this long for the ends of peers that have all.
const LAST_ENDS: Duration = Duration::from_secs(2);
/// It looks so often whether they have.
const INTERVAL: Duration = Duration::from_millis(20);

async fn until(is_so: &watch::Sender<bool>) {
    // The sender is there, so the only end is that it is so.
    let _ = is_so.subscribe().wait_for(|&it| it).await;
}

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
struct Stream {
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
    fn close(&self) -> bool {
        let was_open = lock(&self.connection).take().is_some();
        self.is_closed.send_replace(true);
        was_open
    }
}

/// A connection to another host.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct NetConnection {
    stream: Arc<Stream>,
    /// Of a connection that this side opened, and how long it stays after the connection is closed.
    endpoint: Mutex<Option<(Endpoint, Duration)>>,
    /// Whether nothing is under way any more after the connection was closed. Accepted ones leave that to their listener.
    has_ended: watch::Sender<bool>,
    /// Public key of the peer.
    #[pyo3(get)]
    peer: String,
    remote: Mutex<SocketAddr>,
}

impl NetConnection {
    fn new(connection: Connection, endpoint: Option<(Endpoint, Duration)>) -> Option<Self> {
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

/// A socket at which connections of trusted hosts are accepted.
#[pyclass(frozen, module = "farlink._core")]
pub(crate) struct NetListener {
    endpoint: Mutex<Option<Endpoint>>,
    accepted: Arc<Mutex<VecDeque<Connection>>>,
    streams: Mutex<Vec<Weak<Stream>>>,
    is_closed: watch::Sender<bool>,
    has_failed: watch::Sender<bool>,
    has_ended: watch::Sender<bool>,
    /// Address of the socket.
    #[pyo3(get)]
    address: String,
    /// The own public key.
    #[pyo3(get)]
    public_key: String,
}

impl NetListener {
    fn shut(&self, within: Duration) {
        self.is_closed.send_replace(true);
        let Some(endpoint) = lock(&self.endpoint).take() else { return };
        for stream in lock(&self.streams).drain(..).filter_map(|stream| stream.upgrade()) {
            stream.close();
        }
        lock(&self.accepted).clear();
        runtime().spawn(end(endpoint, within, self.has_ended.clone()));
    }
}

#[pymethods]
impl NetListener {
    /// The next connection, if one has come.
    fn try_accept(&self, py: Python<'_>) -> PyResult<Option<NetConnection>> {
        if *self.has_failed.borrow() {
            let text =
                format!("{}: the socket cannot be used any more; look for what closed the network", self.address);
            return Err(raised(&text, 1));
        }
        let accepted = py.detach(|| {
            let mut accepted = lock(&self.accepted);
            // One whose session is over already has no peer.
            std::iter::from_fn(|| accepted.pop_front()).find_map(|connection| NetConnection::new(connection, None))
        });
        if let Some(accepted) = &accepted {
            let mut streams = lock(&self.streams);
            streams.retain(|stream| stream.strong_count() > 0);
            streams.push(Arc::downgrade(&accepted.stream));
        }
        Ok(accepted)
    }

    fn until_accepted(&self, waits: &NetWaits) -> u64 {
        let (endpoint, accepted) = (lock(&self.endpoint).clone(), self.accepted.clone());
        let (is_closed, has_failed) = (self.is_closed.clone(), self.has_failed.clone());
        waits.begin(async move {
            let Some(endpoint) = endpoint else { return };
            tokio::select! {
                () = until(&is_closed) => {}
                connection = endpoint.accept() => match connection {
                    Some(connection) => lock(&accepted).push_back(connection),
                    None => drop(has_failed.send_replace(true)),
                }
            }
            if *is_closed.borrow() {
                lock(&accepted).clear();
            }
        })
    }

    /// Accepts nothing more, closes all connections, and frees the socket when they have ended, within this time at most.
    fn close(&self, py: Python<'_>, within_s: f64) {
        py.detach(|| self.shut(Duration::try_from_secs_f64(within_s).unwrap_or(LAST_WORDS).min(LAST_WORDS)));
    }

    /// Waits, after `close`, until the socket is free.
    fn until_ended(&self, waits: &NetWaits) -> u64 {
        let has_ended = self.has_ended.clone();
        waits.begin(async move { until(&has_ended).await })
    }

    fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }
}

impl Drop for NetListener {
    fn drop(&mut self) {
        self.shut(LAST_WORDS);
    }
}

/// Delivers what was written to the connections of a closed listener, then frees the socket. Peers that do not end their directions soon
/// after that are left; who comes now is sent away.
async fn end(endpoint: Endpoint, within: Duration, has_ended: watch::Sender<bool>) {
    let send_away = async { while endpoint.accept().await.is_some() {} };
    let deliver = async {
        while !endpoint.is_delivered() {
            sleep(INTERVAL).await;
        }
        let _ = timeout(LAST_ENDS, endpoint.finish()).await;
    };
    tokio::select! {
        () = send_away => {}
        _ = timeout(within, deliver) => {}
    }
    endpoint.close().await;
    drop(endpoint);
    has_ended.send_replace(true);
}

fn settings(
    port: u16,
    psk: Option<&str>,
    rate_bps: Option<f64>,
    packet_bytes: u16,
    patience_s: f64,
) -> PyResult<StreamSettings> {
    let (rate, shared, patience) = (bit_rate(rate_bps)?, shared(psk)?, patience(patience_s)?);
    Ok(StreamSettings { port, rate, shared, packet_bytes, patience })
}

/// Opens a connection; nothing is awaited.
#[pyfunction]
#[pyo3(signature = (peer, to, *, port, keys=None, psk=None, rate_bps=None, packet_bytes=1500, patience_s=60.0))]
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
    patience_s: f64,
) -> PyResult<NetConnection> {
    let settings = settings(port, psk, rate_bps, packet_bytes, patience_s)?;
    let (folder, peer, to) = (folder(keys)?, key(peer)?, address(to)?);
    let opened = py.detach(|| {
        let _runtime = runtime().enter();
        streams::connect(&folder, &peer, to, &settings)
    });
    let (endpoint, connection) = opened.map_err(|error| from_transfer(&error))?;
    let patience = settings.patience.max(LAST_WORDS);
    Ok(NetConnection::new(connection, Some((endpoint, patience))).expect("its session was just made"))
}

/// Opens a socket at which connections of trusted hosts are accepted.
#[pyfunction]
#[pyo3(signature = (listen, *, port, keys=None, psk=None, rate_bps=None, packet_bytes=1500, patience_s=60.0))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn listen_for_streams(
    py: Python<'_>,
    listen: &str,
    port: u16,
    keys: Option<PathBuf>,
    psk: Option<&str>,
    rate_bps: Option<f64>,
    packet_bytes: u16,
    patience_s: f64,
) -> PyResult<NetListener> {
    let settings = settings(port, psk, rate_bps, packet_bytes, patience_s)?;
    let (folder, listen) = (folder(keys)?, address(listen)?);
    let opened = py.detach(|| {
        let _runtime = runtime().enter();
        streams::listen(&folder, listen, &settings)
    });
    let endpoint = opened.map_err(|error| from_transfer(&error))?;
    Ok(NetListener {
        address: endpoint.local_addr().to_string(),
        public_key: endpoint.public_key().to_string(),
        endpoint: Mutex::new(Some(endpoint)),
        accepted: Arc::default(),
        streams: Mutex::default(),
        is_closed: watch::Sender::new(false),
        has_failed: watch::Sender::new(false),
        has_ended: watch::Sender::new(false),
    })
}
