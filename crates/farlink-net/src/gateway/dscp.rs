//! Marks of packets (DSCP, RFC 2474): those of clients choose classes, and are those of the far gateway.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;

use rustix::net::sockopt;
#[cfg(target_os = "linux")]
use tokio::io::Interest;
use tokio::net::{TcpStream, UdpSocket};

use super::rules::USUAL_CLASS;

/// Traffic that gives way to all other (RFC 8622), and as older networks mark it (RFC 4594).
const LOWEST: [u8; 2] = [1, 8];

/// The mark of the packet that opened a connection, where Linux keeps it (`net.ipv4.tcp_reflect_tos`); 0 elsewhere.
pub(super) fn of(tcp: &TcpStream) -> u8 {
    let is_v4 = tcp.local_addr().is_ok_and(|at| at.ip().to_canonical().is_ipv4());
    let octet = if is_v4 { sockopt::ip_tos(tcp).map(u32::from) } else { sockopt::ipv6_tclass(tcp) };
    octet.map_or(0, |octet| (octet >> 2) as u8 & 0x3f)
}

/// Datagrams that arrive at a socket tell their marks from now on.
#[cfg(target_os = "linux")]
pub(super) fn want_marks(socket: &UdpSocket) {
    // One of IPv6 may get those of IPv4 as well.
    let _ = (sockopt::set_ip_recvtos(socket, true), sockopt::set_ipv6_recvtclass(socket, true));
}

/// The next datagram: its length, where from, and its mark, which is 0 unless it is [wanted](want_marks).
#[cfg(target_os = "linux")]
pub(super) async fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, u8)> {
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
    let arrived = || {
        let (mut pieces, mut more) = ([io::IoSliceMut::new(buffer)], nix::cmsg_space!(u8, i32));
        let arrived =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut pieces, Some(&mut more), MsgFlags::MSG_DONTWAIT)?;
        let v4 = || arrived.address?.as_sockaddr_in().map(|it| SocketAddr::V4((*it).into()));
        let v6 = || arrived.address?.as_sockaddr_in6().map(|it| SocketAddr::V6((*it).into()));
        let from = v4().or_else(v6).ok_or(io::ErrorKind::InvalidData)?;
        let octet = arrived.cmsgs()?.find_map(|told| match told {
            ControlMessageOwned::Ipv4Tos(octet) => Some(octet),
            ControlMessageOwned::Ipv6TClass(octet) => Some(octet as u8),
            _ => None,
        });
        Ok((arrived.bytes, from, octet.unwrap_or(0) >> 2))
    };
    socket.async_io(Interest::READABLE, arrived).await
}

#[cfg(not(target_os = "linux"))]
pub(super) fn want_marks(_socket: &UdpSocket) {}

#[cfg(not(target_os = "linux"))]
pub(super) async fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, u8)> {
    socket.recv_from(buffer).await.map(|(bytes, from)| (bytes, from, 0))
}

/// Packets of a socket have this mark from now on.
pub(super) fn mark(socket: impl AsFd, is_v4: bool, dscp: u8) -> io::Result<()> {
    let octet = dscp << 2;
    Ok(if is_v4 { sockopt::set_ip_tos(socket, octet) } else { sockopt::set_ipv6_tclass(socket, octet.into()) }?)
}

/// The class of a mark: more important ones have greater numbers, and classes smaller ones. (`docs/design/header-translation.md`)
pub(super) fn class_of(dscp: u8) -> u8 {
    match (dscp, dscp >> 3) {
        _ if LOWEST.contains(&dscp) => 7,
        (_, 0) => USUAL_CLASS,
        (_, importance) => 7 - importance.min(7),
    }
}

#[cfg(test)]
mod tests {
    use super::class_of;

    #[test]
    fn marks_have_the_classes_of_the_table() {
        // CS0, LE, CS1, AF11, AF21, AF31, AF41, CS5, EF, CS6, CS7.
        let marks = [0, 1, 8, 10, 18, 26, 34, 40, 46, 48, 56];
        assert_eq!(marks.map(class_of), [6, 7, 7, 6, 5, 4, 3, 2, 2, 1, 0]);
    }
}
