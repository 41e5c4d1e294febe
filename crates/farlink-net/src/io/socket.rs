//! A UDP socket with marks, own addresses, and batches in both directions (crate `quinn-udp`).

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::BytesMut;
use farlink_core::endpoint::Ecn;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::mux::{Batch, Route};

/// Longest buffer that the kernel fills with datagrams of one sender.
const RECEIVED_BYTES: usize = 65_536;
/// Buffer that is asked of the kernel for datagrams that wait to be read or sent: 4 MiB, 27 ms at 1.25 Gb/s.
const BUFFER_BYTES: usize = 4 << 20;

pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    has_checksums: bool,
}

/// Where datagrams are received; several sockets may use one in turn.
pub(crate) struct Buffer(Box<[u8]>);

impl Buffer {
    pub(crate) fn new() -> Self {
        Buffer(vec![0; RECEIVED_BYTES * BATCH_SIZE.min(8)].into_boxed_slice())
    }
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("io", &self.io).finish_non_exhaustive()
    }
}

impl Socket {
    /// Opens a socket, with UDP's checksums or without.
    pub(super) fn bind(address: SocketAddr, has_checksums: bool) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        if !has_checksums {
            leave_out_checksums(&socket, address.is_ipv6())?;
        }
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        enlarge(&socket, &state);
        socket.set_nonblocking(true)?;
        Ok(Socket { io: UdpSocket::from_std(socket)?, state, has_checksums })
    }

    /// Takes a socket that another process has opened, with UDP's checksums.
    pub(crate) fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        socket.set_nonblocking(true)?;
        Ok(Socket { io: UdpSocket::from_std(socket)?, state, has_checksums: true })
    }

    /// Another socket at the same address and port, to which the kernel gives what comes from a peer on this way, and nothing else.
    ///
    /// This one is bound before it may share its port, so that another program with this port is noticed.
    #[cfg(target_os = "linux")]
    pub(super) fn connected(&self, route: &Route) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;

        use nix::sys::socket::sockopt::ReusePort;
        use nix::sys::socket::{
            AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, SockaddrLike, bind, setsockopt, socket,
        };
        let own = self.local_addr()?;
        let local = SocketAddr::new(route.local.unwrap_or_else(|| own.ip()), own.port());
        setsockopt(&self.io, ReusePort, &true)?;
        let (family, address): (_, &dyn SockaddrLike) = match local {
            SocketAddr::V4(v4) => (AddressFamily::Inet, &SockaddrIn::from(v4)),
            SocketAddr::V6(v6) => (AddressFamily::Inet6, &SockaddrIn6::from(v6)),
        };
        let descriptor = socket(family, SockType::Datagram, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&descriptor, ReusePort, &true)?;
        bind(descriptor.as_raw_fd(), address)?;
        let socket = std::net::UdpSocket::from(descriptor);
        if !self.has_checksums {
            leave_out_checksums(&socket, local.is_ipv6())?;
        }
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // A smaller buffer was reported when the first socket was opened.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), BUFFER_BYTES);
        socket.connect(route.remote)?;
        Ok(Socket { io: UdpSocket::from_std(socket)?, state, has_checksums: self.has_checksums })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn connected(&self, _route: &Route) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux gives a peer's datagrams to a socket of its own"))
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// How many datagrams the kernel takes at once: without checksums Linux refuses several.
    pub(crate) fn most_datagrams(&self) -> usize {
        if self.has_checksums { self.state.max_gso_segments() } else { 1 }
    }

    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_recv_ready(cx)
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        self.io.writable().await
    }

    /// Sends a batch; `WouldBlock` if the kernel has no room.
    pub(crate) fn try_send(&self, batch: &Batch, bytes: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: batch.route.remote,
            ecn: to_codepoint(batch.ecn),
            contents: bytes,
            segment_size: (batch.bytes > batch.datagram_bytes).then_some(batch.datagram_bytes),
            src_ip: batch.route.local,
        };
        self.io.try_io(Interest::WRITABLE, || self.state.try_send(UdpSockRef::from(&self.io), &transmit))
    }

    /// Tries again what the kernel refused: batches and marks, which crate `quinn-udp` gives up after some errors.
    pub(super) fn forget_errors(&mut self) -> io::Result<()> {
        self.state = UdpSocketState::new(UdpSockRef::from(&self.io))?;
        Ok(())
    }

    /// As [`try_send`](Self::try_send), with the whole byte of traffic class, which crate `quinn-udp` sets to the mark alone.
    #[cfg(target_os = "linux")]
    pub(crate) fn try_send_with_class(&self, batch: &Batch, traffic_class: u8, bytes: &[u8]) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;

        use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
        use nix::sys::socket::sockopt::{Ipv4Tos, Ipv6TClass};
        use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt};
        use std::net::IpAddr;

        // Datagrams that say nothing else have what the socket has.
        let class = i32::from(traffic_class);
        let set = if batch.route.remote.is_ipv4() {
            setsockopt(&self.io, Ipv4Tos, &class)
        } else {
            setsockopt(&self.io, Ipv6TClass, &class)
        };
        set?;
        let (v4, v6);
        let segment = u16::try_from(batch.datagram_bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut control = Vec::with_capacity(2);
        match batch.route.local {
            Some(IpAddr::V4(own)) => {
                let own = in_addr { s_addr: u32::from_ne_bytes(own.octets()) };
                v4 = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: own, ipi_addr: in_addr { s_addr: 0 } };
                control.push(ControlMessage::Ipv4PacketInfo(&v4));
            }
            Some(IpAddr::V6(own)) => {
                v6 = in6_pktinfo { ipi6_ifindex: 0, ipi6_addr: in6_addr { s6_addr: own.octets() } };
                control.push(ControlMessage::Ipv6PacketInfo(&v6));
            }
            None => {}
        }
        if batch.bytes > batch.datagram_bytes {
            control.push(ControlMessage::UdpGsoSegments(&segment));
        }
        let to = SockaddrStorage::from(batch.route.remote);
        let slices = [io::IoSlice::new(bytes)];
        self.io.try_io(Interest::WRITABLE, || {
            sendmsg(self.io.as_raw_fd(), &slices, &control, MsgFlags::empty(), Some(&to))?;
            Ok(())
        })
    }

    /// Takes what has arrived, each datagram with a memory of its own: a piece that waits for others pins no more than itself. `false`
    /// if there is nothing.
    pub(crate) fn try_receive(
        &self,
        buffer: &mut Buffer,
        mut take: impl FnMut(Route, Ecn, BytesMut),
    ) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> = buffer.0.chunks_exact_mut(RECEIVED_BYTES).map(IoSliceMut::new).collect();
        let (io, state) = (&self.io, &self.state);
        let received = io.try_io(Interest::READABLE, || state.recv(UdpSockRef::from(io), &mut slices, &mut metas));
        let count = match received {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        for (meta, slice) in metas.iter().zip(&slices).take(count) {
            let route = Route { remote: meta.addr, local: meta.dst_ip };
            let ecn = from_codepoint(meta.ecn);
            for datagram in slice[..meta.len].chunks(meta.stride.max(1)) {
                take(route, ecn, BytesMut::from(datagram));
            }
        }
        Ok(count > 0)
    }
}

#[cfg(target_os = "linux")]
mod without_checksums {
    //! Options of Linux: no checksum over IPv4 (RFC 768), and over IPv6 neither sent nor asked for (RFC 6935).

    // Macros and a crate that the first macro uses.
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(OverIpv4, Both, libc::SOL_SOCKET, libc::SO_NO_CHECK, bool);
    sockopt_impl!(SentOverIpv6, Both, libc::SOL_UDP, libc::UDP_NO_CHECK6_TX, bool);
    sockopt_impl!(TakenOverIpv6, Both, libc::SOL_UDP, libc::UDP_NO_CHECK6_RX, bool);
}

#[cfg(target_os = "linux")]
fn leave_out_checksums(socket: &std::net::UdpSocket, is_ipv6: bool) -> io::Result<()> {
    use nix::sys::socket::setsockopt;
    use without_checksums::{OverIpv4, SentOverIpv6, TakenOverIpv6};
    // A socket of IPv6 talks over IPv4 as well.
    setsockopt(socket, OverIpv4, &true)?;
    if is_ipv6 {
        setsockopt(socket, SentOverIpv6, &true)?;
        setsockopt(socket, TakenOverIpv6, &true)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn leave_out_checksums(_socket: &std::net::UdpSocket, _is_ipv6: bool) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux sends UDP without checksums"))
}

/// Asks for longer buffers, and says how to allow them if the kernel gives less.
fn enlarge(socket: &std::net::UdpSocket, state: &UdpSocketState) {
    let reference = || UdpSockRef::from(socket);
    let received = state.set_recv_buffer_size(reference(), BUFFER_BYTES);
    let sent = state.set_send_buffer_size(reference(), BUFFER_BYTES);
    let asked = [
        (received, state.recv_buffer_size(reference()), "net.core.rmem_max"),
        (sent, state.send_buffer_size(reference()), "net.core.wmem_max"),
    ];
    for (set, given, sysctl) in asked {
        let given = given.unwrap_or(0);
        if set.is_err() || given < BUFFER_BYTES {
            tracing::warn!(
                given,
                wanted = BUFFER_BYTES,
                "the socket's buffer is short, and datagrams at high rates may be lost in it; allow more with \"sysctl -w {sysctl}={BUFFER_BYTES}\""
            );
        }
    }
}

fn to_codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable0 => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::Congestion => Some(EcnCodepoint::Ce),
    }
}

fn from_codepoint(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable0,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::Congestion,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use nix::sys::socket::getsockopt;

    use super::without_checksums::{OverIpv4, SentOverIpv6, TakenOverIpv6};
    use super::*;

    /// Sockets of peers as well, and without checksums one datagram at a time.
    #[tokio::test]
    async fn sockets_leave_out_checksums_only_where_damage_is_wanted() {
        for has_checksums in [true, false] {
            for any in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()] {
                let first = Socket::bind(any, has_checksums).unwrap();
                let peer = std::net::UdpSocket::bind(any).unwrap();
                let of_peer = first.connected(&Route::to(peer.local_addr().unwrap())).unwrap();
                for socket in [first, of_peer] {
                    assert_eq!(getsockopt(&socket.io, OverIpv4).unwrap(), !has_checksums);
                    if any.is_ipv6() {
                        assert_eq!(getsockopt(&socket.io, SentOverIpv6).unwrap(), !has_checksums);
                        assert_eq!(getsockopt(&socket.io, TakenOverIpv6).unwrap(), !has_checksums);
                    }
                    assert_eq!(socket.most_datagrams() > 1, has_checksums);
                }
            }
        }
    }

    /// The receiver sees the mark, and the byte goes with each datagram of a batch, over both families; later ones have none of it.
    #[tokio::test]
    async fn datagrams_have_the_traffic_class_that_is_asked_for() {
        use std::time::Duration;

        use nix::sys::socket::sockopt::{IpRecvTos, Ipv6RecvTClass};
        use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
        use std::os::fd::AsRawFd as _;

        for any in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), (Ipv6Addr::LOCALHOST, 0).into()] {
            let socket = Socket::bind(any, true).unwrap();
            let peer = std::net::UdpSocket::bind(any).unwrap();
            peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            if any.is_ipv4() {
                setsockopt(&peer, IpRecvTos, &true).unwrap();
            } else {
                setsockopt(&peer, Ipv6RecvTClass, &true).unwrap();
            }
            for local in [None, Some(any.ip())] {
                let route = Route { remote: peer.local_addr().unwrap(), local };
                let batch = Batch { route, ecn: Ecn::NotCapable, bytes: 200, datagram_bytes: 100 };
                socket.writable().await.unwrap();
                socket.try_send_with_class(&batch, 46 << 2 | 0b10, &[1; 200]).unwrap();
                socket.try_send(&Batch { bytes: 100, ..batch }, &[2; 100]).unwrap();
                let seen: Vec<i32> = (0..3)
                    .map(|_| {
                        let (mut bytes, mut space) = ([0; 300], nix::cmsg_space!(i32));
                        let mut slices = [IoSliceMut::new(&mut bytes)];
                        let flags = MsgFlags::empty();
                        let received =
                            recvmsg::<SockaddrStorage>(peer.as_raw_fd(), &mut slices, Some(&mut space), flags).unwrap();
                        assert_eq!(received.bytes, 100);
                        let class = received.cmsgs().unwrap().find_map(|it| match it {
                            ControlMessageOwned::Ipv4Tos(class) => Some(i32::from(class)),
                            ControlMessageOwned::Ipv6TClass(class) => Some(class),
                            _ => None,
                        });
                        class.unwrap_or(0)
                    })
                    .collect();
                assert_eq!(seen, [46 << 2 | 0b10, 46 << 2 | 0b10, 0], "{any} {local:?}");
            }
        }
    }
}
