//! The near side: takes connections of clients and asks the other gateway for those to their destinations.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::config::{Listener, ListenerKind};
use super::core::Core;
use super::destination::Destination;
use super::{http, socks};

/// After an error of the kernel, such as too many open files, nothing is accepted for so long.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the clients of a listener until it is aborted, which its connections survive.
pub(super) async fn serve(core: Arc<Core>, listener: Arc<Listener>, socket: Arc<TcpListener>) {
    loop {
        match socket.accept().await {
            Ok((tcp, _)) => {
                core.metrics.accepted_total.add(1);
                tokio::spawn(client(core.clone(), listener.clone(), tcp));
            }
            Err(error) => {
                tracing::warn!(%error, "no client was accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn client(core: Arc<Core>, listener: Arc<Listener>, tcp: TcpStream) {
    match &listener.kind {
        ListenerKind::Forward(destination) => straight(&core, &listener, tcp, destination.clone()).await,
        ListenerKind::Transparent => match tcp.local_addr() {
            // The kernel leaves the address to which the client has connected.
            Ok(at) if at != listener.address => straight(&core, &listener, tcp, Destination::from(at)).await,
            // Who connects to the listener itself says no destination.
            _ => {
                core.metrics.bad_requests_total.add(1);
                let _ = super::tunnel::prepare(&tcp);
            }
        },
        ListenerKind::Socks | ListenerKind::Http => {
            // Those that do not come to the point take no places of connections, which have a bound of their own.
            let Some(request) = core.request() else { return turn_away(&core, &tcp) };
            if listener.kind == ListenerKind::Socks {
                socks::serve(&core, &listener, tcp, request).await;
            } else {
                http::serve(&core, &listener, tcp, request).await;
            }
        }
        ListenerKind::Udp { .. } => unreachable!("datagrams have no connections"),
    }
}

/// A client whose destination is known from the beginning.
async fn straight(core: &Core, listener: &Listener, tcp: TcpStream, destination: Destination) {
    let Some(place) = core.place() else { return turn_away(core, &tcp) };
    let dscp = core.dscp_of(&tcp);
    if super::tunnel::prepare(&tcp).is_ok()
        && let Some(opening) = core.open(&listener.to, destination, dscp, place)
    {
        opening.carry(core, tcp, &[]).await;
    }
}

/// A client for whom there is no room is told so at once, by RST.
fn turn_away(core: &Core, tcp: &TcpStream) {
    core.metrics.turned_away_total.add(1);
    let _ = super::tunnel::prepare(tcp);
}
