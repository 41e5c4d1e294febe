//! Why a path cannot be played.

use std::io;
use std::net::SocketAddr;

/// Why a path cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulateError {
    /// The address is not free, or not of this machine.
    #[error("cannot listen on {address}: {error}; {}", listen_remedy(error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
    /// A device cannot be had.
    #[error("cannot open {name}: {error}; {}", open_remedy(error))]
    Open {
        /// Its name.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// A device stopped.
    #[error("cannot read from the device at the {end} end: {error}; look whether it is still there")]
    Device {
        /// `near` or `far`.
        end: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The system does not let the driver wait.
    #[error("cannot wait for packets: {0}; close other programs")]
    Wait(io::Error),
}

fn listen_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the program that has it, or give another port",
        io::ErrorKind::AddrNotAvailable => "give an address of this machine, for example 127.0.0.1",
        io::ErrorKind::PermissionDenied => "give a port from 1024 on",
        _ => "give another address",
    }
}

fn open_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "TUN devices need root: run it with sudo, or relay UDP with --listen and --to, which needs nothing"
        }
        io::ErrorKind::NotFound => {
            "/dev/net/tun is missing: load it with \"modprobe tun\", or let the container have it"
        }
        io::ErrorKind::ResourceBusy => "another program is attached to it: stop that, or give another device",
        _ => "give the name of a TUN device, as made by \"ip tuntap add dev NAME mode tun\"",
    }
}
