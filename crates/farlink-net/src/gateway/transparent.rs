//! Sockets that take connections to other hosts, which the kernel passes to them (TPROXY).

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use super::error::GatewayError;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens for connections to any host. Only Linux has this, and only with a capability.
pub(super) fn bind(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let socket = socket.map_err(|error| GatewayError::Listen { address, error })?;
    make_transparent(&socket).map_err(|error| GatewayError::Transparent { address, error })?;
    let listening =
        socket.set_reuseaddr(true).and_then(|()| socket.bind(address)).and_then(|()| socket.listen(BACKLOG));
    listening.map_err(|error| GatewayError::Listen { address, error })
}

#[cfg(target_os = "linux")]
fn make_transparent(socket: &TcpSocket) -> io::Result<()> {
    Ok(nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::IpTransparent, &true)?)
}

#[cfg(not(target_os = "linux"))]
fn make_transparent(_socket: &TcpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
