//! The sockets of an endpoint: one to which anybody may send, and one for each peer whose address is proven.
//!
//! The kernel gives a datagram to the socket that is connected to its sender, if there is one. So a stranger at another address, who
//! sends faster than a processor can look at it, fills the first socket only.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::task::Poll;

use bytes::BytesMut;
use farlink_core::endpoint::Ecn;

use crate::mux::{Batch, Route};

use super::socket::{Buffer, Socket};

/// Peers with a socket of their own; of further ones the first socket takes the datagrams.
const MOST: usize = 64;
/// Reads of a socket before another one has its turn.
const READS: usize = 16;

pub(super) struct Sockets {
    first: Socket,
    of_peers: Vec<OfPeer>,
    buffer: Buffer,
}

#[derive(Debug)]
struct OfPeer {
    session: u32,
    route: Route,
    socket: Socket,
}

impl std::fmt::Debug for Sockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sockets").field("first", &self.first).field("of_peers", &self.of_peers).finish_non_exhaustive()
    }
}

impl Sockets {
    pub(super) fn new(first: Socket) -> Self {
        Sockets { first, of_peers: Vec::new(), buffer: Buffer::new() }
    }

    /// The proven way to the peer of a session is this one now; `None` if there is none any more.
    pub(super) fn follow(&mut self, session: u32, route: Option<Route>) {
        self.of_peers.retain(|peer| peer.session != session);
        let Some(route) = route else { return };
        if self.of_peers.len() >= MOST || self.of_peers.iter().any(|peer| peer.route.remote == route.remote) {
            return;
        }
        match self.first.connected(&route) {
            Ok(socket) => self.of_peers.push(OfPeer { session, route, socket }),
            // The first socket goes on taking its datagrams.
            Err(error) => tracing::debug!(%error, remote = %route.remote, "the peer has no socket of its own"),
        }
    }

    /// Takes some of what has arrived: of peers first, then of anybody.
    ///
    /// # Errors
    /// If the first socket cannot be used any more.
    pub(super) fn receive(&mut self, mut take: impl FnMut(Route, Ecn, BytesMut)) -> io::Result<()> {
        let Sockets { first, of_peers, buffer } = self;
        of_peers.retain(|peer| receive_some(&peer.socket, buffer, &mut take).is_ok());
        receive_some(first, buffer, &mut take)
    }

    /// Waits until something has arrived.
    pub(super) async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| {
            let sockets = self.of_peers.iter().map(|peer| &peer.socket).chain([&self.first]);
            // All are polled, so that each of them wakes.
            sockets
                .map(|socket| socket.poll_readable(cx))
                .fold(Poll::Pending, |ready, one| if one.is_ready() { one } else { ready })
        })
        .await
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        self.first.writable().await
    }

    pub(super) fn most_datagrams(&self) -> usize {
        self.first.most_datagrams()
    }

    /// Sends a batch; `WouldBlock` if the kernel has no room. If the own address is not there any more, it goes from another one, and what
    /// the peer sends there tells which. `[Y9]`
    pub(super) fn try_send(&mut self, batch: &Batch, bytes: &[u8]) -> io::Result<()> {
        match self.first.try_send(batch, bytes) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock && batch.route.local.is_some_and(is_gone) => {
                self.first.forget_errors()?;
                self.first.try_send(&Batch { route: Route::to(batch.route.remote), ..*batch }, bytes)
            }
            sent => sent,
        }
    }
}

fn receive_some(socket: &Socket, buffer: &mut Buffer, take: &mut impl FnMut(Route, Ecn, BytesMut)) -> io::Result<()> {
    for _ in 0..READS {
        match socket.try_receive(buffer, &mut *take) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if is_of_one_datagram(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether an address is none of this machine.
fn is_gone(own: IpAddr) -> bool {
    std::net::UdpSocket::bind((own, 0)).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// Whether an error of the socket tells of one datagram only: that nobody listens at its destination, or that a path is closed.
fn is_of_one_datagram(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | HostUnreachable | Interrupted | NetworkUnreachable)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

    use super::*;

    /// Datagrams of a peer, before and after it has a socket of its own, and those of others: all are taken, from the right address.
    #[tokio::test]
    async fn peers_and_strangers_are_both_heard() {
        for any in [IpAddrs::V4, IpAddrs::V4Any, IpAddrs::V6] {
            let mut sockets = Sockets::new(Socket::bind(any.bound(), true).unwrap());
            let port = sockets.first.local_addr().unwrap().port();
            let to = SocketAddr::new(any.local().ip(), port);
            let [peer, other, stranger] = [0; 3].map(|_| UdpSocket::bind(any.local()).unwrap());
            let route = |of: &UdpSocket| Route { remote: of.local_addr().unwrap(), local: Some(any.local().ip()) };
            peer.send_to(b"before", to).unwrap();
            sockets.follow(1, Some(route(&peer)));
            sockets.follow(2, Some(route(&other)));
            assert_eq!(sockets.of_peers.len(), 2, "{sockets:?}");
            peer.send_to(b"peer", to).unwrap();
            other.send_to(b"other", to).unwrap();
            for _ in 0..200 {
                stranger.send_to(b"stranger", to).unwrap();
            }
            let mut of_peer = 0;
            poll_fn(|cx| sockets.of_peers[0].socket.poll_readable(cx)).await.unwrap();
            receive_some(&sockets.of_peers[0].socket, &mut Buffer::new(), &mut |from, _, data| {
                assert_eq!((from.remote, &data[..]), (peer.local_addr().unwrap(), &b"peer"[..]));
                of_peer += 1;
            })
            .unwrap();
            assert_eq!(of_peer, 1, "the kernel gives it to the socket of the peer");

            sockets.follow(1, None);
            peer.send_to(b"after", to).unwrap();
            let mut heard = Vec::new();
            while heard.len() < 203 {
                sockets.readable().await.unwrap();
                sockets.receive(|from, _, data| heard.push((from.remote, data.to_vec()))).unwrap();
            }
            let count = |of: &UdpSocket, what: &[u8]| {
                heard.iter().filter(|(from, data)| *from == of.local_addr().unwrap() && data == what).count()
            };
            let counts = [count(&peer, b"before"), count(&peer, b"after"), count(&other, b"other")];
            assert_eq!((counts, count(&stranger, b"stranger")), ([1, 1, 1], 200));
        }
    }

    /// A modem has got another address: what goes out before the peer has answered there goes from the new one, in batches and with marks
    /// as before.
    #[tokio::test]
    async fn datagrams_go_from_another_address_when_the_own_one_is_gone() {
        let addresses = [("192.0.2.77", IpAddrs::V4), ("192.0.2.77", IpAddrs::V4Any), ("2001:db8::77", IpAddrs::V6Any)];
        for (gone, any) in addresses {
            let mut sockets = Sockets::new(Socket::bind(any.bound(), true).unwrap());
            let peer = UdpSocket::bind(any.local()).unwrap();
            peer.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            let route = Route { remote: peer.local_addr().unwrap(), local: Some(gone.parse().unwrap()) };
            let most = sockets.most_datagrams();
            sockets.writable().await.unwrap();
            for _ in 0..2 {
                let batch = Batch { route, ecn: Ecn::Capable0, bytes: 200, datagram_bytes: 100 };
                sockets.try_send(&batch, &[7; 200]).unwrap();
                assert_eq!([0; 2].map(|_| peer.recv(&mut [0; 300]).unwrap()), [100; 2]);
            }
            assert_eq!(sockets.most_datagrams(), most);
        }
    }

    #[tokio::test]
    async fn another_program_with_the_port_is_noticed() {
        let mut sockets = Sockets::new(Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), true).unwrap());
        let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sockets.follow(1, Some(Route::to(peer.local_addr().unwrap())));
        assert_eq!(sockets.of_peers.len(), 1);
        let taken = Socket::bind(sockets.first.local_addr().unwrap(), true).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[derive(Clone, Copy)]
    enum IpAddrs {
        V4,
        V4Any,
        V6,
        V6Any,
    }

    impl IpAddrs {
        fn local(self) -> SocketAddr {
            match self {
                IpAddrs::V4 | IpAddrs::V4Any => (Ipv4Addr::LOCALHOST, 0).into(),
                IpAddrs::V6 | IpAddrs::V6Any => (Ipv6Addr::LOCALHOST, 0).into(),
            }
        }

        fn bound(self) -> SocketAddr {
            match self {
                IpAddrs::V4Any => (Ipv4Addr::UNSPECIFIED, 0).into(),
                IpAddrs::V6Any => (Ipv6Addr::UNSPECIFIED, 0).into(),
                _ => self.local(),
            }
        }
    }
}
