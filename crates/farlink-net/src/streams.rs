//! Streams of bytes between hosts: an endpoint with the keys, trust and counters of a host's folder, put together.

use std::net::SocketAddr;
use std::time::Duration;

use farlink_core::protocol::aerotp::AcceptorLimits;

use crate::io::{Connection, Endpoint, EndpointConfig};
use crate::mux::Trust;
use crate::seal::PublicKey;
use crate::settings::{PathSettings, own_address, set_patience};
use crate::state::StateFolder;
use crate::transfer::TransferError;

/// Settings of both sides of streams.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// The port within the session. [`transfer`](crate::transfer) uses port 1.
    pub port: u16,
    /// Length, rate and protection of packets.
    pub path: PathSettings,
    /// How long a silent peer is waited for, 1 s at least.
    pub patience: Duration,
}

impl StreamSettings {
    fn endpoint(&self, folder: &StateFolder, trust: Trust) -> Result<EndpointConfig, TransferError> {
        let mut config = self.path.endpoint(folder, trust)?;
        set_patience(&mut config.connection, self.patience);
        Ok(config)
    }
}

/// Opens a connection to a host, from a socket of its own. Nothing is awaited: what is written goes out with the first packets.
///
/// # Errors
/// If a file of this host cannot be used, a setting is refused, or there is no socket.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn connect(
    folder: &StateFolder,
    peer: &PublicKey,
    address: SocketAddr,
    settings: &StreamSettings,
) -> Result<(Endpoint, Connection), TransferError> {
    let config = settings.endpoint(folder, Trust::Keys([].into()))?;
    let endpoint = Endpoint::bind(own_address(address), config, Box::new(folder.counters_to_send()?))?;
    let connection = endpoint.connect(peer, address, settings.port)?;
    Ok((endpoint, connection))
}

/// Opens a socket at which the connections of trusted hosts are accepted.
///
/// # Errors
/// If a file of this host cannot be used, another process has its counters, a setting is refused, or there is no socket.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn listen(folder: &StateFolder, address: SocketAddr, settings: &StreamSettings) -> Result<Endpoint, TransferError> {
    let config = settings.endpoint(folder, Trust::Keys(folder.trusted()?.keys()))?;
    let endpoint = Endpoint::bind(address, config, Box::new(folder.counters_to_answer()?))?;
    endpoint.listen(settings.port, AcceptorLimits::default())?;
    Ok(endpoint)
}
