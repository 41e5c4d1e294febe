//! The near side: takes connections of clients and asks the other gateway for those to their destinations.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::config::{Listener, ListenerKind};
use super::core::Core;
use super::destination::Destination;
use super::{http, socks, special};

/// After an error of the kernel, such as too many open files, nothing is accepted for so long.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the clients of a listener until it is aborted, which its connections survive.
pub(super) async fn serve(core: Arc<Core>, listener: Arc<Listener>, socket: Arc<TcpListener>) {
    let names_none = matches!(listener.kind, ListenerKind::Forward(_) | ListenerKind::Transparent);
    loop {
        if names_none {
            core.turn(&listener.to, false).await;
        }
        match socket.accept().await {
            Ok((tcp, from)) => {
                core.metrics.accepted_total.add(1);
                let bound = socket.local_addr().unwrap_or(listener.address);
                tokio::spawn(client(core.clone(), listener.clone(), tcp, (from, bound)));
            }
            Err(error) => {
                tracing::warn!(%error, "no client was accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves the client at an address of a listener that is bound to another one.
async fn client(core: Arc<Core>, listener: Arc<Listener>, tcp: TcpStream, (from, bound): (SocketAddr, SocketAddr)) {
    match &listener.kind {
        ListenerKind::Forward(destination) => straight(&core, &listener, tcp, destination.clone()).await,
        ListenerKind::Transparent => match tcp.local_addr() {
            // The kernel leaves the address to which the client has connected.
            Ok(at) if !is_listener(at, bound) => straight(&core, &listener, tcp, Destination::from(at)).await,
            // A client that connects to the listener's own address names no destination.
            _ => {
                core.metrics.bad_requests_total.add(1);
                let _ = super::tunnel::prepare(&tcp);
            }
        },
        ListenerKind::Socks | ListenerKind::Http => {
            // Clients whose request is not whole take no places of connections, which have a bound of their own.
            let (request, gives_way) = core.request(from.ip());
            let served = async {
                if listener.kind == ListenerKind::Socks {
                    socks::serve(&core, &listener, tcp, request).await;
                } else {
                    http::serve(&core, &listener, tcp, request).await;
                }
            };
            tokio::select! {
                () = served => {}
                () = gives_way.wait() => core.metrics.turned_away_total.add(1),
            }
        }
        ListenerKind::Udp { .. } => unreachable!("datagrams have no connections"),
    }
}

/// A client whose destination is known from the beginning.
async fn straight(core: &Core, listener: &Listener, tcp: TcpStream, destination: Destination) {
    let Some(place) = core.place() else { return turn_away(core, &tcp) };
    let dscp = core.dscp_of(&tcp);
    // A client that is gone already costs the link nothing.
    if super::tunnel::prepare(&tcp).is_ok()
        && let Ok(first) = core.first_data(&tcp).await
        && let Some(opening) = core.open(&listener.to, destination, dscp, place)
    {
        opening.begin(core, tcp, first).await;
    }
}

/// Whether a client has connected to the listener itself.
fn is_listener(at: SocketAddr, bound: SocketAddr) -> bool {
    let (host, bound_host) = (at.ip().to_canonical(), bound.ip().to_canonical());
    let is_own = || bound_host.is_unspecified() && special::own(host).is_some();
    at.port() == bound.port() && (host == bound_host || is_own())
}

/// A client for whom there is no room is told so at once, by RST.
fn turn_away(core: &Core, tcp: &TcpStream) {
    core.metrics.turned_away_total.add(1);
    let _ = super::tunnel::prepare(tcp);
}

#[cfg(test)]
mod tests {
    use super::is_listener;

    /// A transparent listener at all addresses would ask the other gateway for its own address.
    #[test]
    fn who_connects_to_a_transparent_listener_itself_names_no_destination() {
        for (at, bound, is_it) in [
            ("127.0.0.1:3129", "127.0.0.1:3129", true),
            ("127.0.0.1:3129", "0.0.0.0:3129", true),
            ("[::ffff:127.0.0.1]:3129", "[::]:3129", true),
            ("[::1]:3129", "[::]:3129", true),
            ("192.0.2.77:3129", "0.0.0.0:3129", false),
            ("192.0.2.77:80", "127.0.0.1:3129", false),
            ("127.0.0.1:80", "0.0.0.0:3129", false),
        ] {
            assert_eq!(is_listener(at.parse().unwrap(), bound.parse().unwrap()), is_it, "{at} {bound}");
        }
    }
}
