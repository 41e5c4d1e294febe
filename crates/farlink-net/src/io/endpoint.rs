//! A socket with its sessions, for applications.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use farlink_core::ConfigError;
use farlink_core::link::LinkState;
use farlink_core::protocol::aerotp::{AcceptorLimits, AerotpConfig, RateControl};
use farlink_core::units::{Count, PositiveSeconds, Whole};
use tracing::{Instrument as _, debug_span};

use crate::mux::{CounterStore, Mux, MuxConfig, MuxCounts, OpenError, Route, Trust};
use crate::seal::PublicKey;

use super::clock::unix_us;
use super::driver;
use super::shared::{End, Shared, Waiting};
use super::socket::Socket;
use super::sockets::Sockets;
use super::stream::Connection;

/// Why an endpoint was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A setting is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system gives no socket at this address.
    #[error("cannot use {address}: {error}; choose another address or port")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
}

/// Settings of an [`Endpoint`].
#[derive(Debug)]
pub struct EndpointConfig {
    /// Keys, trust and limits of the sessions.
    pub mux: MuxConfig,
    /// Settings of connections that this side opens.
    pub connection: AerotpConfig,
    /// Damaged datagrams are wanted, to be corrected: datagrams go without UDP's checksum, for which the kernel would drop them, and
    /// one by one, as Linux refuses several at once without it. Corrected is what has parity (`connection.fec_words`). Linux only.
    pub damaged_links: bool,
    /// Whether packets in the clear ([`MuxConfig::insecure`]) may come from and go to other machines. Without it an endpoint that permits
    /// them takes addresses of this machine only.
    pub insecure_anywhere: bool,
}

impl EndpointConfig {
    /// Reliable connections whose rate is safe on a path that others share.
    pub fn new(mux: MuxConfig) -> Self {
        EndpointConfig { mux, connection: friendly(), damaged_links: false, insecure_anywhere: false }
    }

    /// For links that deliver damaged packets: 64 bytes of parity correct up to 32 wrong bytes in each.
    #[must_use]
    pub fn for_damaged_links(mut self) -> Self {
        self.damaged_links = true;
        self.connection.fec_words = Some(Whole::new(PARITY_WORDS).expect("a constant within its range"));
        self
    }
}

/// Parity on links that damage packets, in words of 32 bits: as much as quasi-reliable modes have.
const PARITY_WORDS: f64 = 16.0;

/// A reliable connection at a friendly rate; a silent peer is given up after five minutes.
fn friendly() -> AerotpConfig {
    let seconds = |s| PositiveSeconds::new(s).expect("a constant within its range");
    AerotpConfig {
        rate_control: Some(RateControl::Friendly),
        mack_timeout_s: seconds(0.01),
        receive_buffer_bytes: Some(Count::new(f64::from(16 << 20)).expect("a constant within its range")),
        give_up_after_s: seconds(300.0),
        keep_alive_s: Some(seconds(60.0)),
        listen_timeout_s: Some(seconds(10.0)),
        ..AerotpConfig::default()
    }
}

/// A UDP socket with sealed sessions. Copies share it.
///
/// A task of the runtime drives it. It ends when the last copy and the last connection are dropped; what was written to a dropped
/// connection is only delivered as long as the runtime runs, so call [`finish`](Endpoint::finish) before the end of a program.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(super) shared: Arc<Shared>,
    pub(super) connection: Arc<AerotpConfig>,
}

impl Endpoint {
    /// Opens a socket and starts its driver on the present runtime.
    ///
    /// # Errors
    /// If a setting is refused, or the system gives no socket.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn bind(address: SocketAddr, config: EndpointConfig, store: Box<dyn CounterStore>) -> Result<Self, BindError> {
        if config.mux.insecure && !config.insecure_anywhere && !address.ip().is_loopback() {
            let what =
                format!("without a seal only addresses of this machine may be used, and others reach {}", address.ip());
            let remedy =
                "use 127.0.0.1 or ::1, or permit any address (--insecure-anywhere) on a network that only you use";
            return Err(ConfigError::new("insecure", what, remedy).into());
        }
        let mux = Mux::new(config.mux, store, unix_us)?;
        let failed = |error| BindError::Socket { address, error };
        let socket = Socket::bind(address, !config.damaged_links).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared::new(mux, address));
        let driver = driver::drive(Arc::downgrade(&shared), Sockets::new(socket));
        let driver = tokio::spawn(driver.instrument(debug_span!("endpoint", %address)));
        shared.lock().driver = Some(driver);
        Ok(Endpoint { shared, connection: Arc::new(config.connection) })
    }

    /// The same socket, with connections of another kind.
    #[must_use]
    pub fn with_connections(&self, change: impl FnOnce(&mut AerotpConfig)) -> Self {
        let mut connection = (*self.connection).clone();
        change(&mut connection);
        Endpoint { shared: self.shared.clone(), connection: Arc::new(connection) }
    }

    /// The address of the socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.address
    }

    /// The own public key.
    pub fn public_key(&self) -> PublicKey {
        self.shared.lock().mux.public_key()
    }

    /// From now on sessions of others are answered. Sessions that there are go on.
    pub fn set_trust(&self, trust: Trust) {
        self.shared.lock().mux.set_trust(trust);
    }

    /// The state of the link that this host sends into, as its modem reports it ([`Mux::set_link`]).
    pub fn set_link(&self, state: LinkState) {
        let mut shared = self.shared.lock();
        let now = shared.clock.now();
        shared.mux.set_link(now, state);
        drop(shared);
        self.shared.wake_driver.notify_one();
    }

    /// Opens a connection to a port of a peer. Nothing is awaited: what is written goes out with the first packets.
    ///
    /// # Errors
    /// As [`Mux::connect`].
    pub fn connect(&self, peer: &PublicKey, address: SocketAddr, port: u16) -> Result<Connection, OpenError> {
        let mut state = self.shared.lock();
        let now = state.clock.now();
        let id = state.mux.connect(now, peer, Route::to(address), port, &self.connection)?;
        state.connections.insert(id, Waiting::default());
        drop(state);
        self.shared.wake_driver.notify_one();
        Ok(Connection::new(self.shared.clone(), id))
    }

    /// Opens a session with a peer before a connection needs it, or keeps the one that there is ([`Mux::keep_session`]). Returns whether the
    /// peer has answered since this was asked for last.
    ///
    /// # Errors
    /// As [`Mux::connect`].
    pub fn keep_session(&self, peer: &PublicKey, address: SocketAddr) -> Result<bool, OpenError> {
        let mut state = self.shared.lock();
        let now = state.clock.now();
        let is_open = state.mux.keep_session(now, peer, Route::to(address))?;
        drop(state);
        self.shared.wake_driver.notify_one();
        Ok(is_open)
    }

    /// The rate of the connections with a peer at an address in bit/s, if some of them wait for it.
    pub(crate) fn contended_bits_per_s(&self, peer: &PublicKey, address: SocketAddr) -> Option<f64> {
        self.shared.lock().mux.contended_bits_per_s(peer, &Route::to(address))
    }

    /// Accepts connections to a port, with the configuration of this endpoint.
    ///
    /// # Errors
    /// As [`Mux::listen`].
    pub fn listen(&self, port: u16, limits: AcceptorLimits) -> Result<(), ConfigError> {
        self.shared.lock().mux.listen(port, &self.connection, limits)
    }

    /// The next connection that a peer has opened; `None` if the socket cannot be used any more.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let accepted = self.shared.accepted.notified();
            {
                let mut state = self.shared.lock();
                if let Some(id) = state.new.pop_front() {
                    return Some(Connection::new(self.shared.clone(), id));
                }
                if state.failure.is_some() {
                    return None;
                }
            }
            accepted.await;
        }
    }

    /// Waits until all connections have ended, those included that were dropped, except those that were [left](Connection::leave), and all
    /// datagrams were sent. What tells the peers of these ends goes out three times, at intervals of `mack_timeout_s`: a peer that hears
    /// none of them waits for an answer until it gives up.
    pub async fn finish(&self) {
        let _finishing = Finishing::begin(&self.shared);
        loop {
            let ended = self.shared.ended.notified();
            {
                let state = self.shared.lock();
                let is_over = |waiting: &Waiting| matches!(waiting.end, Some(End::Closed | End::Aborted(_)));
                let is_open = |waiting: &Waiting| !waiting.is_left && !is_over(waiting);
                let is_busy = state.connections.values().any(is_open)
                    || state.mux.has_unsent_datagrams()
                    || state.mux.owes_last_acknowledgements();
                if state.failure.is_some() || !is_busy {
                    return;
                }
            }
            ended.await;
        }
    }

    /// Whether the peers have all that was written to the connections that have not ended. They may not have ended their directions.
    pub fn is_delivered(&self) -> bool {
        let state = self.shared.lock();
        state.connections.iter().all(|(&id, waiting)| {
            let is_over = matches!(waiting.end, Some(End::Closed | End::Aborted(_)));
            is_over || state.mux.state(id).is_none_or(|it| it.settled_bytes >= waiting.written)
        })
    }

    /// Frees the socket and the store of the counters, whatever is still under way and whoever still has copies; connections of this
    /// endpoint break off. Without it both are free up to a second after the last copy and the last connection are dropped.
    pub async fn close(&self) {
        let Some(driver) = self.shared.lock().driver.take() else { return };
        driver.abort();
        let _ = driver.await;
        self.shared.lock().mux.release_counters();
        self.shared.fail(io::ErrorKind::NotConnected);
    }

    /// Counts of datagrams that did nothing.
    pub fn counts(&self) -> MuxCounts {
        self.shared.lock().mux.counts()
    }
}

/// Somebody waits for the end of everything.
struct Finishing<'a>(&'a Shared);

impl<'a> Finishing<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.lock().finishing += 1;
        Finishing(shared)
    }
}

impl Drop for Finishing<'_> {
    fn drop(&mut self) {
        self.0.lock().finishing -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::mux::MemoryCounters;
    use crate::seal::StaticKey;

    /// A program that ends behind it has told its peers three times that it knows of their ends. `[A7]`
    #[tokio::test]
    async fn finish_waits_for_the_last_acknowledgements() {
        let keys = [StaticKey::generate(), StaticKey::generate()];
        let [a, b] = [0, 1].map(|at| {
            let trust = Trust::Keys([keys[1 - at].public()].into());
            let config = EndpointConfig::new(MuxConfig { trust, ..MuxConfig::new(keys[at].clone()) });
            Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), config, Box::new(MemoryCounters::default())).unwrap()
        });
        b.listen(1, AcceptorLimits::default()).unwrap();
        let mut opened = a.connect(&b.public_key(), b.local_addr(), 1).unwrap();
        opened.write_all(b"question").await.unwrap();
        opened.shutdown().await.unwrap();
        let mut accepted = b.accept().await.unwrap();
        accepted.read_to_end(&mut Vec::new()).await.unwrap();
        accepted.shutdown().await.unwrap();
        opened.read_to_end(&mut Vec::new()).await.unwrap();
        a.finish().await;
        assert!(!a.shared.lock().mux.owes_last_acknowledgements());
    }
}
