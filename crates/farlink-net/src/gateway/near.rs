//! The near side: takes connections of clients and asks the other gateway for those to their destinations.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::config::{Listener, ListenerKind};
use super::core::Core;
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
    // Who is turned away is told at once, by RST.
    let turn_away = || {
        core.metrics.turned_away_total.add(1);
        let _ = super::tunnel::prepare(&tcp);
    };
    match &listener.kind {
        ListenerKind::Forward(destination) => {
            let Some(place) = core.place() else { return turn_away() };
            if super::tunnel::prepare(&tcp).is_ok()
                && let Some(opening) = core.open(&listener.to, destination.clone(), place)
            {
                opening.carry(&core, tcp, &[]).await;
            }
        }
        ListenerKind::Socks | ListenerKind::Http => {
            // Those that do not come to the point take no places of connections, which have a bound of their own.
            let Some(request) = core.request() else { return turn_away() };
            if listener.kind == ListenerKind::Socks {
                socks::serve(&core, &listener, tcp, request).await;
            } else {
                http::serve(&core, &listener, tcp, request).await;
            }
        }
        ListenerKind::Udp { .. } => unreachable!("datagrams have no connections"),
    }
}
