//! A flow over AeroTP: an endpoint at each end, with new keys, so that each flow is a session of its own.

use std::net::SocketAddr;

use farlink_core::link::LinkState;
use farlink_core::protocol::aerotp::{AcceptorLimits, AerotpConfig};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::LiveError;
use super::ends::{Stopwatch, write_traffic};
use super::meter::Meter;
use super::plan::Traffic;
use crate::mux::{MemoryCounters, MuxConfig, Trust};
use crate::seal::{PublicKey, StaticKey};
use crate::{BindError, Endpoint, EndpointConfig};

/// The port within the session.
const PORT: u16 = 1;
/// The keys of both ends.
pub(super) struct Keys(pub(super) [StaticKey; 2]);

impl Keys {
    pub(super) fn new() -> Self {
        Keys([StaticKey::generate(), StaticKey::generate()])
    }

    fn endpoint(&self, own: usize, address: SocketAddr, config: &AerotpConfig) -> Result<Endpoint, BindError> {
        let trust = Trust::Keys([self.0[1 - own].public()].into());
        let mux = MuxConfig { trust, ..MuxConfig::new(self.0[own].clone()) };
        let config = EndpointConfig { connection: config.clone(), ..EndpointConfig::new(mux) };
        Endpoint::bind(address, config, Box::new(MemoryCounters::default()))
    }

    /// The endpoint at the far end, which accepts.
    pub(super) fn receiver(&self, name: &str, at: SocketAddr, config: &AerotpConfig) -> Result<Endpoint, LiveError> {
        let endpoint = self.endpoint(1, at, config).map_err(|error| LiveError::Bind { flow: name.into(), error })?;
        endpoint.listen(PORT, AcceptorLimits::default())?;
        Ok(endpoint)
    }

    pub(super) fn sender(&self, name: &str, at: SocketAddr, config: &AerotpConfig) -> Result<Endpoint, LiveError> {
        self.endpoint(0, at, config).map_err(|error| LiveError::Bind { flow: name.into(), error })
    }

    pub(super) fn of_receiver(&self) -> PublicKey {
        self.0[1].public()
    }
}

/// Tells an endpoint the state of its own link, as a modem would: its hosts in the packet engine know it too.
pub(super) async fn follow(endpoint: Endpoint, mut own_link: watch::Receiver<Option<LinkState>>) {
    loop {
        if let Some(state) = *own_link.borrow_and_update() {
            endpoint.set_link(state);
        }
        if own_link.changed().await.is_err() {
            return;
        }
    }
}

/// Takes what comes, until the sender ends it.
pub(super) async fn receive(endpoint: Endpoint, meter: Meter) {
    let Some(mut connection) = endpoint.accept().await else { return meter.failed("the socket failed") };
    let mut buffer = vec![0; 1 << 16];
    loop {
        match connection.read(&mut buffer).await {
            Ok(0) => break meter.done(),
            Ok(bytes) => meter.stream(bytes),
            Err(error) => return meter.failed(error),
        }
    }
    // Repetitions of the sender are answered until the run is over.
    std::future::pending().await
}

/// Sends the traffic of a flow.
pub(super) async fn send(
    endpoint: Endpoint,
    peer: PublicKey,
    to: SocketAddr,
    traffic: Traffic,
    meter: Meter,
    watch: Stopwatch,
) {
    use tokio::io::AsyncWriteExt as _;
    let sent = async {
        let mut connection = endpoint.connect(&peer, to, PORT).map_err(std::io::Error::other)?;
        write_traffic(&mut connection, traffic, watch).await?;
        connection.shutdown().await
    };
    if let Err(error) = sent.await {
        return meter.failed(error);
    }
    std::future::pending().await
}
