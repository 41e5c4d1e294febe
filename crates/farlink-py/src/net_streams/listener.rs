//! A listener and the connections that it has accepted.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use farlink_net::{Connection, Endpoint, streams};
use pyo3::prelude::*;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::net::{address, folder, from_transfer, raised};
use crate::waits::{NetWaits, lock, runtime};

use super::connection::{NetConnection, Stream};
use super::{LAST_WORDS, settings, until};

/// A listener waits this long for the ends of peers that have all.
const LAST_ENDS: Duration = Duration::from_secs(2);
/// It looks so often whether they have.
const INTERVAL: Duration = Duration::from_millis(20);

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

/// Opens a socket at which connections of trusted hosts are accepted.
#[pyfunction]
#[pyo3(signature = (listen, *, port, keys=None, psk=None, rate_bps=None, packet_bytes=1500, damaged_links=false, insecure=None, patience_s=60.0))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn listen_for_streams(
    py: Python<'_>,
    listen: &str,
    port: u16,
    keys: Option<PathBuf>,
    psk: Option<&str>,
    rate_bps: Option<f64>,
    packet_bytes: u16,
    damaged_links: bool,
    insecure: Option<&str>,
    patience_s: f64,
) -> PyResult<NetListener> {
    let settings = settings(port, psk, rate_bps, packet_bytes, damaged_links, insecure, patience_s)?;
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
