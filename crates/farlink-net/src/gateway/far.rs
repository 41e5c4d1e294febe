//! The far side: takes connections of other gateways and makes those to their destinations.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use crate::io::Connection;

use super::allow::AllowList;
use super::core::Core;
use super::destination::{Destination, Host};
use super::dscp;
use super::frame::{Frame, Open, Refusal};
use super::rules::Protocol;
use super::tunnel::{self, FromPeer};

/// Serves one connection of another gateway.
pub(super) async fn serve(core: Arc<Core>, connection: Connection) {
    let Some((key, _)) = connection.peer() else { return };
    let within = Duration::from_secs_f64(core.config().limits.request_s);
    let mut from_peer = FromPeer::new(connection);
    let Ok(Ok(Frame::Open(Open { destination, class, dscp }))) = timeout(within, from_peer.next()).await else {
        core.metrics.bad_requests_total.add(1);
        return;
    };
    // The configuration of now, which may have changed while the opening was waited for. `[T5]`
    let config = core.config();
    from_peer.get_mut().set_class(class);
    // A peer that was removed from the list since its session began reaches nothing.
    let (name, allow) = match config.peer_of_key(&key) {
        Some((name, peer)) => (name, peer.allow.clone()),
        None => ("unknown", AllowList::default()),
    };
    let connected = match core.place() {
        Some(place) => {
            let within = Duration::from_secs_f64(config.limits.connect_s);
            let dscp = if config.trust_dscp { dscp } else { 0 };
            connect(&destination, &allow, dscp, within).await.map(|tcp| (tcp, place))
        }
        None => Err(Refusal::Full),
    };
    let (answer, connected) = match connected {
        Ok(connected) => (Frame::Opened, Some(connected)),
        Err(why) => {
            tracing::info!(from = name, destination = core.shown(&destination), why = why.text(), "not connected");
            let count = match why {
                Refusal::NotAllowed => &core.metrics.not_allowed_total,
                Refusal::Full => &core.metrics.turned_away_total,
                _ => &core.metrics.failed_total,
            };
            count.add(1);
            (Frame::Refused(why), None)
        }
    };
    if from_peer.get_mut().write_all(&answer.to_bytes()).await.is_err() {
        return;
    }
    let Some((tcp, _place)) = connected else { return };
    core.metrics.connected_total.add(1);
    tracing::info!(from = name, destination = core.shown(&destination), "connected");
    let deadline = config.treatment(Protocol::Tcp, &destination).deadline;
    core.carry(tcp, from_peer, &destination, deadline).await;
}

/// Connects to the first address that is allowed and answers.
async fn connect(
    destination: &Destination,
    allow: &AllowList,
    dscp: u8,
    within: Duration,
) -> Result<TcpStream, Refusal> {
    let until = tokio::time::Instant::now() + within;
    let connected = timeout(within, async {
        let mut why = Refusal::NotAllowed;
        let addresses = resolve(destination, allow).await?;
        for (number, address) in addresses.iter().enumerate() {
            // An address that does not answer leaves time for those behind it.
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            match timeout(left / (addresses.len() - number) as u32, connect_to(*address, dscp)).await {
                Ok(Ok(tcp)) => {
                    tunnel::prepare(&tcp).map_err(|_| Refusal::Other)?;
                    return Ok(tcp);
                }
                Ok(Err(error)) => why = refusal_of(&error),
                Err(_) => why = Refusal::TimedOut,
            }
        }
        Err(why)
    });
    connected.await.unwrap_or(Err(Refusal::TimedOut))
}

/// Connects to an address with packets of a mark.
async fn connect_to(address: SocketAddr, dscp: u8) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if dscp != 0 {
        dscp::mark(&socket, address.is_ipv4(), dscp)?;
    }
    socket.connect(address).await
}

/// The addresses of a destination that a peer may reach. `[T6]`
pub(super) async fn resolve(destination: &Destination, allow: &AllowList) -> Result<Vec<SocketAddr>, Refusal> {
    // A name that no entry could allow is not asked for: what a gateway asks tells something as well.
    if !allow.may_allow(destination) {
        return Err(Refusal::NotAllowed);
    }
    let addresses: Vec<IpAddr> = match &destination.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            let found = lookup_host((&**name, destination.port)).await.map_err(|_| Refusal::UnknownHost)?;
            found.map(|address| address.ip().to_canonical()).collect()
        }
    };
    if addresses.is_empty() {
        return Err(Refusal::UnknownHost);
    }
    let allowed = addresses.into_iter().filter(|&address| allow.allowing(destination, address).is_some());
    let allowed: Vec<_> = allowed.map(|address| SocketAddr::new(address, destination.port)).collect();
    if allowed.is_empty() { Err(Refusal::NotAllowed) } else { Ok(allowed) }
}

fn refusal_of(error: &std::io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Refusal::ConnectionRefused,
        ErrorKind::NetworkUnreachable => Refusal::NetworkUnreachable,
        ErrorKind::HostUnreachable => Refusal::HostUnreachable,
        ErrorKind::TimedOut => Refusal::TimedOut,
        _ => Refusal::Other,
    }
}
