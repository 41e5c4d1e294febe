//! Why a gateway does not run.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use farlink_core::ConfigError;

use crate::config_file::ConfigFault;
use crate::custody::StoreError;
use crate::io::BindError;
use crate::remedy::remedy_of_shortage;
use crate::state::StateError;

/// Why a gateway does not run. The text says what is wrong and what to do, with "; " between.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigFault),
    /// A file of this host cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store of custody cannot be used.
    #[error(transparent)]
    Custody(#[from] StoreError),
    /// There is no UDP socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A setting of the connections is refused.
    #[error(transparent)]
    Setting(#[from] ConfigError),
    /// There is no socket for clients.
    #[error("cannot listen at {address}: {error}; {}", remedy_of_listening(.error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// There is no socket for connections to other hosts.
    #[error("transparent: {address} cannot take connections to other hosts: {error}; {}", remedy_of_transparency(.error))]
    Transparent {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The UDP socket cannot be used any more.
    #[error("the socket cannot be used any more; look for what closed the network, and start the gateway again")]
    SocketFailed,
}

impl GatewayError {
    pub(super) fn config(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        GatewayError::Config(ConfigFault::new(path, what, remedy))
    }

    /// Exit code of a process: 1 when the network failed, 2 when someone has to change something first.
    pub const fn exit_code(&self) -> u8 {
        match self {
            GatewayError::SocketFailed => 1,
            _ => 2,
        }
    }
}

fn remedy_of_listening(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that has this port, or choose another port",
        io::ErrorKind::PermissionDenied => "choose a port above 1023, or give the gateway CAP_NET_BIND_SERVICE",
        io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
        _ => remedy_of_shortage(error).unwrap_or("choose another address or port"),
    }
}

fn remedy_of_transparency(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "give the gateway CAP_NET_ADMIN (AmbientCapabilities of its systemd unit), or use [[forward]], [[socks]] or [[http]]"
        }
        _ => "use Linux for it, or [[forward]], [[socks]] or [[http]]",
    }
}
