//! Streams of bytes between hosts: an endpoint with the keys, trust and counters of a host's folder, put together.

use std::net::SocketAddr;
use std::time::Duration;

use farlink_core::protocol::aerotp::AcceptorLimits;
use farlink_core::units::PositiveSeconds;

use crate::io::{Connection, Endpoint, EndpointConfig};
use crate::mux::Trust;
use crate::seal::PublicKey;
use crate::settings::{PathSettings, own_address};
use crate::state::StateFolder;
use crate::transfer::TransferError;

/// Within the patience an idle peer is asked so often, and after this many seconds at the latest.
const QUESTIONS: f64 = 6.0;
const MOST_IDLE_S: f64 = 60.0;

/// What both sides of streams set.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// The port within the session. [`transfer`](crate::transfer) uses port 1.
    pub port: u16,
    /// What packets are like.
    pub path: PathSettings,
    /// How long a silent peer is waited for, 1 s at least.
    pub patience: Duration,
}

impl StreamSettings {
    fn endpoint(&self, folder: &StateFolder, trust: Trust) -> Result<EndpointConfig, TransferError> {
        let mut config = self.path.endpoint(folder, trust)?;
        // Values that no connection can have are refused with its configuration.
        let patience = PositiveSeconds::new(self.patience.as_secs_f64().clamp(1.0, 1e7));
        config.connection.give_up_after_s = patience.expect("it is within the range");
        // An idle peer is asked so often that the loss of some questions or answers ends nothing.
        let idle = (config.connection.give_up_after_s.time().as_secs_f64() / QUESTIONS).min(MOST_IDLE_S);
        config.connection.keep_alive_s = Some(PositiveSeconds::new(idle).expect("it is within the range"));
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
